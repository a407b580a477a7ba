//! What happened to the files, and taking it back.

use http::{Method, Response};
use hyper::body::Incoming;

use super::{Client, Result, drain, empty};
use crate::WirePath;
use crate::history::{
    AttendRequest, Author, Changes, CheckpointPage, HistorySettings, HistoryStatus, HistoryUsage,
    LabelRequest, Outcome, RedoRequest, RestoreRequest, UndoRequest, Verified,
};
use crate::path::{text_to_query, to_query};

/// Which checkpoints to list; see the query of `GET /supervisor/history`.
#[derive(Debug, Clone, Default)]
pub struct ListHistory {
    pub before: Option<u64>,
    pub after: Option<u64>,
    pub limit: Option<u64>,
    /// Milliseconds since 1970.
    pub since: Option<i64>,
    pub until: Option<i64>,
    pub path: Option<WirePath>,
    pub command: Option<String>,
    pub conversation: Option<String>,
    pub labelled: bool,
}

impl ListHistory {
    fn query(&self) -> String {
        let number =
            |name: &str, value: Option<String>| value.map(|value| format!("{name}={value}"));
        let text = |name: &str, value: &Option<String>| {
            value.as_ref().map(|value| format!("{name}={}", text_to_query(value)))
        };
        let parts = [
            number("before", self.before.map(|value| value.to_string())),
            number("after", self.after.map(|value| value.to_string())),
            number("limit", self.limit.map(|value| value.to_string())),
            number("since", self.since.map(|value| value.to_string())),
            number("until", self.until.map(|value| value.to_string())),
            self.path.as_ref().map(|path| format!("path={}", to_query(path.as_path()))),
            text("command", &self.command),
            text("conversation", &self.conversation),
            self.labelled.then(|| "labelled=true".to_owned()),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        parts.join("&")
    }
}

/// Somebody who is at work until this is dropped, and the connection with it.
#[derive(Debug)]
pub struct Attended {
    _response: Response<Incoming>,
}

impl Client {
    pub async fn history_status(&self) -> Result<HistoryStatus> {
        self.get_json("/supervisor/history/status").await
    }

    pub async fn history(&self, wanted: &ListHistory) -> Result<CheckpointPage> {
        self.get_json(&format!("/supervisor/history?{}", wanted.query())).await
    }

    pub async fn checkpoint(
        &self,
        id: u64,
        path: Option<&WirePath>,
        diff: bool,
    ) -> Result<Changes> {
        let path = path.map_or(String::new(), |path| format!("&path={}", to_query(path.as_path())));
        self.get_json(&format!("/supervisor/history/checkpoints/{id}?diff={diff}{path}")).await
    }

    /// From one checkpoint to another, or to the present.
    pub async fn history_diff(
        &self,
        from: u64,
        to: Option<u64>,
        path: Option<&WirePath>,
    ) -> Result<Changes> {
        let to = to.map_or(String::new(), |to| format!("&to={to}"));
        let path = path.map_or(String::new(), |path| format!("&path={}", to_query(path.as_path())));
        self.get_json(&format!("/supervisor/history/diff?from={from}{to}{path}")).await
    }

    /// The bytes of a file as it was after a checkpoint.
    pub async fn history_file(&self, path: &WirePath, at: u64) -> Result<Response<Incoming>> {
        let path = format!("/supervisor/history/file?path={}&at={at}", to_query(path.as_path()));
        self.send(self.request(Method::GET, &path, empty())?).await
    }

    pub async fn undo(&self, request: &UndoRequest) -> Result<Outcome> {
        self.post_json("/supervisor/history/undo", request).await
    }

    pub async fn redo(&self, request: &RedoRequest) -> Result<Outcome> {
        self.post_json("/supervisor/history/redo", request).await
    }

    /// What changes until this is dropped is put down to them as well, whatever changes it. What changed
    /// before is recorded when it returns.
    pub async fn attend(&self, by: &[Author]) -> Result<Attended> {
        let path = "/supervisor/history/attend";
        let request = AttendRequest { by: by.to_vec() };
        let response = self.send(self.json_request(Method::POST, path, &request)?).await?;
        Ok(Attended { _response: response })
    }

    pub async fn restore(&self, request: &RestoreRequest) -> Result<Outcome> {
        self.post_json("/supervisor/history/restore", request).await
    }

    pub async fn label_checkpoint(&self, id: u64, label: Option<&str>) -> Result<()> {
        let path = format!("/supervisor/history/checkpoints/{id}/label");
        let body = LabelRequest { label: label.map(str::to_owned) };
        drain(self.send(self.json_request(Method::POST, &path, &body)?).await?).await
    }

    pub async fn history_usage(&self) -> Result<HistoryUsage> {
        self.get_json("/supervisor/history/usage").await
    }

    pub async fn verify_history(&self) -> Result<Verified> {
        self.post_json("/supervisor/history/verify", &serde_json::json!({})).await
    }

    /// A stream for `git fast-import`.
    pub async fn export_history(&self, branch: &str) -> Result<Response<Incoming>> {
        let path = format!("/supervisor/history/export?branch={}", text_to_query(branch));
        self.send(self.request(Method::GET, &path, empty())?).await
    }

    pub async fn history_settings(&self) -> Result<HistorySettings> {
        self.get_json("/supervisor/history/settings").await
    }

    pub async fn set_history_settings(&self, settings: &HistorySettings) -> Result<()> {
        let path = "/supervisor/history/settings";
        drain(self.send(self.json_request(Method::PUT, path, settings)?).await?).await
    }
}
