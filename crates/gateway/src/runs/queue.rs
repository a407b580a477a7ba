//! Whose turn it is. Pure: no clock, no task.
//!
//! Runs stand in one line in the order in which they came, and as many as may run at once are at its
//! head. Nobody is overtaken, and nobody who runs has to wait again.

use std::collections::VecDeque;

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Now,
    /// So many have to end before.
    After(usize),
}

#[derive(Debug)]
pub(super) struct Queue {
    at_once: usize,
    most_waiting: usize,
    line: VecDeque<String>,
}

impl Queue {
    pub(super) fn new(at_once: usize, most_waiting: usize) -> Self {
        Self { at_once: at_once.max(1), most_waiting, line: VecDeque::new() }
    }

    /// `false` when too many wait already.
    pub(super) fn join(&mut self, id: &str) -> bool {
        if self.line.len() >= self.at_once + self.most_waiting {
            return false;
        }
        self.line.push_back(id.to_owned());
        true
    }

    /// `None` for who is not in the line.
    pub(super) fn turn(&self, id: &str) -> Option<Turn> {
        let index = self.line.iter().position(|other| other == id)?;
        Some(match index.checked_sub(self.at_once) {
            None => Turn::Now,
            Some(waiting_before) => Turn::After(waiting_before + 1),
        })
    }

    pub(super) fn leave(&mut self, id: &str) {
        self.line.retain(|other| other != id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(queue: &Queue, ids: &[&str]) -> Vec<Option<Turn>> {
        ids.iter().map(|id| queue.turn(id)).collect()
    }

    #[test]
    fn as_many_as_may_run_and_the_others_wait_in_order() {
        use Turn::{After, Now};
        let mut queue = Queue::new(2, 2);
        for id in ["a", "b", "c", "d"] {
            assert!(queue.join(id), "{id}");
        }
        assert!(!queue.join("e"), "two run and two wait");
        let all = ["a", "b", "c", "d", "e"];
        let wait = |n| Some(After(n));
        assert_eq!(turns(&queue, &all), [Some(Now), Some(Now), wait(1), wait(2), None]);
        queue.leave("b");
        assert_eq!(turns(&queue, &all), [Some(Now), None, Some(Now), wait(1), None]);
        // One that gives up waiting makes room behind it, and none that runs is sent back.
        queue.leave("d");
        assert!(queue.join("e"));
        assert_eq!(turns(&queue, &all), [Some(Now), None, Some(Now), None, wait(1)]);
    }

    #[test]
    fn there_is_always_room_for_one() {
        let mut queue = Queue::new(0, 0);
        assert!(queue.join("a"));
        assert_eq!(queue.turn("a"), Some(Turn::Now));
        assert!(!queue.join("b"));
    }
}
