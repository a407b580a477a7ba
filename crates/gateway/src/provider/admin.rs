//! What the owner sees and decides: providers, tokens, usage.

use std::time::{Duration, Instant};

use axum::body::Body;
use http::Request;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http_body_util::{BodyExt, Limited};
use nacre_wire::models::{
    CallPage, CreatePolicyToken, MadePolicyToken, PolicyTokenInfo, ProviderInfo, ProviderList,
    ProviderTested, Switched, TestProvider, UsageBy, UsageReport,
};
use nacre_wire::{ApiError, ErrorKind};
use serde_json::{Value, json};

use super::book::Account;
use super::config::Kind;
use super::tokens::{Mint, PolicyToken, Which};
use super::{ALL, Caller, Models, Target, store_failed};
use crate::clock::now_ms;

const TEST_LIVES: Duration = Duration::from_secs(120);
const LARGEST_ANSWER: usize = 4 * 1024 * 1024;
const MOST_CALLS: u32 = 500;

impl Models {
    pub(crate) fn providers(&self) -> ProviderList {
        let (stopped, names) = self.book.stopped();
        let live = self.live();
        let providers = live.providers.values();
        let info = |target: &std::sync::Arc<Target>| {
            self.provider_info(target, stopped || names.contains(&*target.name))
        };
        ProviderList { providers: providers.map(info).collect(), stopped }
    }

    fn provider_info(&self, target: &Target, stopped: bool) -> ProviderInfo {
        let provider = &target.provider;
        let today = self.book.used(&Account::Provider(target.name.clone()), now_ms());
        ProviderInfo {
            name: provider.name.clone(),
            kind: provider.kind.as_str().to_owned(),
            base_url: provider.base.to_string(),
            key: provider.key_from.to_string(),
            problem: target.problem(),
            paths: provider.paths.iter().map(ToString::to_string).collect(),
            models: provider.models.clone(),
            stopped,
            under_way: self.book.under_way(Some(&provider.name)),
            dollars_per_day: provider.day.dollars.map(super::Dollars::as_f64),
            tokens_per_day: provider.day.tokens,
            dollars_today: today.dollars.as_f64(),
            tokens_today: today.tokens,
        }
    }

    /// Reads the configuration again. What is wrong with it changes nothing.
    pub(crate) async fn reload(&self) -> Result<ProviderList, ApiError> {
        let Some(reload) = self.reload.clone() else {
            return Err(ApiError::new(ErrorKind::Unsupported, "there is no configuration to read"));
        };
        let read = tokio::task::spawn_blocking(move || (reload.0)()).await;
        let read = read.map_err(|error| ApiError::new(ErrorKind::Internal, error.to_string()))?;
        self.replace(read.map_err(|why| ApiError::new(ErrorKind::InvalidRequest, why))?);
        Ok(self.providers())
    }

    /// Written down first, so that a restart does not undo it.
    pub(crate) async fn stop_calls(&self, provider: Option<&str>) -> Result<Switched, ApiError> {
        self.known(provider)?;
        let name = provider.unwrap_or(ALL).to_owned();
        // Even when that cannot be written: whoever pulls the switch wants it now.
        let ended = self.book.stop(provider);
        self.store.stop_provider(name, now_ms()).await.map_err(store_failed)?;
        Ok(Switched { stopped: true, ended })
    }

    pub(crate) async fn start_calls(&self, provider: Option<&str>) -> Result<Switched, ApiError> {
        self.known(provider)?;
        let name = provider.unwrap_or(ALL).to_owned();
        self.store.start_provider(name).await.map_err(store_failed)?;
        self.book.start(provider);
        Ok(Switched { stopped: false, ended: 0 })
    }

    fn known(&self, provider: Option<&str>) -> Result<(), ApiError> {
        match provider {
            Some(name) if !self.live().providers.contains_key(name) => Err(no_provider(name)),
            Some(_) | None => Ok(()),
        }
    }

    pub(crate) fn policy_tokens(&self) -> Vec<PolicyTokenInfo> {
        self.tokens.list().iter().map(|token| self.token_info(token)).collect()
    }

    fn token_info(&self, token: &PolicyToken) -> PolicyTokenInfo {
        let used = self.book.used(&Account::Token(token.id.clone()), now_ms());
        PolicyTokenInfo {
            id: token.row.id.clone(),
            name: token.row.name.clone(),
            automatic: token.row.automatic,
            scope: token.row.scope.clone(),
            created_at: token.row.created_at,
            expires_at: token.row.expires_at,
            used_tokens: used.tokens,
            used_dollars: used.dollars.as_f64(),
        }
    }

    pub(crate) async fn create_policy_token(
        &self,
        wanted: CreatePolicyToken,
    ) -> Result<MadePolicyToken, ApiError> {
        let name = if wanted.name.is_empty() { "by hand".to_owned() } else { wanted.name };
        let lives_ms = wanted.expires_in_s.map(|seconds| seconds.saturating_mul(1000));
        let minted =
            self.tokens.mint(Mint { name, scope: wanted.scope, lives_ms, automatic: false });
        let (token, secret) = minted.await?;
        Ok(MadePolicyToken { info: self.token_info(&token), token: secret.reveal().to_owned() })
    }

    pub(crate) async fn revoke_policy_token(&self, which: &str) -> Result<(), ApiError> {
        let ended = self.tokens.revoke(Which::Named(which)).await?;
        if ended.is_empty() {
            let message = format!("there is no policy token \"{}\"", which.escape_debug());
            return Err(
                ApiError::new(ErrorKind::NotFound, message).hint("see nacre provider token list")
            );
        }
        if ended.iter().any(|token| token.row.automatic) {
            // What starts from now on gets another.
            self.changed.send_modify(|count| *count += 1);
        }
        Ok(())
    }

    pub(crate) async fn usage(&self, by: UsageBy, since: u64) -> Result<UsageReport, ApiError> {
        self.ledger.usage(by, since).await
    }

    pub(crate) async fn calls(
        &self,
        before: Option<i64>,
        limit: Option<u32>,
    ) -> Result<CallPage, ApiError> {
        let limit = limit.unwrap_or(50).clamp(1, MOST_CALLS);
        self.refusals.write(&self.ledger);
        let calls = self.ledger.calls(before, limit).await?;
        let full = calls.len() == limit as usize;
        Ok(CallPage { next: calls.last().filter(|_| full).map(|call| call.id), calls })
    }

    /// One real call, by the way that all of them take.
    pub(crate) async fn test(
        &self,
        name: &str,
        wanted: TestProvider,
    ) -> Result<ProviderTested, ApiError> {
        let live = self.live();
        let target = live.providers.get(name).ok_or_else(|| no_provider(name))?;
        let scope = nacre_wire::models::PolicyScope {
            providers: vec![name.to_owned()],
            ..Default::default()
        };
        let lives_ms = u64::try_from(TEST_LIVES.as_millis()).ok();
        let minted =
            self.tokens.mint(Mint { name: "test".to_owned(), scope, lives_ms, automatic: false });
        let (token, secret) = minted.await?;
        let request = test_call(target, wanted.model.as_deref(), secret.reveal())?;
        let began = Instant::now();
        let response = self.answer(Caller::Outside, request).await;
        let status = response.status();
        let body = Limited::new(response.into_body(), LARGEST_ANSWER).collect().await;
        let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.tokens.revoke(Which::Named(&token.row.id)).await?;
        let body = body.map_or_else(|_| Default::default(), |body| body.to_bytes());
        let said = in_words(&serde_json::from_slice(&body).unwrap_or(Value::Null), &body);
        Ok(ProviderTested { works: status.is_success(), status: status.as_u16(), said, took_ms })
    }
}

pub(super) fn no_provider(name: &str) -> ApiError {
    let message = format!("there is no provider \"{}\"", name.escape_debug());
    ApiError::new(ErrorKind::NotFound, message).hint("nacre provider list shows them all")
}

fn test_call(target: &Target, model: Option<&str>, token: &str) -> Result<Request<Body>, ApiError> {
    let say = "Say OK.";
    let (path, body) = match (target.provider.kind, model) {
        (Kind::Anthropic, None) => ("v1/models".to_owned(), None),
        (Kind::Google, None) => ("v1beta/models".to_owned(), None),
        (Kind::Openai | Kind::Openrouter | Kind::OpenaiCompatible, None) => {
            ("models".to_owned(), None)
        }
        (Kind::Anthropic, Some(model)) => {
            let messages = json!([{ "role": "user", "content": say }]);
            let body = json!({ "model": model, "max_tokens": 16, "messages": messages });
            ("v1/messages".to_owned(), Some(body))
        }
        (Kind::Google, Some(model)) => {
            let body = json!({
                "contents": [{ "parts": [{ "text": say }] }],
                "generationConfig": { "maxOutputTokens": 16 },
            });
            (format!("v1beta/models/{model}:generateContent"), Some(body))
        }
        (Kind::Openai | Kind::Openrouter | Kind::OpenaiCompatible, Some(model)) => {
            let messages = json!([{ "role": "user", "content": say }]);
            let body = json!({ "model": model, "max_completion_tokens": 16, "messages": messages });
            ("chat/completions".to_owned(), Some(body))
        }
    };
    let uri = format!("{}{}/{path}", super::call::PREFIX, target.name);
    let request = match &body {
        Some(_) => Request::post(uri).header(CONTENT_TYPE, "application/json"),
        None => Request::get(uri),
    };
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    request
        .header(AUTHORIZATION, format!("Bearer {token}"))
        .header("anthropic-version", "2023-06-01")
        .body(body)
        .map_err(|error| ApiError::new(ErrorKind::InvalidRequest, error.to_string()))
}

/// The part of an answer that a person wants.
fn in_words(answer: &Value, body: &[u8]) -> String {
    let text = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let spoken = [
        "/error/message",
        "/choices/0/message/content",
        "/content/0/text",
        "/candidates/0/content/parts/0/text",
    ];
    if let Some(words) = spoken.into_iter().find_map(text) {
        return short(&words);
    }
    let list = ["/data", "/models"].into_iter().find_map(|at| answer.pointer(at)?.as_array());
    if let Some(models) = list {
        let names =
            models.iter().filter_map(|model| model["id"].as_str().or(model["name"].as_str()));
        let first: Vec<_> = names.take(5).collect();
        let more = models.len().saturating_sub(first.len());
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        return format!("it offers {}{rest}", first.join(", "));
    }
    short(&String::from_utf8_lossy(body))
}

fn short(text: &str) -> String {
    text.chars().take(300).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_told_in_words() {
        let check = |answer: Value, expected: &str| {
            assert_eq!(in_words(&answer, answer.to_string().as_bytes()), expected);
        };
        check(json!({ "error": { "message": "bad key" } }), "bad key");
        check(json!({ "choices": [{ "message": { "content": "OK" } }] }), "OK");
        check(json!({ "content": [{ "type": "text", "text": "OK" }] }), "OK");
        check(json!({ "data": [{ "id": "a" }, { "id": "b" }] }), "it offers a, b");
        assert_eq!(in_words(&Value::Null, b"<html>\nno"), "<html> no");
    }
}
