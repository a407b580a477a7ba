//! How long things take on a tree of one's own. Only prints; run it in release:
//! `NACRE_TREE=DIR NACRE_STORE=DIR cargo test --release -p nacre-history timing -- --ignored --nocapture`

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use super::*;

fn files(below: &Path, to: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(below).unwrap().map(Result::unwrap).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            files(&entry.path(), to);
        } else if kind.is_file() {
            to.push(entry.path());
        }
    }
}

/// Of all threads, in seconds.
fn processor_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Two threads take runs of neighbours in turn.
fn keep_all(writer: &Writer<'_>, files: &[PathBuf]) {
    let runs: Mutex<_> = Mutex::new(files.chunks(64));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(run) = lock(&runs).next() else { return };
                    for file in run {
                        writer.keep(&fs::read(file).unwrap()).unwrap();
                    }
                }
            });
        }
    });
}

#[test]
#[ignore = "prints timings of a tree that the caller names"]
fn timing() {
    let tree = std::env::var_os("NACRE_TREE").expect("NACRE_TREE names a tree");
    let parent = std::env::var_os("NACRE_STORE").expect("NACRE_STORE names a directory");
    let directory = TempDir::new_in(parent).unwrap();
    let db = database(directory.path());
    db.pragma_update(None, "synchronous", "full").unwrap();
    let store = Store::open(directory.path(), &db).unwrap();
    let mut place = Place { directory, db, store };
    let mut paths = Vec::new();
    files(Path::new(&tree), &mut paths);

    let start = Instant::now();
    for path in &paths {
        std::hint::black_box(fs::read(path).unwrap());
    }
    println!("read on one thread {:?}, cpu {:?}", start.elapsed(), processor_time());

    for (level, target) in [(1, 128), (1, 256), (2, 256), (3, 128), (3, 256), (6, 1024), (9, 1024)]
    {
        let (start, worked) = (Instant::now(), processor_time());
        let effort = Effort { level, target: target << 10 };
        let writer = Writer::new(&place.store, &mut place.db, effort).unwrap();
        keep_all(&writer, &paths);
        drop(writer.finish().unwrap());
        let (took, worked) = (start.elapsed(), processor_time() - worked);
        let stored = place.stored();
        place.reopen();
        println!("level {level}, {target} KiB: {took:?}, cpu {worked:?}, {stored} bytes");
    }

    let start = Instant::now();
    let writer = place.store.writer(&mut place.db).unwrap();
    keep_all(&writer, &paths);
    let kept = start.elapsed();
    let batch = writer.finish().unwrap();
    let finished = start.elapsed();
    place.commit(&batch);
    println!("first: keep {kept:?}, finish {finished:?}, commit {:?}", start.elapsed());
    let log = fs::metadata(place.directory.path().join("log.db")).unwrap().len();
    println!("{:?}, database {log}", place.store.usage(&place.db).unwrap());

    let start = Instant::now();
    let writer = place.store.writer(&mut place.db).unwrap();
    keep_all(&writer, &paths);
    drop(writer);
    println!("all known {:?}", start.elapsed());

    for round in 0..5_u64 {
        let start = Instant::now();
        let writer = place.store.writer(&mut place.db).unwrap();
        for number in 0..10_u64 {
            let text = format!("{round} {number} a line of text\n").repeat(100);
            writer.keep(text.as_bytes()).unwrap();
        }
        let batch = writer.finish().unwrap();
        let finished = start.elapsed();
        place.commit(&batch);
        println!("ten small: finish {finished:?}, commit {:?}", start.elapsed());
    }

    let ids: Vec<_> = paths
        .iter()
        .step_by((paths.len() / 5000).max(1))
        .map(|path| ContentId::of(&fs::read(path).unwrap()))
        .collect();
    place.reopen();
    let start = Instant::now();
    let fetcher = place.store.fetcher(&mut place.db);
    std::thread::scope(|scope| {
        for half in ids.chunks(ids.len().div_ceil(2)) {
            let fetcher = &fetcher;
            scope.spawn(move || {
                for id in half {
                    fetcher.fetch(*id, &mut std::io::sink()).unwrap();
                }
            });
        }
    });
    println!("fetch of {} far apart on two threads {:?}", ids.len(), start.elapsed());

    let start = Instant::now();
    assert_eq!(place.store.verify(&mut place.db, &mut |_, _| {}).unwrap(), []);
    println!("verify {:?}", start.elapsed());

    let start = Instant::now();
    let freed = place.store.compact(&mut place.db, &|id| id.0[0] < 128).unwrap();
    println!("compact to half {freed:?} {:?}", start.elapsed());
    println!("{:?}", place.store.usage(&place.db).unwrap());
}
