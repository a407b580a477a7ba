//! Pid 1, from parked to built.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags};

use crate::launcher::Opened;
use crate::order::{Begin, Build, Reply};
use crate::root::Beneath;
use crate::{Control, Received, Result, Step, device, harden, launcher, layout, mounts, root};

/// What a freshly built pid 1 has to work with.
#[derive(Debug)]
pub struct Guest {
    /// The host dials this.
    pub door: UnixListener,
    /// Where the host listens for us.
    pub host_socket: PathBuf,
    pub workspace: PathBuf,
    /// The sandbox's data directory. No path inside leads to it: what the supervisor keeps there is
    /// out of reach of everything else in the sandbox.
    pub data: OwnedFd,
    /// Where packets for others come out, when there is such a device.
    pub device: Option<OwnedFd>,
    /// The user, by name or number, who works here unless somebody says otherwise.
    pub user: String,
}

/// The descriptors a [`Build`] comes with.
struct Descriptors {
    door: OwnedFd,
    log: OwnedFd,
    beneath: Beneath,
    device: std::io::Result<OwnedFd>,
}

/// Builds when it is told what, and begins when it is told as whom. In between it may wait for long.
/// `None` when the host no longer wants this seed.
pub(crate) fn park(control: &Control, opened: Opened) -> Result<Option<Guest>> {
    mounts::make_private()?;
    raise_loopback()?;
    let Opened { rootfs, shared, device } = opened;
    let device = device.and_then(device::set_up);
    let received = control.receive::<Build>().step(|| "read what to build".to_owned())?;
    let Some(Received { message, fds }) = received else { return Ok(None) };
    let beneath = Beneath { rootfs, shared, ..Beneath::default() };
    let settled = build(control, &message, Descriptors::take(fds, beneath, device)?)?;
    // The control socket has moved, so whoever called us cannot report from here on.
    match begin(&message, &settled.control) {
        Ok(true) => Ok(Some(guest(&message, settled))),
        Ok(false) => Ok(None),
        Err(error) => launcher::fail(&settled.control, &error),
    }
}

fn build(control: &Control, build: &Build, fds: Descriptors) -> Result<Settled> {
    let data = format!("{}/data", build.directory);
    rustix::process::chdir(data.as_str()).step(|| format!("enter {data}"))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let data = rustix::fs::open(".", flags, Mode::empty()).step(|| format!("open {data}"))?;
    let mut assembled = root::assemble(build, fds.beneath)?;
    assembled.built.no_device = fds.device.as_ref().err().map(ToString::to_string);
    mounts::pivot(&assembled.root)?;
    let settled = settle_descriptors(control, fds.door, fds.log, data, fds.device.ok())?;
    let reply = Reply::Built(assembled.built);
    settled.control.send(&reply, &[]).step(|| "report what was built".to_owned())?;
    Ok(settled)
}

/// Returns whether it came to that: a host that goes away leaves nobody to begin for.
fn begin(build: &Build, control: &Control) -> Result<bool> {
    let received = control.receive::<Begin>().step(|| "read how to begin".to_owned())?;
    let Some(Received { message: begin, .. }) = received else { return Ok(false) };
    rustix::system::sethostname(begin.host_name.as_bytes())
        .step(|| "set the host name".to_owned())?;
    if begin.memory_mounts_bytes != build.memory_mounts_bytes {
        root::resize(begin.memory_mounts_bytes)?;
    }
    harden::harden(&begin)?;
    control.send(&Reply::Ready, &[]).step(|| "report readiness".to_owned())?;
    Ok(true)
}

fn guest(build: &Build, settled: Settled) -> Guest {
    Guest {
        door: UnixListener::from(settled.listener),
        host_socket: PathBuf::from("/run/nacre/host/host.sock"),
        workspace: PathBuf::from("/workspace"),
        data: settled.data,
        device: settled.device,
        user: if build.many_ids { layout::USER_ID.to_string() } else { "root".to_owned() },
    }
}

/// What is left open after [`settle_descriptors`].
struct Settled {
    listener: OwnedFd,
    control: Control,
    data: OwnedFd,
    device: Option<OwnedFd>,
}

const DOOR: i32 = 3;
const CONTROL: i32 = 4;
const DATA: i32 = 5;
const DEVICE: i32 = 6;

/// Standard streams, the door, the control socket, the data directory and the device at fixed numbers,
/// and nothing else: a descriptor of the host's that stayed open would be a way out.
fn settle_descriptors(
    control: &Control,
    door: OwnedFd,
    log: OwnedFd,
    data: OwnedFd,
    device: Option<OwnedFd>,
) -> Result<Settled> {
    let step = || "settle descriptors".to_owned();
    let opened =
        rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).step(step)?;
    // Out of the way of the numbers that are about to be overwritten.
    let high = |fd: &dyn AsRawFd| {
        // SAFETY: F_DUPFD_CLOEXEC takes a descriptor and an integer, and makes a new descriptor.
        match unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 64) } {
            -1 => Err(std::io::Error::last_os_error()),
            // SAFETY: fcntl has just made it for us.
            new => Ok(unsafe { OwnedFd::from_raw_fd(new) }),
        }
    };
    let null = high(&opened).step(step)?;
    let high_log = high(&log).step(step)?;
    let high_door = high(&door).step(step)?;
    let high_control = high(&control.as_fd()).step(step)?;
    let high_data = high(&data).step(step)?;
    let high_device = device.as_ref().map(|device| high(device)).transpose().step(step)?;
    drop((door, log, data, device, opened));
    let place = |fd: &OwnedFd, number: i32, flags: i32| {
        // SAFETY: dup3 on descriptors we own; what was at `number` is not used again.
        match unsafe { libc::dup3(fd.as_raw_fd(), number, flags) } {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    place(&null, 0, 0).step(step)?;
    place(&null, 1, 0).step(step)?;
    place(&high_log, 2, 0).step(step)?;
    place(&high_door, DOOR, libc::O_CLOEXEC).step(step)?;
    place(&high_control, CONTROL, libc::O_CLOEXEC).step(step)?;
    place(&high_data, DATA, libc::O_CLOEXEC).step(step)?;
    if let Some(device) = &high_device {
        place(device, DEVICE, libc::O_CLOEXEC).step(step)?;
    }
    let last = if high_device.is_some() { DEVICE } else { DATA };
    drop((null, high_log, high_door, high_control, high_data, high_device));
    // SAFETY: closes only numbers above those just placed; nothing else of this process uses them.
    if unsafe { libc::syscall(libc::SYS_close_range, last + 1, u32::MAX, 0) } == -1 {
        return Err(std::io::Error::last_os_error()).step(step);
    }
    // SAFETY: placed above, owned by nobody else.
    let (listener, control, data) = unsafe {
        (OwnedFd::from_raw_fd(DOOR), OwnedFd::from_raw_fd(CONTROL), OwnedFd::from_raw_fd(DATA))
    };
    // SAFETY: as above, if it was placed.
    let device = (last == DEVICE).then(|| unsafe { OwnedFd::from_raw_fd(DEVICE) });
    Ok(Settled { listener, control: Control::from(control), data, device })
}

impl Descriptors {
    fn take(fds: Vec<OwnedFd>, beneath: Beneath, device: std::io::Result<OwnedFd>) -> Result<Self> {
        let mut fds = fds.into_iter();
        let mut next = |what: &str| {
            fds.next()
                .ok_or_else(|| std::io::Error::other(format!("no {what} came with it")))
                .step(|| "read what to build".to_owned())
        };
        let (door, log) = (next("door")?, next("log")?);
        Ok(Self { door, log, beneath: Beneath { trees: fds, ..beneath }, device })
    }
}

/// What is for the sandbox itself.
fn raise_loopback() -> Result<()> {
    let step = || "raise the loopback interface".to_owned();
    let socket =
        rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)
            .step(step)?;
    // SAFETY: an all-zero ifreq is valid; the name is a short C string within its array.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo\0") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: SIOCSIFFLAGS reads an ifreq, which lives across the call.
    match unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::SIOCSIFFLAGS, &request) } {
        -1 => Err(std::io::Error::last_os_error()).step(step),
        _ => Ok(()),
    }
}
