//! What happens in a sandbox, on one socket.
//!
//! `GET /ws?after=SEQ&run=RUN` upgrades to a WebSocket of text messages, each an
//! [`EventMessage`]. The first is [`Event::Hello`]. A client that was here before says what it
//! saw last and from which run, and gets what came since, or [`Event::Gap`] when some of it is no
//! longer known. A client ignores types it does not know ([`Event::Unknown`]).

use serde::{Deserialize, Serialize};

use crate::history::{CheckpointInfo, ProcessAfter};
use crate::processes::ProcessInfo;
use crate::watch::Change;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EventMessage {
    /// What to resume after. Events count from 1 in each run of the supervisor; a message that
    /// is not an event itself carries the number of the one before.
    pub seq: u64,
    #[serde(flatten)]
    pub event: Event,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// First. `run` differs after the supervisor has been started again, and then so does
    /// everything that was numbered; `seq` is that of the last event so far.
    Hello {
        run: String,
    },
    /// Changes of files below `/workspace` are reported from here on.
    Watching {
        directories: u64,
    },
    /// Events up to `seq` were missed; a client asks for the state of what it shows.
    Gap,
    Files {
        changes: Vec<Change>,
    },
    /// Files changed while nobody watched, or faster than could be told: look again.
    FilesLost,
    /// A process of `nacre.toml` changed its state.
    Process {
        process: ProcessInfo,
    },
    /// A process is no longer in `nacre.toml`.
    ProcessGone {
        name: String,
    },
    /// `nacre.toml` was read; with a reason when it cannot be used.
    Config {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<crate::processes::ConfigError>,
    },
    /// A state of the workspace was recorded.
    Checkpoint {
        checkpoint: CheckpointInfo,
    },
    /// Files were put back, and what they affect was started again: how that went.
    Restored {
        checkpoint: u64,
        processes: Vec<ProcessAfter>,
    },
    /// Nothing happened: the supervisor is still there. About every 15 seconds, for clients that do not see
    /// pings, such as pages. Older supervisors do not send it.
    Beat,
    /// Something happened in a conversation with the agent: event `number` of it. What it was is at
    /// `/conductor/conversations/{id}/events`.
    Conversation {
        id: String,
        number: u64,
        kind: String,
    },
    /// A type this version does not know.
    #[serde(other)]
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(event: Event, expected: serde_json::Value) {
        let message = EventMessage { seq: 7, event };
        let value = serde_json::to_value(&message).unwrap();
        assert_eq!(value, expected);
        assert_eq!(serde_json::from_value::<EventMessage>(value).unwrap(), message);
    }

    #[test]
    fn a_message_is_one_flat_object() {
        check(Event::Gap, json!({"seq": 7, "type": "gap"}));
        check(Event::Beat, json!({"seq": 7, "type": "beat"}));
        check(Event::Hello { run: "a".into() }, json!({"seq": 7, "type": "hello", "run": "a"}));
        check(
            Event::Restored { checkpoint: 3, processes: Vec::new() },
            json!({"seq": 7, "type": "restored", "checkpoint": 3, "processes": []}),
        );
    }

    #[test]
    fn a_type_from_the_future_is_no_error() {
        let message: EventMessage =
            serde_json::from_value(json!({"seq": 1, "type": "weather", "sun": true})).unwrap();
        assert_eq!(message.event, Event::Unknown);
    }
}
