//! The history of a sandbox's files, where nothing in the sandbox reaches it.

use std::time::Duration;

use nacre_wire::client::ListHistory;
use nacre_wire::history::{HistoryState, UndoRequest};

use crate::machine::Sandbox;

#[tokio::test]
async fn everything_a_command_did_can_be_undone_also_after_a_restart() {
    let sandbox = Sandbox::start().await;
    let make = "mkdir -p src/deep && echo 1 > src/deep/a && ln -s a src/deep/link \
                && chmod 700 src && mkdir empty && echo keep > keep";
    sandbox.output("nacre", make).await;
    sandbox.output("root", "echo root > by-root; chmod 600 by-root").await;
    let before = listing(&sandbox).await;
    sandbox.output("root", "rm -rf /workspace/* && echo junk > junk").await;
    let recorded = sandbox.client().history(&ListHistory::default()).await.unwrap();
    assert!(recorded.checkpoints.len() >= 4, "{recorded:?}");
    sandbox.restart().await;
    let undone = sandbox.client().undo(&UndoRequest::default()).await.unwrap();
    assert_eq!(undone.conflicts, []);
    assert_eq!(undone.remarks, []);
    assert_eq!(listing(&sandbox).await, before);
    let status = sandbox.client().history_status().await.unwrap();
    assert_eq!(status.state, HistoryState::Recording);
    sandbox.destroy().await;
}

async fn listing(sandbox: &Sandbox) -> String {
    let script = "cd /workspace && find . | sort | xargs stat -c '%n %A %U %s' \
                  && find . -type f | sort | xargs md5sum";
    sandbox.output("root", script).await
}

#[tokio::test]
async fn the_store_is_out_of_reach() {
    let sandbox = Sandbox::start().await;
    sandbox.output("nacre", "echo secret-of-the-past > a").await;
    sandbox.output("nacre", "rm a").await;
    let recorded = sandbox.client().history(&ListHistory::default()).await.unwrap();
    assert!(recorded.checkpoints.len() >= 3, "{recorded:?}");
    // It is there, outside.
    let store =
        sandbox.data.path().join("sandboxes").join(sandbox.id.as_str()).join("data/history");
    assert!(store.join("log.db").exists());
    for user in ["root", "nacre"] {
        let find = "find / -name log.db -o -name '*.pack' -o -name history -type d 2>/dev/null \
                    | grep -v '^/usr' | grep -v '^/proc' ; true";
        assert_eq!(sandbox.output(user, find).await, "", "{user}");
        let inherited = sandbox.output(user, "ls -l /proc/self/fd/ | grep -c history; true").await;
        assert_eq!(inherited.trim(), "0", "{user}");
        let above =
            sandbox.output(user, "cd /workspace/.. && ls -d history data upper; true").await;
        assert_eq!(above, "", "{user}");
    }
    sandbox.destroy().await;
}

#[tokio::test]
async fn what_nobody_announced_is_recorded_in_a_sandbox_too() {
    let sandbox = Sandbox::start().await;
    sandbox.output("nacre", "echo 1 > a").await;
    let latest = sandbox.client().history_status().await.unwrap().latest;
    sandbox.output("nacre", "(sleep 1; echo 2 > /workspace/late) >/dev/null 2>&1 &").await;
    let found = tokio::time::timeout(Duration::from_secs(30), async {
        loop {
            let page = sandbox.client().history(&ListHistory::default()).await.unwrap();
            let newest = page.checkpoints.into_iter().next().unwrap();
            if newest.id > latest {
                return newest;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    assert_eq!(found.await.expect("a checkpoint").added, 1);
    sandbox.destroy().await;
}
