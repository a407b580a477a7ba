//! `nacre-bench provider`: what a model call pays for going through the gateway, beside LiteLLM
//! and a bare proxy.
//!
//! ```text
//! load ─▶ gateway (token, budget, ledger) ─┬─▶ one model server
//!      ─▶ nginx (access log)              ─┤
//!      ─▶ LiteLLM's proxy                 ─┤
//!      ─▶ nothing                         ─┘
//! ```
//! Every box is a process on loopback, and the ways are measured in turns. What goes out of a
//! sandbox otherwise joins as further rows of the same report: see [`measure`].

mod litellm;
mod load;
mod ours;
mod server;
mod streams;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Subcommand, ValueEnum};

use crate::machine::Machine;
use crate::peers::nginx;
use crate::report::{Report, Row};
use crate::samples::Samples;

/// The processes that this program starts of itself.
#[derive(Subcommand)]
pub(crate) enum Process {
    Server,
    Gateway { server: String, data: PathBuf },
}

pub(crate) async fn be(process: &Process) -> Result<()> {
    match process {
        Process::Server => server::serve().await,
        Process::Gateway { server, data } => ours::serve(server, data).await,
    }
}

/// What can be measured by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    Calls,
    FirstToken,
    Streams,
}

#[derive(Debug, Clone, Copy)]
struct Rounds {
    calls: usize,
    seconds: u32,
    /// A peer that cannot keep up at our rate is asked at one that it can.
    peer_seconds: u32,
    first_tokens: usize,
    streams: usize,
    streaming: Duration,
}

const FULL: Rounds = Rounds {
    calls: 30,
    seconds: 2,
    peer_seconds: 10,
    first_tokens: 200,
    streams: 200,
    streaming: Duration::from_secs(60),
};
const QUICK: Rounds = Rounds {
    calls: 5,
    seconds: 2,
    peer_seconds: 3,
    first_tokens: 40,
    streams: 200,
    streaming: Duration::from_secs(8),
};

/// As the target has it.
const RATE: u32 = 500;
const PEER_RATE: u32 = 50;
const PERCENTS: [u32; 2] = [50, 99];
/// What a call may gain on the way, in the middle.
const ADDED_MS: f64 = 0.3;

/// Somewhere to send calls to.
#[derive(Debug, Clone)]
struct Way {
    address: String,
    path: &'static str,
    token: String,
}

/// Measures the parts in `only`, or all of them when there are none. Rows about other ways out of a
/// sandbox are to be added to `rows` here, below those about models.
pub(crate) async fn measure(
    home: &Path,
    litellm: Option<&Path>,
    quick: bool,
    only: &[Part],
) -> Result<Report> {
    let rounds = if quick { QUICK } else { FULL };
    let wanted = |part: Part| only.is_empty() || only.contains(&part);
    let (mut server, direct) = server::start().await?;
    let (mut gateway, ours) = ours::start(&direct.address, &home.join("data")).await?;
    let (proxy, address) = nginx::start(&direct.address, &home.join("nginx")).await?;
    let bare = Way { address, ..direct.clone() };
    let mut notes = vec![format!(
        "nginx is {}, and only passes calls on: what any process on the way adds",
        nginx::version().await?
    )];
    let mut peer = match litellm {
        Some(program) => {
            notes.push(format!(
                "LiteLLM is {}, asked {PEER_RATE} times a second",
                litellm::version(program).await?
            ));
            Some(litellm::start(program, &direct.address, &home.join("litellm")).await?)
        }
        None => {
            notes.push("LiteLLM was not there to be measured".to_owned());
            None
        }
    };
    let theirs = peer.as_ref().map(|(_, way)| way);
    let mut rows = Vec::new();
    if wanted(Part::Calls) {
        eprintln!("calls: {} rounds of {} s at {RATE}/s", rounds.calls, rounds.seconds);
        rows.extend(calls(&direct, &ours, &bare, theirs, rounds).await?);
    }
    if wanted(Part::FirstToken) {
        eprintln!("first tokens: {}", rounds.first_tokens);
        rows.extend(first_token(&direct, &ours, theirs, rounds.first_tokens).await?);
    }
    if wanted(Part::Streams) {
        eprintln!("streams: {} for {} s", rounds.streams, rounds.streaming.as_secs());
        let pid = gateway.id().context("the gateway has ended")?;
        rows.extend(streams::measure(&ours, pid, rounds.streams, rounds.streaming).await?);
    }
    if let Some((child, _)) = &mut peer {
        litellm::stop(child).await?;
    }
    nginx::stop(proxy).await?;
    gateway.kill().await?;
    server.kill().await?;
    Ok(Report { benchmark: "provider", machine: Machine::here(home), rows, notes })
}

/// What is added is the difference between a turn of direct calls and the turns that follow it. Turns are
/// short, so that a moment in which the machine is slow is in few of them, and the median of the differences
/// does not know it.
async fn calls(
    direct: &Way,
    ours: &Way,
    proxy: &Way,
    theirs: Option<&Way>,
    rounds: Rounds,
) -> Result<Vec<Row>> {
    let [mut alone, mut through, mut proxied, mut slow_alone, mut peer] =
        std::array::from_fn(|_| Samples::default());
    let [mut added, mut proxy_added] =
        std::array::from_fn(|_| PERCENTS.map(|_| Samples::default()));
    for round in 0..=rounds.calls {
        let first = load::run(direct, RATE, rounds.seconds).await.context("direct")?;
        let second = load::run(ours, RATE, rounds.seconds).await.context("through the gateway")?;
        let third = load::run(proxy, RATE, rounds.seconds).await.context("through nginx")?;
        // The first round warms all of them up.
        if round == 0 {
            continue;
        }
        for (all, turn) in [(&mut added, &second), (&mut proxy_added, &third)] {
            for (added, percent) in all.iter_mut().zip(PERCENTS) {
                let more = difference(turn.percentile(percent), first.percentile(percent));
                added.push(more.context("nothing was measured")?);
            }
        }
        alone.extend(first);
        through.extend(second);
        proxied.extend(third);
    }
    if let Some(theirs) = theirs {
        load::run(theirs, PEER_RATE, 2).await.context("LiteLLM")?;
        slow_alone.extend(load::run(direct, PEER_RATE, rounds.peer_seconds).await?);
        peer.extend(load::run(theirs, PEER_RATE, rounds.peer_seconds).await.context("LiteLLM")?);
    }
    let what = format!("a call at {RATE}/s");
    let row = |index: usize, target: f64| {
        let percent = PERCENTS[index];
        let theirs = difference(peer.percentile(percent), slow_alone.percentile(percent));
        let metric = format!("{what}: added to a direct one, p{percent}");
        Row::lower(metric, "ms", added[index].median())
            .peer("LiteLLM", theirs)
            .peer("nginx", proxy_added[index].median())
            .target(target)
            .samples(through.count())
    };
    let whole = |percent: u32| {
        Row::lower(format!("{what}: whole, p{percent}"), "ms", through.percentile(percent))
            .peer("direct", alone.percentile(percent))
            .peer("LiteLLM", peer.percentile(percent))
            .peer("nginx", proxied.percentile(percent))
            .samples(through.count())
    };
    let [p50, p99] = PERCENTS;
    Ok(vec![row(0, ADDED_MS), row(1, 2.0), whole(p50), whole(p99)])
}

async fn first_token(
    direct: &Way,
    ours: &Way,
    theirs: Option<&Way>,
    count: usize,
) -> Result<Vec<Row>> {
    let [mut bare, mut through, mut added, mut peer] = std::array::from_fn(|_| Samples::default());
    for _ in 0..count {
        let first = streams::first_token(direct).await?;
        let second = streams::first_token(ours).await?;
        added.push((second.as_secs_f64() - first.as_secs_f64()) * 1e3);
        bare.push_ms(first);
        through.push_ms(second);
        if let Some(theirs) = theirs {
            peer.push_ms(streams::first_token(theirs).await?);
        }
    }
    let row = |percent: u32| {
        Row::lower(
            format!("first token of a stream, p{percent}"),
            "ms",
            through.percentile(percent),
        )
        .peer("direct", bare.percentile(percent))
        .peer("LiteLLM", peer.percentile(percent))
        .samples(through.count())
    };
    // "Unchanged" is no more than what any call may gain.
    let added =
        Row::lower("first token of a stream: added to a direct one, p50", "ms", added.median())
            .target(ADDED_MS)
            .samples(through.count());
    Ok(vec![added, row(50), row(99)])
}

fn difference(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    Some(a? - b?)
}
