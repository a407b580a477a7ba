//! The way out: as the supervisor asks for it, and as the owner rules it.

use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::{Client, Result, empty, read_json};
use crate::egress::{EgressRule, EgressView, PROTOCOL, SetEgressMode};
use crate::path::text_to_query;
use crate::relay::Raw;

impl Client {
    /// A connection to somebody outside, or why there is none. At a supervisor's way up.
    pub async fn reach(&self, host: &str, port: u16) -> Result<Raw> {
        let host = utf8_percent_encode(host, NON_ALPHANUMERIC);
        self.switch(&format!("/host/egress?host={host}&port={port}"), PROTOCOL).await
    }

    /// At a gateway, like those that follow.
    pub async fn egress(&self, sandbox: &str) -> Result<EgressView> {
        self.get_json(&path(sandbox, "")).await
    }

    pub async fn set_egress_mode(&self, sandbox: &str, mode: SetEgressMode) -> Result<EgressView> {
        let request = self.json_request(Method::PUT, &path(sandbox, "/mode"), &mode)?;
        read_json(self.send(request).await?).await
    }

    pub async fn add_egress_rule(&self, sandbox: &str, rule: &EgressRule) -> Result<EgressView> {
        self.post_json(&path(sandbox, "/rules"), rule).await
    }

    pub async fn remove_egress_rule(&self, sandbox: &str, target: &str) -> Result<EgressView> {
        let path = format!("{}?target={}", path(sandbox, "/rules"), text_to_query(target));
        read_json(self.send(self.request(Method::DELETE, &path, empty())?).await?).await
    }
}

fn path(sandbox: &str, rest: &str) -> String {
    format!("/admin/sandboxes/{}/egress{rest}", text_to_query(sandbox))
}
