//! `dev`: made, reset and removed, and what a crash in between leaves.

use nacre_wire::ErrorKind;
use nacre_wire::control::SandboxState;
use nacre_wire::roles::DevMade;

use crate::host::Host;
use crate::world::until_held;

#[tokio::test]
async fn dev_is_a_running_copy_of_live() {
    let host = Host::start().await;
    host.put_app("live", "first").await;
    let live = host.info("live").await;
    let made = host.make_dev().await;
    assert_eq!((made.sandbox.name.as_str(), made.sandbox.role.as_deref()), ("dev", Some("dev")));
    assert_eq!(made.sandbox.state, SandboxState::Running);
    assert_ne!(made.sandbox.id, live.id);
    assert_eq!(made.copy.names, 5);

    host.put("dev", "/who", "second").await;
    let cookie = host.sign_in().await;
    let who = async |path| host.get(path, &[("cookie", &cookie)]).await.text().to_owned();
    assert_eq!(
        (who("/who").await, who("/dev/who").await),
        ("first".to_owned(), "second".to_owned())
    );
    let again = host.admin().post_json::<DevMade>("/admin/sandboxes/dev", &()).await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Exists);
    assert_eq!(host.operate("dev", "stop").await.unwrap().state, SandboxState::Stopped);
    assert_eq!(host.operate("dev", "restart").await.unwrap().state, SandboxState::Running);
}

#[tokio::test]
async fn a_reset_replaces_dev_and_keeps_the_old_one_until_the_new_is_ready() {
    let host = Host::start().await;
    let old = host.make_dev().await.sandbox.id;
    host.put("dev", "/who", "changed").await;
    host.put("live", "/who", "live's").await;
    host.world.hold_at("fork:before");
    let admin = host.admin();
    let reset =
        tokio::spawn(
            async move { admin.post_json::<DevMade>("/admin/sandboxes/dev/reset", &()).await },
        );
    until_held(&host.world).await;
    assert_eq!(host.info("dev").await.id, old);
    assert!(host.roles().await.copying.is_some());
    let busy = host.admin().post_json::<DevMade>("/admin/sandboxes/dev", &()).await.unwrap_err();
    assert_eq!(busy.to_string(), "another change of live and dev is under way");
    host.world.release();
    let new = reset.await.unwrap().unwrap().sandbox;
    assert_ne!(new.id, old);
    assert_eq!(host.info("dev").await.id, new.id);
    assert_eq!(host.world.sandboxes().len(), 2, "the old one is gone");
    let disk = host.world.disk(&new.id.parse().unwrap());
    assert_eq!(disk.lock().unwrap()["/who"], b"live's");
    assert!(host.roles().await.copying.is_none());
}

#[tokio::test]
async fn a_copy_that_fails_leaves_everything_as_it_was() {
    let host = Host::start().await;
    let old = host.make_dev().await.sandbox.id;
    host.world.let_forks_fail(true);
    let failed = host.admin().post_json::<DevMade>("/admin/sandboxes/dev/reset", &()).await;
    let failed = failed.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::NoSpace);
    assert!(failed.to_string().starts_with("no room for a copy of live"), "{failed}");
    assert_eq!(host.info("dev").await.id, old);
    assert_eq!(host.world.sandboxes().len(), 2);
    assert_eq!(host.list().await.len(), 2);
}

#[tokio::test]
async fn dev_can_be_removed_and_live_stays() {
    let host = Host::start().await;
    host.make_dev().await;
    host.admin().delete("/admin/sandboxes/dev").await.unwrap();
    assert_eq!(host.states().await, ["live Running"]);
    let gone = host.admin().delete("/admin/sandboxes/dev").await.unwrap_err();
    assert_eq!(gone.to_string(), "there is no dev sandbox");
    host.make_dev().await;
}

#[tokio::test]
async fn a_gateway_that_dies_while_it_copies_leaves_no_half_of_dev() {
    for point in ["fork:before", "fork:after"] {
        let mut host = Host::start().await;
        host.world.hold_at(point);
        let admin = host.admin();
        let making =
            tokio::spawn(
                async move { admin.post_json::<DevMade>("/admin/sandboxes/dev", &()).await },
            );
        until_held(&host.world).await;
        host.kill().await;
        making.abort();
        host.start_again().await;
        assert_eq!(host.states().await, ["live Running"], "{point}");
        assert_eq!(host.world.sandboxes().len(), 1, "{point}");
        host.make_dev().await;
    }
}

#[tokio::test]
async fn a_gateway_that_dies_while_it_removes_the_old_dev_has_the_new_one() {
    let mut host = Host::start().await;
    let old = host.make_dev().await.sandbox.id;
    host.world.hold_at("destroy:before");
    let admin = host.admin();
    let reset =
        tokio::spawn(
            async move { admin.post_json::<DevMade>("/admin/sandboxes/dev/reset", &()).await },
        );
    until_held(&host.world).await;
    host.kill().await;
    reset.abort();
    host.start_again().await;
    assert_ne!(host.info("dev").await.id, old);
    assert_eq!(host.world.sandboxes().len(), 2);
    host.until("dev", |info| info.state == SandboxState::Running).await;
}

#[tokio::test]
async fn a_client_that_leaves_does_not_leave_half_a_copy() {
    let host = Host::start().await;
    host.world.hold_at("fork:before");
    let admin = host.admin();
    let making =
        tokio::spawn(async move { admin.post_json::<DevMade>("/admin/sandboxes/dev", &()).await });
    until_held(&host.world).await;
    making.abort();
    assert!(making.await.unwrap_err().is_cancelled());
    host.world.release();
    crate::world::until(&host.world, |counts| counts.starts == 2).await;
    host.until("dev", |info| info.state == SandboxState::Running).await;
}
