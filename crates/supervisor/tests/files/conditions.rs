//! Preconditions, also when two writers race.

use std::fs;

use nacre_wire::ErrorKind;
use nacre_wire::client::WriteOptions;
use nacre_wire::files::{Chmod, Remove};

use crate::harness::{Call, Computer, names, refused};

fn only(etag: &str) -> WriteOptions {
    WriteOptions { if_match: Some(etag.to_owned()), ..WriteOptions::default() }
}

#[tokio::test]
async fn a_write_replaces_only_the_version_it_names() {
    let pc = Computer::start().await;
    let create = WriteOptions { create_new: true, ..WriteOptions::default() };
    let first = pc.client.write("f", "1", &create).await.unwrap();
    refused(pc.client.write("f", "x", &create).await, ErrorKind::Conflict);
    let second = pc.client.write("f", "2", &only(&first.etag)).await.unwrap();
    refused(pc.client.write("f", "x", &only(&first.etag)).await, ErrorKind::Conflict);
    refused(pc.client.write("f", "x", &only("\"made-up\"")).await, ErrorKind::Conflict);
    refused(pc.client.write("gone", "x", &only(&second.etag)).await, ErrorKind::Conflict);
    assert_eq!(pc.get("f"), b"2");
    // Metadata is part of a version.
    pc.client.chmod(&Chmod { path: "f".into(), mode: 0o600 }).await.unwrap();
    refused(pc.client.write("f", "x", &only(&second.etag)).await, ErrorKind::Conflict);
    assert_eq!(names(&pc.workspace()), ["f"]);
}

#[tokio::test]
async fn if_match_star_needs_something_to_replace() {
    let pc = Computer::start().await;
    refused(pc.client.write("f", "x", &only("*")).await, ErrorKind::Conflict);
    pc.put("f", "1");
    pc.client.write("f", "2", &only("*")).await.unwrap();
    assert_eq!((pc.get("f").as_slice(), names(&pc.workspace())), (&b"2"[..], vec!["f".to_owned()]));
}

#[tokio::test]
async fn remove_takes_only_the_version_it_names() {
    let pc = Computer::start().await;
    let old = pc.client.write("f", "1", &WriteOptions::default()).await.unwrap();
    let new = pc.client.write("f", "2", &WriteOptions::default()).await.unwrap();
    let remove =
        |etag: &str| Remove { path: "f".into(), recursive: false, if_match: Some(etag.to_owned()) };
    refused(pc.client.remove(&remove(&old.etag)).await, ErrorKind::Conflict);
    pc.client.remove(&remove(&new.etag)).await.unwrap();
    assert_eq!(names(&pc.workspace()), [""; 0]);
    // A directory that is not empty stays under its own name.
    pc.put("dir/f", "");
    let etag = pc.client.stat("dir").await.unwrap().etag;
    let request = Remove { path: "dir".into(), recursive: false, if_match: Some(etag) };
    refused(pc.client.remove(&request).await, ErrorKind::IsDirectory);
    assert_eq!(names(&pc.workspace()), ["dir"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_writers_with_one_precondition_exactly_one_wins() {
    let pc = Computer::start().await;
    let mut etag = pc.client.write("f", "start", &WriteOptions::default()).await.unwrap().etag;
    for round in 0..60 {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let (client, etag) = (pc.client.clone(), etag.clone());
                let text = format!("{round} {writer}");
                tokio::spawn(
                    async move { (client.write("f", text.clone(), &only(&etag)).await, text) },
                )
            })
            .collect();
        let mut winner = None;
        for writer in writers {
            let (result, text) = writer.await.unwrap();
            match result {
                Ok(stat) => assert_eq!(winner.replace((stat.etag, text)), None, "two winners"),
                lost => drop(refused(lost, ErrorKind::Conflict)),
            }
        }
        let (won, text) = winner.expect("somebody wins");
        assert_eq!(pc.get("f"), text.as_bytes());
        etag = won;
    }
    assert_eq!(names(&pc.workspace()), ["f"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_writer_that_does_not_ask_is_never_undone() {
    let pc = Computer::start().await;
    pc.put("f", "start");
    let path = pc.workspace().join("f");
    for round in 0..100 {
        let etag = pc.client.stat("f").await.unwrap().etag;
        let foreign = {
            let (path, aside) = (path.clone(), pc.workspace().join("aside"));
            tokio::task::spawn_blocking(move || {
                fs::write(&aside, format!("foreign {round}")).unwrap();
                fs::rename(&aside, &path).unwrap();
            })
        };
        let ours = pc.client.write("f", format!("ours {round}"), &only(&etag)).await;
        foreign.await.unwrap();
        match ours {
            // Either order is fine, but a refused write leaves the other one's work.
            Ok(_) => {}
            refusal => {
                refused(refusal, ErrorKind::Conflict);
                assert_eq!(pc.get("f"), format!("foreign {round}").as_bytes());
            }
        }
    }
    assert_eq!(names(&pc.workspace()), ["f"]);
}

#[tokio::test]
async fn a_large_upload_is_held_to_its_precondition_too() {
    let pc = Computer::start().await;
    pc.put("f", "old");
    let body = vec![b'x'; 4 << 20];
    refused(pc.client.write("f", body.clone(), &only("\"1-1-1-1\"")).await, ErrorKind::Conflict);
    let answer = pc
        .call(Call::new(http::Method::PUT, "content", "f").header("if-none-match", "*").body(body))
        .await;
    assert_eq!(answer.error().kind, ErrorKind::Conflict);
    assert_eq!(
        (pc.get("f").as_slice(), names(&pc.workspace())),
        (&b"old"[..], vec!["f".to_owned()])
    );
}
