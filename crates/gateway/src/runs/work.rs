//! While the agent works: every line is passed on the moment it is written, and it is ended when its
//! time is up or nobody wants it any more.

use std::time::Duration;

use nacre_agent::events::{Ended, Event, Update};
use nacre_wire::ApiError;
use nacre_wire::client::{ExecEvent, ExecInput};
use nacre_wire::exec::{Exit, Stream};
use nacre_wire::runs::{RunOutcome, RunUpdate, RunUsage};
use serde_json::Value;
use tokio::time::Instant;

use super::agents::Agent;
use super::lines::Lines;
use super::outcome::{Known, Stopped};
use super::stages::{Job, Ready};
use super::told;
use crate::provider::RunGrant;

/// How often what was used is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// For an agent that was asked to end.
const GRACE: Duration = Duration::from_secs(3);
/// Our own agent keeps its time itself; this is for one that does not.
const OWN_TIME: Duration = Duration::from_secs(3);
const LONGEST_COMPLAINT: usize = 400;

/// What was heard so far.
#[derive(Default)]
struct Heard {
    stdout: Lines,
    stderr: Lines,
    said: Option<Ended>,
    complaint: Option<String>,
}

impl Job {
    pub(super) async fn work(
        &self,
        ready: &Ready,
        grant: &RunGrant,
        until: Instant,
    ) -> Result<RunOutcome, ApiError> {
        let session = ready.client.exec(ready.plan.request.clone()).await.map_err(told)?;
        let (mut input, mut output) = session.split();
        if let Some(order) = &ready.plan.input {
            input.write(order.clone()).await.map_err(told)?;
            input.eof().await.map_err(told)?;
        }
        let own = self.order.agent == Agent::Nacre;
        let mut deadline = if own { until + OWN_TIME } else { until };
        let mut stopped = None;
        let mut heard = Heard::default();
        let mut look = tokio::time::interval(LOOK);
        let exit = loop {
            tokio::select! {
                event = output.next() => match event.map_err(told)? {
                    ExecEvent::Stdout(bytes) => self.hear(&mut heard, grant, &bytes),
                    ExecEvent::Stderr(bytes) => self.hear_complaint(&mut heard, &bytes),
                    ExecEvent::Gap(_) => {}
                    ExecEvent::Exit(exit) => break Some(exit),
                },
                () = self.run.cancel.cancelled(), if stopped.is_none() => {
                    stopped = Some(self.stopped());
                    deadline = end_soon(&mut input).await;
                }
                () = tokio::time::sleep_until(deadline) => {
                    if stopped.is_some() {
                        break None;
                    }
                    stopped = Some(Stopped::TimeOut);
                    deadline = end_soon(&mut input).await;
                }
                _ = look.tick() => self.note_usage(grant),
            }
        };
        Ok(self.judge(heard, exit, stopped, grant))
    }

    fn judge(
        &self,
        mut heard: Heard,
        exit: Option<Exit>,
        stopped: Option<Stopped>,
        grant: &RunGrant,
    ) -> RunOutcome {
        if let Some(rest) = heard.stdout.rest() {
            self.pass_on(&mut heard, grant, rest);
        }
        if let Some(rest) = heard.stderr.rest() {
            self.complain(&mut heard, rest);
        }
        let Heard { said, complaint, .. } = heard;
        let (agent, spent) = (&self.order.agent, grant.spent());
        Known { agent, stopped, said, exit, spent: spent.as_deref(), complaint }.outcome()
    }

    fn hear(&self, heard: &mut Heard, grant: &RunGrant, bytes: &[u8]) {
        for line in heard.stdout.take(bytes) {
            self.pass_on(heard, grant, line);
        }
    }

    fn pass_on(&self, heard: &mut Heard, grant: &RunGrant, line: String) {
        let own = self.order.agent == Agent::Nacre;
        let event = own.then(|| serde_json::from_str::<Value>(&line).ok()).flatten();
        let Some(event) = event else {
            return self.run.log.keep(RunUpdate::Output { stream: Stream::Stdout, line });
        };
        let update = serde_json::from_value::<Event>(event.clone()).ok().map(|event| event.update);
        self.run.log.keep(RunUpdate::Agent { event });
        let used = self.run.info().used;
        match update {
            Some(Update::Reply { .. }) => {
                self.run.use_up(RunUsage { steps: used.steps + 1, ..used });
            }
            Some(Update::ToolCall { .. }) => {
                self.run.use_up(RunUsage { tool_calls: used.tool_calls + 1, ..used });
            }
            Some(Update::UsageUpdate { .. }) => self.note_usage(grant),
            Some(Update::Ended { how }) => heard.said = Some(how),
            Some(_) | None => {}
        }
    }

    fn hear_complaint(&self, heard: &mut Heard, bytes: &[u8]) {
        for line in heard.stderr.take(bytes) {
            self.complain(heard, line);
        }
    }

    fn complain(&self, heard: &mut Heard, line: String) {
        if !line.trim().is_empty() {
            heard.complaint = Some(line.trim().chars().take(LONGEST_COMPLAINT).collect());
        }
        self.run.log.keep(RunUpdate::Output { stream: Stream::Stderr, line });
    }
}

/// It may have ended by itself; then its exit is on its way.
async fn end_soon(input: &mut ExecInput) -> Instant {
    let _ = input.signal("TERM").await;
    Instant::now() + GRACE
}
