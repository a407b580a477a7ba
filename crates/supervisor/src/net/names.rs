//! Names and the addresses that stand for them: given out in turn, and taken from the one that was
//! used longest ago when there are no more. Pure.
//!
//! Programs remember addresses longer than the process lives that gave them out. So each process has a
//! part of the addresses that those before it did not have: what a program remembers from then stands for
//! nothing, and never for somebody else.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use nacre_launch::device::ADDRESS;

/// Names that are known at a time.
const MOST: u32 = 16_384;
/// 198.18.0.0/24 is for the device itself.
const OFFSET: u32 = 255;
/// Processes until addresses are given out again: as many parts as 198.18.0.0/15 has.
const TURNS: u32 = ((1 << 17) - OFFSET) / MOST;

pub(super) struct Names {
    /// The sandbox's own, which is not somebody else's.
    own: String,
    /// What stands for the first name.
    first: u32,
    numbers: HashMap<String, u32>,
    known: Vec<(String, u64)>,
    clock: u64,
}

impl Names {
    /// `turn`: of how many processes it is.
    pub(super) fn new(own: &str, turn: u32) -> Self {
        let own = own.to_ascii_lowercase();
        let first = ADDRESS.to_bits() + OFFSET + turn % TURNS * MOST;
        Self { own, first, numbers: HashMap::new(), known: Vec::new(), clock: 0 }
    }

    /// The address for a name in lower case; `None` for those that have none.
    pub(super) fn address_of(&mut self, name: &str) -> Option<Ipv4Addr> {
        if name == "localhost" || name.ends_with(".localhost") {
            return Some(Ipv4Addr::LOCALHOST);
        }
        if name.is_empty() || name == self.own {
            return None;
        }
        let number = match self.numbers.get(name) {
            Some(number) => *number,
            None => self.give(name),
        };
        self.touch(number);
        Some(Ipv4Addr::from_bits(self.first + number))
    }

    /// What an address stands for.
    pub(super) fn name_of(&mut self, address: Ipv4Addr) -> Option<String> {
        let number = address.to_bits().checked_sub(self.first)?;
        let name = self.known.get(number as usize).map(|(name, _)| name.clone())?;
        self.touch(number);
        Some(name)
    }

    fn give(&mut self, name: &str) -> u32 {
        let number = if (self.known.len() as u32) < MOST {
            self.known.push((String::new(), 0));
            self.known.len() as u32 - 1
        } else {
            let oldest = self.known.iter().enumerate().min_by_key(|(_, (_, used))| *used);
            oldest.map_or(0, |(number, _)| number as u32)
        };
        if let Some(known) = self.known.get_mut(number as usize) {
            let before = std::mem::replace(&mut known.0, name.to_owned());
            self.numbers.remove(&before);
        }
        self.numbers.insert(name.to_owned(), number);
        number
    }

    fn touch(&mut self, number: u32) {
        self.clock += 1;
        if let Some(known) = self.known.get_mut(number as usize) {
            known.1 = self.clock;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_address_and_the_address_its_name() {
        let mut names = Names::new("Box", 0);
        let a = names.address_of("a.example").unwrap();
        let b = names.address_of("b.example").unwrap();
        assert_eq!(a, Ipv4Addr::new(198, 18, 1, 0));
        assert_ne!(a, b);
        assert_eq!(names.address_of("a.example"), Some(a));
        assert_eq!(names.name_of(b).as_deref(), Some("b.example"));
        assert_eq!(names.name_of(Ipv4Addr::new(198, 18, 0, 2)), None);
        assert_eq!(names.name_of(Ipv4Addr::new(1, 1, 1, 1)), None);
        assert_eq!(names.address_of("box"), None);
        assert_eq!(names.address_of("x.localhost"), Some(Ipv4Addr::LOCALHOST));
    }

    #[test]
    fn what_another_process_gave_out_means_nothing() {
        let mut before = Names::new("box", 0);
        let old: Vec<_> =
            (0..MOST).map(|n| before.address_of(&format!("{n}.a")).unwrap()).collect();
        for turn in 1..TURNS {
            let mut names = Names::new("box", turn);
            let fresh = (0..MOST).map(|n| names.address_of(&format!("{n}.b")).unwrap());
            let [198, 18 | 19, ..] = fresh.last().unwrap().octets() else { panic!("{turn}") };
            assert!(old.iter().all(|address| names.name_of(*address).is_none()), "{turn}");
        }
        assert_eq!(Names::new("box", TURNS).address_of("0.c"), Some(old[0]));
    }

    #[test]
    fn the_one_that_was_used_longest_ago_makes_room() {
        let mut names = Names::new("box", 0);
        let first = names.address_of("0.example").unwrap();
        for number in 1..MOST {
            names.address_of(&format!("{number}.example"));
        }
        names.name_of(first);
        let second = names.address_of("1.example").unwrap();
        names.name_of(first);
        assert_eq!(names.name_of(second).as_deref(), Some("1.example"));
        let third = Ipv4Addr::from_bits(second.to_bits() + 1);
        assert_eq!(names.address_of("new.example"), Some(third));
        assert_eq!(names.name_of(first).as_deref(), Some("0.example"));
        assert_eq!(names.known.len() as u32, MOST);
        assert_eq!(names.numbers.len() as u32, MOST);
    }
}
