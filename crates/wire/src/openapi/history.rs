//! `/supervisor/history*`.

use utoipa::openapi::Required;

use super::call::Call;
use super::supervisor::{OCTETS, get, post, put};
use crate::history::{
    AttendRequest, Changes, CheckpointPage, HistorySettings, HistoryStatus, HistoryUsage,
    LabelRequest, Outcome, RedoRequest, RestoreRequest, UndoRequest, Verified,
};

const FAST_IMPORT: &str = "application/x-git-fast-import";

pub(super) fn calls() -> Vec<Call> {
    let calls = looking_back().into_iter().chain(taking_back()).chain(care());
    calls.map(|call| call.tag("history")).collect()
}

fn looking_back() -> Vec<Call> {
    vec![
        get("/supervisor/history", "list_history", "Checkpoints, newest first")
            .query::<u64>("before", "Only older ones: the next of the page before")
            .query::<u64>("after", "Only newer ones")
            .query::<u64>("limit", "At most so many: 50 when absent, 1000 at most")
            .query::<i64>("since", "Not older than this, in milliseconds since 1970")
            .query::<i64>("until", "Not newer than this")
            .query::<String>("path", "Only those that changed this name or something below it")
            .query::<String>("command", "Only what the command with this id did")
            .query::<String>("conversation", "Only what was done for this conversation")
            .query::<String>("ssh", "Only what was done in this session")
            .query::<bool>("labelled", "Only those with a label")
            .gives::<CheckpointPage>("200", "One page"),
        some_changes(get(
            "/supervisor/history/checkpoints/{id}",
            "get_checkpoint",
            "What one checkpoint changed",
        ))
        .query::<bool>("diff", "With the difference of each text file")
        .gives::<Changes>("200", "Its changes"),
        some_changes(
            get("/supervisor/history/diff", "diff_history", "From one checkpoint to another")
                .required::<u64>("from", "The checkpoint to start from"),
        )
        .query::<u64>("to", "The checkpoint to end at; the present when absent")
        .query::<String>("format", "json (the default) or text, a unified difference")
        .gives::<Changes>("200", "What changed between them"),
        get("/supervisor/history/file", "read_past_file", "A file as it was")
            .query::<String>("path", "Which file; needs at")
            .query::<u64>("at", "After which checkpoint")
            .query::<String>("content", "In place of both: the id of a content")
            .gives_bytes("200", "All of it", OCTETS),
    ]
}

fn taking_back() -> Vec<Call> {
    vec![
        post(
            "/supervisor/history/attend",
            "attend",
            "Be at work for as long as the answer is held",
        )
        .takes::<AttendRequest>(Required::True)
        .gives_bytes("200", "Nothing, until the connection is closed", OCTETS),
        post("/supervisor/history/undo", "undo", "Take changes back and keep what came later")
            .takes::<UndoRequest>(Required::False)
            .gives::<Outcome>("200", "Done, or the conflicts because of which nothing was"),
        post("/supervisor/history/redo", "redo", "Take the last undo back")
            .takes::<RedoRequest>(Required::False)
            .gives::<Outcome>("200", "Done, or the conflicts because of which nothing was"),
        post("/supervisor/history/restore", "restore", "Set files to what they were")
            .takes::<RestoreRequest>(Required::True)
            .gives::<Outcome>("200", "Done, or the conflicts because of which nothing was"),
    ]
}

fn care() -> Vec<Call> {
    vec![
        get("/supervisor/history/status", "history_status", "Whether changes are recorded")
            .gives::<HistoryStatus>("200", "As it is now"),
        post(
            "/supervisor/history/checkpoints/{id}/label",
            "label_checkpoint",
            "Name a checkpoint, which also keeps it from being thinned out",
        )
        .takes::<LabelRequest>(Required::True)
        .gives_nothing("204", "Named"),
        get("/supervisor/history/usage", "history_usage", "Where the space goes")
            .gives::<HistoryUsage>("200", "At this moment"),
        post("/supervisor/history/verify", "verify_history", "Read everything and compare")
            .gives::<Verified>("200", "What cannot be read any more"),
        get("/supervisor/history/export", "export_history", "All of it for git fast-import")
            .query::<String>("branch", "The branch to write; nacre when absent")
            .gives_bytes(
                "200",
                "The stream; one without done at its end is not whole",
                FAST_IMPORT,
            ),
        get("/supervisor/history/settings", "get_history_settings", "The owner's choices")
            .gives::<HistorySettings>("200", "As they are"),
        put("/supervisor/history/settings", "set_history_settings", "Replace the owner's choices")
            .takes::<HistorySettings>(Required::True)
            .gives_nothing("204", "They hold from the next record on"),
    ]
}

fn some_changes(call: Call) -> Call {
    call.query::<String>("path", "Only this name and what is below it")
        .query::<u64>("limit", "At most so many changes: 10000 when absent")
}
