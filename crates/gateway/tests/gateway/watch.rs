//! After a swap: what does worse than before is taken back by itself.

use std::time::Duration;

use futures_util::future::join_all;
use nacre_gateway::RolesConfig;
use nacre_wire::roles::{DevMade, RolesStatus, SwapKind, SwapRequest};

use crate::host::Host;
use crate::swap::{BACK, FORWARD, open};
use crate::world::{HELD, until_held, until_waiting};

const PAGE: &str = "<!doctype html><p>well";
const ASKS: [(&str, &str); 2] = [("connection", "upgrade"), ("upgrade", "chat")];

fn quick() -> RolesConfig {
    RolesConfig {
        watch: Duration::from_secs(60),
        check_every: Duration::from_millis(20),
        ..RolesConfig::default()
    }
}

/// Which is not made yet.
async fn to_swap(config: RolesConfig) -> (Host, String) {
    let host = Host::start_watching(config).await;
    host.put_app("live", "one").await;
    host.make_dev().await;
    host.put_app("dev", "two").await;
    let cookie = host.sign_in().await;
    (host, cookie)
}

async fn swapped(config: RolesConfig) -> (Host, String) {
    let (host, cookie) = to_swap(config).await;
    host.swap(SwapRequest::default()).await.unwrap();
    (host, cookie)
}

/// There is no event for what only the gateway knows.
async fn until(host: &Host, good: impl Fn(&RolesStatus) -> bool) -> RolesStatus {
    for _ in 0..2000 {
        let roles = host.roles().await;
        if good(&roles) {
            return roles;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it never came to that: {:?}", host.roles().await);
}

/// Written down, and done: the one comes a moment before the other.
fn taken_back(roles: &RolesStatus) -> bool {
    let live = roles.live.as_ref().map(|live| live.id.as_str());
    roles.last_swap.as_ref().is_some_and(|last| {
        last.kind == SwapKind::AutoRollback && live == Some(last.after.as_str())
    })
}

fn judged(roles: &RolesStatus) -> bool {
    roles.last_swap.as_ref().is_some_and(|last| last.verdict.is_some())
}

/// The watch has begun to look at live, which goes on until there is another page, and will find that more
/// requests than are allowed have failed. Returns whom it looks at.
async fn hold_a_look_that_will_find_failures(host: &Host, cookie: &str) -> String {
    let live = host.info("live").await.id;
    host.put("live", "/", HELD).await;
    until_waiting(&live, "/", 1).await;
    host.put("live", "/who", "broken").await;
    for _ in 0..25 {
        assert!(host.get("/who", &[("cookie", cookie)]).await.status.is_server_error());
    }
    live
}

/// There is no event for what does not happen: long enough for many looks.
async fn stays(host: &Host, good: impl Fn(&RolesStatus) -> bool) {
    for _ in 0..60 {
        let roles = host.roles().await;
        assert!(good(&roles), "{roles:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn errors_above_the_threshold_take_the_swap_back_and_say_why() {
    let (host, cookie) = swapped(quick()).await;
    host.put("live", "/who", "broken").await;
    let (mut asked, mut failed) = (0, 0);
    while !taken_back(&host.roles().await) {
        let status = host.get("/who", &[("cookie", &cookie)]).await.status;
        failed += u32::from(status.is_server_error());
        asked += 1;
        assert!(asked < 5000, "it is never taken back");
    }
    assert!(failed >= 20, "after {failed} of {asked}: too few to tell");
    let roles = host.roles().await;
    let reason = roles.last_swap.unwrap().reason.unwrap();
    assert!(reason.contains("requests failed; 5% were allowed"), "{reason}");
    assert_eq!(host.get("/who", &[("cookie", &cookie)]).await.text(), "one");
}

#[tokio::test]
async fn a_page_that_stops_loading_takes_the_swap_back() {
    let (host, cookie) = swapped(quick()).await;
    host.put("live", "/", "<script src=/missing.js></script>").await;
    let roles = until(&host, taken_back).await;
    let reason = roles.last_swap.unwrap().reason.unwrap();
    assert!(reason.starts_with("the page does not load"), "{reason}");
    assert_eq!(host.get("/who", &[("cookie", &cookie)]).await.text(), "one");
}

#[tokio::test]
async fn one_failed_request_takes_nothing_back() {
    let config = RolesConfig { watch: Duration::from_millis(400), ..quick() };
    let (host, cookie) = swapped(config).await;
    host.put("live", "/gone", "broken").await;
    let status = host.get("/gone", &[("cookie", &cookie)]).await.status;
    assert_eq!(status, http::StatusCode::BAD_GATEWAY);
    let last = until(&host, judged).await.last_swap.unwrap();
    assert_eq!((last.kind, last.watched_until), (SwapKind::Swap, None));
    assert!(last.verdict.unwrap().starts_with("kept"));
    assert_eq!(host.get("/who", &[("cookie", &cookie)]).await.text(), "two");
}

#[tokio::test]
async fn a_watch_goes_on_after_the_gateway_was_killed() {
    let (mut host, cookie) = swapped(quick()).await;
    host.kill().await;
    host.start_again().await;
    host.put("live", "/", "broken").await;
    until(&host, taken_back).await;
    assert_eq!(host.get("/who", &[("cookie", &cookie)]).await.text(), "one");
}

#[tokio::test]
async fn nothing_is_taken_back_where_it_is_turned_off() {
    let (host, _) = swapped(RolesConfig { auto_rollback: false, ..quick() }).await;
    let last = host.roles().await.last_swap.unwrap();
    assert_eq!((last.kind, last.watched_until), (SwapKind::Swap, None));
}

#[tokio::test]
async fn a_rollback_by_hand_during_a_look_is_not_undone() {
    let (host, cookie) = swapped(quick()).await;
    let broken = hold_a_look_that_will_find_failures(&host, &cookie).await;
    host.swap(BACK).await.unwrap();
    host.put("dev", "/", PAGE).await;
    until_waiting(&broken, "/", 0).await;
    stays(&host, |roles| {
        let last = roles.last_swap.as_ref().unwrap();
        (last.kind, last.before.as_str()) == (SwapKind::Rollback, broken.as_str())
    })
    .await;
    assert_eq!(host.get("/who", &[("cookie", &cookie)]).await.text(), "one");
}

#[tokio::test]
async fn a_watch_never_promotes_a_dev_that_was_reset() {
    for is_reset in [true, false] {
        let (host, cookie) = swapped(quick()).await;
        let live = hold_a_look_that_will_find_failures(&host, &cookie).await;
        if is_reset {
            let path = "/admin/sandboxes/dev/reset?force=true";
            host.admin().post_json::<DevMade>(path, &()).await.unwrap();
        } else {
            host.admin().delete("/admin/sandboxes/dev?force=true").await.unwrap();
            host.make_dev().await;
        }
        let last = host.roles().await.last_swap.unwrap();
        assert_eq!(last.watched_until, None);
        let verdict = last.verdict.unwrap();
        assert_eq!(verdict, "no longer watched: what was live before is gone");
        host.put("live", "/", PAGE).await;
        until_waiting(&live, "/", 0).await;
        stays(&host, |roles| {
            let last = roles.last_swap.as_ref().unwrap();
            (last.kind, last.after.as_str()) == (SwapKind::Swap, live.as_str())
        })
        .await;
    }
}

/// By its id, nobody is asked whether they are sure.
#[tokio::test]
async fn a_watch_ends_when_what_was_live_before_is_removed() {
    let (host, _) = swapped(quick()).await;
    let dev = host.info("dev").await.id;
    host.admin().delete(&format!("/admin/sandboxes/{dev}")).await.unwrap();
    let last = until(&host, judged).await.last_swap.unwrap();
    assert_eq!((last.kind, last.watched_until), (SwapKind::Swap, None));
}

#[tokio::test]
async fn a_watch_waits_for_a_change_under_way() {
    let (host, cookie) = swapped(quick()).await;
    let live = hold_a_look_that_will_find_failures(&host, &cookie).await;
    host.world.let_forks_fail(true);
    host.world.hold_at("fork:before");
    let admin = host.admin();
    let reset = tokio::spawn(async move {
        admin.post_json::<DevMade>("/admin/sandboxes/dev/reset?force=true", &()).await
    });
    until_held(&host.world).await;
    // The look ends while the roles may not move. That there is another says that the watch goes on.
    host.put("live", "/", PAGE).await;
    until_waiting(&live, "/", 0).await;
    host.put("live", "/", HELD).await;
    until_waiting(&live, "/", 1).await;
    assert!(!judged(&host.roles().await));
    host.world.release();
    reset.await.unwrap().unwrap_err();
    host.put("live", "/", PAGE).await;
    until(&host, taken_back).await;
    assert_eq!(host.get("/who", &[("cookie", &cookie)]).await.text(), "one");
}

#[tokio::test]
async fn a_watch_tries_again_when_what_was_live_before_does_not_start() {
    let (host, cookie) = swapped(quick()).await;
    host.operate("dev", "stop").await.unwrap();
    host.world.let_starts_fail(true);
    let live = hold_a_look_that_will_find_failures(&host, &cookie).await;
    host.put("live", "/", PAGE).await;
    until_waiting(&live, "/", 0).await;
    host.put("live", "/", HELD).await;
    until_waiting(&live, "/", 1).await;
    host.world.let_starts_fail(false);
    host.put("live", "/", PAGE).await;
    until(&host, taken_back).await;
    assert_eq!(host.get("/who", &[("cookie", &cookie)]).await.text(), "one");
}

/// What hangs in the old live, and ends with an error when it is dev.
#[tokio::test]
async fn what_began_before_a_swap_does_not_count_against_it() {
    let config = RolesConfig { watch: Duration::from_millis(1500), ..quick() };
    let (host, cookie) = to_swap(config).await;
    let old = host.info("live").await.id;
    host.put("live", "/slow", HELD).await;
    let origin = host.origin();
    let headers = [("cookie", cookie.as_str()), ("origin", origin.as_str())];
    let upgrade = [&headers[..], &ASKS].concat();
    // Each of the three ways through the gateway.
    let plain = (0..25).map(|_| host.request("GET", "/slow", &headers));
    let other = (0..25).map(|_| host.request("POST", "/slow", &headers));
    let upgrades = (0..25).map(|_| host.request("GET", "/slow", &upgrade));
    let asked = join_all(plain.chain(other).chain(upgrades));
    let moved = async {
        until_waiting(&old, "/slow", 75).await;
        host.swap(FORWARD).await.unwrap();
        host.put("dev", "/slow", "broken").await;
    };
    let (answers, ()) = tokio::join!(asked, moved);
    assert!(answers.iter().all(|answer| answer.status == http::StatusCode::BAD_GATEWAY));
    let last = until(&host, judged).await.last_swap.unwrap();
    assert_eq!(last.kind, SwapKind::Swap, "{:?}", last.reason);
    assert!(last.verdict.unwrap().starts_with("kept"));
}

#[tokio::test]
async fn a_page_that_did_not_load_before_either_takes_nothing_back() {
    let config = RolesConfig { watch: Duration::from_millis(600), ..quick() };
    let (host, cookie) = to_swap(config).await;
    host.put("live", "/", "broken").await;
    host.swap(FORWARD).await.unwrap();
    host.put("live", "/", "broken").await;
    let last = until(&host, judged).await.last_swap.unwrap();
    assert_eq!(last.kind, SwapKind::Swap, "{:?}", last.reason);
    assert_eq!(host.get("/who", &[("cookie", &cookie)]).await.text(), "two");
}

#[tokio::test]
async fn upgrades_that_fail_take_the_swap_back() {
    let (host, cookie) = swapped(quick()).await;
    let origin = host.origin();
    let headers = [&[("cookie", cookie.as_str()), ("origin", origin.as_str())][..], &ASKS].concat();
    host.put("live", "/sock", "broken").await;
    let mut asked = 0;
    while !taken_back(&host.roles().await) {
        host.get("/sock", &headers).await;
        asked += 1;
        assert!(asked < 5000, "it is never taken back");
    }
    let reason = host.roles().await.last_swap.unwrap().reason.unwrap();
    assert!(reason.contains("WebSockets could not be opened"), "{reason}");
    assert_eq!(host.get("/who", &[("cookie", &cookie)]).await.text(), "one");
}

#[tokio::test]
async fn sockets_that_are_opened_again_and_again_take_the_swap_back() {
    let (host, cookie) = swapped(quick()).await;
    let mut opened = 0;
    while !taken_back(&host.roles().await) {
        drop(open(&host, &cookie, "/ws").await);
        opened += 1;
        assert!(opened < 5000, "it is never taken back");
    }
    let reason = host.roles().await.last_swap.unwrap().reason.unwrap();
    assert!(reason.starts_with("WebSockets are opened"), "{reason}");
    assert_eq!(host.get("/who", &[("cookie", &cookie)]).await.text(), "one");
}
