//! What a request or a crash leads to. Pure: no clock, no driver, no task.
//!
//! ```text
//!              start                pause
//!   Stopped ─────────▶ Running ◀──────────▶ Paused
//!      ▲  ▲              │  ▲      resume
//!      │  └── stop ──────┤  │ start again after a wait
//!      │                 ▼  │
//!      └── stop ── Restarting ──▶ Failed (crash loop, or could not start)
//! ```

use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Stopped,
    Running,
    Paused,
    /// Its supervisor ended by itself and is started again after a wait.
    Restarting,
    Failed,
}

/// What somebody asks of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Start,
    Stop,
    /// Stop and start, with nobody in between.
    Restart,
    Pause,
    Resume,
    Destroy,
    /// Stop for as long as the gateway is down; the next gateway starts it again.
    Halt,
}

/// What to do with the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Start,
    Stop,
    Restart,
    Pause,
    Resume,
    Destroy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Do(Action),
    /// It is so already.
    Nothing,
    /// Not in this phase; the text completes "it is ...".
    Refuse {
        is: &'static str,
        hint: &'static str,
    },
}

pub(crate) fn decide(phase: Phase, op: Op) -> Verdict {
    use Verdict::{Do, Nothing, Refuse};
    const NOT_RUNNING: Verdict =
        Refuse { is: "not running", hint: "start it first: nacre sandbox start NAME" };
    match (op, phase) {
        (Op::Destroy, _) => Do(Action::Destroy),
        (Op::Start, Phase::Stopped | Phase::Restarting | Phase::Failed)
        | (Op::Restart, Phase::Stopped) => Do(Action::Start),
        (Op::Start, Phase::Running) => Nothing,
        (Op::Start, Phase::Paused) => {
            Refuse { is: "paused", hint: "resume it instead: nacre sandbox resume NAME" }
        }
        (Op::Stop | Op::Halt, Phase::Stopped) => Nothing,
        (Op::Stop, _) => Do(Action::Stop),
        (Op::Restart, _) => Do(Action::Restart),
        (Op::Halt, Phase::Running | Phase::Paused | Phase::Restarting | Phase::Failed) => {
            Do(Action::Stop)
        }
        (Op::Pause, Phase::Running) => Do(Action::Pause),
        (Op::Pause, Phase::Paused) | (Op::Resume, Phase::Running) => Nothing,
        (Op::Resume, Phase::Paused) => Do(Action::Resume),
        (Op::Pause | Op::Resume, Phase::Stopped | Phase::Restarting | Phase::Failed) => NOT_RUNNING,
    }
}

/// How a sandbox whose supervisor ends by itself is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartPolicy {
    pub first_wait: Duration,
    /// Each wait is twice the one before, up to this.
    pub longest_wait: Duration,
    /// After this many in a row it has failed.
    pub attempts: u32,
    /// Having run this long, the next crash counts as the first.
    pub steady_after: Duration,
}

impl Default for RestartPolicy {
    fn default() -> Self {
        Self {
            first_wait: Duration::from_millis(200),
            longest_wait: Duration::from_secs(30),
            attempts: 8,
            steady_after: Duration::from_secs(60),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterCrash {
    StartAfter(Duration),
    GiveUp,
}

impl RestartPolicy {
    /// `earlier` crashes came one after another before this one. Returns the new count too.
    pub(crate) fn after_crash(&self, earlier: u32, ran_for: Duration) -> (u32, AfterCrash) {
        let earlier = if ran_for >= self.steady_after { 0 } else { earlier };
        let crashes = earlier.saturating_add(1);
        if crashes > self.attempts {
            return (crashes, AfterCrash::GiveUp);
        }
        let factor = 2u32.saturating_pow(earlier);
        let wait = self.first_wait.saturating_mul(factor).min(self.longest_wait);
        (crashes, AfterCrash::StartAfter(wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_does_one_thing_in_each_phase() {
        use Phase::{Failed, Paused, Restarting, Running, Stopped};
        let expected = [
            // phase, start, stop, restart, pause, resume, destroy, halt
            (Stopped, "start nothing start refuse refuse destroy nothing"),
            (Running, "nothing stop restart pause nothing destroy stop"),
            (Paused, "refuse stop restart nothing resume destroy stop"),
            (Restarting, "start stop restart refuse refuse destroy stop"),
            (Failed, "start stop restart refuse refuse destroy stop"),
        ];
        for (phase, row) in expected {
            let ops =
                [Op::Start, Op::Stop, Op::Restart, Op::Pause, Op::Resume, Op::Destroy, Op::Halt];
            let got: Vec<_> = ops.map(|op| word(decide(phase, op))).into();
            assert_eq!(got.join(" "), row, "{phase:?}");
        }
    }

    fn word(verdict: Verdict) -> String {
        match verdict {
            Verdict::Do(action) => format!("{action:?}").to_lowercase(),
            Verdict::Nothing => "nothing".to_owned(),
            Verdict::Refuse { .. } => "refuse".to_owned(),
        }
    }

    #[test]
    fn waits_double_up_to_the_longest_and_then_it_has_failed() {
        let policy = RestartPolicy { attempts: 10, ..Default::default() };
        let mut crashes = 0;
        let mut waits = Vec::new();
        loop {
            let (count, next) = policy.after_crash(crashes, Duration::from_secs(1));
            crashes = count;
            match next {
                AfterCrash::StartAfter(wait) => waits.push(wait.as_millis()),
                AfterCrash::GiveUp => break,
            }
        }
        assert_eq!(waits, [200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000]);
    }

    #[test]
    fn a_steady_run_forgives_what_came_before() {
        let policy = RestartPolicy::default();
        let next = policy.after_crash(8, policy.steady_after);
        assert_eq!(next, (1, AfterCrash::StartAfter(policy.first_wait)));
        let next = policy.after_crash(8, policy.steady_after - Duration::from_millis(1));
        assert_eq!(next, (9, AfterCrash::GiveUp));
    }
}
