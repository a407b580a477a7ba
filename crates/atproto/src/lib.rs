//! Who somebody is, by the AT Protocol, and nothing more.
//!
//! ```text
//!  begin    DID ─▶ document ─▶ PDS ─▶ authorization server ─▶ PAR ─▶ address for the browser
//!  finish   callback ─▶ token ─▶ revoke ─▶ the subject's DID ─▶ document ─▶ same server?
//! ```
//!
//! The client asks for the scope `atproto`, which only says who it is, gives the tokens back at once
//! and keeps none. What a server claims about a subject counts only when the subject's own document
//! names that server. Every answer is bounded in size and time, never a redirect, and comes from an
//! address that is checked before it is connected to ([`Network`]).
//!
//! State lives with the caller: a [`Flow`] is one sign-in under way, to be kept until its callback
//! comes and to be given away with it.

mod address;
mod app;
mod callback;
mod client;
mod did;
mod dns;
mod error;
mod flow;
mod handle;
mod identity;
mod jwt;
mod keys;
mod metadata;
mod network;
mod place;
mod random;
mod resolver;
mod token;

#[cfg(feature = "testing")]
pub mod testing;

pub use address::is_public;
pub use app::App;
pub use callback::{Callback, Query};
pub use client::Client;
pub use did::Did;
pub use error::Error;
pub use flow::{Flow, SignedIn, Started};
pub use handle::Handle;
pub use identity::Identity;
pub use keys::{KeyError, SigningKey};
pub use network::{Network, Reach};
pub use place::Origin;
pub use resolver::{Answer, Resolve, System};
