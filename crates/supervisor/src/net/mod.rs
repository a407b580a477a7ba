//! `nacre-guest net`: connections for programs that know no proxy.
//!
//! ```text
//!  program ── SYN to 1.2.3.4:443 ──▶ tun0 ──▶ us: CONNECT through the proxy; when that is there,
//!     ▲                                         the SYN goes back in, as if to a listener of ours
//!     └── as if from 1.2.3.4:443 ◀── tun0 ◀── its answers ◀── kernel ◀── listener: bytes both ways
//! ```
//! Both ends of every connection are thus the kernel's own TCP; we only change addresses in packets
//! that pass ([`packet`], [`flows`]). A connection that is refused is refused to the program before
//! it is made. Names get addresses that mean nothing but the name ([`names`], [`dns`]), so it is the
//! host that resolves them. Other datagrams are answered with "unreachable".
//!
//! The process runs as nobody, holds the device and the sockets it makes, and speaks to the proxy as
//! any program of the sandbox may. Whatever it is made to do, the host decides what may be reached.

mod dns;
mod flows;
mod names;
mod packet;

use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Instant;

use anyhow::Context;
use nacre_launch::device::{ADDRESS, PEER};
use nacre_wire::egress::PROXY_PORT;
use nacre_wire::relay::join;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;

use flows::{Flow, Flows, Kind, PATIENCE, Step};
use names::Names;
use packet::{Packet, Transport};

/// The largest packet of the device.
const LARGEST: usize = 65_535;
/// Packets that are read before others get a turn.
const TURN: usize = 64;

struct Net {
    device: AsyncFd<OwnedFd>,
    state: RefCell<State>,
    /// Where connections that were let in come out.
    door: u16,
}

struct State {
    flows: Flows<TcpStream>,
    names: Names,
}

/// Serves the device that is standard input until it is gone. `turn` counts the processes that did so
/// before.
pub fn run(device: OwnedFd, turn: u32) -> anyhow::Result<()> {
    let _ = rustix::thread::set_name(c"nacre-net");
    // Nobody in the sandbox has to look into us, or at what we hold.
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
        .context("become undumpable")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, serve(device, turn))
}

async fn serve(device: OwnedFd, turn: u32) -> anyhow::Result<()> {
    let listener = TcpListener::bind((ADDRESS, 0)).await.context("listen")?;
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    // SAFETY: it owns the descriptor, which stays the same and open as long as it is registered.
    let device = unsafe { AsyncFd::register(device) }.context("the device")?;
    let net = Rc::new(Net {
        device,
        state: RefCell::new(State { flows: Flows::default(), names: Names::new(&host, turn) }),
        door: listener.local_addr()?.port(),
    });
    tokio::task::spawn_local(accept(Rc::clone(&net), listener));
    let mut buffer = vec![0; LARGEST];
    loop {
        let mut ready = net.device.readable().await?;
        for _ in 0..TURN {
            match rustix::io::read(net.device.get_ref(), &mut *buffer) {
                Ok(length) => net.take(&mut buffer[..length]),
                Err(rustix::io::Errno::AGAIN) => {
                    ready.clear_ready();
                    break;
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error)).context("read a packet"),
            }
        }
        tokio::task::yield_now().await;
    }
}

impl Net {
    fn take(self: &Rc<Self>, bytes: &mut [u8]) {
        let Some(packet) = Packet::read(bytes) else { return };
        // What does not come from the sandbox's own address was made up.
        if packet.source() != ADDRESS {
            return;
        }
        match packet.transport() {
            Transport::Tcp => self.take_segment(packet),
            Transport::Udp if packet.ports().1 == dns::PORT => self.answer_name(&packet),
            Transport::Udp => self.put(&packet.unreachable(packet::PORT_UNREACHABLE)),
            Transport::Other => {}
        }
    }

    fn take_segment(self: &Rc<Self>, mut packet: Packet<'_>) {
        let (from, to) = packet.ports();
        let mut state = self.state.borrow_mut();
        if (from, packet.destination()) == (self.door, PEER) {
            if let Some(flow) = state.flows.of_number(to) {
                packet.rewrite((flow.to, flow.to_port), (ADDRESS, flow.from_port));
                drop(state);
                self.put(packet.bytes());
            }
            return;
        }
        let flow = Flow { from_port: from, to: packet.destination(), to_port: to };
        let kind = match (packet.is_syn(), packet.is_reset()) {
            (true, _) => Kind::Syn,
            (false, true) => Kind::Reset,
            (false, false) => Kind::Other,
        };
        match state.flows.segment(flow, kind, Instant::now()) {
            Step::Pass(number) => {
                packet.rewrite((PEER, number), (ADDRESS, self.door));
                drop(state);
                self.put(packet.bytes());
            }
            Step::Connect(number) => {
                let syn = packet.bytes().to_vec();
                let target = state.names.name_of(flow.to);
                drop(state);
                tokio::task::spawn_local(Rc::clone(self).connect(flow, number, target, syn));
            }
            Step::Wait | Step::Drop => {}
            Step::Refuse => {
                drop(state);
                self.put(&packet.reset());
            }
        }
    }

    /// Asks for a connection, and lets the program's in when there is one.
    async fn connect(
        self: Rc<Self>,
        flow: Flow,
        number: u16,
        target: Option<String>,
        mut syn: Vec<u8>,
    ) {
        let target = target.unwrap_or_else(|| flow.to.to_string());
        let connected = ask(&target, flow.to_port).await;
        let Some(mut packet) = Packet::read(&mut syn) else { return };
        match connected {
            Ok(stream) => {
                let now = Instant::now();
                self.state.borrow_mut().flows.connected(number, stream, now);
                packet.rewrite((PEER, number), (ADDRESS, self.door));
                self.put(packet.bytes());
                tokio::time::sleep(PATIENCE).await;
                self.state.borrow_mut().flows.give_up(number, now);
            }
            Err(refused) => {
                self.state.borrow_mut().flows.forget(number);
                match refused {
                    Refused::Closed => self.put(&packet.unreachable(packet::PROHIBITED)),
                    Refused::NoAnswer => self.put(&packet.unreachable(packet::HOST_UNREACHABLE)),
                    Refused::Failed => self.put(&packet.reset()),
                }
            }
        }
    }

    fn answer_name(&self, packet: &Packet<'_>) {
        let answer = dns::answer(packet.payload(), &mut self.state.borrow_mut().names);
        if let Some(answer) = answer {
            self.put(&packet.reply(&answer));
        }
    }

    /// A device that takes no more drops it, as networks do.
    fn put(&self, bytes: &[u8]) {
        let _ = rustix::io::write(self.device.get_ref(), bytes);
    }
}

/// Takes connections of programs and joins them with those that were made for them.
async fn accept(net: Rc<Net>, listener: TcpListener) {
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::task::yield_now().await;
            continue;
        };
        let number = peer.port();
        // Who connects here without having been let in has nothing to get.
        let made = match peer.ip() == IpAddr::V4(PEER) {
            true => net.state.borrow_mut().flows.take(number),
            false => None,
        };
        let Some(made) = made else { continue };
        let net = Rc::clone(&net);
        tokio::task::spawn_local(async move {
            let _ = stream.set_nodelay(true);
            join(stream, made, bytes::Bytes::new()).await;
            net.state.borrow_mut().flows.ended(number, Instant::now());
        });
    }
}

/// Why the proxy gave no connection.
enum Refused {
    /// The rules are against it.
    Closed,
    NoAnswer,
    Failed,
}

impl From<io::Error> for Refused {
    fn from(_: io::Error) -> Self {
        Self::Failed
    }
}

/// Speaks SOCKS5 to the proxy of this sandbox.
async fn ask(target: &str, port: u16) -> Result<TcpStream, Refused> {
    let proxy = SocketAddr::from((Ipv4Addr::LOCALHOST, PROXY_PORT));
    let mut stream = TcpStream::connect(proxy).await?;
    stream.set_nodelay(true)?;
    let length = u8::try_from(target.len()).map_err(|_| Refused::Failed)?;
    let greeting = [5, 1, 0, 5, 1, 0, 3, length];
    let request = [&greeting, target.as_bytes(), &port.to_be_bytes()].concat();
    stream.write_all(&request).await?;
    // Two bytes for the greeting, ten for the request.
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await?;
    match answer[3] {
        0 => Ok(stream),
        2 => Err(Refused::Closed),
        4 => Err(Refused::NoAnswer),
        _ => Err(Refused::Failed),
    }
}
