//! `/ws`: what happens, in order, and what was missed.

#![allow(clippy::unwrap_used, reason = "the helpers here are tests too")]

mod support;

use std::time::Instant;

use nacre_wire::client::{EventStream, Seen};
use nacre_wire::events::{Event, EventMessage};
use support::story::Story;
use support::{PATIENCE, Supervisor};

/// So many files with such long paths are more than is kept and than a socket holds.
const MANY: usize = 6000;
const DEPTH: usize = 12;

async fn next(events: &mut EventStream) -> EventMessage {
    tokio::time::timeout(PATIENCE, events.next()).await.unwrap().unwrap()
}

async fn watching(story: &mut Story) {
    story.until(|event| matches!(event, Event::Watching { .. }).then_some(())).await;
}

fn run_of(hello: &EventMessage) -> String {
    let Event::Hello { run } = &hello.event else { panic!("no hello: {hello:?}") };
    run.clone()
}

async fn until_file(story: &mut Story, name: &str) -> u64 {
    loop {
        let message = story.event().await;
        if let Event::Files { changes } = &message.event
            && changes.iter().any(|change| change.path.as_path().ends_with(name))
        {
            return message.seq;
        }
    }
}

fn make_many(story: &Story) {
    let mut folder = story.supervisor.workspace();
    folder.extend((0..DEPTH).map(|_| "x".repeat(240)));
    std::fs::create_dir_all(&folder).unwrap();
    for n in 0..MANY {
        std::fs::File::create(folder.join(n.to_string())).unwrap();
    }
    std::fs::File::create(story.supervisor.workspace().join("the-last")).unwrap();
}

#[tokio::test]
async fn a_change_is_told_at_once_and_nothing_is_watched_without_a_client() {
    let supervisor = Supervisor::start().await;
    supervisor.client().processes().await.unwrap();
    let before = supervisor.stats().await.open_fds;
    let mut events = supervisor.client().events(None).await.unwrap();
    while !matches!(next(&mut events).await.event, Event::Watching { .. }) {}
    assert!(supervisor.stats().await.open_fds > before);
    let written = Instant::now();
    std::fs::write(supervisor.workspace().join("new.txt"), "x").unwrap();
    let told = loop {
        if let Event::Files { changes } = next(&mut events).await.event {
            break changes;
        }
    };
    println!("told after {:?}", written.elapsed());
    assert!(told[0].path.as_path().ends_with("new.txt"), "{told:?}");
    drop(events);
    supervisor.open_files_back_to(before).await;

    // What happened meanwhile nobody knows, and who comes back is told so.
    let mut events = supervisor.client().events(None).await.unwrap();
    while next(&mut events).await.event != Event::FilesLost {}
}

#[tokio::test]
async fn a_client_that_comes_back_gets_what_it_missed() {
    let mut story = Story::begin().await;
    watching(&mut story).await;
    let client = story.supervisor.client();
    let mut other = client.events(None).await.unwrap();
    let hello = next(&mut other).await;
    drop(other);
    for name in ["one", "two"] {
        std::fs::write(story.supervisor.workspace().join(name), "x").unwrap();
        until_file(&mut story, name).await;
    }
    let run = run_of(&hello);
    let seen = Seen { run: run.clone(), seq: hello.seq };
    let mut back = client.events(Some(&seen)).await.unwrap();
    let again = next(&mut back).await;
    assert_eq!(run_of(&again), run);
    assert!(again.seq > hello.seq);
    let missed = next(&mut back).await;
    assert_eq!(missed.seq, hello.seq + 1);
    let Event::Files { changes } = missed.event else { panic!("{missed:?}") };
    assert!(changes[0].path.as_path().ends_with("one"), "{changes:?}");
}

#[tokio::test]
async fn a_client_of_another_life_is_told_that_it_missed_everything() {
    let mut story = Story::with("[process.a]\ncommand = \"exec sleep 1000\"\n").await;
    story.ready("a").await;
    let client = story.supervisor.client();
    let check = async |run: &str, seq| {
        let mut back = client.events(Some(&Seen { run: run.into(), seq })).await.unwrap();
        let hello = next(&mut back).await;
        let gap = next(&mut back).await;
        assert_eq!((gap.event, gap.seq), (Event::Gap, hello.seq), "{run} {seq}");
        run_of(&hello)
    };
    let run = check("another", 1).await;
    check(&run, 1_000_000).await;
}

#[tokio::test]
async fn what_is_no_longer_kept_is_a_gap() {
    let mut story = Story::begin().await;
    watching(&mut story).await;
    let client = story.supervisor.client();
    let hello = next(&mut client.events(None).await.unwrap()).await;
    make_many(&story);
    until_file(&mut story, "the-last").await;
    let seen = Seen { run: run_of(&hello), seq: hello.seq };
    let mut back = client.events(Some(&seen)).await.unwrap();
    next(&mut back).await;
    let gap = next(&mut back).await;
    assert_eq!(gap.event, Event::Gap);
    assert!(gap.seq > hello.seq);
    let first = next(&mut back).await;
    assert_eq!(first.seq, gap.seq + 1);
    assert!(matches!(first.event, Event::Files { .. }), "{first:?}");
}

#[tokio::test]
async fn a_slow_client_is_skipped_ahead() {
    let mut story = Story::begin().await;
    watching(&mut story).await;
    let mut slow = story.supervisor.client().events(None).await.unwrap();
    make_many(&story);
    until_file(&mut story, "the-last").await;
    let (mut gaps, mut seen) = (0, 0);
    loop {
        let message = next(&mut slow).await;
        match message.event {
            Event::Gap => gaps += 1,
            Event::Files { changes } => {
                assert!(gaps > 0 || message.seq == seen + 1 || seen == 0);
                if changes.iter().any(|change| change.path.as_path().ends_with("the-last")) {
                    break;
                }
            }
            _ => {}
        }
        assert!(message.seq >= seen);
        seen = message.seq;
    }
    assert!(gaps > 0);
}

#[tokio::test]
async fn a_client_to_whom_nothing_happens_hears_that_the_supervisor_is_there() {
    let mut story = Story::begin().await;
    watching(&mut story).await;
    let began = Instant::now();
    let beat = story.event().await;
    assert_eq!(beat.event, Event::Beat);
    assert!((10..=30).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    // It is no event, and what comes next goes on from the last.
    std::fs::write(story.supervisor.workspace().join("next"), "").unwrap();
    assert_eq!(until_file(&mut story, "next").await, beat.seq + 1);
}
