//! Somebody with a browser: a jar of cookies, forms, and a way to an account's server and back.

use std::collections::BTreeMap;

use axum::body::Body;
use http::StatusCode;
use nacre_atproto::testing::{ALICE, Net};
use nacre_gateway::{GatewayConfig, RawGatewayConfig};
use nacre_wire::access::{AuditPage, SessionList};

use crate::host::{Answer, Host};

pub(crate) const HTML: (&str, &str) = ("accept", "text/html,application/xhtml+xml");

pub(crate) struct Browser<'h> {
    host: &'h Host,
    pub(crate) cookies: BTreeMap<String, String>,
}

impl<'h> Browser<'h> {
    pub(crate) fn new(host: &'h Host) -> Self {
        Self { host, cookies: BTreeMap::new() }
    }

    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        self.ask("GET", path, &[HTML], "").await
    }

    /// A form of our own page that somebody sent.
    pub(crate) async fn post(&mut self, path: &str, form: &str) -> Answer {
        let origin = self.host.origin();
        let headers = [
            HTML,
            ("origin", origin.as_str()),
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
            ("content-type", "application/x-www-form-urlencoded"),
        ];
        self.ask("POST", path, &headers, form).await
    }

    pub(crate) async fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let cookies: Vec<_> = self.cookies.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let cookies = cookies.join("; ");
        let mut headers = headers.to_vec();
        if !cookies.is_empty() {
            headers.push(("cookie", &cookies));
        }
        let request = self.host.build(method, path, &headers, Body::from(body.to_owned()));
        let answer = Answer::read(self.host.send(request).await).await;
        for line in answer.headers.get_all("set-cookie") {
            let line = line.to_str().unwrap();
            let (name, value) = line.split(';').next().unwrap().split_once('=').unwrap();
            if line.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        answer
    }

    /// Presses the button; where the browser is sent, or the page that says why not.
    pub(crate) async fn start(&mut self, form: &str) -> Result<String, Box<Answer>> {
        sent(self.post("/auth/start", form).await)
    }

    /// To the server and back to the callback.
    pub(crate) async fn sign_in(&mut self, net: &Net, form: &str) -> Answer {
        match self.start(form).await {
            Ok(address) => self.come_back(net, &address).await,
            Err(answer) => *answer,
        }
    }

    pub(crate) async fn come_back(&mut self, net: &Net, address: &str) -> Answer {
        let back = net.consent(address).await.expect("consent sends the browser back");
        let path =
            back.strip_prefix(&self.host.origin()).expect("to where it came from").to_owned();
        self.get(&path).await
    }

    pub(crate) fn session(&self) -> Option<&str> {
        self.cookies.get("nacre_session").map(String::as_str)
    }

    /// The hidden field of a form on this page.
    pub(crate) fn field(page: &Answer, name: &str) -> String {
        let start = format!("name=\"{name}\" value=\"");
        let rest = page.text().split_once(&start).expect("the page has this field").1;
        rest.split('"').next().unwrap().to_owned()
    }
}

/// A redirect elsewhere is where to go; anything else is a page.
pub(crate) fn sent(answer: Answer) -> Result<String, Box<Answer>> {
    match answer.headers.get("location") {
        Some(to) if answer.status == StatusCode::SEE_OTHER => Ok(to.to_str().unwrap().to_owned()),
        _ => Err(Box::new(answer)),
    }
}

impl Host {
    /// Alice's, with her account at these servers.
    pub(crate) async fn owned(net: &Net) -> Self {
        Self::owned_as(net, |_| ()).await
    }

    pub(crate) async fn owned_as(net: &Net, change: impl FnOnce(&mut GatewayConfig)) -> Self {
        let raw = RawGatewayConfig {
            owner_did: Some(ALICE.to_owned()),
            plc_url: Some(net.origin()),
            ..Default::default()
        };
        Self::start_as(raw, change).await
    }

    pub(crate) async fn sessions(&self) -> SessionList {
        self.admin().get_json("/admin/sandboxes/sessions").await.unwrap()
    }

    /// What was recorded, newest first: event and detail.
    pub(crate) async fn audit(&self) -> Vec<String> {
        let page: AuditPage = self.admin().get_json("/admin/sandboxes/audit").await.unwrap();
        let line = |event: &nacre_wire::access::AuditEvent| {
            format!("{} {}", event.event, event.detail.as_deref().unwrap_or("-"))
        };
        page.events.iter().map(line).collect()
    }
}
