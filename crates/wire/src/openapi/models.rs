//! Providers, policy tokens and usage, below `/admin/sandboxes`.

use utoipa::openapi::{HttpMethod, Required};

use super::call::Call;
use super::control::SOCKET_ONLY;
use crate::models::{
    CallPage, CreatePolicyToken, MadePolicyToken, PolicyTokenList, ProviderList, ProviderTested,
    Switch, Switched, TestProvider, UsageBy, UsageReport,
};

pub(super) fn calls() -> Vec<Call> {
    let calls = providers().into_iter().chain(tokens()).chain(usage());
    calls.map(|call| call.tag("models")).collect()
}

fn providers() -> Vec<Call> {
    let at = "/admin/sandboxes/providers";
    vec![
        Call::new(HttpMethod::Get, at, "list_providers", "Who answers model calls")
            .gives::<ProviderList>("200", "By name, without keys"),
        Call::new(
            HttpMethod::Post,
            "/admin/sandboxes/providers/reload",
            "reload_providers",
            "Read the configuration of providers again",
        )
        .gives::<ProviderList>("200", SOCKET_ONLY),
        Call::new(
            HttpMethod::Post,
            "/admin/sandboxes/providers/stop",
            "stop_providers",
            "No more model calls; those under way end",
        )
        .takes::<Switch>(Required::False)
        .gives::<Switched>("200", "Stopped"),
        Call::new(
            HttpMethod::Post,
            "/admin/sandboxes/providers/start",
            "start_providers",
            "Let model calls go on",
        )
        .takes::<Switch>(Required::False)
        .gives::<Switched>("200", SOCKET_ONLY),
        Call::new(
            HttpMethod::Post,
            "/admin/sandboxes/providers/{name}/test",
            "test_provider",
            "Make one small call",
        )
        .takes::<TestProvider>(Required::False)
        .gives::<ProviderTested>("200", SOCKET_ONLY),
    ]
}

fn tokens() -> Vec<Call> {
    let all = "/admin/sandboxes/policy-tokens";
    vec![
        Call::new(HttpMethod::Get, all, "list_policy_tokens", "Tokens for model calls")
            .gives::<PolicyTokenList>("200", "Oldest first"),
        Call::new(HttpMethod::Post, all, "create_policy_token", "Make a token for model calls")
            .takes::<CreatePolicyToken>(Required::True)
            .gives::<MadePolicyToken>("201", SOCKET_ONLY),
        Call::new(
            HttpMethod::Delete,
            "/admin/sandboxes/policy-tokens/{id}",
            "revoke_policy_token",
            "End a token for model calls, by id or name; its calls under way end too",
        )
        .gives_nothing("204", "Ended"),
    ]
}

fn usage() -> Vec<Call> {
    vec![
        Call::new(
            HttpMethod::Get,
            "/admin/sandboxes/usage",
            "usage",
            "What model calls used and cost",
        )
        .query::<UsageBy>("by", "What to put together; days unless told")
        .query::<u64>("since", "Only what began then or later, as Unix milliseconds")
        .gives::<UsageReport>("200", "Newest day first, or dearest first"),
        Call::new(HttpMethod::Get, "/admin/sandboxes/calls", "calls", "The record of model calls")
            .query::<i64>("before", "Only what is older than this call")
            .query::<u32>("limit", "How many; 50 unless told, 500 at most")
            .gives::<CallPage>("200", "Newest first"),
    ]
}
