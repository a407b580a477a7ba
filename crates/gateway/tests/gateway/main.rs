//! The gateway from outside, with a driver that keeps its sandboxes in memory.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod board;
mod bodies;
mod brain;
mod browser;
mod desktop;
mod egress;
mod framing;
mod host;
mod hostile;
mod http2;
mod knowledge;
mod lean;
mod lifecycle;
mod lost;
mod messages;
mod models;
mod observe;
mod owner;
mod pages;
mod paths;
mod ports;
mod promote;
mod proxy;
mod raw;
mod recovery;
mod roles;
mod runs;
mod same;
mod seed_001;
mod sessions;
mod sign_in;
mod swap;
mod tls;
mod tokens;
mod upgrades;
mod watch;
mod way_up;
mod world;
