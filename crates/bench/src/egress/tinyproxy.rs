//! tinyproxy as Debian ships it, on a free port.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

const CONFIG: &str = "\
Port PORT
Listen 127.0.0.1
Timeout 600
MaxClients 200
Allow 127.0.0.1
LogLevel Error
LogFile \"HOME/log\"
PidFile \"HOME/pid\"
";

pub(super) struct Tinyproxy {
    child: Child,
    pub(super) address: String,
}

pub(super) async fn version() -> Result<String> {
    let said =
        Command::new("tinyproxy").arg("-v").output().await.context("cannot run tinyproxy")?;
    let said = String::from_utf8(said.stdout)?;
    Ok(said.trim().trim_start_matches("tinyproxy ").to_owned())
}

pub(super) async fn start(home: &Path) -> Result<Tinyproxy> {
    std::fs::create_dir_all(home)?;
    let address = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let config = CONFIG
        .replace("PORT", &address.port().to_string())
        .replace("HOME", &home.display().to_string());
    let file = home.join("tinyproxy.conf");
    std::fs::write(&file, config)?;
    let child = Command::new("tinyproxy").arg("-d").arg("-c").arg(&file).kill_on_drop(true).spawn();
    let child = child.context("cannot run tinyproxy")?;
    for _ in 0..500 {
        if TcpStream::connect(address).await.is_ok() {
            return Ok(Tinyproxy { child, address: format!("http://{address}") });
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    bail!("tinyproxy does not answer at {address}")
}

impl Tinyproxy {
    pub(super) async fn stop(mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }
}
