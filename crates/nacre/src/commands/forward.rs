//! `nacre forward`: ports of a sandbox as ports of this machine.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use nacre_wire::client::Client;
use nacre_wire::ports::parse;
use nacre_wire::relay::join;
use serde::Serialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};

use super::Context;
use crate::failure::{Failure, Result};
use crate::output;

/// After a failed accept (such as no file descriptors left), so that the loop does not spin.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug, Args)]
#[command(after_help = "\
Whatever connects to 127.0.0.1:LOCAL reaches 127.0.0.1:PORT in the sandbox: any protocol, as many
connections as wanted, until Ctrl-C. With NACRE_URL and NACRE_TOKEN the sandbox may be on another
machine. A LOCAL of 0 picks a free port.

Examples:
  nacre forward dev 3000
  nacre forward live 3000:8000 5432")]
pub(crate) struct Forward {
    /// The sandbox, by name or id
    sandbox: String,
    /// Ports in the sandbox, each with the port here when that is another one
    #[arg(value_name = "PORT[:LOCAL]", required = true)]
    ports: Vec<Wanted>,
}

/// `PORT` or `PORT:LOCAL`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wanted {
    port: u16,
    local: u16,
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "expected PORT or PORT:LOCAL, such as 3000 or 3000:8000".to_owned();
        let (port, local) = text.split_once(':').map_or((text, None), |(a, b)| (a, Some(b)));
        let port = parse(port).ok_or_else(wrong)?;
        let local = match local {
            None => port,
            Some("0") => 0,
            Some(local) => parse(local).ok_or_else(wrong)?,
        };
        Ok(Self { port, local })
    }
}

/// A port that is forwarded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Forwarded {
    sandbox: String,
    port: u16,
    local: SocketAddr,
}

impl fmt::Display for Forwarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {} port {}", self.local, self.sandbox, self.port)
    }
}

pub(crate) async fn run(command: Forward, context: &Context) -> Result<ExitCode> {
    let door = context.gateway().await?.door(&command.sandbox);
    // That the sandbox is there and runs is said now, and not at the first connection.
    door.ports().await?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|e| Failure::io("signals", &e))?;
    let mut terminate = signal(SignalKind::terminate()).map_err(|e| Failure::io("signals", &e))?;
    let mut serving = FuturesUnordered::new();
    let mut all = Vec::new();
    for wanted in command.ports {
        let listener = listen(wanted).await?;
        let local = listener.local_addr().map_err(|error| Failure::io("the port", &error))?;
        all.push(Forwarded { sandbox: command.sandbox.clone(), port: wanted.port, local });
        serving.push(serve(listener, &door, wanted.port));
    }
    report(&all, context)?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        Some(never) = serving.next() => match never {},
    }
    Ok(ExitCode::SUCCESS)
}

fn report(all: &[Forwarded], context: &Context) -> Result<()> {
    if context.json {
        return output::print_json(&all);
    }
    let lines: String = all.iter().map(|forwarded| format!("{forwarded}\n")).collect();
    output::print(&lines)
}

async fn listen(wanted: Wanted) -> Result<TcpListener> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, wanted.local));
    TcpListener::bind(address).await.map_err(|error| {
        let failure = Failure::io(address, &error);
        match error.kind() {
            io::ErrorKind::AddrInUse => failure.hint(format!(
                "another program has this port; choose one with {}:LOCAL",
                wanted.port
            )),
            _ => failure,
        }
    })
}

/// All of it in the one task of this command, which has one thread.
async fn serve(listener: TcpListener, door: &Client, port: u16) -> Infallible {
    let mut connections = FuturesUnordered::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => connections.push(connection(stream, door, port)),
                Err(error) => {
                    eprintln!("warning: a connection was not taken: {error}");
                    tokio::time::sleep(PAUSE).await;
                }
            },
            Some(()) = connections.next() => {}
        }
    }
}

async fn connection(stream: TcpStream, door: &Client, port: u16) {
    let _ = stream.set_nodelay(true);
    match door.open_port(port).await {
        Ok(far) => {
            join(stream, far.stream, far.early).await;
        }
        Err(error) => {
            // Whoever connected sees a connection that fails, as with nothing behind the port itself.
            let _ = stream.set_zero_linger();
            eprintln!("warning: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_here_is_the_same_unless_it_is_named() {
        let parse = |text: &str| text.parse::<Wanted>().map(|wanted| (wanted.port, wanted.local));
        assert_eq!(parse("3000"), Ok((3000, 3000)));
        assert_eq!(parse("3000:8000"), Ok((3000, 8000)));
        assert_eq!(parse("3000:0"), Ok((3000, 0)));
        for bad in ["", "0", "x", "3000:", ":3000", "3000:x", "70000", "1:2:3", "3000:08"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
