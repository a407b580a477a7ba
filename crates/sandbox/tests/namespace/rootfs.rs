//! A sandbox on a root filesystem of its own: here one that holds busybox and nothing else.

use std::os::unix::fs::symlink;
use std::path::Path;

use nacre_sandbox::SandboxSpec;

use crate::machine::Sandbox;

pub(crate) fn busybox_root() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for directory in ["bin", "etc"] {
        std::fs::create_dir(root.path().join(directory)).unwrap();
    }
    std::fs::copy("/bin/busybox", root.path().join("bin/busybox"))
        .expect("busybox-static is installed by `cargo xtask test`");
    for tool in ["sh", "cat", "ls", "id", "echo", "rm", "touch", "stat"] {
        symlink("busybox", root.path().join("bin").join(tool)).unwrap();
    }
    std::fs::write(root.path().join("etc/motd"), "from the image").unwrap();
    root
}

#[tokio::test]
async fn it_is_the_images_system_and_not_the_hosts() {
    let root = busybox_root();
    let sandbox = Sandbox::with(SandboxSpec {
        rootfs: Some(root.path().to_owned()),
        ..SandboxSpec::default()
    })
    .await;
    assert_eq!(
        sandbox.output("nacre", "cat /etc/motd; echo; id -un; ls /").await,
        "from the image\nnacre\nbin\ndev\netc\nopt\nproc\nrun\nsys\ntmp\nworkspace"
    );
    assert_eq!(
        sandbox.output("root", "stat -c %u:%a /bin/busybox").await.split(':').next(),
        Some("0"),
        "the image's root is root"
    );
    sandbox.destroy().await;
}

#[tokio::test]
async fn changes_are_kept_and_the_image_is_not_touched() {
    let root = busybox_root();
    let sandbox = Sandbox::with(SandboxSpec {
        rootfs: Some(root.path().to_owned()),
        ..SandboxSpec::default()
    })
    .await;
    sandbox
        .output("root", "echo changed > /etc/motd; rm /bin/touch; echo mine > /workspace/a")
        .await;
    sandbox.driver.stop(&sandbox.id, std::time::Duration::from_secs(5)).await.unwrap();
    sandbox.driver.start(&sandbox.id).await.unwrap();
    assert_eq!(
        sandbox
            .output("nacre", "cat /etc/motd /workspace/a; ls /bin/touch 2>/dev/null || echo gone")
            .await,
        "changed\nmine\ngone"
    );
    assert_eq!(std::fs::read_to_string(root.path().join("etc/motd")).unwrap(), "from the image");
    assert!(Path::new(&root.path().join("bin/touch")).is_symlink());
    sandbox.destroy().await;
}

#[tokio::test]
async fn one_that_is_not_there_is_a_clear_error() {
    let data = tempfile::tempdir().unwrap();
    let driver = crate::machine::driver_on(data.path());
    let spec = SandboxSpec { rootfs: Some("/no/such/image".into()), ..SandboxSpec::default() };
    let error = driver.create(&"box".parse().unwrap(), &spec).await.unwrap_err();
    assert!(error.to_string().contains("/no/such/image"), "{error}");
}
