//! Hosts that ports have to themselves: how a browser gets in there, and what stays out.

use http::StatusCode;
use nacre_gateway::RawGatewayConfig;

use crate::host::{Answer, Host};

const HTML: (&str, &str) = ("accept", "text/html");

struct Stage {
    host: Host,
    session: String,
}

impl Stage {
    async fn start() -> Self {
        let wildcard_host = Some("PC.localhost".to_owned());
        let raw = RawGatewayConfig { wildcard_host, ..Default::default() };
        let host = Host::start_as(raw, |_| ()).await;
        let session = host.sign_in().await;
        Self { host, session }
    }

    fn name(&self, place: &str) -> String {
        format!("{place}.pc.localhost:{}", self.host.address.port())
    }

    /// A request at the host of a port.
    async fn at(&self, place: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let name = self.name(place);
        let all: Vec<_> = [("host", name.as_str())].iter().chain(headers).copied().collect();
        self.host.get(path, &all).await
    }

    /// A page that is asked for without a cookie: the knock, and the path on the computer's own host.
    async fn knock(&self, place: &str, path: &str) -> (String, String) {
        let sent = self.at(place, path, &[HTML]).await;
        assert_eq!(sent.status, StatusCode::SEE_OTHER, "{}", sent.text());
        (cookie(&sent, "nacre_knock="), path_of(&sent, &self.host.origin()))
    }

    /// The path with the code, as the session gets it.
    async fn code(&self, place: &str, asked: &str) -> String {
        let led = self.host.get(asked, &[HTML, ("cookie", &self.session)]).await;
        assert_eq!(led.status, StatusCode::SEE_OTHER, "{}", led.text());
        path_of(&led, &format!("http://{}", self.name(place)))
    }

    /// All of it; the cookie that lets in there.
    async fn enter(&self, place: &str) -> String {
        let (knock, asked) = self.knock(place, "/a?b=c").await;
        let code = self.code(place, &asked).await;
        let entered = self.at(place, &code, &[HTML, ("cookie", &knock)]).await;
        assert_eq!(entered.headers["location"], "/a?b=c");
        cookie(&entered, "nacre_port=")
    }
}

fn cookie(answer: &Answer, name: &str) -> String {
    let lines = answer.headers.get_all("set-cookie").iter().map(|line| line.to_str().unwrap());
    let line = lines.into_iter().find(|line| line.starts_with(name)).expect("it is set");
    assert!(
        line.contains("; Path=/; HttpOnly; SameSite=Lax") && !line.contains("Domain"),
        "{line}"
    );
    line.split(';').next().unwrap().to_owned()
}

fn path_of(answer: &Answer, origin: &str) -> String {
    let to = answer.headers["location"].to_str().unwrap();
    to.strip_prefix(origin).unwrap_or_else(|| panic!("{to} is not at {origin}")).to_owned()
}

#[tokio::test]
async fn a_browser_that_is_signed_in_is_led_to_a_ports_host_and_let_in() {
    let stage = Stage::start().await;
    let port = stage.enter("3000--live").await;
    let cookies = format!("sid=1; {port}; {}", stage.session);
    let answer = stage.at("3000--live", "/login?x", &[("cookie", &cookies)]).await;
    let text = answer.text();
    assert!(text.starts_with("GET /ports/3000/login?x\n"), "every path is the app's: {text}");
    assert!(text.contains("\ncookie: sid=1\n") && !text.contains("nacre_"), "{text}");
    let host = format!("\nx-forwarded-host: {}\n", stage.name("3000--live"));
    assert!(text.contains(&host) && !text.contains("x-forwarded-prefix"), "{text}");

    for (origin, status) in [
        (format!("http://{}", stage.name("3000--live")), StatusCode::OK),
        (format!("http://{}", stage.name("3001--live")), StatusCode::FORBIDDEN),
        (stage.host.origin(), StatusCode::FORBIDDEN),
    ] {
        let name = stage.name("3000--live");
        let headers = [("host", name.as_str()), ("cookie", &port), ("origin", &origin)];
        let answer = stage.host.request("POST", "/x", &headers).await;
        assert_eq!(answer.status, status, "{origin}");
    }
}

#[tokio::test]
async fn what_lets_in_at_one_host_opens_no_other() {
    let stage = Stage::start().await;
    stage.host.make_dev().await;
    let port = stage.enter("3000--live").await;
    for place in ["3001--live", "3000--dev"] {
        let answer = stage.at(place, "/", &[("cookie", &port)]).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{place}");
    }
    for renamed in [port.clone(), port.replace("nacre_port", "nacre_session")] {
        let answer = stage.host.get("/", &[("cookie", &renamed)]).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "the computer itself");
    }
    for session in [stage.session.clone(), stage.session.replace("session", "port")] {
        let answer = stage.at("3000--live", "/", &[("cookie", &session)]).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "the session is not for there");
    }
    assert_eq!(stage.at("3000--other", "/", &[]).await.status, StatusCode::FORBIDDEN);
    let dev = stage.enter("3000--dev").await;
    let answer = stage.at("3000--dev", "/", &[("cookie", &dev)]).await;
    assert_eq!(answer.headers["x-nacre-role"], "dev");
}

#[tokio::test]
async fn a_code_is_good_once_for_the_browser_that_knocked() {
    let stage = Stage::start().await;
    let (knock, asked) = stage.knock("3000--live", "/").await;
    let (other, _) = stage.knock("3000--live", "/").await;
    for (place, cookie) in [("3000--live", &other), ("3001--live", &knock)] {
        let code = stage.code("3000--live", &asked).await;
        for cookie in [cookie, &knock] {
            let refused = stage.at(place, &code, &[HTML, ("cookie", cookie)]).await;
            assert_eq!(refused.status, StatusCode::FORBIDDEN, "{place}");
            assert!(!refused.headers.contains_key("set-cookie"), "{place}");
        }
    }
    let code = stage.code("3000--live", &asked).await;
    let evil = code.replace("next=/", "next=//evil.example/");
    let entered = stage.at("3000--live", &evil, &[HTML, ("cookie", &knock)]).await;
    assert_eq!(entered.headers["location"], "/");
    let again = stage.at("3000--live", &code, &[HTML, ("cookie", &knock)]).await;
    assert_eq!(again.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn who_is_not_signed_in_is_asked_to_and_a_script_is_not_led() {
    let stage = Stage::start().await;
    let (_, asked) = stage.knock("3000--live", "/a").await;
    let stranger = stage.host.get(&asked, &[HTML]).await;
    let to = stranger.headers["location"].to_str().unwrap();
    assert!(to.starts_with("/login?next=/auth/ports%3Fto%3D3000--live%26knock%3D"), "{to}");
    let script = [("cookie", stage.session.as_str()), ("sec-fetch-mode", "cors")];
    assert_eq!(stage.host.get(&asked, &script).await.status, StatusCode::FORBIDDEN);
    for wrong in ["", "?to=3000--live", "?to=x&knock=00", "?to=3000--live&knock=zz&next=/"] {
        let cookie = [HTML, ("cookie", stage.session.as_str())];
        let answer = stage.host.get(&format!("/auth/ports{wrong}"), &cookie).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{wrong}");
    }
    // Programs are not led anywhere, and the session of the computer's own host is.
    assert_eq!(stage.at("3000--live", "/", &[]).await.status, StatusCode::UNAUTHORIZED);
    let plain = Host::start().await;
    let session = plain.sign_in().await;
    let nowhere = plain.get(&asked, &[HTML, ("cookie", &session)]).await;
    assert_eq!(nowhere.status, StatusCode::NOT_FOUND, "{}", nowhere.text());
    let name = format!("3000--live.pc.localhost:{}", plain.address.port());
    assert_eq!(plain.get("/", &[("host", &name)]).await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_visit_ends_with_its_session() {
    let stage = Stage::start().await;
    let port = stage.enter("3000--live").await;
    let visit = [("cookie", port.as_str())];
    assert_eq!(stage.at("3000--live", "/", &visit).await.status, StatusCode::OK);
    let admin = stage.host.admin();
    let sessions: serde_json::Value = admin.get_json("/admin/sandboxes/sessions").await.unwrap();
    let id = sessions["sessions"][0]["id"].as_str().unwrap();
    admin.delete(&format!("/admin/sandboxes/sessions/{id}")).await.unwrap();
    assert_eq!(stage.at("3000--live", "/", &visit).await.status, StatusCode::UNAUTHORIZED);
}
