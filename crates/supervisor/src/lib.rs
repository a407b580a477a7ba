//! The supervisor: pid 1 of a sandbox, which must not crash.
//!
//! It serves HTTP on one listening socket, the door, that it is given at the start ([`server`]).
//! [`exec`] owns all processes it starts and, as pid 1, collects all that end; [`status`] tells
//! how it is; [`files`] and [`watch`] serve the sandbox's files; [`host`] is the way up to the
//! gateway, [`models`] a port that leads there, [`upward`] passes requests for the host on to it, and
//! [`conversations`] tells what happens there; [`egress`] is the way out; [`surroundings`] are the
//! variables of every command; [`runtime`] keeps what `nacre.toml` names running and leads to it;
//! [`ports`] leads to whatever else listens; [`events`] tells what
//! happens; [`desktop`] is what a browser sees first, [`page`] a page that needs nothing of it, [`rescue`] the
//! one for when the app is broken, and [`guard`] what leads there from within the app; [`logs`] is what
//! processes print. Nothing a client or a process does ends it: a panic in a handler is that request's failure
//! ([`panics`]), and every buffer is bounded.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::middleware::from_fn_with_state;
use nacre_wire::client::Client;
use tokio::signal::unix::{SignalKind, signal};

mod conversations;
pub mod desktop;
pub mod egress;
pub mod events;
pub mod exec;
pub mod failure;
pub mod files;
pub mod guard;
pub mod history;
pub mod host;
pub mod limits;
pub mod logs;
mod memory;
mod models;
pub mod net;
pub mod page;
pub mod panics;
pub mod ports;
pub mod rescue;
pub mod runtime;
pub mod server;
pub mod status;
mod stop;
pub mod surroundings;
mod upward;
pub mod users;
pub mod watch;

/// A second one would be woken for every step of every request, find nothing to do, and cost each
/// start of a sandbox a thread. What takes long or may block has threads of its own.
const WORKERS: usize = 1;
const STACK: usize = 1024 * 1024;
const MOST_BLOCKING: usize = 64;
const BLOCKING_KEPT: Duration = Duration::from_secs(2);

/// What a supervisor is started with.
#[derive(Debug)]
pub struct Config {
    /// Already listening.
    pub door: UnixListener,
    pub workspace: PathBuf,
    /// Whom commands and file calls act as unless they say otherwise.
    pub default_user: users::User,
    pub reap: exec::Reap,
    /// Where the host listens for us, when it does.
    pub host_socket: Option<PathBuf>,
    /// A tun device that has all routes of the sandbox, when there is one.
    pub device: Option<OwnedFd>,
    /// Where the history of the workspace goes; without one there is none.
    pub history: Option<history::Place>,
}

/// Serves until a TERM signal, then ends every command and returns.
pub fn run(config: Config) -> anyhow::Result<()> {
    panics::install();
    memory::bound();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .thread_stack_size(STACK)
        .max_blocking_threads(MOST_BLOCKING)
        .thread_keep_alive(BLOCKING_KEPT)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let served = runtime.block_on(serve(config));
    runtime.shutdown_background();
    served
}

async fn serve(config: Config) -> anyhow::Result<()> {
    let mut term = signal(SignalKind::terminate()).context("cannot handle the TERM signal")?;
    let upward = upward::Upward::new(config.host_socket.clone());
    let host: host::Host = config.host_socket.map(Client::unix);
    let watching = watch::Context::new(&config.workspace, config.default_user.clone());
    let events = events::Events::start(events::Context {
        workspace: config.workspace.clone(),
        user: config.default_user.clone(),
        watchers: watching.watchers.clone(),
    });
    let recorder = match config.history {
        Some(place) => history::Recorder::start(place, watching.watchers.clone(), events.clone())
            .context("cannot start the keeper of history")?,
        None => history::Recorder::off(),
    };
    let way_out = egress::start(host.clone(), config.device).await;
    let surroundings = surroundings::Surroundings::default();
    let named = |(name, value): &(&str, String)| ((*name).to_owned(), value.clone());
    surroundings.set("egress", way_out.variables.iter().map(named).collect());
    if let Some(host) = &host {
        models::start(host.clone(), surroundings.clone());
        tokio::spawn(conversations::follow(host.clone(), events.clone()));
    }
    let defaults = exec::Defaults {
        workspace: config.workspace.clone(),
        user: config.default_user.clone(),
        limits: limits::Limits::take(),
        recorder: recorder.clone(),
        surroundings,
    };
    let commands = exec::Commands::start(defaults, config.reap).context("cannot watch children")?;
    let user = config.default_user.clone();
    let processes =
        runtime::Runtime::start(Arc::clone(&commands), events.clone(), &config.workspace, user);
    let files = files::Context::new(&config.workspace, config.default_user.clone())
        .recording(recorder.clone());
    let taking_back = history::Actions::new(recorder.clone(), processes.clone(), events.clone());
    let rescue = rescue::Rescue::new(taking_back, processes.clone());
    let app = Router::new()
        .merge(exec::router(commands.clone()))
        .merge(status::router(status::Context::new(config.workspace.clone(), commands.clone())))
        .merge(files::viewer(files.clone()))
        .merge(files::router(files))
        .merge(history::router(recorder.clone(), processes.clone(), events.clone()))
        .merge(rescue::router(rescue.clone()))
        .merge(guard::router())
        .merge(logs::router(processes.clone()))
        .merge(watch::router(watching))
        .merge(runtime::router(processes.clone()))
        .merge(ports::router())
        .merge(events::router(events))
        .merge(host::router(host))
        .merge(page::router())
        .merge(desktop::router(desktop::Context {
            workspace: config.workspace.clone(),
            user: config.default_user.clone(),
            recorder: recorder.clone(),
            runtime: processes.clone(),
        }));
    let front = (processes.clone(), upward, rescue);
    let app = server::app(app).layer(from_fn_with_state(front, runtime::front));
    tokio::spawn(memory::watch());
    config.door.set_nonblocking(true).context("door")?;
    let door = tokio::net::UnixListener::from_std(config.door).context("door")?;
    // A task like those it starts, so that these need not be carried to another thread.
    let mut accepting = tokio::spawn(server::accept(door, app));
    tokio::select! {
        ended = &mut accepting => match ended.context("the door")? {},
        _ = term.recv() => accepting.abort(),
    }
    tracing::info!("asked to stop");
    way_out.close();
    processes.close();
    stop::everything(&commands).await;
    recorder.finish().await;
    Ok(())
}
