//! `nacre-bench egress`: the way out of a sandbox, beside tinyproxy.
//!
//! ```text
//! curl in a sandbox ─▶ proxy or device ─▶ nacre up ─┐
//! curl ─▶ tinyproxy ────────────────────────────────┼─▶ server on loopback
//! curl ─────────────────────────────────────────────┘
//! ```
//! The same curl fetches the same bytes from the same server by every way, in turns.

mod server;
mod tinyproxy;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

use crate::machine::Machine;
use crate::report::{Report, Row, ratio};
use crate::samples::Samples;

/// Leads to this machine, for those who read the hosts file of this benchmark.
const NAME: &str = "bench.example.com";
const TARGET: f64 = 0.9;

#[derive(Debug, Clone, Copy)]
struct Rounds {
    bulk: usize,
    connects: usize,
}

const FULL: Rounds = Rounds { bulk: 7, connects: 200 };
const QUICK: Rounds = Rounds { bulk: 3, connects: 40 };

pub(crate) async fn measure(home: &Path, nacre: &Path, quick: bool) -> Result<Report> {
    let mut notes = vec![format!("tinyproxy is {}", tinyproxy::version().await?)];
    let rows = rows(home, nacre, quick, &mut notes).await?;
    Ok(Report { benchmark: "egress", machine: Machine::here(home), rows, notes })
}

/// What is measured, for whoever puts it beside other things. It needs mounts of its own.
pub(crate) async fn rows(
    home: &Path,
    nacre: &Path,
    quick: bool,
    notes: &mut Vec<String>,
) -> Result<Vec<Row>> {
    let rounds = if quick { QUICK } else { FULL };
    let port = server::start().await?;
    let peer = tinyproxy::start(&home.join("tinyproxy")).await?;
    let named = name_this_machine(home);
    if let Err(error) = &named {
        notes.push(format!("without the device: {error:#}"));
    }
    let computer = Ours { nacre: nacre.to_owned(), data: home.join("computer") };
    computer.run(&["up", "--detach", "--listen", "127.0.0.1:0"]).await?;
    let rows = compare(&computer, &peer, port, named.is_ok(), rounds).await;
    computer.run(&["down"]).await?;
    peer.stop().await?;
    rows
}

/// By its mount alone: the file of the machine stays as it is.
fn name_this_machine(home: &Path) -> Result<()> {
    let hosts = home.join("hosts");
    std::fs::write(&hosts, format!("127.0.0.1 localhost\n127.0.0.1 {NAME}\n"))?;
    rustix::mount::mount_bind(&hosts, "/etc/hosts").context("cannot give a name")
}

struct Ours {
    nacre: PathBuf,
    data: PathBuf,
}

impl Ours {
    async fn run(&self, args: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.nacre);
        command.args(args).env("NACRE_DATA", &self.data).env("NACRE_DESKTOP_SEED", "false");
        said(&mut command).await
    }

    async fn curl(&self, args: &[&str]) -> Result<String> {
        let words: Vec<_> = ["exec", "--", "curl"].iter().chain(args).copied().collect();
        self.run(&words).await
    }
}

async fn said(command: &mut Command) -> Result<String> {
    let output = command.stdin(std::process::Stdio::null()).output().await?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{:?}: {}", command.as_std(), errors.trim());
    Ok(String::from_utf8(output.stdout)?)
}

async fn compare(
    ours: &Ours,
    peer: &tinyproxy::Tinyproxy,
    port: u16,
    named: bool,
    rounds: Rounds,
) -> Result<Vec<Row>> {
    for target in [format!("127.0.0.1:{port}"), format!("localhost:{port}")] {
        ours.run(&["egress", "allow", &target, "--private"]).await?;
    }
    let local = format!("http://127.0.0.1:{port}");
    let device = format!("http://{NAME}:{port}");
    let proxied = ["--noproxy", ""];
    let plain = ["--noproxy", "*"];
    let through = ["--proxy", peer.address.as_str()];
    let [mut door, mut tun, mut theirs, mut direct] = std::array::from_fn(|_| Samples::default());
    for round in 0..rounds.bulk {
        eprintln!("bulk: {} of {}", round + 1, rounds.bulk);
        let large = format!("{local}/large");
        door.push(speed(&ours.curl(&[&FETCH[..], &proxied, &[&large]].concat()).await?)?);
        theirs.push(speed(&curl(&[&FETCH[..], &through, &[&large]].concat()).await?)?);
        direct.push(speed(&curl(&[&FETCH[..], &plain, &[&large]].concat()).await?)?);
        if named {
            let large = format!("{device}/large");
            tun.push(speed(&ours.curl(&[&FETCH[..], &plain, &[&large]].concat()).await?)?);
        }
    }
    eprintln!("connects: {}", rounds.connects);
    // One request on a connection of its own each, all by one curl: its start is nobody's time.
    let small = format!("{local}/small?[1-{}]", rounds.connects);
    let each = ["-sS", "-w", "%{time_total}\n", "-o", "/dev/null", "-H", "connection: close"];
    let door_ms = times(&ours.curl(&[&each[..], &proxied, &[&small]].concat()).await?)?;
    let their_ms = times(&curl(&[&each[..], &through, &[&small]].concat()).await?)?;
    let direct_ms = times(&curl(&[&each[..], &plain, &[&small]].concat()).await?)?;
    let count = rounds.bulk;
    Ok(vec![
        Row::higher("egress, download through the proxy", "MB/s", door.median())
            .peer("tinyproxy", theirs.median())
            .peer("direct", direct.median())
            .samples(count),
        Row::higher(
            "egress, download beside tinyproxy",
            "x",
            ratio(door.median(), theirs.median()),
        )
        .target(TARGET)
        .samples(count),
        Row::higher("egress, download through the device", "MB/s", tun.median())
            .peer("tinyproxy", theirs.median())
            .samples(tun.count()),
        Row::lower("egress, a request on a new connection, p50", "ms", door_ms.median())
            .peer("tinyproxy", their_ms.median())
            .peer("direct", direct_ms.median())
            .samples(door_ms.count()),
    ])
}

const FETCH: [&str; 5] = ["-sS", "-o", "/dev/null", "-w", "%{speed_download} %{size_download}"];

async fn curl(args: &[&str]) -> Result<String> {
    said(Command::new("curl").args(args)).await
}

/// MB/s, when all of it came.
fn speed(said: &str) -> Result<f64> {
    let (speed, size) = said.trim().split_once(' ').context("curl said nothing")?;
    ensure!(size.parse::<u64>()? == server::LARGE, "{size} bytes came");
    Ok(speed.parse::<f64>()? / 1e6)
}

fn times(said: &str) -> Result<Samples> {
    let mut samples = Samples::default();
    for line in said.lines() {
        samples.push(line.trim().parse::<f64>()? * 1e3);
    }
    Ok(samples)
}
