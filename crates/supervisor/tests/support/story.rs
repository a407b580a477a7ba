//! Processes of a supervisor as a test tells of them: write the file, await what happens.

use nacre_wire::client::EventStream;
use nacre_wire::events::{Event, EventMessage};
use nacre_wire::processes::{LogLine, ProcessInfo, ProcessState};

use super::{PATIENCE, Supervisor};

/// A supervisor and all that it tells.
pub struct Story {
    pub supervisor: Supervisor,
    pub events: EventStream,
}

impl Story {
    /// With nothing to run yet.
    pub async fn begin() -> Self {
        let supervisor = Supervisor::start().await;
        let mut events = supervisor.client().events(None).await.unwrap();
        let hello = events.next().await.unwrap();
        assert!(matches!(hello.event, Event::Hello { .. }), "{hello:?}");
        Self { supervisor, events }
    }

    pub async fn with(config: &str) -> Self {
        let story = Self::begin().await;
        story.configure(config);
        story
    }

    /// As an editor does that is careful.
    pub fn configure(&self, config: &str) {
        let workspace = self.supervisor.workspace();
        std::fs::write(workspace.join("nacre.toml.new"), config).unwrap();
        std::fs::rename(workspace.join("nacre.toml.new"), workspace.join("nacre.toml")).unwrap();
    }

    pub async fn event(&mut self) -> EventMessage {
        let next = tokio::time::timeout(PATIENCE, self.events.next());
        next.await.expect("an event in time").unwrap()
    }

    /// Waits for the first event that `wanted` makes something of.
    pub async fn until<T>(&mut self, mut wanted: impl FnMut(Event) -> Option<T>) -> T {
        loop {
            if let Some(found) = wanted(self.event().await.event) {
                return found;
            }
        }
    }

    /// Waits until a process comes to a state.
    pub async fn until_state(&mut self, name: &str, state: ProcessState) -> ProcessInfo {
        self.until(|event| match event {
            Event::Process { process } if process.name == name && process.state == state => {
                Some(process)
            }
            _ => None,
        })
        .await
    }

    pub async fn ready(&mut self, name: &str) -> ProcessInfo {
        self.until_state(name, ProcessState::Ready).await
    }

    /// Waits until all of them have come to these states, in whatever order.
    pub async fn all<const N: usize>(
        &mut self,
        wanted: [(&str, ProcessState); N],
    ) -> [ProcessInfo; N] {
        let mut found = [const { None }; N];
        while found.iter().any(Option::is_none) {
            let Event::Process { process } = self.event().await.event else { continue };
            let known =
                |(name, state): &(&str, _)| *name == process.name && *state == process.state;
            if let Some(index) = wanted.iter().position(known) {
                found[index] = Some(process);
            }
        }
        found.map(Option::unwrap)
    }

    pub async fn now(&self, name: &str) -> ProcessInfo {
        let list = self.supervisor.client().processes().await.unwrap();
        list.processes.into_iter().find(|process| process.name == name).unwrap()
    }

    /// The log from `after` on, until a line that contains `needle`.
    pub async fn log_until(&self, name: &str, after: u64, needle: &str) -> Vec<LogLine> {
        let client = self.supervisor.client();
        let mut log = client.process_log(name, after, true).await.unwrap();
        let mut lines = Vec::new();
        loop {
            let line = tokio::time::timeout(PATIENCE, log.next()).await.expect("a line in time");
            let line = line.unwrap().unwrap_or_else(|| panic!("no {needle:?} in {lines:?}"));
            let found = line.text.contains(needle);
            lines.push(line);
            if found {
                return lines;
            }
        }
    }
}
