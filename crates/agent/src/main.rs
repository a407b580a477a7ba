//! A one-shot run: does one task where it is, tells every event as a line on the standard output, and
//! ends with a code that says how it went.

use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;

use async_trait::async_trait;
use nacre_agent::body::{Body, Local};
use nacre_agent::events::Ended;
use nacre_agent::journal::Lines;
use nacre_agent::mcp::{Mcp, Ways};
use nacre_agent::model::{Call, Model, Served};
use nacre_agent::order::Order;
use nacre_agent::session::Session;
use nacre_agent::tools::{BodyTools, Intent, Planner, Toolbox};
use nacre_agent::{Agent, Permission, prompt};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The run itself could not begin, or nobody reads what it says.
const FAILED: u8 = 125;

fn main() -> ExitCode {
    let mut text = String::new();
    let order = std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| error.to_string())
        .and_then(|_| serde_json::from_str::<Order>(&text).map_err(|error| error.to_string()));
    let done = order.and_then(|order| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|error| error.to_string())?.block_on(run(order))
    });
    match done {
        Ok(ended) => ExitCode::from(ended.exit_code()),
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(FAILED)
        }
    }
}

async fn run(order: Order) -> Result<Ended, String> {
    let cancel = CancellationToken::new();
    for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
        let mut signals = signal(kind).map_err(|error| error.to_string())?;
        let cancel = cancel.clone();
        tokio::spawn(async move {
            signals.recv().await;
            cancel.cancel();
        });
    }
    let body: Arc<dyn Body> = Arc::new(Local::new(&order.workspace));
    let (limits, mode) = (order.limits(), order.mode());
    let scratch = order.scratch.display().to_string();
    let window = order.service.window;
    let model = Served::new(order.service.into()).map_err(|error| error.to_string())?;
    let model = model.with_window(window);
    let mut toolboxes: Vec<Arc<dyn Toolbox>> =
        vec![Arc::new(BodyTools::new(body.clone())), Arc::new(Planner)];
    if !order.mcp.is_empty() {
        let ways = Ways { body: body.clone(), scratch: scratch.clone(), proxy: proxy() };
        toolboxes.push(Arc::new(Mcp::by(&order.mcp, &ways)?));
    }
    let agent = Agent {
        model: Arc::new(model) as Arc<dyn Model>,
        body: body.clone(),
        toolboxes,
        permission: Arc::new(Nobody),
        system: prompt::system(&*body).await,
        mode,
        limits,
        scratch,
    };
    let (mut session, mut journal) = (Session::default(), Lines::new(std::io::stdout()));
    let turn = agent.turn(&mut session, &mut journal, &order.task, &cancel);
    turn.await.map_err(|error| format!("nobody reads what happens: {error}"))
}

/// The sandbox's own, which also looks names up: a static program cannot everywhere.
fn proxy() -> Option<String> {
    let names = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"];
    names.iter().find_map(|name| std::env::var(name).ok().filter(|proxy| !proxy.is_empty()))
}

/// There is nobody to ask in a one-shot run.
struct Nobody;

#[async_trait]
impl Permission for Nobody {
    async fn ask(&self, _: &Call, _: &Intent) -> bool {
        false
    }
}
