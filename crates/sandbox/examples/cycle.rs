//! One life of a sandbox, for the crash suite to interrupt and for other users to try.
//!
//! `cycle [--blank] [--fork] DATA GUEST [ROOTFS]` writes its pid to `DATA/pid`, says what is reduced on this
//! machine, and then creates, starts, uses, stops, starts and destroys a sandbox called `cycle`.
//! With `--blank` it is made from a blank; with `--fork` it is copied while it runs.

#![allow(clippy::unwrap_used, reason = "a failed life is a failed run")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nacre_sandbox::conformance::client;
use nacre_sandbox::namespace::{NamespaceConfig, NamespaceDriver};
use nacre_sandbox::{Driver, SandboxId, SandboxSpec};
use nacre_wire::client::WriteOptions;
use nacre_wire::exec::ExecRequest;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from).peekable();
    let from_blank = arguments.next_if(|first| first.as_os_str() == "--blank").is_some();
    let fork = arguments.next_if(|next| next.as_os_str() == "--fork").is_some();
    let (data, guest) = (arguments.next().unwrap(), arguments.next().unwrap());
    std::fs::write(data.join("pid"), std::process::id().to_string()).unwrap();
    let shared = data.join("shared");
    let driver = NamespaceDriver::new(NamespaceConfig {
        data_dir: data,
        guest: std::fs::read(guest).unwrap().into(),
        parked: usize::from(from_blank),
        host_directories: Vec::new(),
        shared: Some(shared.clone()),
    })
    .unwrap();
    std::fs::write(shared.join("note"), "for all\n").unwrap();
    driver.reconcile().await.unwrap();
    driver.warm_up().await.unwrap();
    let driver: Arc<dyn Driver> = Arc::new(driver);
    for reduction in driver.capabilities().reduced {
        println!("reduced: {}", reduction.what);
    }
    let id: SandboxId = "cycle".parse().unwrap();
    driver
        .create(&id, &SandboxSpec { rootfs: arguments.next(), ..SandboxSpec::default() })
        .await
        .unwrap();
    driver.start(&id).await.unwrap();
    client(&driver, &id).write("file", "pearl", &WriteOptions::default()).await.unwrap();
    driver.stop(&id, Duration::from_secs(5)).await.unwrap();
    driver.start(&id).await.unwrap();
    let script = "cat file; echo; id -un; touch /usr/bin/new-file && echo writable
                  cat /opt/nacre/note; touch /opt/nacre/mine || echo shared read-only"
        .to_owned();
    let request =
        ExecRequest { shell: Some(script), user: Some("0".to_owned()), ..ExecRequest::default() };
    let finished = client(&driver, &id).run(request).await.unwrap();
    print!("{}", String::from_utf8_lossy(&finished.stdout));
    if fork {
        let twin: SandboxId = "twin".parse().unwrap();
        driver.fork(&id, &twin, Arc::default()).await.unwrap();
        driver.start(&twin).await.unwrap();
        let content = client(&driver, &twin).read("file").await.unwrap();
        println!("forked {}", String::from_utf8_lossy(&content));
        driver.destroy(&twin).await.unwrap();
    }
    driver.destroy(&id).await.unwrap();
    println!("done");
}
