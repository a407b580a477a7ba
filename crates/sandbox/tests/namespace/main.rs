//! The namespace driver on the real kernel. `NACRE_GUEST` names the guest binary to run, which
//! `cargo xtask test` builds.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod blank;
mod conformance;
mod crash;
mod escape;
mod fork;
mod history;
mod limits;
mod machine;
mod network;
mod rootfs;
mod shared;
mod unprivileged;
