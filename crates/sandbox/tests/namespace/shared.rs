//! The folder that all sandboxes see at `/opt/nacre`.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use nacre_sandbox::conformance::client;
use nacre_sandbox::{SandboxId, SandboxSpec};
use nacre_wire::exec::ExecRequest;

use crate::machine::Sandbox;

/// Something to read and something to run, closed to nobody.
fn put(data: &Path, name: &str) {
    let folder = data.join("shared").join(name);
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("text"), name).unwrap();
    std::fs::write(folder.join("tool"), "#!/bin/sh\necho ran\n").unwrap();
    for (file, mode) in [("", 0o755), ("text", 0o644), ("tool", 0o755)] {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(folder.join(file), permissions).unwrap();
    }
}

#[tokio::test]
async fn it_is_seen_by_all_and_changed_by_nobody() {
    let sandbox = Sandbox::start().await;
    // It runs already, and was built before anybody asked for it.
    put(sandbox.data.path(), "pearl");
    for user in ["nacre", "root"] {
        let look = "cat /opt/nacre/pearl/text; echo; /opt/nacre/pearl/tool";
        assert_eq!(sandbox.output(user, look).await, "pearl\nran", "{user}");
        for change in [
            "touch /opt/nacre/new",
            "echo x >> /opt/nacre/pearl/text",
            "chmod 777 /opt/nacre/pearl/text",
            "chown 1000 /opt/nacre/pearl",
            "rm -rf /opt/nacre/pearl/text",
            "mv /opt/nacre/pearl /opt/nacre/other",
            "mount -o remount,bind,rw /opt/nacre",
            "umount /opt/nacre",
        ] {
            let finished = sandbox.sh(user, change).await;
            assert_ne!(finished.exit.code, Some(0), "{user}: {change}");
        }
    }
    let options = sandbox.output("nacre", "findmnt -no OPTIONS /opt/nacre").await;
    let has = |option| options.split(',').any(|found| found == option);
    assert!(has("ro") && has("nosuid") && has("nodev") && !has("noexec"), "{options}");
    let text = sandbox.data.path().join("shared/pearl/text");
    assert_eq!(std::fs::read_to_string(text).unwrap(), "pearl");
    sandbox.destroy().await;
}

#[tokio::test]
async fn it_is_there_after_a_restart() {
    let sandbox = Sandbox::start().await;
    put(sandbox.data.path(), "pearl");
    sandbox.restart().await;
    assert_eq!(sandbox.output("nacre", "cat /opt/nacre/pearl/text").await, "pearl");
    let own = sandbox.data.path().join("sandboxes/box/data/upper/root/opt");
    assert!(!own.exists(), "the base has the mount point: nothing is made for each sandbox");
    sandbox.destroy().await;
}

/// In the layer of a sandbox on an image, root has made it what it is.
#[tokio::test]
async fn a_link_in_its_place_is_not_followed() {
    let root = crate::rootfs::busybox_root();
    let rootfs = Some(root.path().to_owned());
    let sandbox = Sandbox::with(SandboxSpec { rootfs, ..SandboxSpec::default() }).await;
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::set_permissions(elsewhere.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    // It cannot be removed while something is mounted below, and can be moved.
    let link = "busybox mv /opt /moved && busybox ln -s";
    sandbox.output("root", &format!("{link} {} /opt", elsewhere.path().display())).await;
    sandbox.restart().await;
    assert_ne!(sandbox.sh("nacre", "ls /opt/nacre").await.exit.code, Some(0));
    assert!(std::fs::read_dir(elsewhere.path()).unwrap().next().is_none(), "made on the host");
    sandbox.destroy().await;
}

#[tokio::test]
async fn a_fork_sees_it_and_copies_nothing_of_it() {
    let sandbox = Sandbox::start().await;
    put(sandbox.data.path(), "pearl");
    sandbox.output("nacre", "ln -s /opt/nacre/pearl linked").await;
    let twin: SandboxId = "twin".parse().unwrap();
    sandbox.driver.fork(&sandbox.id, &twin, Arc::default()).await.unwrap();
    sandbox.driver.start(&twin).await.unwrap();
    let request =
        ExecRequest { shell: Some("cat linked/text".to_owned()), ..ExecRequest::default() };
    let finished = client(&sandbox.driver, &twin).run(request).await.unwrap();
    assert_eq!(finished.stdout, b"pearl");
    let copy = sandbox.data.path().join("sandboxes/twin/data");
    let found = std::process::Command::new("find").arg(&copy).args(["-name", "tool"]).output();
    assert_eq!(String::from_utf8_lossy(&found.unwrap().stdout), "");
    sandbox.driver.destroy(&twin).await.unwrap();
    sandbox.destroy().await;
}

#[tokio::test]
async fn a_root_filesystem_has_it_too() {
    let root = crate::rootfs::busybox_root();
    let rootfs = Some(root.path().to_owned());
    let sandbox = Sandbox::with(SandboxSpec { rootfs, ..SandboxSpec::default() }).await;
    put(sandbox.data.path(), "pearl");
    for _ in 0..2 {
        assert_eq!(sandbox.output("nacre", "cat /opt/nacre/pearl/text").await, "pearl");
        assert_ne!(sandbox.sh("root", "touch /opt/nacre/new").await.exit.code, Some(0));
        sandbox.restart().await;
    }
    assert!(!root.path().join("opt").exists(), "the image is not touched");
    sandbox.destroy().await;
}
