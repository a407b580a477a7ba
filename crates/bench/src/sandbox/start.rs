//! From nothing to the result of the first command.

use std::time::{Duration, Instant};

use anyhow::Result;
use futures_util::future::try_join_all;

use super::{Computers, Rounds};
use crate::computer::{Computer, Sandbox};
use crate::peers::Peers;
use crate::report::{Row, ratio};
use crate::samples::Samples;

pub(super) const CROWD: usize = 50;
const WARM_UP: usize = 3;

async fn first_result(computer: &Computer) -> Result<(Sandbox, Duration)> {
    let began = Instant::now();
    let sandbox = computer.sandbox().await?;
    sandbox.run(&["true"]).await?;
    Ok((sandbox, began.elapsed()))
}

/// What is left of one turn (clean-up, the next seed) stays out of the following turn's number.
pub(super) async fn rest() {
    tokio::time::sleep(Duration::from_millis(30)).await;
}

async fn one(computer: &Computer) -> Result<Duration> {
    let (sandbox, took) = first_result(computer).await?;
    sandbox.destroy().await?;
    rest().await;
    Ok(took)
}

/// Ours and bwrap in turns; runc and docker, which are slower by far, on every n-th turn.
pub(super) async fn one_by_one(
    computers: &Computers,
    peers: &Peers,
    rounds: Rounds,
) -> Result<Vec<Row>> {
    let [mut ours, mut bare, mut bwrap, mut runc, mut docker] =
        std::array::from_fn(|_| Samples::default());
    let every = rounds.start.div_ceil(rounds.slow_peer);
    for _ in 0..WARM_UP {
        one(&computers.parked).await?;
        one(&computers.bare).await?;
    }
    for round in 0..rounds.start {
        ours.push_ms(one(&computers.parked).await?);
        bare.push_ms(one(&computers.bare).await?);
        if let Some(peer) = &peers.bwrap {
            bwrap.push_ms(peer.start().await?);
        }
        if let Some(peer) = peers.runc.as_ref().filter(|_| round % every == 0) {
            runc.push_ms(peer.start().await?);
            rest().await;
        }
        if let Some(peer) = peers.docker.as_ref().filter(|_| round % every == 0) {
            docker.push_ms(peer.start().await?);
            rest().await;
        }
    }
    let row = |metric: &str, ours: &Samples| {
        Row::lower(metric, "ms", ours.median())
            .peer("bwrap", bwrap.median())
            .peer("runc run", runc.median())
            .peer("docker run", docker.median())
            .samples(ours.count())
    };
    let multiple = |metric: &str, ours: &Samples| {
        Row::lower(metric, "x", ratio(ours.median(), bwrap.median())).samples(ours.count())
    };
    Ok(vec![
        row("create + start + first exec, p50", &ours).target(15.0),
        multiple("the same, as a multiple of bwrap's bare start", &ours).target(3.0),
        row("create + start + first exec with no seed parked, p50", &bare),
        multiple("the same, as a multiple of bwrap's bare start, no seed parked", &bare),
    ])
}

/// The kernel takes namespaces apart in the background; a crowd, or what is measured after one,
/// should not pay for it.
pub(super) async fn settle() {
    tokio::time::sleep(Duration::from_secs(2)).await;
}

/// All asked for at the same moment; each is timed from there.
async fn crowd(computer: &Computer) -> Result<Samples> {
    let crowd = try_join_all((0..CROWD).map(|_| first_result(computer))).await?;
    let took = crowd.iter().map(|(_, took)| *took).collect();
    try_join_all(crowd.into_iter().map(|(sandbox, _)| sandbox.destroy())).await?;
    Ok(took)
}

/// The first crowd teaches the driver what to keep ready; the others find it so.
pub(super) async fn at_once(
    computer: &Computer,
    peers: &Peers,
    rounds: Rounds,
) -> Result<Vec<Row>> {
    settle().await;
    let first = crowd(computer).await?;
    let (mut ours, mut bwrap) = (Samples::default(), Samples::default());
    for _ in 0..rounds.crowd {
        computer.stocked().await?;
        settle().await;
        ours.extend(crowd(computer).await?);
        if let Some(peer) = &peers.bwrap {
            settle().await;
            bwrap.extend(
                try_join_all((0..CROWD).map(|_| peer.start())).await?.into_iter().collect(),
            );
        }
    }
    let row = |which: &str, ours: &Samples| {
        Row::lower(format!("create + start + first exec, {which}, p95"), "ms", ours.percentile(95))
            .peer("bwrap", bwrap.percentile(95))
            .samples(ours.count())
    };
    Ok(vec![
        row(&format!("{CROWD} at once after {CROWD} before"), &ours).target(150.0),
        row(&format!("the first {CROWD} at once"), &first),
    ])
}
