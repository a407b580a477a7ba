//! What crosses the door between a sandbox and its host.
//!
//! The crate owns three things and no state: the JSON types of the supervisor's API
//! ([`exec`], [`files`], [`watch`], [`processes`], [`ports`], [`events`], [`desktop`], [`status`]) and of the gateway's
//! control plane ([`control`], [`roles`], [`access`], [`models`], [`runs`], [`conductor`], [`knowledge`]), the protocol generation both sides negotiate ([`generation`]), and
//! (feature `client`) a typed client that speaks it over any byte stream ([`client`]) with the parts of a proxy
//! ([`relay`]). Feature
//! `openapi` describes the calls for other languages.
//!
//! A running sandbox keeps the supervisor it was started with, so these types only ever grow:
//! new fields are optional, unknown fields are ignored, and a change that an old supervisor
//! could not understand raises [`generation::CURRENT`].

pub mod access;
#[cfg(feature = "client")]
pub mod client;
pub mod conductor;
pub mod control;
pub mod desktop;
pub mod egress;
pub mod error;
pub mod events;
pub mod exec;
pub mod files;
pub mod generation;
pub mod history;
pub mod knowledge;
pub mod models;
#[cfg(feature = "openapi")]
pub mod openapi;
pub mod path;
pub mod ports;
pub mod processes;
#[cfg(feature = "client")]
pub mod relay;
pub mod roles;
pub mod runs;
pub mod status;
pub mod watch;

pub use error::{ApiError, ErrorKind};
pub use path::WirePath;
