//! `/supervisor/*`.

use utoipa::openapi::{HttpMethod, Required};

use super::call::Call;
use super::history;
use crate::desktop::{DesktopHealth, SeedRequest, Seeded};
use crate::exec::{CommandInfo, CommandList, ExecRequest, SignalRequest, TtySize};
use crate::files::{Chmod, Listing, Mkdir, Remove, Stat, Symlink, Transfer, Unpacked};
use crate::generation;
use crate::ports::PortList;
use crate::processes::{ProcessInfo, ProcessList};
use crate::status::{Health, SupervisorStats, Version};

pub(super) const OCTETS: &str = "application/octet-stream";
const TAR: &str = "application/x-tar";
const TEXT: &str = "text/plain";

pub(super) fn calls() -> Vec<Call> {
    let files = content().into_iter().chain(entries()).chain(archives()).map(as_user);
    let calls =
        status().into_iter().chain(commands()).chain(processes()).chain(ports()).chain(files);
    let calls = calls.chain(desktop());
    let calls = calls.chain([as_user(watch()), events()]).chain(history::calls());
    let calls = calls.chain(rescue()).chain(views());
    calls.map(|call| call.header(generation::HEADER, "What the client speaks: 1, or 1-3")).collect()
}

pub(super) fn get(path: &'static str, id: &'static str, summary: &'static str) -> Call {
    Call::new(HttpMethod::Get, path, id, summary)
}

pub(super) fn post(path: &'static str, id: &'static str, summary: &'static str) -> Call {
    Call::new(HttpMethod::Post, path, id, summary)
}

pub(super) fn put(path: &'static str, id: &'static str, summary: &'static str) -> Call {
    Call::new(HttpMethod::Put, path, id, summary)
}

fn status() -> Vec<Call> {
    let calls = [
        get("/supervisor/health", "health", "Whether it is well").gives::<Health>("200", "It is"),
        get("/supervisor/version", "version", "Which version it is")
            .gives::<Version>("200", "Its version and what it speaks"),
        get("/supervisor/stats", "stats", "What the supervisor itself uses")
            .gives::<SupervisorStats>("200", "At this moment"),
        get("/supervisor/host", "host_version", "Which version the host is, asked from inside")
            .gives::<Version>("200", "The host's version and what it speaks"),
    ];
    calls.map(|call| call.tag("status")).into()
}

fn commands() -> Vec<Call> {
    let calls = [
        get("/supervisor/exec", "exec", "Run a command and stay with it")
            .upgrades("ClientControl start first, then input and output; ServerControl exit last"),
        get("/supervisor/commands", "list_commands", "Every command it knows")
            .gives::<CommandList>("200", "Running ones and those that ended lately"),
        post("/supervisor/commands", "start_command", "Start a command and leave it running")
            .takes::<ExecRequest>(Required::True)
            .gives::<CommandInfo>("201", "Started"),
        get("/supervisor/commands/{id}", "get_command", "One command")
            .gives::<CommandInfo>("200", "As it is now"),
        Call::new(
            HttpMethod::Delete,
            "/supervisor/commands/{id}",
            "remove_command",
            "End a command and forget it",
        )
        .gives_nothing("204", "Gone"),
        get("/supervisor/commands/{id}/attach", "attach_command", "Join a command that runs")
            .upgrades("As for exec, without start"),
        post("/supervisor/commands/{id}/signal", "signal_command", "Signal its process group")
            .takes::<SignalRequest>(Required::True)
            .gives_nothing("204", "Sent"),
        post("/supervisor/commands/{id}/input", "feed_command", "Give it input")
            .query::<bool>("eof", "No more input after this")
            .takes_bytes(OCTETS)
            .gives_nothing("204", "Taken"),
        post("/supervisor/commands/{id}/resize", "resize_command", "Change its terminal's size")
            .takes::<TtySize>(Required::True)
            .gives_nothing("204", "Changed"),
        get("/supervisor/commands/{id}/output", "command_output", "Its recent output")
            .query::<bool>("follow", "Go on until it ends")
            .gives_bytes("200", "Both streams as they came", OCTETS),
    ];
    calls.map(|call| call.tag("commands")).into()
}

fn processes() -> Vec<Call> {
    let calls = [
        get("/supervisor/processes", "list_processes", "The processes of nacre.toml")
            .gives::<ProcessList>("200", "As they are now, and what is wrong with the file"),
        post("/supervisor/processes/{name}/start", "start_process", "Start a process")
            .gives::<ProcessInfo>("200", "As it is now"),
        post(
            "/supervisor/processes/{name}/stop",
            "stop_process",
            "End a process and all it started",
        )
        .gives::<ProcessInfo>("200", "It has ended"),
        post("/supervisor/processes/{name}/restart", "restart_process", "End and start a process")
            .gives::<ProcessInfo>("200", "As it is now"),
        get("/supervisor/processes/{name}/log", "process_log", "The recent lines of its log")
            .query::<u64>("after", "Only lines after this one")
            .query::<bool>("follow", "Go on with what is added")
            .query::<String>("format", "json (the default), a LogLine on each line, or text")
            .gives_bytes("200", "One line after the other", "application/x-ndjson"),
    ];
    calls.map(|call| call.tag("processes")).into()
}

/// What people open in a browser.
fn views() -> Vec<Call> {
    vec![
        get("/logs", "list_logs", "The processes of nacre.toml, as text")
            .gives_bytes("200", "A name and a state on each line", TEXT)
            .tag("processes"),
        get("/logs/{name}", "text_log", "The recent lines of a process's log, as text")
            .query::<u64>("after", "Only lines after this one")
            .query::<bool>("follow", "Go on with what is added")
            .gives_bytes("200", "One line after the other", TEXT)
            .tag("processes"),
        get("/files/{path}", "view_file", "A file of the workspace, to look at or to keep")
            .query::<bool>("download", "Have the browser keep it")
            .header("range", "bytes=FIRST-LAST")
            .header("if-range", "Only when the file is still this version")
            .header("if-none-match", "Only when the file is another version")
            .gives_bytes("200", "The whole file, with a type that fits its name", "*/*")
            .gives_bytes("206", "The part that was asked for", "*/*")
            .gives_nothing("304", "It is that version")
            .tag("files"),
    ]
}

fn rescue() -> Vec<Call> {
    let calls = [
        get("/supervisor/rescue", "rescue_page", "The way back when the app is broken, for people")
            .query::<u64>("checkpoint", "Which one to show line by line")
            .query::<String>("note", "What a form came to; from its redirect")
            .gives_bytes("200", "A page that needs no script", "text/html"),
        post(
            "/supervisor/rescue/{act}",
            "rescue",
            "A form of that page: undo, redo, restore, restart",
        )
        .takes_bytes("application/x-www-form-urlencoded")
        .gives_nothing("303", "Back to the page, with what it came to"),
        get("/supervisor/guard.js", "guard_script", "What a guarded app's pages carry")
            .gives_bytes("200", "The script", "text/javascript"),
    ];
    calls.map(|call| call.tag("rescue")).into()
}

fn desktop() -> Vec<Call> {
    let calls = [
        get("/supervisor/desktop/health", "desktop_health", "Whether the page at / works")
            .header("x-forwarded-prefix", "Where it is mounted, when that is not the root")
            .gives::<DesktopHealth>(
                "200",
                "As of now; a page that does not answer is not waited for",
            ),
        post(
            "/supervisor/desktop/seed",
            "seed_desktop",
            "Put the desktop's source into /workspace",
        )
        .takes::<SeedRequest>(Required::False)
        .gives::<Seeded>("200", "Whether that was done, and why not"),
    ];
    calls.map(|call| call.tag("desktop")).into()
}

fn ports() -> Vec<Call> {
    let calls = [
        get("/supervisor/ports", "list_ports", "What listens in the sandbox")
            .gives::<PortList>("200", "Every TCP port that takes connections now"),
        get("/supervisor/ports/{port}", "open_port", "Connect to a port")
            .upgrades("Upgrade: tcp. Bytes both ways as they are; each direction ends by itself"),
    ];
    calls.map(|call| call.tag("ports")).into()
}

fn events() -> Call {
    get("/ws", "events", "What happens in the sandbox")
        .query::<u64>("after", "Resume after this event")
        .query::<String>("run", "The run that the event was of, as the hello said")
        .upgrades("EventMessage, from the supervisor only")
        .tag("events")
}

fn content() -> Vec<Call> {
    let path = "/supervisor/files/content";
    vec![
        at_path(get(path, "read_file", "Read a file"))
            .header("range", "bytes=FIRST-LAST")
            .header("if-range", "Only when the file is still this version")
            .header("if-none-match", "Only when the file is another version")
            .gives_bytes("200", "The whole file", OCTETS)
            .gives_bytes("206", "The part that was asked for", OCTETS)
            .gives_nothing("304", "It is that version"),
        at_path(put(path, "write_file", "Replace a file in one step"))
            .query::<String>("mode", "Permission bits in octal")
            .query::<bool>("parents", "Create missing folders")
            .query::<bool>("sync", "Return when it is on disk")
            .header("if-match", "Only when the file is this version")
            .header("if-none-match", "* writes only a file that is not there")
            .takes_bytes(OCTETS)
            .gives::<Stat>("200", "Written"),
        at_path(post("/supervisor/files/append", "append_file", "Add to the end of a file"))
            .query::<bool>("parents", "Create missing folders")
            .takes_bytes(OCTETS)
            .gives::<Stat>("200", "Written"),
    ]
}

fn entries() -> Vec<Call> {
    vec![
        at_path(get("/supervisor/files/list", "list_files", "One page of a folder, by name"))
            .query::<u64>("limit", "Entries on the page")
            .query::<String>("after", "The next of the page before")
            .gives::<Listing>("200", "The page"),
        at_path(get("/supervisor/files/stat", "stat_file", "One entry"))
            .query::<bool>("follow", "What a symlink points to")
            .gives::<Stat>("200", "The entry"),
        post("/supervisor/files/mkdir", "make_folder", "Make a folder")
            .takes::<Mkdir>(Required::True)
            .gives::<Stat>("200", "Made"),
        post("/supervisor/files/move", "move_file", "Move or rename")
            .takes::<Transfer>(Required::True)
            .gives::<Stat>("200", "Moved"),
        post("/supervisor/files/copy", "copy_file", "Copy")
            .takes::<Transfer>(Required::True)
            .gives::<Stat>("200", "Copied"),
        post("/supervisor/files/remove", "remove_file", "Remove")
            .takes::<Remove>(Required::True)
            .gives_nothing("204", "Gone"),
        post("/supervisor/files/symlink", "make_symlink", "Make a symbolic link")
            .takes::<Symlink>(Required::True)
            .gives::<Stat>("200", "Made"),
        post("/supervisor/files/chmod", "change_mode", "Change permission bits")
            .takes::<Chmod>(Required::True)
            .gives::<Stat>("200", "Changed"),
    ]
}

fn archives() -> Vec<Call> {
    let path = "/supervisor/files/archive";
    vec![
        at_path(get(path, "download_archive", "A folder or file as a tar stream")).gives_bytes(
            "200",
            "The archive; one that breaks off is not whole",
            TAR,
        ),
        at_path(put(path, "upload_archive", "Unpack a tar stream into a folder"))
            .takes_bytes(TAR)
            .gives::<Unpacked>("200", "Unpacked"),
    ]
}

fn watch() -> Call {
    get("/supervisor/watch", "watch_files", "Changes as they happen")
        .query::<String>("path", "Folder to watch; /workspace when absent")
        .upgrades("WatchMessage, from the supervisor only")
}

fn at_path(call: Call) -> Call {
    call.required::<String>("path", "Absolute, or from /workspace; any bytes, percent-encoded")
}

fn as_user(call: Call) -> Call {
    call.tag("files").query::<String>("user", "Act as this user, by name or number")
}
