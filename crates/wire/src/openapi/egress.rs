//! The way out, below `/admin/sandboxes`.

use utoipa::openapi::{HttpMethod, Required};

use super::call::Call;
use super::control::SOCKET_ONLY;
use crate::egress::{EgressLog, EgressRule, EgressView, SetEgressMode};

pub(super) fn calls() -> Vec<Call> {
    let rules = "/admin/sandboxes/{name}/egress/rules";
    let calls = [
        Call::new(
            HttpMethod::Get,
            "/admin/sandboxes/{name}/egress",
            "get_egress",
            "What a sandbox may reach, and what it has open",
        )
        .gives::<EgressView>("200", "As it is now"),
        Call::new(
            HttpMethod::Put,
            "/admin/sandboxes/{name}/egress/mode",
            "set_egress_mode",
            "Choose what is open when no rule says otherwise",
        )
        .takes::<SetEgressMode>(Required::True)
        .gives::<EgressView>("200", SOCKET_ONLY),
        Call::new(HttpMethod::Post, rules, "add_egress_rule", "Allow or deny a target")
            .takes::<EgressRule>(Required::True)
            .gives::<EgressView>("200", SOCKET_ONLY),
        Call::new(HttpMethod::Delete, rules, "remove_egress_rule", "Take a rule away")
            .required::<String>("target", "As the rule has it")
            .gives::<EgressView>("200", SOCKET_ONLY),
        Call::new(
            HttpMethod::Get,
            "/admin/sandboxes/egress/log",
            "egress_log",
            "The connections there were",
        )
        .query::<String>("sandbox", "Only of this one, by name or id")
        .query::<i64>("before", "Only what is older than this record")
        .query::<u32>("limit", "How many; 50 unless told, 1000 at most")
        .query::<bool>("refused", "Only what was refused or cut")
        .query::<bool>("follow", "Lines of JSON, oldest first, that go on with what happens")
        .gives::<EgressLog>("200", "Newest first"),
    ];
    calls.into_iter().map(|call| call.tag("egress")).collect()
}
