//! Connections of programs, and the numbers under which the kernel's other end knows them.
//!
//! ```text
//!  SYN ─▶ Asked ──connected──▶ Made ──take──▶ Joined ──ended──▶ Ended ─▶ forgotten after a while
//!           └──forget: refused  └──given up: reset by the program, or never let in
//! ```
//! A number is the port that the kernel sees as the peer's. They are given out in turn, so that one
//! is used again as late as possible.

use std::collections::{HashMap, VecDeque};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// Connections that may be known at a time.
const MOST: usize = 8192;
/// Below are ports that are not for everybody; zero is none.
const FIRST: u16 = 1024;
/// For the kernel to let in a program's connection that was made for it. A program that still waits does
/// so at once; one that has given up may say so, or nothing.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// The last segments of a connection may still come. As long as the kernel waits.
const LINGER: Duration = Duration::from_secs(60);

/// As a program sees its connection. Its own address is always the sandbox's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Flow {
    pub(super) from_port: u16,
    pub(super) to: Ipv4Addr,
    pub(super) to_port: u16,
}

enum State<S> {
    /// The SYN waits until there is a connection for it.
    Asked,
    /// There is one since then, for when the kernel has let the program's in.
    Made(S, Instant),
    Joined,
    Ended,
}

struct Known<S> {
    flow: Flow,
    state: State<S>,
}

/// What a segment of a program is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It begins a connection.
    Syn,
    /// It breaks one off.
    Reset,
    Other,
}

/// What to do with it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Pass(u16),
    Connect(u16),
    Wait,
    Refuse,
    /// Nobody expects an answer to it.
    Drop,
}

pub(super) struct Flows<S> {
    numbers: HashMap<Flow, u16>,
    known: HashMap<u16, Known<S>>,
    /// Those that ended, oldest first.
    ended: VecDeque<(Instant, u16)>,
    next: u16,
}

impl<S> Default for Flows<S> {
    fn default() -> Self {
        Self { numbers: HashMap::new(), known: HashMap::new(), ended: VecDeque::new(), next: FIRST }
    }
}

impl<S> Flows<S> {
    pub(super) fn of_number(&self, number: u16) -> Option<Flow> {
        self.known.get(&number).map(|known| known.flow)
    }

    pub(super) fn segment(&mut self, flow: Flow, kind: Kind, now: Instant) -> Step {
        self.sweep(now);
        let number = self.numbers.get(&flow).copied();
        let state = number.and_then(|number| self.known.get(&number)).map(|known| &known.state);
        match (number, state, kind) {
            (Some(number), Some(State::Ended), Kind::Syn) => {
                // The same port again, for a new connection.
                self.forget(number);
                self.begin(flow)
            }
            (Some(_), Some(State::Asked), _) => Step::Wait,
            (Some(number), Some(State::Made(..)), Kind::Reset) => {
                // It had given up before we were there; the kernel's other end is to know too.
                self.forget(number);
                Step::Pass(number)
            }
            (Some(number), Some(_), _) => Step::Pass(number),
            (_, _, Kind::Syn) => self.begin(flow),
            (_, _, Kind::Reset) => Step::Drop,
            (_, _, Kind::Other) => Step::Refuse,
        }
    }

    fn begin(&mut self, flow: Flow) -> Step {
        if self.known.len() >= MOST {
            match self.ended.pop_front() {
                Some((_, oldest)) => self.forget_ended(oldest),
                None => return Step::Refuse,
            }
        }
        // There are far more numbers than may be known, so one is free.
        while self.known.contains_key(&self.next) {
            self.advance();
        }
        let number = self.next;
        self.advance();
        self.numbers.insert(flow, number);
        self.known.insert(number, Known { flow, state: State::Asked });
        Step::Connect(number)
    }

    fn advance(&mut self) {
        self.next = self.next.checked_add(1).unwrap_or(FIRST);
    }

    pub(super) fn connected(&mut self, number: u16, stream: S, now: Instant) {
        if let Some(known) = self.known.get_mut(&number) {
            known.state = State::Made(stream, now);
        }
    }

    /// Forgets a connection that was made at `since`, if nobody has come for it.
    pub(super) fn give_up(&mut self, number: u16, since: Instant) {
        let state = self.known.get(&number).map(|known| &known.state);
        if matches!(state, Some(State::Made(_, made)) if *made == since) {
            self.forget(number);
        }
    }

    /// The connection that was made for this one, once.
    pub(super) fn take(&mut self, number: u16) -> Option<S> {
        let known = self.known.get_mut(&number)?;
        match std::mem::replace(&mut known.state, State::Joined) {
            State::Made(stream, _) => Some(stream),
            other => {
                known.state = other;
                None
            }
        }
    }

    pub(super) fn ended(&mut self, number: u16, now: Instant) {
        if let Some(known) = self.known.get_mut(&number) {
            known.state = State::Ended;
            self.ended.push_back((now, number));
        }
    }

    pub(super) fn forget(&mut self, number: u16) {
        if let Some(known) = self.known.remove(&number) {
            self.numbers.remove(&known.flow);
        }
    }

    /// Unless the number means another by now.
    fn forget_ended(&mut self, number: u16) {
        if matches!(self.known.get(&number), Some(Known { state: State::Ended, .. })) {
            self.forget(number);
        }
    }

    fn sweep(&mut self, now: Instant) {
        while let Some((at, number)) = self.ended.front().copied() {
            if now.saturating_duration_since(at) < LINGER {
                return;
            }
            self.ended.pop_front();
            self.forget_ended(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn flow(from_port: u16) -> Flow {
        Flow { from_port, to: Ipv4Addr::new(1, 1, 1, 1), to_port: 443 }
    }

    #[test]
    fn a_connection_is_asked_for_once_made_joined_and_forgotten() {
        let (mut flows, now) = (Flows::default(), Instant::now());
        assert_eq!(flows.segment(flow(1), Kind::Other, now), Step::Refuse);
        assert_eq!(flows.segment(flow(1), Kind::Syn, now), Step::Connect(1024));
        assert_eq!(flows.segment(flow(1), Kind::Syn, now), Step::Wait, "sent again meanwhile");
        assert_eq!(flows.take(1024), None::<&str>);
        flows.connected(1024, "made", now);
        assert_eq!(flows.segment(flow(1), Kind::Syn, now), Step::Pass(1024));
        assert_eq!((flows.take(1024), flows.take(1024)), (Some("made"), None));
        assert_eq!(flows.of_number(1024), Some(flow(1)));
        flows.ended(1024, now);
        assert_eq!(flows.segment(flow(1), Kind::Other, now), Step::Pass(1024), "its last words");
        assert_eq!(flows.segment(flow(1), Kind::Syn, now), Step::Connect(1025), "the port again");
        assert_eq!(flows.segment(flow(2), Kind::Other, now + LINGER), Step::Refuse);
        assert_eq!(flows.of_number(1024), None);
    }

    #[test]
    fn a_connect_that_was_given_up_is_forgotten() {
        let (mut flows, now) = (Flows::default(), Instant::now());
        let held = std::rc::Rc::new(());
        let make = |flows: &mut Flows<_>, port, number| {
            assert_eq!(flows.segment(flow(port), Kind::Syn, now), Step::Connect(number));
            flows.connected(number, std::rc::Rc::clone(&held), now);
        };
        // The program's kernel knows nothing of it any more, and says so when the SYN is answered.
        make(&mut flows, 1, FIRST);
        assert_eq!(flows.segment(flow(1), Kind::Reset, now), Step::Pass(FIRST));
        assert_eq!(flows.of_number(FIRST), None);
        assert_eq!(flows.segment(flow(1), Kind::Reset, now), Step::Drop, "nothing is answered");
        // Or it says nothing.
        make(&mut flows, 2, FIRST + 1);
        make(&mut flows, 3, FIRST + 2);
        assert_eq!(std::rc::Rc::strong_count(&held), 3);
        assert!(flows.take(FIRST + 2).is_some());
        for number in [FIRST + 1, FIRST + 2] {
            flows.give_up(number, now - PATIENCE);
            flows.give_up(number, now);
        }
        assert_eq!((flows.of_number(FIRST + 1), flows.of_number(FIRST + 2)), (None, Some(flow(3))));
        assert_eq!(std::rc::Rc::strong_count(&held), 1, "no connection is kept for nobody");
    }

    #[test]
    fn when_all_are_taken_the_oldest_that_ended_goes_first() {
        let (mut flows, now) = (Flows::<()>::default(), Instant::now());
        for port in 0..MOST as u16 {
            assert!(matches!(flows.segment(flow(port), Kind::Syn, now), Step::Connect(_)));
        }
        assert_eq!(flows.segment(flow(60_000), Kind::Syn, now), Step::Refuse);
        flows.ended(FIRST + 5, now);
        assert!(matches!(flows.segment(flow(60_000), Kind::Syn, now), Step::Connect(_)));
        assert_eq!(flows.of_number(FIRST + 5), None);
    }

    proptest! {
        #[test]
        fn both_tables_agree_whatever_happens(steps in prop::collection::vec((0..20_u16, 0..7_u8, 0..90_u64), 0..300)) {
            let (mut flows, mut now) = (Flows::default(), Instant::now());
            for (port, what, seconds) in steps {
                now += Duration::from_secs(seconds / 30);
                let number = FIRST + port;
                match what {
                    0 => { let _ = flows.segment(flow(port), Kind::Syn, now); }
                    1 => { let _ = flows.segment(flow(port), Kind::Other, now); }
                    2 => flows.connected(number, (), now),
                    5 => { let _ = flows.segment(flow(port), Kind::Reset, now); }
                    6 => flows.give_up(number, now),
                    3 => { let _ = flows.take(number); }
                    _ => flows.ended(number, now),
                }
                prop_assert_eq!(flows.numbers.len(), flows.known.len());
                for (flow, number) in &flows.numbers {
                    prop_assert_eq!(flows.of_number(*number), Some(*flow));
                }
            }
        }
    }
}
