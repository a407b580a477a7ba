//! How a run ended, from everything that is known about it. Pure.

use nacre_agent::events::Ended;
use nacre_wire::exec::Exit;
use nacre_wire::runs::{RunEnd, RunOutcome};

use super::agents::Agent;

const MORE_MEMORY: &str =
    "memory_bytes in [runs] of nacre.toml gives each run more, at_once lets fewer run together";

/// Why we ended an agent that did not end by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopped {
    TimeOut,
    Cancelled,
    /// The gateway stops.
    Interrupted,
}

/// What is known when an agent has ended.
#[derive(Debug)]
pub(super) struct Known<'a> {
    pub(super) agent: &'a Agent,
    pub(super) stopped: Option<Stopped>,
    /// What our own agent said last.
    pub(super) said: Option<Ended>,
    /// Absent when it had to be killed.
    pub(super) exit: Option<Exit>,
    /// Why a call was refused for want of budget.
    pub(super) spent: Option<&'a str>,
    /// The last line of its standard error.
    pub(super) complaint: Option<String>,
}

impl Known<'_> {
    pub(super) fn outcome(self) -> RunOutcome {
        let stopped = self.stopped.map(|stopped| match stopped {
            Stopped::TimeOut => RunEnd::TimeOut,
            Stopped::Cancelled => RunEnd::Cancelled,
            Stopped::Interrupted => RunEnd::Interrupted,
        });
        match (self.said.clone(), stopped) {
            // It was done when it was told to stop.
            (Some(Ended::Done), _) => RunOutcome::new(RunEnd::Done, None),
            (_, Some(stopped)) => RunOutcome::new(stopped, None),
            (Some(said), None) => self.told(said),
            (None, None) => self.by_exit(),
        }
    }

    fn told(&self, said: Ended) -> RunOutcome {
        let (how, message) = match said {
            Ended::Done => (RunEnd::Done, None),
            Ended::MaxSteps => (RunEnd::MaxSteps, None),
            Ended::TimeOut => (RunEnd::TimeOut, None),
            Ended::Budget(message) => (RunEnd::Budget, Some(message)),
            // Whatever the service made of our refusal, this is why.
            Ended::Model(message) => match self.spent {
                Some(why) => (RunEnd::Budget, Some(why.to_owned())),
                None => (RunEnd::Model, Some(message)),
            },
            Ended::Invalid(message) => (RunEnd::Invalid, Some(message)),
            Ended::Cancelled => (RunEnd::Cancelled, None),
            Ended::Interrupted => (RunEnd::Interrupted, None),
        };
        RunOutcome::new(how, message)
    }

    fn by_exit(&self) -> RunOutcome {
        let own = *self.agent == Agent::Nacre;
        match (&self.exit, self.spent) {
            (Some(Exit { code: Some(0), .. }), _) if !own => RunOutcome::new(RunEnd::Done, None),
            (_, Some(why)) => RunOutcome::new(RunEnd::Budget, Some(why.to_owned())),
            (exit, None) => {
                let message = Some(self.failure(exit.as_ref()));
                let hint = exit.as_ref().filter(|exit| exit.out_of_memory).map(|_| MORE_MEMORY);
                RunOutcome {
                    hint: hint.map(str::to_owned),
                    ..RunOutcome::new(RunEnd::Agent, message)
                }
            }
        }
    }

    fn failure(&self, exit: Option<&Exit>) -> String {
        let how = match exit {
            Some(exit) if exit.out_of_memory => "ran out of memory".to_owned(),
            Some(Exit { code: Some(code), .. }) => format!("ended with code {code}"),
            Some(Exit { signal: Some(signal), .. }) => format!("was ended by SIG{signal}"),
            Some(_) | None => "did not end".to_owned(),
        };
        match &self.complaint {
            Some(complaint) => format!("{} {how}: {complaint}", self.agent.name()),
            None => format!("{} {how}", self.agent.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(code: i32) -> Option<Exit> {
        Some(Exit { code: Some(code), signal: None, timed_out: false, out_of_memory: false })
    }

    fn check(change: impl FnOnce(&mut Known<'_>), how: RunEnd, message: Option<&str>) {
        let agent = Agent::Nacre;
        let mut known = Known {
            agent: &agent,
            stopped: None,
            said: None,
            exit: exit(0),
            spent: None,
            complaint: None,
        };
        change(&mut known);
        let outcome = known.outcome();
        assert_eq!((outcome.how, outcome.message.as_deref()), (how, message));
        assert_eq!(outcome.exit_code, how.exit_code());
    }

    #[test]
    fn our_own_agent_says_how_it_ended() {
        let cases = [
            (Ended::Done, RunEnd::Done, None),
            (Ended::MaxSteps, RunEnd::MaxSteps, None),
            (Ended::TimeOut, RunEnd::TimeOut, None),
            (Ended::Budget("b".to_owned()), RunEnd::Budget, Some("b")),
            (Ended::Model("m".to_owned()), RunEnd::Model, Some("m")),
            (Ended::Invalid("i".to_owned()), RunEnd::Invalid, Some("i")),
            (Ended::Cancelled, RunEnd::Cancelled, None),
            (Ended::Interrupted, RunEnd::Interrupted, None),
        ];
        for (said, how, message) in cases {
            assert_eq!(said.exit_code(), how.exit_code(), "both say the same to a script");
            check(|known| known.said = Some(said), how, message);
        }
        check(
            |known| {
                known.said = Some(Ended::Model("429".to_owned()));
                known.spent = Some("nothing left");
            },
            RunEnd::Budget,
            Some("nothing left"),
        );
    }

    #[test]
    fn what_we_did_to_it_counts_unless_it_was_done() {
        check(|known| known.stopped = Some(Stopped::TimeOut), RunEnd::TimeOut, None);
        check(
            |known| {
                known.stopped = Some(Stopped::Cancelled);
                known.said = Some(Ended::Cancelled);
                known.exit = exit(130);
            },
            RunEnd::Cancelled,
            None,
        );
        check(
            |known| {
                known.stopped = Some(Stopped::Interrupted);
                known.said = Some(Ended::Done);
            },
            RunEnd::Done,
            None,
        );
    }

    #[test]
    fn others_are_judged_by_their_exit() {
        static CODEX: Agent = Agent::Codex;
        check(|known| known.agent = &CODEX, RunEnd::Done, None);
        check(
            |known| {
                known.agent = &CODEX;
                known.exit = exit(1);
                known.complaint = Some("no such model".to_owned());
            },
            RunEnd::Agent,
            Some("codex ended with code 1: no such model"),
        );
        check(
            |known| {
                known.agent = &CODEX;
                known.exit = exit(1);
                known.spent = Some("nothing left");
            },
            RunEnd::Budget,
            Some("nothing left"),
        );
        let starved = Exit { code: None, signal: Some("KILL".to_owned()), ..exit(0).unwrap() };
        let starved = Exit { out_of_memory: true, ..starved };
        let (stopped, said, spent, complaint) = (None, None, None, None);
        let known = Known { agent: &CODEX, stopped, said, exit: Some(starved), spent, complaint };
        let outcome = known.outcome();
        assert_eq!(outcome.message.as_deref(), Some("codex ran out of memory"));
        assert!(outcome.hint.unwrap().contains("memory_bytes in [runs]"));
        // Ours always says how it ended; without that it has broken off.
        check(|known| known.exit = exit(0), RunEnd::Agent, Some("nacre ended with code 0"));
        check(|known| known.exit = None, RunEnd::Agent, Some("nacre did not end"));
    }
}
