//! Conversations: a real gateway, a model that the test plays, and a sandbox in memory.

mod crash;
mod many;
mod relay;
mod stage;
mod turns;
mod watching;
