//! Bytes through the door: one large file, and many small ones as an archive.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use http_body_util::BodyExt;
use nacre_wire::client::{Client, WriteOptions};
use nacre_wire::files::Remove;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use super::{Rounds, bodies};
use crate::computer::Computer;
use crate::report::{Row, ratio};
use crate::samples::Samples;

const GIB: u64 = 1 << 30;
const FILES: usize = 10_000;

pub(super) async fn large(computer: &Computer, place: &str, rounds: Rounds) -> Result<Vec<Row>> {
    let sandbox = computer.sandbox().await?;
    let local = computer.data().join("peer-1gib");
    let [mut up, mut down, mut local_up, mut local_down] =
        std::array::from_fn(|_| Samples::default());
    for round in 0..=rounds.transfer {
        let sent = upload(&sandbox.client, "large").await?;
        let received = download(&sandbox.client, "large").await?;
        remove(&sandbox.client, "large").await?;
        let (written, read) = (dd("/dev/zero", &local).await?, dd(&local, "/dev/null").await?);
        std::fs::remove_file(&local)?;
        // The first turn brings the page cache and the sandbox to temperature.
        if round > 0 {
            up.push(speed(sent));
            down.push(speed(received));
            local_up.push(speed(written));
            local_down.push(speed(read));
        }
    }
    sandbox.destroy().await?;
    let row = |what: &str, ours: &Samples, local: &Samples| {
        Row::higher(format!("{what} of 1 GiB {place}"), "GB/s", ours.median())
            .peer("dd on the host", local.median())
            .samples(ours.count())
    };
    Ok(vec![row("upload", &up, &local_up), row("download", &down, &local_down)])
}

fn speed(took: Duration) -> f64 {
    GIB as f64 / 1e9 / took.as_secs_f64()
}

async fn upload(client: &Client, path: &str) -> Result<Duration> {
    let began = Instant::now();
    let stat = client.write_stream(path, bodies::repeated(GIB), &WriteOptions::default()).await?;
    ensure!(stat.size == GIB, "{} bytes arrived", stat.size);
    Ok(began.elapsed())
}

async fn download(client: &Client, path: &str) -> Result<Duration> {
    let began = Instant::now();
    let mut body = client.read_stream(path, None).await?;
    let mut received = 0;
    while let Some(frame) = body.frame().await {
        received += frame?.data_ref().map_or(0, |data| data.len() as u64);
    }
    ensure!(received == GIB, "{received} bytes came back");
    Ok(began.elapsed())
}

async fn remove(client: &Client, path: &str) -> Result<()> {
    let request = Remove { path: path.into(), recursive: true, if_match: None };
    client.remove(&request).await.with_context(|| format!("cannot remove {path}"))
}

async fn dd(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Duration> {
    let (from, to) = (from.as_ref().display(), to.as_ref().display());
    let mut command = Command::new("dd");
    command.args([
        format!("if={from}"),
        format!("of={to}"),
        "bs=1M".to_owned(),
        "count=1024".to_owned(),
    ]);
    let began = Instant::now();
    let status = command.stderr(Stdio::null()).status().await?;
    ensure!(status.success(), "dd ended with {status}");
    Ok(began.elapsed())
}

pub(super) async fn many(computer: &Computer, rounds: Rounds) -> Result<Vec<Row>> {
    let sandbox = computer.sandbox().await?;
    let tree = computer.data().join("peer-tree");
    let archive = computer.data().join("peer-tree.tar");
    plant(&tree)?;
    succeed(Command::new("tar").arg("-cf").arg(&archive).arg("-C").arg(&tree).arg(".")).await?;
    let [mut into, mut out, mut local_in, mut local_out] =
        std::array::from_fn(|_| Samples::default());
    for round in 0..=rounds.transfer {
        let unpacked = unpack(&sandbox.client, &archive).await?;
        let packed = pack(&sandbox.client).await?;
        remove(&sandbox.client, "many").await?;
        let (extracted, created) =
            (extract(&archive, &computer.data().join("peer-out")).await?, create(&tree).await?);
        if round > 0 {
            into.push_ms(unpacked);
            out.push_ms(packed);
            local_in.push_ms(extracted);
            local_out.push_ms(created);
        }
    }
    sandbox.destroy().await?;
    std::fs::remove_dir_all(&tree)?;
    Ok([("unpack 10k small files", &into, &local_in), ("pack 10k small files", &out, &local_out)]
        .into_iter()
        .flat_map(|(metric, ours, local)| {
            let row =
                Row::lower(metric, "ms", ours.median()).peer("tar on the host", local.median());
            let multiple = ratio(ours.median(), local.median());
            let multiple =
                Row::lower(format!("{metric}, as a multiple of tar"), "x", multiple).target(2.0);
            [row.samples(ours.count()), multiple.samples(ours.count())]
        })
        .collect())
}

fn plant(tree: &Path) -> Result<()> {
    for index in 0..FILES {
        let folder = tree.join(format!("folder-{}", index / 100));
        if index % 100 == 0 {
            std::fs::create_dir_all(&folder)?;
        }
        std::fs::write(folder.join(format!("file-{index}")), format!("{index}\n").repeat(100))?;
    }
    Ok(())
}

async fn unpack(client: &Client, archive: &Path) -> Result<Duration> {
    let began = Instant::now();
    let unpacked = client.unpack("many", bodies::file(archive).await?).await?;
    ensure!(unpacked.entries >= FILES as u64, "{} entries were unpacked", unpacked.entries);
    Ok(began.elapsed())
}

async fn pack(client: &Client) -> Result<Duration> {
    let began = Instant::now();
    let mut body = client.pack("many").await?;
    let mut received = 0;
    while let Some(frame) = body.frame().await {
        received += frame?.data_ref().map_or(0, |data| data.len());
    }
    ensure!(received > FILES * 1024, "{received} bytes of archive came back");
    Ok(began.elapsed())
}

async fn extract(archive: &Path, to: &Path) -> Result<Duration> {
    std::fs::create_dir_all(to)?;
    let began = Instant::now();
    succeed(Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(to)).await?;
    let took = began.elapsed();
    std::fs::remove_dir_all(to)?;
    Ok(took)
}

/// Through a pipe that is read: tar does not even open the files when it sees `/dev/null`.
async fn create(tree: &Path) -> Result<Duration> {
    let began = Instant::now();
    let mut command = Command::new("tar");
    command.arg("-cf").arg("-").arg("-C").arg(tree).arg(".").stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let mut output = child.stdout.take().context("tar has no output")?;
    let mut buffer = vec![0; 1 << 20];
    while output.read(&mut buffer).await? > 0 {}
    let status = child.wait().await?;
    ensure!(status.success(), "tar ended with {status}");
    Ok(began.elapsed())
}

async fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status().await?;
    ensure!(status.success(), "tar ended with {status}");
    Ok(())
}
