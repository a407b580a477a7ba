//! One-shot runs, as somebody at a shell has them.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::io::{AsyncBufReadExt, BufReader};

use super::Rounds;
use super::computer::Computer;
use super::model::{Clock, LOOPS};
use crate::report::Row;
use crate::samples::Samples;

/// What they have to reach.
const FIRST_LINE_MS: f64 = 150.0;
const STEP_MS: f64 = 5.0;
/// The first ones find nothing ready.
const WARM_UP: usize = 2;

impl Computer<'_> {
    /// From the command to the first line that its agent wrote.
    async fn run(&self, spec: &Path, steps: usize) -> Result<Duration> {
        let spec = spec.to_str().context("the path of the task")?;
        let steps = steps.to_string();
        let args = ["run", spec, "--json", "--model", "bench/m", "--max-steps", &steps];
        let mut command = self.command(&args);
        let began = Instant::now();
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("no output")?).lines();
        let mut first = None;
        while let Some(line) = lines.next_line().await? {
            if first.is_none() && line.contains("\"type\":\"agent\"") {
                first = Some(began.elapsed());
            }
        }
        child.wait().await?;
        first.context("the agent said nothing")
    }
}

pub(super) async fn measure(
    computer: &Computer<'_>,
    home: &Path,
    clock: &Clock,
    rounds: Rounds,
) -> Result<Vec<Row>> {
    let (short, long) = (home.join("short.txt"), home.join("long.txt"));
    std::fs::write(&short, "say something")?;
    std::fs::write(&long, LOOPS)?;
    eprintln!("runs: {}, then one of {} steps", rounds.runs, rounds.steps);
    let mut first_line = Samples::default();
    for round in 0..WARM_UP + rounds.runs {
        let took = computer.run(&short, 1).await?;
        if round >= WARM_UP {
            first_line.push_ms(took);
        }
    }
    clock.take();
    computer.run(&long, rounds.steps).await?;
    let steps = clock.take();
    let line = |percent: u32| {
        let metric = format!("nacre run: command to first streamed line, p{percent}");
        Row::lower(metric, "ms", first_line.percentile(percent)).samples(first_line.count())
    };
    let step = |percent: u32| {
        let metric = format!("a step inside: added to the model's time, p{percent}");
        Row::lower(metric, "ms", steps.percentile(percent)).samples(steps.count())
    };
    Ok(vec![line(50).target(FIRST_LINE_MS), line(99), step(50).target(STEP_MS), step(99)])
}
