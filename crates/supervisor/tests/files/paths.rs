//! Whatever bytes a path holds, it stays inside.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::OnceLock;

use nacre_wire::client::{Error, WriteOptions};
use nacre_wire::files::{Mkdir, Remove, Transfer};
use proptest::prelude::*;

use crate::harness::{CANARY, Computer};

/// Paths made of what is likely to lead out, and of anything at all.
fn hostile() -> impl Strategy<Value = PathBuf> {
    let piece = prop_oneof![
        4 => Just(b"..".to_vec()),
        2 => Just(b".".to_vec()),
        1 => Just(b"".to_vec()),
        3 => Just(b"out".to_vec()),
        2 => Just(b"up".to_vec()),
        2 => Just(b"outside".to_vec()),
        2 => Just(b"canary".to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..12),
    ];
    (any::<bool>(), prop::collection::vec(piece, 0..12)).prop_map(|(absolute, pieces)| {
        let mut bytes = pieces.join(&b'/');
        if absolute {
            bytes.insert(0, b'/');
        }
        PathBuf::from(OsString::from_vec(bytes))
    })
}

fn runtime() -> &'static tokio::runtime::Runtime {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| tokio::runtime::Runtime::new().unwrap())
}

fn computer() -> &'static Computer {
    static COMPUTER: OnceLock<Computer> = OnceLock::new();
    COMPUTER.get_or_init(|| {
        let pc = runtime().block_on(Computer::start());
        symlink("../../outside", pc.workspace().join("out")).unwrap();
        symlink(pc.outside(), pc.workspace().join("outside")).unwrap();
        symlink("../..", pc.workspace().join("up")).unwrap();
        pc
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_path_leads_out(path in hostile(), other in hostile()) {
        let pc = computer();
        runtime().block_on(async {
            let read = pc.client.read(&path).await;
            assert!(read.as_ref().map_or(true, |bytes| bytes != CANARY), "{path:?}");
            let mut results = vec![read.map(drop)];
            results.push(pc.client.write(&path, "x", &WriteOptions::default()).await.map(drop));
            results.push(pc.client.list(&path, None, None).await.map(drop));
            let transfer = Transfer { from: path.clone().into(), to: other.into(), overwrite: true };
            results.push(pc.client.copy(&transfer).await);
            results.push(pc.client.rename(&transfer).await);
            let mkdir = Mkdir { path: path.clone().into(), parents: true, mode: None };
            results.push(pc.client.mkdir(&mkdir).await);
            if path.file_name().is_none_or(|name| !["out", "outside", "up", "workspace"].iter().any(|kept| name == *kept)) {
                let remove = Remove { path: path.clone().into(), recursive: true, if_match: None };
                results.push(pc.client.remove(&remove).await);
            }
            for result in results {
                // A refusal is an answer; a broken connection would be a panic behind it.
                assert!(matches!(result, Ok(()) | Err(Error::Api(_))), "{path:?}: {result:?}");
            }
        });
        pc.assert_outside_untouched();
    }
}
