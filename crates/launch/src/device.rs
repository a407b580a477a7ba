//! The device that every packet of a sandbox goes to which is not for the sandbox itself.
//!
//! It is opened where the host's `/dev` still shows and by who we were outside, made and given its
//! routes by root of the new network namespace, and handed to the supervisor. Root of the sandbox
//! gives up `CAP_NET_ADMIN` later, so nobody inside can change it or make another. Where any step is
//! refused there is none: then programs that know no proxy have no way out, and all else works.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketType};

/// The sandbox's own address. 198.18.0.0/15 is for benchmarks of networks (RFC 2544), so that nobody
/// expects a public server there.
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// The other end, where names are resolved.
pub const PEER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);

const NODE: &str = "/dev/net/tun";
const NAME: &[u8] = b"tun0\0";
/// The largest there can be: a packet costs the same whatever it carries.
const MTU: libc::c_int = 65_520;

/// Opens the control device, in the network namespace that the new one shall be in.
pub(crate) fn open() -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(NODE, OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())?)
}

/// Makes the device, with its address and all routes.
pub(crate) fn set_up(control: OwnedFd) -> io::Result<OwnedFd> {
    let mut request = named();
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    call(control.as_fd(), libc::TUNSETIFF as libc::Ioctl, &mut request)?;
    // Addresses of its own that the kernel gives itself would be announced, again and again.
    match std::fs::write("/proc/sys/net/ipv6/conf/tun0/disable_ipv6", "1") {
        // A kernel without IPv6.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        other => other?,
    }
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    let mut request = named();
    request.ifr_ifru.ifru_addr = address(ADDRESS);
    call(socket.as_fd(), libc::SIOCSIFADDR as libc::Ioctl, &mut request)?;
    let mut request = named();
    request.ifr_ifru.ifru_mtu = MTU;
    call(socket.as_fd(), libc::SIOCSIFMTU as libc::Ioctl, &mut request)?;
    let mut request = named();
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    call(socket.as_fd(), libc::SIOCSIFFLAGS as libc::Ioctl, &mut request)?;
    add_default_route(socket.as_fd())?;
    Ok(control)
}

fn add_default_route(socket: BorrowedFd<'_>) -> io::Result<()> {
    let mut device = NAME.to_vec();
    // SAFETY: an all-zero rtentry is valid.
    let mut route: libc::rtentry = unsafe { std::mem::zeroed() };
    route.rt_dst = address(Ipv4Addr::UNSPECIFIED);
    route.rt_genmask = address(Ipv4Addr::UNSPECIFIED);
    route.rt_flags = libc::RTF_UP;
    route.rt_dev = device.as_mut_ptr().cast();
    // SAFETY: SIOCADDRT reads an rtentry and the name in it, which both live across the call.
    match unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCADDRT as libc::Ioctl, &route) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn named() -> libc::ifreq {
    // SAFETY: an all-zero ifreq is valid; the name is a short C string within its array.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(NAME) {
        *to = *from as libc::c_char;
    }
    request
}

fn address(ip: Ipv4Addr) -> libc::sockaddr {
    // SAFETY: an all-zero sockaddr is valid.
    let mut address: libc::sockaddr = unsafe { std::mem::zeroed() };
    address.sa_family = libc::AF_INET as libc::sa_family_t;
    // Behind the two bytes of the port.
    for (to, from) in address.sa_data[2..6].iter_mut().zip(ip.octets()) {
        *to = from as libc::c_char;
    }
    address
}

fn call(fd: BorrowedFd<'_>, what: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: each of the calls reads or writes one ifreq, which lives across it.
    match unsafe { libc::ioctl(fd.as_raw_fd(), what, request) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
