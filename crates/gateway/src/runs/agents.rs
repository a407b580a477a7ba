//! Which agent does a task, and how each of them is started. Pure.
//!
//! `nacre` is our own: it is put into the sandbox and gets its order on the standard input. The others
//! are whatever the base of the sandbox has installed; they are told where their model is and find the
//! task in a file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use nacre_agent::mcp::Servers;
use nacre_agent::model::{Format, WINDOW};
use nacre_agent::order::{Order, ServiceOrder};
use nacre_wire::exec::ExecRequest;
use nacre_wire::models::PORT;
use nacre_wire::{ApiError, ErrorKind};
use serde_json::{Value, json};

use crate::provider::{Chosen, Kind, LONGEST_REPLY, longest};

/// Where all that a run needs lies in its sandbox. Root's, so that nobody else changes it.
pub(super) const FOLDER: &str = "/run/nacre-run";
pub(super) const PROGRAM: &str = "/run/nacre-run/nacre-agent";
pub(super) const SPEC: &str = "/run/nacre-run/spec.txt";
const SETTINGS: &str = "/run/nacre-run/opencode.json";
/// The agents of others do not work with replies of much less.
const SHORTEST_REPLY: u64 = 4_096;
const SCRATCH: &str = "/tmp/nacre-agent";
const WORKSPACE: &str = "/workspace";
/// Of what the supervisor searches.
const USUAL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Agent {
    Nacre,
    Codex,
    Claude,
    Opencode,
    /// For a shell; the path of the task is added to it.
    Command(String),
}

/// What it takes to start one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    pub(super) request: ExecRequest,
    /// For its standard input.
    pub(super) input: Option<Vec<u8>>,
    /// Files besides the task.
    pub(super) files: Vec<(&'static str, Vec<u8>)>,
    /// A program that has to be there, and how it gets there.
    pub(super) needs: Option<(&'static str, &'static str)>,
}

/// What a plan depends on.
pub(super) struct Task<'a> {
    pub(super) run: &'a str,
    pub(super) spec: &'a str,
    pub(super) model: Option<&'a Chosen>,
    /// Of the model, in tokens, where it is known.
    pub(super) window: Option<u64>,
    pub(super) token: Option<&'a str>,
    /// Tokens of a reply that leaves most of the budget, where there is one.
    pub(super) reply: Option<u64>,
    /// Servers of tools that run where the agent does.
    pub(super) mcp: &'a Servers,
    pub(super) max_steps: u64,
    pub(super) time: Duration,
    /// Searched before the usual places.
    pub(super) path: &'a [PathBuf],
}

impl Task<'_> {
    fn reply_of(&self, shortest: u64) -> Option<u64> {
        self.reply.map(|reply| reply.clamp(shortest, LONGEST_REPLY))
    }
}

impl Agent {
    pub(super) fn parse(name: &str) -> Self {
        match name {
            "nacre" => Self::Nacre,
            "codex" => Self::Codex,
            "claude" => Self::Claude,
            "opencode" => Self::Opencode,
            command => Self::Command(command.to_owned()),
        }
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Nacre => "nacre",
            Self::Codex => "codex",
            Self::Claude => "claude",
            Self::Opencode => "opencode",
            Self::Command(command) => command,
        }
    }

    /// A command may do without.
    pub(super) fn needs_model(&self) -> bool {
        !matches!(self, Self::Command(_))
    }

    /// Whether it can talk to that provider, and what to do when not.
    pub(super) fn check(&self, model: &Chosen) -> Result<(), ApiError> {
        let (speaks, can) = match self {
            Self::Nacre | Self::Opencode | Self::Command(_) => return Ok(()),
            Self::Codex => ("OpenAI", speaks_responses(model.kind)),
            Self::Claude => ("Anthropic", model.kind == Kind::Anthropic),
        };
        if can {
            return Ok(());
        }
        let message = format!(
            "{} speaks the API of {speaks}, and {} does not ({})",
            self.name(),
            model.provider,
            model.kind.as_str()
        );
        let hint =
            "name a model of another provider, or another agent: nacre and opencode speak both";
        Err(ApiError::new(ErrorKind::InvalidRequest, message).hint(hint))
    }

    pub(super) fn plan(&self, task: &Task<'_>) -> Result<Plan, ApiError> {
        let mut env = surroundings(task);
        let mut files = Vec::new();
        let no_model = || ApiError::new(ErrorKind::InvalidRequest, "this agent needs a model");
        let (argv, input, needs) = match (self, task.model) {
            (Self::Nacre, Some(model)) => {
                (vec![PROGRAM.to_owned()], Some(order(task, model)?), None)
            }
            (Self::Codex, Some(model)) => {
                let needs = ("codex", "npm install -g @openai/codex");
                (from_spec(&codex(model)), None, Some(needs))
            }
            (Self::Claude, Some(model)) => {
                // It refuses to go without asking, unless it is told that somebody thought of that.
                env.insert("IS_SANDBOX".to_owned(), Some("1".to_owned()));
                // Its maker hears what the model is asked, and nothing besides.
                let quiet = "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC";
                env.insert(quiet.to_owned(), Some("1".to_owned()));
                // What it may be told is reserved before it is: left to itself, one call is a run's budget.
                if let Some(most) = task.reply_of(SHORTEST_REPLY) {
                    let name = "CLAUDE_CODE_MAX_OUTPUT_TOKENS";
                    env.insert(name.to_owned(), Some(most.to_string()));
                }
                let needs = ("claude", "npm install -g @anthropic-ai/claude-code");
                (from_spec(&claude(model)), None, Some(needs))
            }
            (Self::Opencode, Some(model)) => {
                let settings = opencode_settings(task, model).to_string();
                files.push((SETTINGS, settings.into_bytes()));
                for (name, value) in [
                    ("OPENCODE_CONFIG", SETTINGS),
                    ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
                    ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
                ] {
                    env.insert(name.to_owned(), Some(value.to_owned()));
                }
                let argv = words(&["opencode", "run", "--format", "json"]);
                (from_spec(&argv), None, Some(("opencode", "npm install -g opencode-ai")))
            }
            (Self::Command(command), _) => {
                let script = format!("{command} \"$@\"");
                (words(&["/bin/sh", "-c", &script, "sh", SPEC]), None, None)
            }
            (Self::Nacre | Self::Codex | Self::Claude | Self::Opencode, None) => {
                return Err(no_model());
            }
        };
        let request = ExecRequest {
            argv,
            env,
            stdin: input.is_some(),
            label: Some(format!("{} of {}", self.name(), task.run)),
            ..ExecRequest::default()
        };
        Ok(Plan { request, input, files, needs })
    }
}

/// What every agent finds in its environment besides what all commands do.
fn surroundings(task: &Task<'_>) -> BTreeMap<String, Option<String>> {
    let mut env = BTreeMap::new();
    let mut set = |name: &str, value: String| drop(env.insert(name.to_owned(), Some(value)));
    set("NACRE_RUN", task.run.to_owned());
    set("NACRE_SPEC", SPEC.to_owned());
    if let Some(model) = task.model {
        set("NACRE_PROVIDER", model.provider.to_string());
        set("NACRE_MODEL", model.model.clone());
    }
    if !task.path.is_empty() {
        let own = task.path.iter().map(|path| path.to_string_lossy());
        let all: Vec<_> = own.chain([USUAL_PATH.into()]).collect();
        set("PATH", all.join(":"));
    }
    env
}

/// The task on its standard input, from the file: it may be longer than an argument.
fn from_spec(argv: &[String]) -> Vec<String> {
    let script = words(&["/bin/sh", "-c", "exec \"$@\" < \"$NACRE_SPEC\"", "sh"]);
    script.into_iter().chain(argv.iter().cloned()).collect()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Where that provider is, from inside of a sandbox.
fn address(model: &Chosen) -> String {
    format!("http://127.0.0.1:{PORT}/provider/v1/{}", model.provider)
}

fn speaks_responses(kind: Kind) -> bool {
    match kind {
        Kind::Openai | Kind::Openrouter | Kind::OpenaiCompatible => true,
        Kind::Anthropic | Kind::Google => false,
    }
}

fn order(task: &Task<'_>, model: &Chosen) -> Result<Vec<u8>, ApiError> {
    let root = address(model);
    // The format's own paths are below this.
    let (format, base) = match model.kind {
        Kind::Openai => (Format::Responses, format!("{root}/")),
        Kind::Anthropic => (Format::Messages, format!("{root}/v1/")),
        Kind::Google => (Format::Gemini, format!("{root}/v1beta/")),
        Kind::Openrouter | Kind::OpenaiCompatible => (Format::Chat, format!("{root}/")),
    };
    let order = Order {
        task: task.spec.to_owned(),
        workspace: WORKSPACE.into(),
        scratch: SCRATCH.into(),
        service: ServiceOrder {
            format,
            base,
            token: task.token.unwrap_or_default().to_owned(),
            model: model.model.clone(),
            longest: longest(model.kind, task.reply),
            window: task.window,
        },
        max_steps: task.max_steps,
        timeout_ms: u64::try_from(task.time.as_millis()).unwrap_or(u64::MAX),
        plan_only: false,
        mcp: task.mcp.clone(),
    };
    serde_json::to_vec(&order)
        .map_err(|error| ApiError::new(ErrorKind::Internal, format!("the order: {error}")))
}

fn codex(model: &Chosen) -> Vec<String> {
    let provider = format!(
        "model_providers.nacre={{name=\"nacre\",base_url=\"{}\",env_key=\"NACRE_PROVIDER_TOKEN\",\
         wire_api=\"responses\"}}",
        address(model)
    );
    let mut argv = words(&[
        "codex",
        "exec",
        "--json",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
        "-c",
        "model_provider=nacre",
        "-c",
    ]);
    argv.extend([provider, "-m".to_owned(), model.model.clone(), "-".to_owned()]);
    argv
}

fn claude(model: &Chosen) -> Vec<String> {
    words(&[
        "claude",
        "-p",
        "--output-format",
        "stream-json",
        "--verbose",
        "--dangerously-skip-permissions",
        "--model",
        &model.model,
    ])
}

fn opencode_settings(task: &Task<'_>, model: &Chosen) -> Value {
    let root = address(model);
    let (package, base) = match model.kind {
        Kind::Anthropic => ("@ai-sdk/anthropic", format!("{root}/v1")),
        Kind::Google => ("@ai-sdk/google", format!("{root}/v1beta")),
        Kind::Openai | Kind::Openrouter | Kind::OpenaiCompatible => {
            ("@ai-sdk/openai-compatible", root)
        }
    };
    let name = format!("nacre/{}", model.model);
    // Without limits it asks for replies of 32,000 tokens. It takes both of them or neither.
    let limits = match task.reply_of(SHORTEST_REPLY) {
        Some(reply) => {
            json!({ "limit": { "context": task.window.unwrap_or(WINDOW), "output": reply } })
        }
        None => json!({}),
    };
    json!({
        "$schema": "https://opencode.ai/config.json",
        "model": name,
        "small_model": name,
        "permission": "allow",
        "provider": { "nacre": {
            "npm": package,
            "options": { "baseURL": base, "apiKey": "{env:NACRE_PROVIDER_TOKEN}" },
            "models": { &*model.model: limits },
        } },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    static NO_SERVERS: Servers = Servers::new();

    fn chosen(kind: Kind) -> Chosen {
        Chosen { provider: "p".into(), kind, model: "m".to_owned() }
    }

    fn task<'a>(model: Option<&'a Chosen>, path: &'a [PathBuf]) -> Task<'a> {
        Task {
            run: "run-1",
            spec: "do it",
            model,
            window: None,
            token: Some("t"),
            reply: None,
            mcp: &NO_SERVERS,
            max_steps: 3,
            time: Duration::from_secs(2),
            path,
        }
    }

    fn plan(agent: &str, model: Option<&Chosen>) -> Result<Plan, ApiError> {
        Agent::parse(agent).plan(&task(model, &[PathBuf::from("/opt/bin")]))
    }

    #[test]
    fn our_own_is_told_on_its_standard_input_and_nowhere_else() {
        let check = |kind, format: &str, base: &str| {
            let plan = plan("nacre", Some(&chosen(kind))).unwrap();
            assert_eq!(plan.request.argv, [PROGRAM]);
            assert!(plan.request.stdin);
            let order: Value = serde_json::from_slice(&plan.input.unwrap()).unwrap();
            let service = &order["service"];
            assert_eq!((&service["format"], &service["base"]), (&json!(format), &json!(base)));
            assert_eq!((&order["max_steps"], &order["timeout_ms"]), (&json!(3), &json!(2000)));
            assert!(!format!("{:?}", plan.request.env).contains("\"t\""));
        };
        check(Kind::Openai, "responses", "http://127.0.0.1:8002/provider/v1/p/");
        check(Kind::Anthropic, "messages", "http://127.0.0.1:8002/provider/v1/p/v1/");
        check(Kind::Google, "gemini", "http://127.0.0.1:8002/provider/v1/p/v1beta/");
        check(Kind::OpenaiCompatible, "chat", "http://127.0.0.1:8002/provider/v1/p/");
    }

    #[test]
    fn a_command_gets_the_path_of_the_task() {
        let plan = plan("python3 agent.py --fast", None).unwrap();
        let expected = ["/bin/sh", "-c", "python3 agent.py --fast \"$@\"", "sh", SPEC];
        assert_eq!(plan.request.argv, expected);
        assert_eq!(plan.request.env["NACRE_SPEC"].as_deref(), Some(SPEC));
        let path = plan.request.env["PATH"].as_deref().unwrap();
        assert!(path.starts_with("/opt/bin:/usr/local/sbin:"), "{path}");
        assert_eq!(plan.needs, None);
    }

    #[test]
    fn a_reply_of_claude_fits_into_the_budget() {
        let model = chosen(Kind::Anthropic);
        let told = |reply| {
            let task = Task { reply, ..task(Some(&model), &[]) };
            let env = Agent::Claude.plan(&task).unwrap().request.env;
            env.get("CLAUDE_CODE_MAX_OUTPUT_TOKENS").cloned().flatten()
        };
        assert_eq!(told(Some(11_000)).as_deref(), Some("11000"));
        assert_eq!(told(Some(12)).as_deref(), Some("4096"), "with less it does not work");
        assert_eq!(
            told(Some(1_000_000)).as_deref(),
            Some("32000"),
            "as much as it asks for anyway"
        );
        assert_eq!(told(None), None, "without a budget it is left to itself");
    }

    #[test]
    fn a_reply_of_ours_and_of_opencode_fits_as_well() {
        let model = chosen(Kind::Anthropic);
        let task = |reply| Task { reply, window: Some(200_000), ..task(Some(&model), &[]) };
        let ours = |reply| {
            let input = Agent::Nacre.plan(&task(reply)).unwrap().input.unwrap();
            let order: Value = serde_json::from_slice(&input).unwrap();
            order["service"]["longest"].as_u64()
        };
        assert_eq!(ours(Some(11_000)), Some(11_000));
        assert_eq!((ours(Some(12)), ours(Some(1_000_000))), (Some(1024), Some(32_000)));
        assert_eq!(ours(None), None);
        let opencode = |reply| {
            let files = Agent::Opencode.plan(&task(reply)).unwrap().files;
            let settings: Value = serde_json::from_slice(&files[0].1).unwrap();
            settings["provider"]["nacre"]["models"]["m"].clone()
        };
        let limit = json!({"limit": {"context": 200_000, "output": 11_000}});
        assert_eq!((opencode(Some(11_000)), opencode(None)), (limit, json!({})));
        // What a service does not have to be told is left to it.
        let input = plan("nacre", Some(&chosen(Kind::Openai))).unwrap().input.unwrap();
        let order: Value = serde_json::from_slice(&input).unwrap();
        assert_eq!(order["service"]["longest"], json!(null));
    }

    #[test]
    fn an_agent_that_cannot_talk_to_a_provider_says_so() {
        let check = |agent: &str, kind, can: bool| {
            assert_eq!(Agent::parse(agent).check(&chosen(kind)).is_ok(), can, "{agent} {kind:?}");
        };
        check("codex", Kind::Openai, true);
        check("codex", Kind::Anthropic, false);
        check("claude", Kind::Anthropic, true);
        check("claude", Kind::Openai, false);
        check("opencode", Kind::Google, true);
        check("nacre", Kind::Openrouter, true);
        assert!(plan("codex", None).is_err());
    }
}
