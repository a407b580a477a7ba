//! Acting as somebody. These need root, which is what a supervisor is in its sandbox.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

use http::Method;
use nacre_supervisor::files::{Context, router};
use nacre_wire::ErrorKind;
use nacre_wire::client::{Client, WriteOptions};
use nacre_wire::files::{Chmod, Mkdir, Remove, Transfer};

use crate::harness::{Call, Computer, is_root, refused, serve, user};

const USER: u32 = 4321;

/// A workspace that belongs to the user, with a secret of root's in it.
async fn computer() -> Computer {
    assert!(is_root(), "run the tests as root");
    let pc = Computer::acting_as(user(USER)).await;
    chown(pc.workspace(), Some(USER), Some(USER)).unwrap();
    pc.put("secret", "secret");
    fs::set_permissions(pc.workspace().join("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(pc.root().join("private")).unwrap();
    fs::write(pc.root().join("private/file"), "private").unwrap();
    fs::set_permissions(pc.root().join("private"), fs::Permissions::from_mode(0o700)).unwrap();
    pc
}

#[tokio::test]
async fn what_a_user_makes_is_the_users() {
    let pc = computer().await;
    pc.client.write("f", "x", &WriteOptions::default()).await.unwrap();
    pc.client.append("log", "x").await.unwrap();
    pc.client.mkdir(&Mkdir { path: "d/e".into(), parents: true, mode: None }).await.unwrap();
    for name in ["f", "log", "d", "d/e"] {
        let metadata = fs::metadata(pc.workspace().join(name)).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (USER, USER), "{name}");
    }
}

#[tokio::test]
async fn a_user_cannot_touch_what_is_roots() {
    let pc = computer().await;
    let all = ErrorKind::Permission;
    symlink("secret", pc.workspace().join("link")).unwrap();
    symlink("/private", pc.workspace().join("into")).unwrap();
    for name in ["secret", "link", "into/file", "/private/file"] {
        refused(pc.client.read(name).await, all);
        refused(pc.client.append(name, "x").await, all);
        refused(pc.client.write(name, "x", &WriteOptions::default()).await, all);
        refused(pc.client.chmod(&Chmod { path: name.into(), mode: 0o777 }).await, all);
        let copy = Transfer { from: name.into(), to: "copy".into(), overwrite: false };
        if name != "link" {
            refused(pc.client.copy(&copy).await, all);
        }
    }
    refused(pc.client.list("into", None, None).await, all);
    refused(pc.client.pack("/private").await, all);
    refused(pc.client.stat("/private/file").await, all);
    let remove = Remove { path: "/private/file".into(), recursive: true, if_match: None };
    refused(pc.client.remove(&remove).await, all);
    let mkdir = Mkdir { path: "/new".into(), parents: true, mode: None };
    refused(pc.client.mkdir(&mkdir).await, all);
    assert_eq!(pc.get("secret"), b"secret");
    assert_eq!(fs::read(pc.root().join("private/file")).unwrap(), b"private");
}

#[tokio::test]
async fn a_call_may_name_another_user() {
    let pc = computer().await;
    let read = pc.call(Call::new(Method::GET, "content", "secret").query("user", "0")).await;
    assert_eq!(read.body, "secret");
    let write = Call::new(Method::PUT, "content", "f").query("user", "0").body("x");
    assert!(pc.call(write).await.status.is_success());
    assert_eq!(fs::metadata(pc.workspace().join("f")).unwrap().uid(), 0);
    let other = pc.call(Call::new(Method::GET, "content", "secret").query("user", "4322")).await;
    assert_eq!(other.error().kind, ErrorKind::Permission);
}

#[tokio::test]
async fn root_who_writes_a_users_file_leaves_it_the_users() {
    let pc = computer().await;
    pc.client.write("f", "x", &WriteOptions::default()).await.unwrap();
    let write = Call::new(Method::PUT, "content", "f").query("user", "0").body("y");
    assert!(pc.call(write).await.status.is_success());
    assert_eq!(fs::metadata(pc.workspace().join("f")).unwrap().uid(), USER);
    assert_eq!(pc.get("f"), b"y");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_of_many_users_do_not_mix() {
    let pc = computer().await;
    fs::set_permissions(pc.workspace(), fs::Permissions::from_mode(0o1777)).unwrap();
    let calls: Vec<_> = (0..400u32)
        .map(|i| {
            let (client, uid) = (pc.client.clone(), 5000 + i % 7);
            let options = WriteOptions { user: Some(uid.to_string()), ..WriteOptions::default() };
            let name = format!("file{i}");
            tokio::spawn(async move { (client.write(&name, name.clone(), &options).await, uid) })
        })
        .collect();
    for call in calls {
        let (stat, uid) = call.await.unwrap();
        assert_eq!(stat.unwrap().uid, uid);
    }
}

#[tokio::test]
async fn the_kernels_own_files_do_not_answer_as_the_supervisor() {
    let dir = tempfile::TempDir::new().unwrap();
    let socket = dir.path().join("door");
    let _server = serve(router(Context::new("/", user(USER))), &socket);
    let client = Client::unix(socket);
    for link in ["/proc/self/root/etc/passwd", "/proc/self/cwd", "/proc/self/fd/0"] {
        refused(client.read(link).await, ErrorKind::InvalidPath);
    }
    refused(client.read("/proc/self/maps").await, ErrorKind::InvalidRequest);
    refused(client.read("/proc/self/environ").await, ErrorKind::Permission);
    refused(client.append("/proc/self/attr/exec", "x").await, ErrorKind::InvalidRequest);
    assert!(!client.read("/etc/passwd").await.unwrap().is_empty());
}
