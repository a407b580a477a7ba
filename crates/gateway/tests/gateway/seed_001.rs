//! What seed 001 asks for that needs no real sandbox; the rest is in the tests of `nacre`.

use http::StatusCode;
use nacre_gateway::{RawGatewayConfig, RawObserveConfig};
use nacre_wire::control::{AlertKind, AlertList};
use nacre_wire::roles::SwapKind;

use crate::host::{Answer, Host};
use crate::observe::until_counted;
use crate::swap::{FORWARD, twins};

/// Everything that the app has, below a prefix, and that all of it is of one sandbox.
async fn the_app_is_of(host: &Host, cookie: &str, prefix: &str, who: &str) {
    let path = |path: &str| format!("{prefix}{path}");
    for asset in ["/", "/app.js", "/app.css", "/app_bg.wasm"] {
        let answer = host.get(&path(asset), &[("cookie", cookie)]).await;
        assert_eq!(answer.status, StatusCode::OK, "{prefix}{asset}");
        let of = format!("of {who}");
        assert!(answer.text().contains(&of), "{prefix}{asset} is not {of}: {}", answer.text());
    }
    assert_eq!(host.get(&path("/who"), &[("cookie", cookie)]).await.text(), who);
}

#[tokio::test]
async fn seed_001_swap_flips_the_runtime_owner_without_mixed_assets() {
    let (host, cookie) = twins().await;
    the_app_is_of(&host, &cookie, "", "one").await;
    the_app_is_of(&host, &cookie, "/dev", "two").await;
    let (old, new) = (host.info("live").await.id, host.info("dev").await.id);
    let swapped = host.swap(FORWARD).await.unwrap();
    assert_eq!((&swapped.live.id, &swapped.dev.id), (&new, &old));
    let names: Vec<_> = swapped.checks.iter().map(|check| check.name.as_str()).collect();
    assert_eq!(names, ["process", "runtime", "websocket", "page", "assets"]);
    assert!(swapped.checks.iter().all(|check| check.ok), "{:?}", swapped.checks);
    the_app_is_of(&host, &cookie, "", "two").await;
    the_app_is_of(&host, &cookie, "/dev", "one").await;
    // Names follow roles.
    assert_eq!((host.info("live").await.id, host.info("dev").await.id), (new.clone(), old.clone()));
    let last = host.roles().await.last_swap.unwrap();
    assert_eq!((last.kind, last.before, last.after), (SwapKind::Swap, old, new));
}

/// The page of an app whose script is gone, and which loads itself again when that fails.
#[tokio::test]
async fn seed_001_a_missing_asset_is_a_bounded_404_and_no_reload_storm() {
    const RELOADS: u64 = 40;
    let observe = RawObserveConfig {
        runtime_paths: Some(vec!["/missing".to_owned()]),
        ..RawObserveConfig::default()
    };
    let raw = RawGatewayConfig { observe, ..RawGatewayConfig::default() };
    let host = Host::start_as(raw, |_| ()).await;
    host.put("live", "/", "<!doctype html><script src=/missing/app.js></script>").await;
    let cookie = host.sign_in().await;
    for _ in 0..RELOADS {
        assert_eq!(host.get("/", &[("cookie", &cookie)]).await.status, StatusCode::OK);
        let asked = [("cookie", cookie.as_str()), ("sec-fetch-dest", "script")];
        let missing = host.get("/missing/app.js", &asked).await;
        is_a_bounded_404(&missing);
    }
    // Nothing was asked for on behalf of the page, and who looks after the computer is told once.
    let line =
        format!("nacre_requests_total{{role=\"live\",method=\"GET\",status=\"4xx\"}} {RELOADS}");
    until_counted(&host, &line).await;
    until_counted(&host, "nacre_alerts_total{kind=\"missing_runtime_path\"} 1").await;
    let alerts =
        host.admin().get_json::<AlertList>("/admin/sandboxes/alerts").await.unwrap().alerts;
    let [alert] = &alerts[..] else { panic!("{alerts:?}") };
    assert_eq!((alert.kind, alert.count), (AlertKind::MissingRuntimePath, RELOADS));
    assert_eq!((alert.sandbox.as_str(), &alert.sandbox_id), ("live", &host.info("live").await.id));
}

/// As the app said it, and nothing in it that makes a browser ask again.
fn is_a_bounded_404(answer: &Answer) {
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert_eq!(answer.text(), "nothing here");
    assert_eq!(answer.headers["x-nacre-role"], "live");
    for header in ["location", "refresh", "retry-after"] {
        assert!(!answer.headers.contains_key(header), "{header}");
    }
}
