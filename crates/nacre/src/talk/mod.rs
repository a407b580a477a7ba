//! A conversation on a terminal: how its events look, and one turn of it from beginning to end.

mod screen;
pub(crate) mod turn;
mod typed;

pub(crate) use screen::Screen;
pub(crate) use typed::Typed;
