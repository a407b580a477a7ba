//! Every file call against a real kernel, over a real socket.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "files/archives.rs"]
mod archives;
#[path = "files/calls.rs"]
mod calls;
#[path = "files/conditions.rs"]
mod conditions;
#[path = "files/harness.rs"]
mod harness;
#[path = "files/identity.rs"]
mod identity;
#[path = "files/paths.rs"]
mod paths;
#[path = "files/races.rs"]
mod races;
#[path = "files/ranges.rs"]
mod ranges;
#[path = "files/uploads.rs"]
mod uploads;
