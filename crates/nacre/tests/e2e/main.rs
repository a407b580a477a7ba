//! The whole computer: the real binary, the real driver, real sandboxes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod access;
mod browser;
mod computer;
mod conversations;
mod conversations_kept;
mod copies;
mod egress;
mod front;
mod isolation;
mod knowledge;
mod life;
mod models;
mod one_shot;
mod ownership;
mod past;
mod ports;
mod pty;
mod roles;
mod running;
mod script;
mod secrets;
mod terminals;
mod unprivileged;
