//! What every body has to do, told as one story per ability. Each kind of body runs all of them on an
//! empty workspace of its own.

#![allow(clippy::unwrap_used, reason = "stories are tests")]

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::time::{Duration, Instant};

use nacre_wire::ErrorKind;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use super::{
    Body, Command, Edit, Entry, EntryKind, Expected, Found, Program, Search, Stream, Write,
};

type Story = for<'a> fn(&'a dyn Body) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Tells all of it of one body, whose workspace is here as well, and emptied before each story.
pub async fn tell_all(body: &dyn Body, workspace: &Path) {
    for (name, story) in STORIES {
        for entry in std::fs::read_dir(workspace).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                std::fs::remove_dir_all(path).unwrap();
            } else {
                std::fs::remove_file(path).unwrap();
            }
        }
        println!("{name}");
        tokio::time::timeout(PATIENCE, story(body)).await.unwrap();
    }
}

/// No wait should come near this; it only turns a hang into a failure.
const PATIENCE: Duration = Duration::from_secs(60);

const STORIES: &[(&str, Story)] = &[
    ("output comes apart and with its code", |body| Box::pin(output(body))),
    ("output comes while the command runs", |body| Box::pin(streaming(body))),
    ("a command is ended when its time is up", |body| Box::pin(time_out(body))),
    ("a command that nobody waits for is ended", |body| Box::pin(dropped(body))),
    ("what a command leaves behind goes on", |body| Box::pin(background(body))),
    ("files are written whole and read back", |body| Box::pin(files(body))),
    ("what is no file is not waited for", |body| Box::pin(pipes(body))),
    ("a write relies on what it was told", |body| Box::pin(expected(body))),
    ("directories are listed by name", |body| Box::pin(listing(body))),
    ("a passage is replaced when it is clear which", |body| Box::pin(edit(body))),
    ("lines are found with their place", |body| Box::pin(search(body))),
    ("a program is spoken with while it runs", |body| Box::pin(dialogue(body))),
    ("a program that nobody listens to is ended", |body| Box::pin(unheard(body))),
];

fn command(line: &str) -> Command {
    let timeout = Duration::from_secs(60);
    Command { line: line.to_owned(), within: None, timeout, call: None }
}

fn write(text: &str) -> Write {
    Write { bytes: text.as_bytes().to_vec(), expected: Expected::Anything, call: None }
}

async fn output(body: &dyn Body) {
    let finished = body.run(&command("echo out; echo err >&2; exit 3"), 100).await.unwrap();
    assert_eq!(finished.exit.code, Some(3));
    assert_eq!(
        (finished.stdout.as_slice(), finished.stderr.as_slice()),
        (&b"out\n"[..], &b"err\n"[..])
    );
    let killed = body.run(&command("kill -9 $$"), 100).await.unwrap();
    assert_eq!((killed.exit.code, killed.exit.signal.as_deref()), (None, Some("KILL")));
    // However much it is, and whoever is left holding on to it.
    let long = command("head -c 3000000 /dev/zero; sleep 60 & exit 0");
    let long = body.run(&long, usize::MAX).await.unwrap();
    assert_eq!((long.exit.code, long.stdout.len()), (Some(0), 3_000_000));
    let elsewhere = Command { within: Some("/tmp".to_owned()), ..command("pwd") };
    assert_eq!(body.run(&elsewhere, 100).await.unwrap().stdout, b"/tmp\n");
}

async fn streaming(body: &dyn Body) {
    let started = Instant::now();
    let mut first = None;
    let mut note = |stream, _: &[u8]| {
        if stream == Stream::Stdout {
            first.get_or_insert_with(|| started.elapsed());
        }
    };
    // It goes on only when somebody has acted on its first line.
    let line =
        "echo ready; i=0; while [ ! -e go ] && [ $i -lt 600 ]; do sleep 0.1; i=$((i+1)); done";
    let mut follow = Box::pin(async { body.execute(&command(line), &mut note).await });
    tokio::select! {
        exit = &mut follow => panic!("ended before it was told to: {exit:?}"),
        () = tokio::time::sleep(Duration::from_millis(500)) => {}
    }
    body.write_file("go", &write("")).await.unwrap();
    let exit = follow.await.unwrap();
    assert_eq!(exit.code, Some(0));
    assert!(first.is_some_and(|first| first < started.elapsed()));
}

async fn time_out(body: &dyn Body) {
    let command = Command { timeout: Duration::from_millis(300), ..command("echo a; sleep 60") };
    let finished = body.run(&command, 100).await.unwrap();
    assert!(finished.exit.timed_out);
    assert_eq!(finished.stdout, b"a\n");
}

async fn dropped(body: &dyn Body) {
    let command = command("echo $$ > pid; sleep 60; touch survived");
    {
        let mut ignore = |_, _: &[u8]| {};
        let mut running = Box::pin(body.execute(&command, &mut ignore));
        let pid_is_there = async {
            while body.read_file("pid", 100).await.map_or(0, |file| file.bytes.len()) == 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            exit = &mut running => panic!("ended by itself: {exit:?}"),
            () = pid_is_there => {}
        }
    }
    gone(body).await;
}

async fn background(body: &dyn Body) {
    let wait = "i=0; while [ ! -e go ] && [ $i -lt 600 ]; do sleep 0.1; i=$((i+1)); done";
    let started = Instant::now();
    let line = format!("({wait}; echo done > done) > log 2>&1 & echo begun");
    let begun = body.run(&command(&line), 100).await.unwrap();
    assert_eq!((begun.exit.code, begun.stdout.as_slice()), (Some(0), &b"begun\n"[..]));
    assert!(started.elapsed() < Duration::from_secs(20), "it was waited for");
    body.write_file("go", &write("")).await.unwrap();
    let end = "while [ ! -e done ]; do sleep 0.02; done; cat done";
    let ended = Command { timeout: Duration::from_secs(20), ..command(end) };
    assert_eq!(body.run(&ended, 100).await.unwrap().stdout, b"done\n");
}

async fn pipes(body: &dyn Body) {
    // Nobody writes to it, and nobody will.
    body.run(&command("mkfifo pipe; ln -s /dev/zero device"), 0).await.unwrap();
    for path in ["pipe", "device"] {
        let error = body.read_file(path, 100).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidRequest, "{path}: {error:?}");
        assert!(error.message.contains("not a regular file"), "{error:?}");
    }
}

async fn files(body: &dyn Body) {
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let new = Write { bytes: bytes.clone(), expected: Expected::Anything, call: None };
    body.write_file("deep/er/file", &new).await.unwrap();
    assert_eq!(body.read_file("deep/er/file", 300_000).await.unwrap().bytes, bytes);
    let kind = |result: super::Result<super::File>| result.unwrap_err().kind;
    assert_eq!(kind(body.read_file("deep/er/file", 299_999).await), ErrorKind::TooLarge);
    assert_eq!(kind(body.read_file("nothing", 10).await), ErrorKind::NotFound);
    assert_eq!(kind(body.read_file("deep", 10).await), ErrorKind::IsDirectory);
    body.run(&command("printf '#!/bin/sh\necho one' > run; chmod +x run"), 0).await.unwrap();
    body.write_file("run", &write("#!/bin/sh\necho two")).await.unwrap();
    assert_eq!(body.run(&command("./run"), 100).await.unwrap().stdout, b"two\n");
    body.run(&command("ln -s run link"), 0).await.unwrap();
    body.write_file("link", &write("through")).await.unwrap();
    let kept = body.run(&command("test -L link && cat run"), 100).await.unwrap();
    assert_eq!(kept.stdout, b"through");
}

async fn expected(body: &dyn Body) {
    let new = |expected| Write { expected, ..write("new") };
    body.write_file("a", &new(Expected::Nothing)).await.unwrap();
    let exists = body.write_file("a", &new(Expected::Nothing)).await.unwrap_err();
    assert!(matches!(exists.kind, ErrorKind::Exists | ErrorKind::Conflict), "{exists:?}");
    let read = body.read_file("a", 10).await.unwrap();
    body.run(&command("echo changed meanwhile > a"), 0).await.unwrap();
    let stale = new(Expected::Version(read.version));
    assert_eq!(body.write_file("a", &stale).await.unwrap_err().kind, ErrorKind::Conflict);
    let kept = body.read_file("a", 100).await.unwrap();
    assert_eq!(kept.bytes, b"changed meanwhile\n");
    body.write_file("a", &new(Expected::Version(kept.version))).await.unwrap();
}

async fn listing(body: &dyn Body) {
    let make =
        "mkdir -p d/sub; printf 123 > d/b; : > d/a; ln -s b d/l; mkfifo d/p; : > 'd/ä \"x\"'";
    assert_eq!(body.run(&command(make), 0).await.unwrap().exit.code, Some(0));
    let listed: Vec<(String, EntryKind)> =
        body.list_files("d").await.unwrap().into_iter().map(|e: Entry| (e.name, e.kind)).collect();
    let expected = [
        ("a", EntryKind::File),
        ("b", EntryKind::File),
        ("l", EntryKind::Link),
        ("p", EntryKind::Other),
        ("sub", EntryKind::Directory),
        ("ä \"x\"", EntryKind::File),
    ];
    assert_eq!(listed, expected.map(|(name, kind)| (name.to_owned(), kind)));
    assert_eq!(body.list_files("none").await.unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(body.list_files("d/a").await.unwrap_err().kind, ErrorKind::NotDirectory);
}

async fn edit(body: &dyn Body) {
    body.write_file("poem", &write("one\ntwo\ntwo\n")).await.unwrap();
    let edit = |old, everywhere| Edit { path: "poem", old, new: "2", everywhere, call: None };
    let unclear = body.edit_file(&edit("two", false)).await.unwrap_err();
    assert_eq!(unclear.kind, ErrorKind::InvalidRequest);
    let edited = body.edit_file(&edit("two", true)).await.unwrap();
    assert_eq!((edited.after.as_str(), edited.times), ("one\n2\n2\n", 2));
    assert_eq!(body.read_text("poem", 100).await.unwrap().0, "one\n2\n2\n");
    body.run(&command("printf '\\377' > binary"), 0).await.unwrap();
    let binary = Edit { path: "binary", ..edit("two", false) };
    assert_eq!(body.edit_file(&binary).await.unwrap_err().message, "binary is not text");
}

async fn search(body: &dyn Body) {
    body.write_file("src/it's.rs", &write("fn a() {}\nfn b() {}\n")).await.unwrap();
    body.write_file("src/b.txt", &write("fn c\n")).await.unwrap();
    body.write_file("node_modules/x.rs", &write("fn d\n")).await.unwrap();
    let search = |names, at_most| Search { pattern: "^fn [a-c]", within: "src", names, at_most };
    let (found, more) = body.search(&search(Some("*.rs"), 10)).await.unwrap();
    let at =
        |path: &str, line, text: &str| Found { path: path.to_owned(), line, text: text.to_owned() };
    let rs = [at("src/it's.rs", 1, "fn a() {}"), at("src/it's.rs", 2, "fn b() {}")];
    assert_eq!((found.as_slice(), more), (&rs[..], false));
    let (found, more) = body.search(&search(None, 1)).await.unwrap();
    assert_eq!((found, more), (vec![at("src/b.txt", 1, "fn c")], true));
    let everywhere = Search { pattern: "^fn", within: ".", names: None, at_most: 10 };
    assert_eq!(body.search(&everywhere).await.unwrap().0.len(), 3);
    let nothing = Search { pattern: "nowhere", ..everywhere.clone() };
    assert_eq!(body.search(&nothing).await.unwrap(), (Vec::new(), false));
    let broken = Search { pattern: "(", ..everywhere };
    assert_eq!(body.search(&broken).await.unwrap_err().kind, ErrorKind::InvalidRequest);
}

fn program(script: &str) -> Program {
    let words = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    Program { words, env: [("SAY".to_owned(), "well".to_owned())].into() }
}

async fn dialogue(body: &dyn Body) {
    let script = "echo a remark >&2; while read line; do echo \"$SAY $line\"; done; pwd; echo bye";
    let opened = body.open(&program(script)).await.unwrap();
    let (mut input, mut output) = (opened.input, BufReader::new(opened.output));
    let mut line = String::new();
    for word in ["met", "done"] {
        input.write_all(format!("{word}\n").as_bytes()).await.unwrap();
        input.flush().await.unwrap();
        line.clear();
        output.read_line(&mut line).await.unwrap();
        assert_eq!(line, format!("well {word}\n"));
    }
    drop(input);
    let mut rest = String::new();
    output.read_to_string(&mut rest).await.unwrap();
    let here = body.run(&command("pwd"), 1000).await.unwrap().stdout;
    assert_eq!(rest, format!("{}bye\n", String::from_utf8(here).unwrap()));
    while opened.remarks.text() != "a remark" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // However much it says.
    let opened = body.open(&program("head -c 3000000 /dev/zero")).await.unwrap();
    let (mut output, mut bytes) = (opened.output, Vec::new());
    output.read_to_end(&mut bytes).await.unwrap();
    assert_eq!(bytes.len(), 3_000_000);
    let nothing = Program { words: vec!["/no/such/program".to_owned()], ..Program::default() };
    assert_eq!(body.open(&nothing).await.err().unwrap().kind, ErrorKind::NotFound);
    let unnamed = body.open(&Program::default()).await.err().unwrap();
    assert_eq!(unnamed.kind, ErrorKind::InvalidRequest);
}

async fn unheard(body: &dyn Body) {
    let opened = body.open(&program("echo $$ > pid; sleep 60; touch survived")).await.unwrap();
    while body.read_file("pid", 100).await.map_or(0, |file| file.bytes.len()) == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    drop(opened);
    gone(body).await;
}

/// The process whose number is in the file `pid` is no more, and did not get to its end.
async fn gone(body: &dyn Body) {
    let gone = "p=$(cat pid); while kill -0 $p 2>/dev/null; do sleep 0.02; done; ls survived";
    let after = body.run(&command(gone), 100).await.unwrap();
    assert!(!after.exit.timed_out, "it is still there");
    assert_ne!(after.exit.code, Some(0), "it went on");
}
