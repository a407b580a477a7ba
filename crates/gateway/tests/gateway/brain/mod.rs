//! Conversations: a real gateway, a model that the test plays, and a sandbox in memory.

mod choices;
mod crash;
mod knowing;
mod many;
mod relay;
mod room;
mod stage;
mod turns;
mod watching;
mod whereabouts;
