//! The beginning of a run: what is asked for is checked, given a folder, and handed to its task.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use nacre_wire::runs::{RunInfo, RunLimits, RunState, RunUsage, StartRun};
use nacre_wire::{ApiError, ErrorKind};

use super::agents::Agent;
use super::log::EventLog;
use super::record::Folder;
use super::run::{Ordered, Run};
use super::stages::Job;
use super::{Place, Runs};
use crate::clock::now_ms;
use crate::provider::{Chosen, Dollars};
use crate::secret::random_id;

const LONGEST_SPEC: usize = 1 << 20;
const LONGEST_TITLE: usize = 80;
const MOST_STEPS: u64 = 1000;
const LONGEST_TIME: Duration = Duration::from_secs(24 * 60 * 60);

impl Runs {
    /// What cannot work is refused here, before anything is begun.
    pub(crate) fn begin(&self, wanted: StartRun) -> Result<RunInfo, ApiError> {
        if self.stops() {
            return Err(ApiError::new(ErrorKind::Unavailable, "the gateway is stopping"));
        }
        let order = self.check(wanted)?;
        let id = random_id("run-").map_err(|error| ApiError::io("random numbers", &error))?;
        // Before anything is written: a run that is refused leaves nothing.
        let place = match order.input {
            true => None,
            false => Some(self.join(&id)?),
        };
        let run = Arc::new(self.lay_out(&id, &order)?);
        let info = run.info();
        self.table().insert(id.clone(), run.clone());
        if !order.detach {
            run.expect_somebody();
        }
        let job = Job { runs: self.clone(), run, id, order };
        self.0.tasks.spawn(job.drive(place));
        Ok(info)
    }

    /// What one may use when nobody says.
    pub(crate) fn usual(&self) -> RunLimits {
        let config = self.config();
        RunLimits {
            max_steps: config.max_steps,
            timeout_ms: u64::try_from(config.timeout.as_millis()).unwrap_or(u64::MAX),
            dollars: config.dollars.map(Dollars::as_f64),
            tokens: config.tokens.filter(|most| *most > 0),
        }
    }

    pub(super) fn join(&self, id: &str) -> Result<Place, ApiError> {
        if self.line().queue().join(id) {
            return Ok(Place::of(self.clone(), id));
        }
        let message = format!("{} runs wait already", self.config().most_waiting);
        let hint = "try again when some have ended: nacre runs; or raise most_waiting in [runs]";
        Err(ApiError::new(ErrorKind::TooMany, message).hint(hint))
    }

    fn check(&self, wanted: StartRun) -> Result<Ordered, ApiError> {
        let invalid = |message: String| Err(ApiError::new(ErrorKind::InvalidRequest, message));
        let config = self.config();
        if wanted.spec.trim().is_empty() {
            return invalid("the task is empty".to_owned());
        }
        if wanted.spec.len() > LONGEST_SPEC {
            return invalid(format!("a task has at most {} KiB", LONGEST_SPEC >> 10));
        }
        let agent = Agent::parse(wanted.agent.as_deref().unwrap_or("nacre").trim());
        if agent.name().is_empty() {
            return invalid("the agent is empty".to_owned());
        }
        if agent == Agent::Nacre && config.program.0.is_empty() {
            return invalid("this gateway carries no agent of its own".to_owned());
        }
        if agent != Agent::Nacre && wanted.max_steps.is_some() {
            let message = format!("how often {} asks its model cannot be limited", agent.name());
            let hint = "what it may cost and how long it may take can: --budget and --timeout";
            return Err(ApiError::new(ErrorKind::InvalidRequest, message).hint(hint));
        }
        let max_steps = wanted.max_steps.unwrap_or(config.max_steps);
        if !(1..=MOST_STEPS).contains(&max_steps) {
            return invalid(format!("a run takes between 1 and {MOST_STEPS} steps"));
        }
        let time = wanted.timeout_ms.map_or(config.timeout, Duration::from_millis);
        if time.is_zero() || time > LONGEST_TIME {
            return invalid("a run takes more than no time and at most a day".to_owned());
        }
        let dollars = match wanted.dollars {
            None => config.dollars.map(Dollars::as_f64),
            Some(amount) if Dollars::new(amount).is_none() => {
                return invalid(format!("{amount} is not an amount of dollars"));
            }
            Some(amount) => (amount > 0.0).then_some(amount),
        };
        let tokens = wanted.tokens.or(config.tokens).filter(|most| *most > 0);
        let model = self.choose(&agent, wanted.model)?;
        let timeout_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Ok(Ordered {
            spec: wanted.spec,
            agent,
            model,
            limits: RunLimits { max_steps, timeout_ms, dollars, tokens },
            input: wanted.input,
            keep: wanted.keep,
            detach: wanted.detach,
        })
    }

    fn choose(&self, agent: &Agent, named: Option<String>) -> Result<Option<Chosen>, ApiError> {
        let Some(text) = named.or_else(|| self.config().model.clone()) else {
            if !agent.needs_model() {
                return Ok(None);
            }
            let message = "no model is named, and nacre.toml names none";
            let hint = match self.models().has_providers() {
                true => {
                    "say --model PROVIDER/MODEL, or put model = \"PROVIDER/MODEL\" below [agent] in nacre.toml"
                }
                false => {
                    "add a provider first: nacre provider add openai; then say --model openai/MODEL"
                }
            };
            return Err(ApiError::new(ErrorKind::InvalidRequest, message).hint(hint));
        };
        let chosen = self.models().choose(&text)?;
        agent.check(&chosen)?;
        Ok(Some(chosen))
    }

    /// A folder, a log, and what is shown of it.
    fn lay_out(&self, id: &str, order: &Ordered) -> Result<Run, ApiError> {
        let info = RunInfo {
            id: id.to_owned(),
            state: if order.input { RunState::Waiting } else { RunState::Queued },
            title: title(&order.spec),
            agent: order.agent.name().to_owned(),
            model: order.model.as_ref().map(ToString::to_string),
            limits: order.limits,
            detached: order.detach,
            created_at: now_ms(),
            started_at: None,
            ended_at: None,
            used: RunUsage::default(),
            outcome: None,
            changes: None,
            sandbox: None,
        };
        let place = self.0.folder.join(id);
        let failed = |error: io::Error| ApiError::io(place.display(), &error);
        let folder = Folder::create(&self.0.folder, id).map_err(failed)?;
        let log = EventLog::create(folder.events()).map_err(failed)?;
        folder.save(&info).map_err(failed)?;
        Ok(Run::new(folder, log, info, &self.0.stop))
    }
}

/// The first line that says something, as far as it fits.
fn title(spec: &str) -> String {
    let line = spec.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().filter(|c| !c.is_control()).take(LONGEST_TITLE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_called_by_the_beginning_of_its_task() {
        assert_eq!(title("\n  # Build it\nnow"), "# Build it");
        assert_eq!(title(&"x".repeat(100)).len(), LONGEST_TITLE);
        assert_eq!(title("a\u{1b}[31mb"), "a[31mb");
    }
}
