use std::io::Read;
use std::path::Path;

use super::*;

/// Prints what a scan and a capture of `NACRE_TREE` take beside a walk that only stats.
#[test]
#[ignore = "measures; wants a release build and a large tree"]
fn measure() {
    use std::time::Instant;
    let top = std::env::var_os("NACRE_TREE").unwrap();
    let mut kept = Kept::new(Path::new(&top));
    let timed = |what: &str, act: &mut dyn FnMut()| {
        for _ in 0..5 {
            let (start, busy) = (Instant::now(), busy());
            act();
            println!("{what}: {:?}, processors {:?}", start.elapsed(), self::busy() - busy);
        }
    };
    timed("walk", &mut || {
        let exclude = Exclusions::default();
        let mut walk = super::super::walk::Walk::new(&kept.root, &exclude);
        let mut step = walk.begin(&TreePath::root());
        while step.is_some() {
            step = walk.next();
        }
    });
    let names = kept.checkpoint();
    kept.trust();
    let rows: Vec<Recorded> = kept.state.values().filter_map(recorded).collect();
    timed("scan", &mut || {
        let mut rows = rows.iter().cloned().map(Ok);
        scan(&kept.root, &TreePath::root(), &kept.exclude, &mut rows).unwrap();
    });
    let some: Vec<_> = names.iter().step_by(names.len().div_ceil(5000)).cloned().collect();
    for (what, names, threads) in
        [("all, 1", &names, 1), ("all, 2", &names, 2), ("some, 1", &some, 1), ("some, 2", &some, 2)]
    {
        let policy = Policy { threads, ..Policy::default() };
        timed(&format!("capture of {} ({what} threads)", names.len()), &mut || {
            capture(&kept.root, &Nothing, &policy, names).unwrap();
        });
    }
}

/// What the processors spent on us so far: on a busy machine the clock tells little.
fn busy() -> std::time::Duration {
    let busy = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    std::time::Duration::new(busy.tv_sec.cast_unsigned(), u32::try_from(busy.tv_nsec).unwrap())
}

/// Keeps nothing and takes no time.
struct Nothing;

impl Keep for Nothing {
    fn keep(&self, _: &[u8]) -> Result<ContentId> {
        Ok(ContentId([0; 32]))
    }

    fn keep_stream(&self, from: &mut dyn Read) -> Result<(ContentId, u64)> {
        let length = std::io::copy(from, &mut std::io::sink());
        Ok((ContentId([0; 32]), length.unwrap()))
    }
}
