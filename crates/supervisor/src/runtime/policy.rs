//! What becomes of one process: a pure function of what it was and what happened.
//!
//! ```text
//!            start                    ready
//! stopped ─────────▶ starting ───────────────▶ ready
//!    ▲                 │  ▲                      │
//!    │                 │  └── due ── backing-off ◀┤ ended
//!    │ ended           │             crash-looping│
//! stopping ◀── stop ───┴───────────── failed ◀────┘ (when it is not to be restarted)
//! ```
//! One that is starting for too long is overdue: it is ended, and that counts as an end of its own.
//!
//! Time is a duration since any fixed moment, and chance a number from 0 to 1, both given.

use std::collections::VecDeque;
use std::time::Duration;

use nacre_wire::processes::ProcessState;

use super::config::Restart;

const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(15);
/// So many ends in so short a time are a crash loop.
const LOOP_ENDS: usize = 5;
const LOOP_SPAN: Duration = Duration::from_secs(60);
const LOOP_WAIT: Duration = Duration::from_secs(30);
/// After this long in one run, earlier ends count no more.
const STABLE: Duration = Duration::from_secs(30);
/// How much longer than planned a wait may be, so that what fell together rises apart.
const JITTER: f64 = 0.25;

/// What the file says about starting and starting again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) restart: Restart,
    /// How long a start may take.
    pub(crate) patience: Duration,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Policy {
    pub(crate) rules: Rules,
    phase: Phase,
    /// The last ends nobody asked for, oldest first.
    ends: VecDeque<Duration>,
    /// Ends in a row without a stable run in between.
    streak: u32,
    looping: bool,
    pub(crate) restarts: u64,
    pub(crate) runs: u64,
}

#[derive(Debug, Clone, PartialEq)]
enum Phase {
    Stopped,
    Starting {
        since: Duration,
    },
    /// It took too long and is being ended.
    Overdue {
        since: Duration,
    },
    Ready {
        since: Duration,
    },
    Stopping {
        then: Then,
    },
    Waiting {
        until: Duration,
    },
    Failed,
}

/// After an end that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Rest,
    Start,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    Start,
    Stop,
    Restart,
    /// What it runs was changed: as for a restart, if it is meant to run at all.
    Changed,
    Ready,
    Ended(Outcome),
    /// Time has passed.
    Tick,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Well,
    Badly,
}

/// What is to be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Nothing,
    Start,
    /// End the one that runs; its end comes as [`Event::Ended`].
    End,
    /// The same, because it is not ready in time.
    GiveUp,
}

impl Policy {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            rules,
            phase: Phase::Stopped,
            ends: VecDeque::new(),
            streak: 0,
            looping: false,
            restarts: 0,
            runs: 0,
        }
    }

    pub(crate) fn state(&self) -> ProcessState {
        match self.phase {
            Phase::Stopped => ProcessState::Stopped,
            Phase::Starting { .. } | Phase::Overdue { .. } => ProcessState::Starting,
            Phase::Ready { .. } => ProcessState::Ready,
            Phase::Stopping { .. } => ProcessState::Stopping,
            Phase::Waiting { .. } if self.looping => ProcessState::CrashLooping,
            Phase::Waiting { .. } => ProcessState::BackingOff,
            Phase::Failed => ProcessState::Failed,
        }
    }

    pub(crate) fn is_overdue(&self) -> bool {
        matches!(self.phase, Phase::Overdue { .. })
    }

    /// How often in a row it ended and nobody asked for that.
    pub(crate) fn streak(&self) -> u32 {
        self.streak
    }

    /// When the next try is due.
    pub(crate) fn next_try(&self) -> Option<Duration> {
        match self.phase {
            Phase::Waiting { until } => Some(until),
            _ => None,
        }
    }

    /// When the next [`Event::Tick`] is wanted.
    pub(crate) fn due(&self) -> Option<Duration> {
        match self.phase {
            Phase::Waiting { until } => Some(until),
            Phase::Starting { since } => Some(since + self.rules.patience),
            Phase::Stopped
            | Phase::Overdue { .. }
            | Phase::Ready { .. }
            | Phase::Stopping { .. }
            | Phase::Failed => None,
        }
    }

    pub(crate) fn on(&mut self, event: Event, now: Duration, chance: f64) -> Action {
        match event {
            Event::Start => self.start_asked(now),
            Event::Stop => self.stop_asked(),
            Event::Restart => self.restart_asked(now),
            Event::Changed => match self.phase {
                Phase::Stopped | Phase::Stopping { then: Then::Rest } => Action::Nothing,
                Phase::Starting { .. }
                | Phase::Overdue { .. }
                | Phase::Ready { .. }
                | Phase::Stopping { then: Then::Start }
                | Phase::Waiting { .. }
                | Phase::Failed => self.restart_asked(now),
            },
            Event::Ready => {
                if let Phase::Starting { since } = self.phase {
                    self.phase = Phase::Ready { since };
                }
                Action::Nothing
            }
            Event::Ended(outcome) => self.ended(outcome, now, chance),
            Event::Tick if self.due().is_none_or(|due| due > now) => Action::Nothing,
            Event::Tick => match self.phase {
                Phase::Waiting { .. } => {
                    self.restarts += 1;
                    self.begin(now)
                }
                Phase::Starting { since } => {
                    self.phase = Phase::Overdue { since };
                    Action::GiveUp
                }
                _ => Action::Nothing,
            },
        }
    }

    fn start_asked(&mut self, now: Duration) -> Action {
        match self.phase {
            Phase::Stopped | Phase::Waiting { .. } | Phase::Failed => self.begin_afresh(now),
            Phase::Stopping { .. } => {
                self.phase = Phase::Stopping { then: Then::Start };
                Action::Nothing
            }
            Phase::Starting { .. } | Phase::Overdue { .. } | Phase::Ready { .. } => Action::Nothing,
        }
    }

    fn stop_asked(&mut self) -> Action {
        match self.phase {
            Phase::Starting { .. } | Phase::Ready { .. } => {
                self.phase = Phase::Stopping { then: Then::Rest };
                Action::End
            }
            Phase::Overdue { .. } | Phase::Stopping { .. } => {
                self.phase = Phase::Stopping { then: Then::Rest };
                Action::Nothing
            }
            Phase::Stopped | Phase::Waiting { .. } | Phase::Failed => {
                self.phase = Phase::Stopped;
                Action::Nothing
            }
        }
    }

    fn restart_asked(&mut self, now: Duration) -> Action {
        match self.phase {
            Phase::Starting { .. } | Phase::Ready { .. } => {
                self.phase = Phase::Stopping { then: Then::Start };
                Action::End
            }
            Phase::Overdue { .. } | Phase::Stopping { .. } => {
                self.phase = Phase::Stopping { then: Then::Start };
                Action::Nothing
            }
            Phase::Stopped | Phase::Waiting { .. } | Phase::Failed => self.begin_afresh(now),
        }
    }

    fn ended(&mut self, outcome: Outcome, now: Duration, chance: f64) -> Action {
        let stable = match self.phase {
            // A start that came to nothing is nothing that was well for long.
            Phase::Starting { .. } | Phase::Overdue { .. } => false,
            Phase::Ready { since } => now.saturating_sub(since) >= STABLE,
            Phase::Stopping { then: Then::Start } => return self.begin_afresh(now),
            Phase::Stopping { then: Then::Rest } => {
                self.phase = Phase::Stopped;
                return Action::Nothing;
            }
            Phase::Stopped | Phase::Waiting { .. } | Phase::Failed => return Action::Nothing,
        };
        if stable {
            self.forget();
        }
        self.phase = match (self.rules.restart, outcome) {
            (Restart::Always, _) | (Restart::OnFailure, Outcome::Badly) => {
                Phase::Waiting { until: now + self.wait(now, chance) }
            }
            (Restart::OnFailure | Restart::Never, Outcome::Well) => Phase::Stopped,
            (Restart::Never, Outcome::Badly) => Phase::Failed,
        };
        Action::Nothing
    }

    /// How long to wait after this end.
    fn wait(&mut self, now: Duration, chance: f64) -> Duration {
        self.ends.push_back(now);
        self.ends.retain(|end| now.saturating_sub(*end) <= LOOP_SPAN);
        while self.ends.len() > LOOP_ENDS {
            self.ends.pop_front();
        }
        self.looping |= self.ends.len() >= LOOP_ENDS;
        let doubled = FIRST_WAIT.saturating_mul(1 << self.streak.min(16));
        self.streak += 1;
        let planned = if self.looping { LOOP_WAIT } else { doubled.min(LONGEST_WAIT) };
        planned.mul_f64(1.0 + JITTER * chance.clamp(0.0, 1.0))
    }

    fn begin_afresh(&mut self, now: Duration) -> Action {
        self.forget();
        self.begin(now)
    }

    fn begin(&mut self, now: Duration) -> Action {
        self.runs += 1;
        self.phase = Phase::Starting { since: now };
        Action::Start
    }

    fn forget(&mut self) {
        self.ends.clear();
        self.streak = 0;
        self.looping = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BAD: Event = Event::Ended(Outcome::Badly);
    const WELL: Event = Event::Ended(Outcome::Well);

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    const PATIENCE: Duration = Duration::from_secs(60);

    fn started(restart: Restart) -> Policy {
        let mut policy = idle(restart);
        assert_eq!(policy.on(Event::Start, at(0), 0.0), Action::Start);
        policy
    }

    fn idle(restart: Restart) -> Policy {
        Policy::new(Rules { restart, patience: PATIENCE })
    }

    /// Ends it at `now` and returns how long it then waits.
    fn end_at(policy: &mut Policy, now: Duration, chance: f64) -> Duration {
        assert_eq!(policy.on(BAD, now, chance), Action::Nothing);
        policy.due().unwrap() - now
    }

    #[test]
    fn waits_double_until_it_is_a_crash_loop_and_then_are_long() {
        let mut policy = started(Restart::Always);
        let mut now = at(0);
        let mut waits = Vec::new();
        for _ in 0..7 {
            let wait = end_at(&mut policy, now, 0.0);
            waits.push((wait.as_millis(), policy.state()));
            now += wait;
            assert_eq!(policy.on(Event::Tick, now, 0.0), Action::Start);
        }
        let off = ProcessState::BackingOff;
        let looping = ProcessState::CrashLooping;
        assert_eq!(
            waits,
            [
                (250, off),
                (500, off),
                (1000, off),
                (2000, off),
                (30_000, looping),
                (30_000, looping),
                (30_000, looping)
            ]
        );
        assert_eq!((policy.restarts, policy.runs), (7, 8));
    }

    #[test]
    fn chance_only_makes_a_wait_longer() {
        for (chance, expected) in [(0.0, 250), (0.5, 281), (1.0, 312), (7.0, 312)] {
            let mut policy = started(Restart::Always);
            assert_eq!(end_at(&mut policy, at(0), chance).as_millis(), expected, "{chance}");
        }
    }

    #[test]
    fn a_stable_run_makes_up_for_what_was() {
        let mut policy = started(Restart::Always);
        let mut now = at(0);
        for _ in 0..5 {
            now += end_at(&mut policy, now, 0.0);
            policy.on(Event::Tick, now, 0.0);
        }
        policy.on(Event::Ready, now, 0.0);
        assert_eq!(end_at(&mut policy, now + STABLE, 0.0), FIRST_WAIT);
        assert_eq!(policy.state(), ProcessState::BackingOff);
    }

    #[test]
    fn who_is_restarted_depends_on_the_rule_and_the_end() {
        let check = |restart, event, expected| {
            let mut policy = started(restart);
            policy.on(event, at(1), 0.0);
            assert_eq!(policy.state(), expected, "{restart:?} {event:?}");
        };
        check(Restart::Always, WELL, ProcessState::BackingOff);
        check(Restart::Always, BAD, ProcessState::BackingOff);
        check(Restart::OnFailure, WELL, ProcessState::Stopped);
        check(Restart::OnFailure, BAD, ProcessState::BackingOff);
        check(Restart::Never, WELL, ProcessState::Stopped);
        check(Restart::Never, BAD, ProcessState::Failed);
    }

    #[test]
    fn a_stop_is_final_whatever_it_meets() {
        let mut running = started(Restart::Always);
        assert_eq!(running.on(Event::Stop, at(1), 0.0), Action::End);
        assert_eq!(running.state(), ProcessState::Stopping);
        assert_eq!(running.on(BAD, at(2), 0.0), Action::Nothing);
        assert_eq!((running.state(), running.due()), (ProcessState::Stopped, None));
        let mut waiting = started(Restart::Always);
        end_at(&mut waiting, at(1), 0.0);
        assert_eq!(waiting.on(Event::Stop, at(2), 0.0), Action::Nothing);
        assert_eq!(waiting.on(Event::Tick, at(99_999), 0.0), Action::Nothing);
        assert_eq!(waiting.state(), ProcessState::Stopped);
    }

    #[test]
    fn a_restart_waits_for_the_old_one_and_the_last_word_counts() {
        let mut policy = started(Restart::Never);
        assert_eq!(policy.on(Event::Restart, at(1), 0.0), Action::End);
        assert_eq!(policy.on(Event::Restart, at(2), 0.0), Action::Nothing);
        assert_eq!(policy.on(BAD, at(3), 0.0), Action::Start);
        policy.on(Event::Restart, at(4), 0.0);
        policy.on(Event::Stop, at(5), 0.0);
        assert_eq!(policy.on(BAD, at(6), 0.0), Action::Nothing);
        assert_eq!(policy.state(), ProcessState::Stopped);
        assert_eq!(policy.restarts, 0);
    }

    #[test]
    fn a_change_restarts_what_is_meant_to_run_and_only_that() {
        let mut stopped = idle(Restart::Always);
        assert_eq!(stopped.on(Event::Changed, at(1), 0.0), Action::Nothing);
        let mut failed = started(Restart::Never);
        failed.on(BAD, at(1), 0.0);
        assert_eq!(failed.on(Event::Changed, at(2), 0.0), Action::Start);
        assert_eq!(failed.on(Event::Changed, at(3), 0.0), Action::End);
    }

    #[test]
    fn a_start_that_takes_too_long_is_an_end_of_its_own() {
        let mut policy = started(Restart::Always);
        assert_eq!(policy.due(), Some(PATIENCE));
        assert_eq!(policy.on(Event::Tick, PATIENCE - at(1), 0.0), Action::Nothing);
        let mut waits = Vec::new();
        let mut now = at(0);
        for _ in 0..3 {
            now += PATIENCE;
            assert_eq!(policy.on(Event::Tick, now, 0.0), Action::GiveUp);
            assert_eq!((policy.state(), policy.due()), (ProcessState::Starting, None));
            // Too late.
            assert_eq!(policy.on(Event::Ready, now, 0.0), Action::Nothing);
            let wait = end_at(&mut policy, now, 0.0);
            waits.push(wait.as_millis());
            now += wait;
            assert_eq!(policy.on(Event::Tick, now, 0.0), Action::Start);
        }
        // However long it took, it was never well.
        assert_eq!((waits, policy.streak()), (vec![250, 500, 1000], 3));

        let mut never = started(Restart::Never);
        never.on(Event::Tick, PATIENCE, 0.0);
        never.on(BAD, PATIENCE, 0.0);
        assert_eq!(never.state(), ProcessState::Failed);
    }

    #[test]
    fn what_is_asked_for_while_a_late_start_is_ended_is_done() {
        let late = || {
            let mut policy = started(Restart::Always);
            policy.on(Event::Tick, PATIENCE, 0.0);
            policy
        };
        for event in [Event::Restart, Event::Changed] {
            let mut policy = late();
            assert_eq!(policy.on(event, PATIENCE, 0.0), Action::Nothing, "{event:?}");
            assert_eq!(policy.on(BAD, PATIENCE, 0.0), Action::Start, "{event:?}");
            assert_eq!(policy.streak(), 0, "{event:?}");
        }
        let mut policy = late();
        assert_eq!(policy.on(Event::Stop, PATIENCE, 0.0), Action::Nothing);
        policy.on(BAD, PATIENCE, 0.0);
        assert_eq!(policy.state(), ProcessState::Stopped);
    }

    #[test]
    fn an_end_that_comes_late_changes_nothing() {
        let mut policy = idle(Restart::Always);
        assert_eq!(policy.on(BAD, at(1), 0.0), Action::Nothing);
        assert_eq!(policy.on(Event::Ready, at(1), 0.0), Action::Nothing);
        assert_eq!(policy.state(), ProcessState::Stopped);
    }
}
