//! nginx as people set it up in front of one application: keep-alive to it, and an access log.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

/// Bodies are streamed, as ours are: with its defaults nginx would first write an upload to disk.
const CONFIG: &str = "
daemon off;
user root;
worker_processes auto;
error_log HOME/error.log;
pid HOME/nginx.pid;
events { worker_connections 8192; }
http {
    access_log HOME/access.log combined;
    client_body_temp_path HOME/body;
    proxy_temp_path HOME/proxy;
    fastcgi_temp_path HOME/fastcgi;
    uwsgi_temp_path HOME/uwsgi;
    scgi_temp_path HOME/scgi;
    client_max_body_size 0;
    keepalive_requests 100000000;
    tcp_nodelay on;
    upstream app { server UPSTREAM; keepalive 128; keepalive_requests 100000000; }
    server {
        listen ADDRESS;
        location / {
            proxy_pass http://app;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-For $remote_addr;
            proxy_set_header X-Forwarded-Host $http_host;
            proxy_set_header X-Forwarded-Proto $scheme;
            proxy_request_buffering off;
            proxy_buffers 16 64k;
            proxy_busy_buffers_size 256k;
            client_body_buffer_size 256k;
            proxy_max_temp_file_size 0;
        }
    }
}
";

/// In front of `upstream` as its configuration names one. Returns the address that it listens on.
pub(crate) async fn start(upstream: &str, home: &Path) -> Result<(Child, String)> {
    std::fs::create_dir_all(home)?;
    let address = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
    let config = CONFIG
        .replace("HOME", &home.display().to_string())
        .replace("UPSTREAM", upstream)
        .replace("ADDRESS", &address);
    let file = home.join("nginx.conf");
    std::fs::write(&file, config)?;
    let child = Command::new("nginx")
        .arg("-c")
        .arg(&file)
        .arg("-e")
        .arg(home.join("error.log"))
        .kill_on_drop(true)
        .spawn()
        .context("cannot run nginx")?;
    for _ in 0..500 {
        if TcpStream::connect(&address).await.is_ok() {
            return Ok((child, address));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    bail!("nginx does not answer: see {}", home.join("error.log").display())
}

/// Asks it to, because workers outlive a master that is killed.
pub(crate) async fn stop(mut child: Child) -> Result<()> {
    let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
    kill_process(pid.context("nginx has ended")?, Signal::TERM)?;
    child.wait().await?;
    Ok(())
}

pub(crate) async fn version() -> Result<String> {
    let output = Command::new("nginx").arg("-v").output().await?;
    let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Ok(text.rsplit('/').next().unwrap_or_default().to_owned())
}
