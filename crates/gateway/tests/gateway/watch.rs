//! After a swap: what does worse than before is taken back by itself.

use std::time::Duration;

use nacre_gateway::RolesConfig;
use nacre_wire::roles::{RolesStatus, SwapKind, SwapRequest};

use crate::host::Host;

fn quick() -> RolesConfig {
    RolesConfig {
        watch: Duration::from_secs(60),
        check_every: Duration::from_millis(20),
        ..RolesConfig::default()
    }
}

async fn swapped(config: RolesConfig) -> (Host, String) {
    let host = Host::start_watching(config).await;
    host.put_app("live", "one").await;
    host.make_dev().await;
    host.put_app("dev", "two").await;
    let cookie = host.sign_in().await;
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
    let judged =
        |roles: &RolesStatus| roles.last_swap.as_ref().is_some_and(|last| last.verdict.is_some());
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
