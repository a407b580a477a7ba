//! `/admin/sandboxes*`.

use utoipa::openapi::{HttpMethod, Required};

use super::call::Call;
use crate::control::{
    AlertList, CreateSandbox, GatewayStatus, SandboxInfo, SandboxList, Shutdown, SignInLink, Stats,
};
use crate::roles::{DevMade, RolesStatus, SwapRefused, SwapRequest, Swapped};

pub(super) const SOCKET_ONLY: &str = "Only on the gateway's unix socket";

pub(super) fn calls() -> Vec<Call> {
    let sandboxes = table().into_iter().chain(changes()).chain(roles()).chain(door());
    let sandboxes = sandboxes.map(|call| call.tag("sandboxes"));
    sandboxes.chain(gateway().into_iter().map(|call| call.tag("gateway"))).collect()
}

fn table() -> Vec<Call> {
    let all = "/admin/sandboxes";
    let one = "/admin/sandboxes/{name}";
    vec![
        Call::new(HttpMethod::Get, all, "list_sandboxes", "Every sandbox, oldest first")
            .gives::<SandboxList>("200", "All of them"),
        Call::new(HttpMethod::Post, all, "create_sandbox", "Make a sandbox")
            .takes::<CreateSandbox>(Required::False)
            .gives::<SandboxInfo>("201", "Made"),
        Call::new(HttpMethod::Get, one, "get_sandbox", "One sandbox, by name or id")
            .gives::<SandboxInfo>("200", "As it is now"),
        Call::new(HttpMethod::Delete, one, "destroy_sandbox", "Remove a sandbox and its files")
            .gives_nothing("204", "Gone"),
        Call::new(
            HttpMethod::Get,
            "/admin/sandboxes/{name}/stats",
            "sandbox_stats",
            "What a sandbox uses",
        )
        .gives::<Stats>("200", "At this moment"),
        Call::new(
            HttpMethod::Get,
            "/admin/sandboxes/{name}/logs",
            "sandbox_logs",
            "What its supervisor logged",
        )
        .query::<bool>("follow", "Go on with what is new")
        .query::<u64>("max_bytes", "How far back to start")
        .gives_bytes("200", "Lines of text", "text/plain; charset=utf-8"),
    ]
}

fn changes() -> Vec<Call> {
    [
        ("/admin/sandboxes/{name}/start", "start_sandbox", "Start it; nothing when it runs"),
        ("/admin/sandboxes/{name}/stop", "stop_sandbox", "End all its processes, keep its files"),
        ("/admin/sandboxes/{name}/restart", "restart_sandbox", "Stop it and start it again"),
        ("/admin/sandboxes/{name}/pause", "pause_sandbox", "Freeze it with its memory"),
        ("/admin/sandboxes/{name}/resume", "resume_sandbox", "Let a paused one go on"),
    ]
    .map(|(path, id, summary)| {
        Call::new(HttpMethod::Post, path, id, summary).gives::<SandboxInfo>("200", "Done")
    })
    .into()
}

fn roles() -> Vec<Call> {
    let dev = "/admin/sandboxes/dev";
    let force = "Even if a swap that is still watched would go back to it";
    vec![
        Call::new(
            HttpMethod::Get,
            "/admin/sandboxes/roles",
            "get_roles",
            "Live, dev and the last swap",
        )
        .gives::<RolesStatus>("200", "As they are now"),
        Call::new(HttpMethod::Get, dev, "get_dev", "The dev sandbox")
            .gives::<SandboxInfo>("200", "As it is now"),
        Call::new(HttpMethod::Post, dev, "create_dev", "Make dev, as a copy of live")
            .gives::<DevMade>("201", "Made, and started"),
        Call::new(HttpMethod::Delete, dev, "delete_dev", "Remove dev and its files")
            .query::<bool>("force", force)
            .gives_nothing("204", "Gone"),
        Call::new(
            HttpMethod::Post,
            "/admin/sandboxes/dev/reset",
            "reset_dev",
            "Replace dev by a fresh copy of live",
        )
        .query::<bool>("force", force)
        .gives::<DevMade>("201", "Replaced, and started"),
        Call::new(
            HttpMethod::Post,
            "/admin/sandboxes/swap",
            "swap",
            "Make dev live and live dev, or take that back",
        )
        .takes::<SwapRequest>(Required::False)
        .gives::<Swapped>("200", "Both have moved")
        .gives::<SwapRefused>("409", "A check failed; nothing moved"),
        Call::new(
            HttpMethod::Get,
            "/admin/sandboxes/swap/checks",
            "swap_checks",
            "Make the checks of a swap, and move nothing",
        )
        .gives_bytes(
            "200",
            "A SwapCheck per line, each when it is made, then a SwapVerdict",
            "application/x-ndjson",
        ),
    ]
}

fn door() -> Vec<Call> {
    [
        (HttpMethod::Get, "door_get"),
        (HttpMethod::Post, "door_post"),
        (HttpMethod::Patch, "door_patch"),
        (HttpMethod::Put, "door_put"),
        (HttpMethod::Delete, "door_delete"),
    ]
    .map(|(method, id)| {
        let summary = "The call at `rest`, to the supervisor of this sandbox; other methods too";
        Call::new(method, "/admin/sandboxes/{name}/door/{rest}", id, summary)
            .gives_nothing("2XX", "What the supervisor answers")
            .upgrades("What the supervisor upgrades to")
    })
    .into()
}

fn gateway() -> Vec<Call> {
    vec![
        Call::new(HttpMethod::Get, "/admin/sandboxes/gateway", "gateway_status", "The gateway")
            .gives::<GatewayStatus>("200", "As it is now"),
        Call::new(HttpMethod::Get, "/admin/sandboxes/alerts", "alerts", "What pages do wrong")
            .gives::<AlertList>("200", "Newest last"),
        Call::new(HttpMethod::Get, "/admin/sandboxes/metrics", "metrics", "Counters").gives_bytes(
            "200",
            "For Prometheus",
            "text/plain; version=0.0.4; charset=utf-8",
        ),
        Call::new(
            HttpMethod::Post,
            "/admin/sandboxes/gateway/sign-in-link",
            "make_sign_in_link",
            "A fresh link that signs one browser in",
        )
        .gives::<SignInLink>("200", SOCKET_ONLY),
        Call::new(
            HttpMethod::Post,
            "/admin/sandboxes/gateway/shutdown",
            "shut_down",
            "Stop the gateway",
        )
        .takes::<Shutdown>(Required::False)
        .gives_nothing("202", SOCKET_ONLY),
        Call::new(
            HttpMethod::Post,
            "/admin/sandboxes/gateway/modules",
            "unpack_modules",
            "Unpack what the desktop runs on, for all sandboxes",
        )
        .gives_nothing("204", "It is there"),
    ]
}
