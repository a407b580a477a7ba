//! `nacre-bench gateway`: the way from a browser to a sandbox, beside nginx.
//!
//! ```text
//! wrk, sockets, 1 GiB ─▶ gateway (session, log) ─┬─▶ unix socket ─▶ upstream
//!                     ─▶ nginx (log)            ─┘
//! ```
//! Every box is a process. The gateway is the library that `nacre up` runs, with a driver whose
//! sandboxes are all the one upstream; nginx proxies to the same socket.

mod bulk;
mod clone;
mod ours;
mod session;
mod sockets;
mod swaps;
mod upstream;
mod wrk;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::{Subcommand, ValueEnum};
use tokio::process::{Child, Command};

use crate::machine::Machine;
use crate::peers::nginx;
use crate::report::{Report, Row, ratio};
use crate::samples::Samples;
use ours::Guard;

/// The processes that this program starts of itself.
#[derive(Subcommand)]
pub(crate) enum Process {
    Upstream {
        socket: PathBuf,
    },
    Gateway {
        socket: PathBuf,
        data: PathBuf,
        #[arg(long)]
        guard: ours::Guard,
    },
}

pub(crate) async fn be(process: &Process) -> Result<()> {
    match process {
        Process::Upstream { socket } => upstream::serve(socket).await,
        Process::Gateway { socket, data, guard } => ours::serve(socket, data, *guard).await,
    }
}

/// What can be measured by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    Session,
    Sockets,
    Small,
    Bulk,
    Swaps,
    Memory,
    Copy,
}

#[derive(Debug, Clone, Copy)]
struct Rounds {
    session: usize,
    small: usize,
    seconds: u32,
    bulk: usize,
    sockets: usize,
    swaps: usize,
    /// Files in the workspace that is copied, and how often.
    cloned: usize,
    clones: usize,
}

const FULL: Rounds = Rounds {
    session: 100,
    small: 5,
    seconds: 6,
    bulk: 25,
    sockets: 2000,
    swaps: 100,
    cloned: 100_000,
    clones: 3,
};
const QUICK: Rounds = Rounds {
    session: 20,
    small: 2,
    seconds: 2,
    bulk: 2,
    sockets: 500,
    swaps: 20,
    cloned: 5000,
    clones: 1,
};

/// What is measured, as shipped.
#[derive(Clone, Copy)]
pub(crate) struct Binaries<'a> {
    pub(crate) guest: &'a Path,
    pub(crate) nacre: &'a Path,
}

/// Where a proxy listens, and what makes a request one of the owner's.
#[derive(Debug, Clone)]
struct Proxy {
    address: String,
    cookie: Option<String>,
}

/// Measures the parts in `only`, or all of them when there are none.
pub(crate) async fn measure(
    home: &Path,
    binaries: Binaries<'_>,
    quick: bool,
    only: &[Part],
) -> Result<Report> {
    let rounds = if quick { QUICK } else { FULL };
    raise_open_files();
    let wanted = |part: Part| only.is_empty() || only.contains(&part);
    let mut notes = vec![format!("nginx is {}", nginx::version().await?)];
    let mut rows = side_by_side(home, rounds, &wanted).await?;
    if wanted(Part::Session) {
        rows.push(session::alone(home).await?);
    }
    if wanted(Part::Memory) {
        rows.push(idle_memory(binaries.nacre, home).await?);
    }
    if wanted(Part::Copy) {
        let Rounds { cloned, clones, .. } = rounds;
        eprintln!("copy: {cloned} files, {clones} times");
        let copied = clone::measure(binaries.guest, cloned, clones, &mut notes).await;
        rows.extend(copied.context("copy of live")?);
    }
    Ok(Report { benchmark: "gateway", machine: Machine::here(home), rows, notes })
}

/// What needs the gateway and its peer before the one upstream.
async fn side_by_side(
    home: &Path,
    rounds: Rounds,
    wanted: &impl Fn(Part) -> bool,
) -> Result<Vec<Row>> {
    let socket = home.join("upstream.sock");
    let mut upstream = ourselves("process", &["upstream"], &[&socket])?.spawn()?;
    upstream::until_there(&socket).await?;
    let data = home.join("data");
    let (mut gateway, ours) = ours::start(&socket, &data, Guard::Session).await?;
    let upstream_socket = format!("unix:{}", socket.display());
    let (nginx, address) = nginx::start(&upstream_socket, &home.join("nginx")).await?;
    let theirs = Proxy { address, cookie: None };
    let mut rows = rows(&gateway, &data, &Arc::new(ours.clone()), &theirs, rounds, wanted).await?;
    if wanted(Part::Session) {
        eprintln!("session: {} rounds", rounds.session);
        let unguarded = home.join("unguarded");
        let (mut other, without) = ours::start(&socket, &unguarded, Guard::Nobody).await?;
        rows.extend(session::added(&ours, &without, rounds.session).await.context("session")?);
        other.kill().await?;
    }
    nginx::stop(nginx).await?;
    gateway.kill().await?;
    upstream.kill().await?;
    Ok(rows)
}

async fn rows(
    gateway: &Child,
    data: &Path,
    ours: &Arc<Proxy>,
    theirs: &Proxy,
    rounds: Rounds,
    wanted: &impl Fn(Part) -> bool,
) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    // First, before the gateway's memory has grown with anything else.
    if wanted(Part::Sockets) {
        eprintln!("sockets: {}", rounds.sockets);
        let pid = gateway.id().context("the gateway has ended")?;
        rows.push(sockets::idle(ours, pid, rounds.sockets).await?);
    }
    if wanted(Part::Small) {
        eprintln!("small responses: {} rounds of {} s", rounds.small, rounds.seconds);
        rows.extend(small(ours, theirs, rounds).await?);
    }
    if wanted(Part::Bulk) {
        eprintln!("1 GiB: {} rounds", rounds.bulk);
        rows.extend(large(ours, theirs, rounds).await?);
    }
    if wanted(Part::Swaps) {
        eprintln!("swaps: {}", rounds.swaps);
        rows.extend(swaps::measure(ours, data, rounds.swaps).await.context("swaps")?);
    }
    Ok(rows)
}

async fn small(ours: &Proxy, theirs: &Proxy, rounds: Rounds) -> Result<Vec<Row>> {
    let [mut rate, mut tail, mut their_rate, mut their_tail] =
        std::array::from_fn(|_| Samples::default());
    for round in 0..=rounds.small {
        let first = wrk::run(ours, rounds.seconds).await?;
        let second = wrk::run(theirs, rounds.seconds).await?;
        // The first round warms both up.
        if round > 0 {
            rate.push(first.per_second);
            tail.push(first.p99_ms);
            their_rate.push(second.per_second);
            their_tail.push(second.p99_ms);
        }
    }
    let (ours_is, theirs_is) = (rate.median(), their_rate.median());
    let (our_tail, their_tail) = (tail.median(), their_tail.median());
    let what = "small responses, 64 connections, session and log";
    Ok(vec![
        Row::higher(format!("{what}: requests"), "/s", ours_is)
            .peer("nginx", theirs_is)
            .samples(rate.count()),
        Row::higher(format!("{what}: requests, times nginx"), "x", ratio(ours_is, theirs_is))
            .target(1.0)
            .samples(rate.count()),
        Row::lower(format!("{what}: p99"), "ms", our_tail)
            .peer("nginx", their_tail)
            .samples(tail.count()),
        Row::lower(format!("{what}: p99, times nginx"), "x", ratio(our_tail, their_tail))
            .target(1.2)
            .samples(tail.count()),
    ])
}

async fn large(ours: &Proxy, theirs: &Proxy, rounds: Rounds) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for way in [bulk::Way::Down, bulk::Way::Up] {
        let [mut rate, mut their_rate, mut times] = std::array::from_fn(|_| Samples::default());
        for round in 0..=rounds.bulk {
            let (first, second) = (bulk::run(ours, way).await?, bulk::run(theirs, way).await?);
            if round > 0 {
                rate.push(first);
                their_rate.push(second);
                times.push(first / second);
            }
        }
        rows.push(
            Row::higher(format!("1 GiB {}", way.word()), "GB/s", rate.median())
                .peer("nginx", their_rate.median())
                .samples(rate.count()),
        );
        // Of one after the other: the machine is faster in some moments than in others.
        let metric = format!("1 GiB {}, times nginx", way.word());
        rows.push(Row::higher(metric, "x", times.median()).target(1.0).samples(times.count()));
    }
    Ok(rows)
}

/// Of `nacre up` itself, with its live sandbox running.
async fn idle_memory(nacre: &Path, home: &Path) -> Result<Row> {
    let (child, _) = crate::sandbox::up::begin(nacre, &home.join("up")).await?;
    let pid = child.id().context("nacre up has ended")?;
    let resident = resident_kib(pid)? / 1024.0;
    crate::sandbox::up::end(child, nacre, &home.join("up")).await?;
    Ok(Row::lower("nacre up, idle, resident", "MB", Some(resident)).target(40.0))
}

pub(crate) fn resident_kib(pid: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.context("no VmRSS")?.trim().trim_end_matches(" kB").parse()?;
    Ok(kib)
}

/// `which` is the hidden command of a benchmark that starts processes.
pub(crate) fn ourselves(which: &str, words: &[&str], paths: &[&Path]) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    // The paths of the binaries are not used by a process.
    command.args(["--guest", "-", "--nacre", "-", which]).args(words).args(paths);
    command.stdin(Stdio::null()).kill_on_drop(true);
    Ok(command)
}

/// Thousands of sockets at once; children inherit it.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let now = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: now.maximum, maximum: now.maximum });
}

pub(crate) use ours::OneUpstream;

type Running = (Child, Proxy);
