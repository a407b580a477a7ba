//! The gateway from outside, with a driver that keeps its sandboxes in memory.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod framing;
mod host;
mod lifecycle;
mod paths;
mod proxy;
mod recovery;
mod sign_in;
mod tls;
mod way_up;
mod world;
