//! A command in a sandbox that already runs.

use std::time::Instant;

use anyhow::Result;

use super::Rounds;
use super::start::{rest, settle};
use crate::computer::Computer;
use crate::peers::Peers;
use crate::report::Row;
use crate::samples::Samples;

const WARM_UP: usize = 20;

pub(super) async fn hot(computer: &Computer, peers: &Peers, rounds: Rounds) -> Result<Vec<Row>> {
    // Else the blanks that follow from the crowd before would be made meanwhile.
    let sandbox = computer.sandbox().await?;
    computer.stocked().await?;
    settle().await;
    let [mut ours, mut runc, mut docker] = std::array::from_fn(|_| Samples::default());
    let every = rounds.exec.div_ceil(rounds.slow_peer * 3);
    for round in 0..rounds.exec + WARM_UP {
        let began = Instant::now();
        sandbox.run(&["true"]).await?;
        let took = began.elapsed();
        if round < WARM_UP {
            continue;
        }
        ours.push_ms(took);
        if round % every == 0 {
            if let Some(peer) = &peers.runc {
                runc.push_ms(peer.exec().await?);
            }
            if let Some(peer) = &peers.docker {
                docker.push_ms(peer.exec().await?);
            }
            // A peer's daemon and the kernel tidy up after its command; that is not our next one's.
            rest().await;
        }
    }
    sandbox.destroy().await?;
    let row = |percent: u32, target: f64| {
        Row::lower(format!("hot exec of true, p{percent}"), "ms", ours.percentile(percent))
            .peer("runc exec", runc.percentile(percent))
            .peer("docker exec", docker.percentile(percent))
            .target(target)
            .samples(ours.count())
    };
    Ok(vec![row(50, 2.0), row(99, 8.0)])
}
