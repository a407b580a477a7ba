//! What only the inside can arrange: a watcher that is held while the kernel's queue runs over.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nacre_wire::watch::{Change, ChangeKind};
use tempfile::TempDir;

use super::{Event, Subscription, Target, Watchers};
use crate::users::User;

fn target(path: &Path) -> Target {
    let uid = rustix::process::geteuid().as_raw();
    Target {
        directory: fs::File::open(path).unwrap().into(),
        path: path.to_owned(),
        user: Arc::new(User {
            name: "me".to_owned(),
            uid,
            gid: rustix::process::getegid().as_raw(),
            groups: Vec::new(),
            home: PathBuf::from("/"),
            shell: PathBuf::from("/bin/sh"),
        }),
    }
}

async fn next(subscription: &mut Subscription) -> Event {
    tokio::time::timeout(Duration::from_secs(30), subscription.next()).await.unwrap().unwrap()
}

/// The kinds seen for each path until `path` is mentioned.
async fn until(subscription: &mut Subscription, path: &Path) -> Vec<Change> {
    let mut seen = Vec::new();
    loop {
        if let Event::Changes(changes) = next(subscription).await {
            seen.extend(changes.iter().cloned());
            if seen.iter().any(|change| change.path.as_path() == path) {
                return seen;
            }
        }
    }
}

fn queue_length() -> usize {
    fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap()
}

#[tokio::test]
async fn what_the_kernel_dropped_is_found_again() {
    let dir = TempDir::new().unwrap();
    let top = dir.path();
    fs::create_dir(top.join("noise")).unwrap();
    fs::create_dir(top.join("kept")).unwrap();
    for name in ["deleted", "modified", "untouched"] {
        fs::write(top.join("kept").join(name), name).unwrap();
    }
    let watchers = Watchers::default();
    let mut subscription = watchers.subscribe(target(top)).unwrap();
    assert_eq!(next(&mut subscription).await, Event::Ready { directories: 3 });
    let hold = subscription.hold();
    for i in 0..queue_length() {
        fs::File::create(top.join(format!("noise/{i}"))).unwrap();
    }
    fs::remove_file(top.join("kept/deleted")).unwrap();
    fs::write(top.join("kept/modified"), "another length").unwrap();
    fs::create_dir_all(top.join("kept/new/deep")).unwrap();
    fs::write(top.join("kept/new/deep/file"), "").unwrap();
    drop(hold);
    let mut healed = None;
    while healed.is_none() {
        match next(&mut subscription).await {
            Event::Overflow { lost } => healed = Some(lost),
            Event::Changes(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(healed, Some(1));
    let seen = until(&mut subscription, &top.join("kept/new/deep/file")).await;
    let mut kept: Vec<_> = seen
        .into_iter()
        .filter(|change| change.path.as_path().starts_with(top.join("kept")))
        .map(|change| {
            (change.path.as_path().strip_prefix(top.join("kept")).unwrap().to_owned(), change.kind)
        })
        .collect();
    kept.sort_by(|left, right| left.0.cmp(&right.0));
    let expected = [
        ("deleted", ChangeKind::Delete),
        ("modified", ChangeKind::Modify),
        ("new", ChangeKind::Create),
        ("new/deep", ChangeKind::Create),
        ("new/deep/file", ChangeKind::Create),
    ];
    assert_eq!(kept, expected.map(|(path, kind)| (PathBuf::from(path), kind)));
    // And it watches what it found.
    fs::write(top.join("kept/new/deep/later"), "").unwrap();
    until(&mut subscription, &top.join("kept/new/deep/later")).await;
}

#[tokio::test]
async fn a_subscriber_that_lags_starts_over_and_others_do_not_notice() {
    let dir = TempDir::new().unwrap();
    let top = dir.path();
    fs::create_dir(top.join("d")).unwrap();
    let watchers = Watchers::default();
    let mut slow = watchers.subscribe(target(top)).unwrap();
    let mut quick = watchers.subscribe(target(top)).unwrap();
    assert_eq!(watchers.running(), 1);
    next(&mut quick).await;
    for i in 0..400 {
        let path = top.join(format!("d/{i}"));
        fs::write(&path, "").unwrap();
        until(&mut quick, &path).await;
    }
    let everything = loop {
        match next(&mut slow).await {
            Event::Resync { everything, .. } => break everything,
            Event::Ready { .. } | Event::Changes(_) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(everything.len(), 401);
    assert!(matches!(next(&mut slow).await, Event::Ready { .. }));
    fs::write(top.join("d/after"), "").unwrap();
    until(&mut slow, &top.join("d/after")).await;
    until(&mut quick, &top.join("d/after")).await;
}

#[tokio::test]
async fn the_last_one_to_leave_ends_the_watches() {
    let dir = TempDir::new().unwrap();
    let watchers = Watchers::default();
    let mut first = watchers.subscribe(target(dir.path())).unwrap();
    let second = watchers.subscribe(target(dir.path())).unwrap();
    next(&mut first).await;
    drop(second);
    fs::write(dir.path().join("still"), "").unwrap();
    until(&mut first, &dir.path().join("still")).await;
    assert_eq!(watchers.running(), 1);
    drop(first);
    let ended = async {
        while watchers.running() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), ended).await.unwrap();
    // And it can begin again.
    let mut again = watchers.subscribe(target(dir.path())).unwrap();
    assert_eq!(next(&mut again).await, Event::Ready { directories: 1 });
}

#[tokio::test]
async fn removing_the_watched_directory_ends_the_watch() {
    let dir = TempDir::new().unwrap();
    let top = dir.path().join("top");
    fs::create_dir(&top).unwrap();
    let watchers = Watchers::default();
    let mut subscription = watchers.subscribe(target(&top)).unwrap();
    next(&mut subscription).await;
    fs::remove_dir(&top).unwrap();
    let Event::Changes(changes) = next(&mut subscription).await else { panic!() };
    assert_eq!((changes[0].kind, changes[0].path.as_path()), (ChangeKind::Delete, top.as_path()));
    let Event::Failed(error) = next(&mut subscription).await else { panic!() };
    assert_eq!(error.kind, nacre_wire::ErrorKind::NotFound);
    assert_eq!(subscription.next().await, None);
}

/// The limit belongs to a user namespace, so the test runs itself again in one of its own.
#[test]
fn running_out_of_watches_is_said_with_the_remedy() {
    const INSIDE: &str = "NACRE_TEST_FEW_WATCHES";
    if std::env::var_os(INSIDE).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(run_out_of_watches());
    }
    let script = "echo 4 > /proc/sys/user/max_inotify_watches && exec \"$0\" --exact \"$1\"";
    let status = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", script])
        .arg(std::env::current_exe().unwrap())
        .arg("watch::tests::running_out_of_watches_is_said_with_the_remedy")
        .env(INSIDE, "1")
        .status()
        .unwrap();
    assert!(status.success());
}

async fn run_out_of_watches() {
    let dir = TempDir::new().unwrap();
    for i in 0..8 {
        fs::create_dir(dir.path().join(i.to_string())).unwrap();
    }
    let mut subscription = Watchers::default().subscribe(target(dir.path())).unwrap();
    let Event::Failed(error) = next(&mut subscription).await else { panic!() };
    assert_eq!(error.kind, nacre_wire::ErrorKind::NoSpace);
    assert!(error.hint.unwrap().contains("fs.inotify.max_user_watches"));
    assert_eq!(subscription.next().await, None);
}
