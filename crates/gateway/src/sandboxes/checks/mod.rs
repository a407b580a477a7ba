//! What must hold before a sandbox becomes live, each with evidence when it does not.
//!
//! Everything is asked for through the door, as the gateway would for `/`: what the sandbox serves
//! under that prefix is what people will get.

mod ask;
mod references;
mod resolve;

use std::collections::HashSet;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use http::StatusCode;
use nacre_wire::processes::{ProcessList, ProcessState, RUNTIME};
use nacre_wire::roles::{Evidence, SwapCheck};

use super::Sandbox;
use ask::{Answer, Wanted, ask};
use references::{Kind, Reference};

/// One question.
const PATIENCE: Duration = Duration::from_secs(10);
/// All that a page refers to.
const LONGEST: Duration = Duration::from_secs(30);
/// More than any desktop has at its root; beyond this the page is not one.
const MOST_ASSETS: usize = 256;
const AT_ONCE: usize = 8;
const MOST_REDIRECTS: usize = 5;
/// Evidence is for people.
const MOST_EVIDENCE: usize = 10;

/// Is told of each check the moment it ends.
pub(super) type Tell<'t> = &'t (dyn Fn(&SwapCheck) + Send + Sync);

/// Every check, in the order of the documentation. Later ones are not made when an earlier one leaves
/// nothing to ask.
pub(super) async fn all(sandbox: &Sandbox, tell: Tell<'_>) -> Vec<SwapCheck> {
    let process = told(tell, process(sandbox)).await;
    if !process.ok {
        return vec![process];
    }
    let (runtime, websocket) =
        tokio::join!(told(tell, runtime(sandbox)), told(tell, websocket(sandbox)));
    let mut checks = vec![process, runtime, websocket];
    if checks.iter().all(|check| check.ok) {
        checks.extend(bootstrap(sandbox, tell).await);
    }
    checks
}

/// The root loads, and what it needs to run.
pub(super) async fn bootstrap(sandbox: &Sandbox, tell: Tell<'_>) -> Vec<SwapCheck> {
    let (page, loaded) = page(sandbox).await;
    tell(&page);
    let mut checks = vec![page];
    if let Some(loaded) = loaded {
        checks.push(told(tell, assets(sandbox, &loaded)).await);
    }
    checks
}

async fn told(tell: Tell<'_>, check: impl Future<Output = SwapCheck>) -> SwapCheck {
    let check = check.await;
    tell(&check);
    check
}

/// Its supervisor answers and says that it is well.
pub(super) async fn process(sandbox: &Sandbox) -> SwapCheck {
    const PATH: &str = "/supervisor/health";
    if let Err(error) = sandbox.require_running() {
        return failed("process", error.message, Vec::new());
    }
    match ask(sandbox, PATH, Wanted::Data).await {
        Ok(answer) if answer.status == StatusCode::OK && answer.text().contains("\"ok\"") => {
            passed("process", "its supervisor is well")
        }
        Ok(answer) => {
            failed("process", "its supervisor is not well", vec![answer.evidence(PATH, "not ok")])
        }
        Err(problem) => {
            failed("process", "its supervisor does not answer", vec![bare(PATH, problem)])
        }
    }
}

/// What `nacre.toml` names as the app is ready, if it names one.
async fn runtime(sandbox: &Sandbox) -> SwapCheck {
    const PATH: &str = "/supervisor/processes";
    let answer = match ask(sandbox, PATH, Wanted::Data).await {
        Ok(answer) => answer,
        Err(problem) => {
            return failed(
                "runtime",
                "its processes cannot be asked for",
                vec![bare(PATH, problem)],
            );
        }
    };
    let Ok(list) = serde_json::from_slice::<ProcessList>(&answer.body) else {
        let evidence = vec![answer.evidence(PATH, "not a list of processes")];
        return failed("runtime", "its processes cannot be asked for", evidence);
    };
    if let Some(error) = list.config_error {
        let line = error.line.map_or_else(String::new, |line| format!("line {line}: "));
        return failed(
            "runtime",
            format!("its nacre.toml is not in use: {line}{}", error.reason),
            Vec::new(),
        );
    }
    match list.processes.iter().find(|process| process.name == RUNTIME) {
        None => passed("runtime", "it has no app of its own"),
        Some(process) if process.state == ProcessState::Ready => {
            passed("runtime", "its app is ready")
        }
        Some(process) => {
            let state = serde_json::to_string(&process.state).unwrap_or_default();
            let reason = process.reason.clone().unwrap_or_default();
            let detail = format!("its app is {}: {reason}", state.trim_matches('"'));
            failed("runtime", detail.trim_end_matches(": "), Vec::new())
        }
    }
}

/// The desktop's WebSocket opens.
async fn websocket(sandbox: &Sandbox) -> SwapCheck {
    const PATH: &str = "/ws";
    match ask(sandbox, PATH, Wanted::WebSocket).await {
        Ok(answer) if answer.is_websocket() => passed("websocket", "/ws opens"),
        Ok(answer) => {
            failed("websocket", "/ws does not open", vec![answer.evidence(PATH, "no handshake")])
        }
        Err(problem) => failed("websocket", "/ws does not open", vec![bare(PATH, problem)]),
    }
}

/// A page that came, and the path that it came from.
struct Loaded {
    path: String,
    body: Vec<u8>,
}

async fn page(sandbox: &Sandbox) -> (SwapCheck, Option<Loaded>) {
    let mut path = "/".to_owned();
    for _ in 0..=MOST_REDIRECTS {
        let answer = match ask(sandbox, &path, Wanted::Page).await {
            Ok(answer) => answer,
            Err(problem) => {
                return (
                    failed("page", "the page does not load", vec![bare(&path, problem)]),
                    None,
                );
            }
        };
        let onward = answer.location.as_deref().map(|to| resolve::against(&path, to));
        match onward {
            Some(Some(next)) if answer.status.is_redirection() => path = next,
            _ => return judge_page(path, answer),
        }
    }
    let evidence = vec![bare(&path, "it is sent on again and again".to_owned())];
    (failed("page", "the page does not load", evidence), None)
}

fn judge_page(path: String, answer: Answer) -> (SwapCheck, Option<Loaded>) {
    let problem = if answer.status != StatusCode::OK {
        "not 200"
    } else if !answer.is_of(&["text/html", "application/xhtml+xml"]) {
        "not HTML"
    } else {
        let loaded = Loaded { path, body: answer.body.to_vec() };
        return (passed("page", "the page loads"), Some(loaded));
    };
    let evidence = vec![answer.evidence(&path, problem)];
    (failed("page", "the page does not load", evidence), None)
}

async fn assets(sandbox: &Sandbox, page: &Loaded) -> SwapCheck {
    match tokio::time::timeout(LONGEST, load_assets(sandbox, page)).await {
        Ok(check) => check,
        Err(_) => {
            let detail = format!("what the page needs did not load within {} s", LONGEST.as_secs());
            failed("assets", detail, Vec::new())
        }
    }
}

async fn load_assets(sandbox: &Sandbox, page: &Loaded) -> SwapCheck {
    let html = String::from_utf8_lossy(&page.body);
    let mut wanted = references::of_page(&html, &page.path);
    let mut seen: HashSet<Reference> = wanted.iter().cloned().collect();
    let (mut loaded, mut evidence) = (0, Vec::new());
    // What scripts name is known when they have come: a second round, and no more.
    while !wanted.is_empty() && seen.len() <= MOST_ASSETS {
        let answers = stream::iter(std::mem::take(&mut wanted))
            .map(|reference| async move { load(sandbox, &reference).await })
            .buffer_unordered(AT_ONCE);
        let answers: Vec<_> = answers.collect().await;
        for outcome in answers {
            match outcome {
                Ok(more) => {
                    loaded += 1;
                    wanted.extend(more.into_iter().filter(|more| seen.insert(more.clone())));
                }
                Err(problem) => evidence.push(problem),
            }
        }
    }
    if seen.len() > MOST_ASSETS {
        return failed("assets", format!("the page needs more than {MOST_ASSETS} files"), evidence);
    }
    if seen.is_empty() {
        return passed("assets", "the page needs no other files");
    }
    if evidence.is_empty() {
        return passed("assets", &format!("all {loaded} files that the page needs load"));
    }
    let detail =
        format!("{} of {} files that the page needs do not load", evidence.len(), seen.len());
    evidence.sort_by(|a, b| a.url.cmp(&b.url));
    evidence.truncate(MOST_EVIDENCE);
    failed("assets", detail, evidence)
}

/// Returns what the loaded file needs in turn.
async fn load(sandbox: &Sandbox, reference: &Reference) -> Result<Vec<Reference>, Evidence> {
    let url = &reference.url;
    let answer = ask(sandbox, url, Wanted::Asset).await.map_err(|problem| bare(url, problem))?;
    if answer.status != StatusCode::OK {
        return Err(answer.evidence(url, "not 200"));
    }
    if !answer.is_of(reference.kind.types()) {
        return Err(answer.evidence(url, &format!("not {}", reference.kind.name())));
    }
    Ok(match reference.kind {
        Kind::Script => references::of_script(&answer.text(), url),
        Kind::Style | Kind::Wasm => Vec::new(),
    })
}

fn passed(name: &str, detail: &str) -> SwapCheck {
    SwapCheck { name: name.to_owned(), ok: true, detail: detail.to_owned(), evidence: Vec::new() }
}

fn failed(name: &str, detail: impl Into<String>, evidence: Vec<Evidence>) -> SwapCheck {
    SwapCheck { name: name.to_owned(), ok: false, detail: detail.into(), evidence }
}

fn bare(url: &str, problem: String) -> Evidence {
    Evidence { url: url.to_owned(), problem, ..Evidence::default() }
}
