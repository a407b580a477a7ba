//! The way out of the sandbox, as programs in it see it: a proxy on loopback.
//!
//! ```text
//!  program ── HTTP or SOCKS5 ──▶ 127.0.0.1:8003 ── Client::reach ──▶ host ──▶ the internet
//!                                     ▲
//!  program ── any address ─▶ tun ─▶ nacre-guest net: the same, for programs that know no proxy
//! ```
//! Nothing is decided here: the host judges every connection, and what it refuses comes back in its
//! words. The proxy has a thread of its own, which starts with the first connection, so that no
//! transfer stands in the way of the door, and a sandbox that never goes out pays one socket. What
//! reads packets is another process ([`tun`]) without a descriptor of the host.

mod http;
mod reply;
mod socks;
pub mod tun;
mod variables;

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use nacre_wire::client::Client;
use nacre_wire::egress::PROXY_PORT;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, LocalSet};
use tokio::time::timeout;

pub use variables::{Variables, variables};

/// Programs of one sandbox that may be connected at a time; the next wait to be accepted.
const MOST: usize = 4096;
/// For a request to be asked.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(50);
const STACK: usize = 1024 * 1024;

/// What was started, and what to tell programs.
#[derive(Debug, Default)]
pub struct WayOut {
    pub variables: Variables,
    packets: Option<AbortHandle>,
}

impl WayOut {
    /// Takes no more packets: a process that reads them would be one more to end.
    pub fn close(&self) {
        if let Some(packets) = &self.packets {
            packets.abort();
        }
    }
}

/// Listens, if there is a host to ask and the port is free. `device` is a tun device that has all
/// routes of the sandbox.
pub async fn start(host: Option<Client>, device: Option<OwnedFd>) -> WayOut {
    let Some(host) = host else { return WayOut::default() };
    let listener = match TcpListener::bind((Ipv4Addr::LOCALHOST, PROXY_PORT)).await {
        Ok(listener) => listener,
        Err(error) => {
            tracing::warn!(%error, port = PROXY_PORT, "there is no proxy in this sandbox");
            return WayOut::default();
        }
    };
    let variables = variables(device.is_some());
    let packets = device.map(|device| tokio::spawn(tun::keep(device)).abort_handle());
    tokio::spawn(first(listener, host));
    WayOut { variables, packets }
}

/// Waits for the first program that wants out, and starts the thread with it.
async fn first(mut listener: TcpListener, host: Client) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (Ok(std), Ok(stream)) = (listener.into_std(), stream.into_std()) else { return };
        // Kept, so that the next try has one when there is no memory for a thread now.
        let Ok(kept) = std.try_clone() else { return };
        let host = host.clone();
        let started = std::thread::Builder::new()
            .name("egress".to_owned())
            .stack_size(STACK)
            .spawn(move || run(std, stream, host));
        match started {
            Ok(_) => return,
            Err(error) => tracing::warn!(%error, "cannot start the proxy"),
        }
        tokio::time::sleep(PAUSE).await;
        match TcpListener::from_std(kept) {
            Ok(again) => listener = again,
            Err(_) => return,
        }
    }
}

fn run(listener: std::net::TcpListener, first: std::net::TcpStream, host: Client) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime {
        Ok(runtime) => LocalSet::new().block_on(&runtime, accept(listener, first, host)),
        Err(error) => tracing::error!(%error, "the proxy has no runtime"),
    }
}

async fn accept(listener: std::net::TcpListener, first: std::net::TcpStream, host: Client) {
    let places = Arc::new(Semaphore::new(MOST));
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    if let Ok(first) = TcpStream::from_std(first) {
        tokio::task::spawn_local(serve(first, host.clone()));
    }
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let serving = serve(stream, host.clone());
                tokio::task::spawn_local(async move {
                    serving.await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "the proxy cannot accept a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// One port for two protocols: no request of HTTP begins like one of SOCKS.
async fn serve(stream: TcpStream, host: Client) {
    let _ = stream.set_nodelay(true);
    let mut first = [0];
    match timeout(PATIENCE, stream.peek(&mut first)).await {
        Ok(Ok(1)) => {}
        _ => return,
    }
    match first[0] {
        socks::VERSION => socks::serve(stream, &host).await,
        _ => http::serve(stream, host).await,
    }
}
