//! Which addresses are this machine's.
//!
//! A public address that the machine itself has leads back into it, past whatever stands between it and
//! the internet: a service that a firewall keeps from everybody else would be open to a sandbox.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// Any; nothing is sent there.
const PORT: u16 = 9;

/// Asks the kernel which of its addresses it would speak from: from the same one only to itself.
pub(super) fn is_own(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let asked = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((address, PORT))?;
        socket.local_addr()
    });
    // Where there is no way to, there is nothing of ours either.
    asked.is_ok_and(|from| from.ip() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_knows_itself() {
        assert!(is_own(Ipv4Addr::LOCALHOST.into()));
        assert!(!is_own(Ipv4Addr::new(192, 0, 2, 1).into()));
        assert!(!is_own(Ipv4Addr::new(8, 8, 8, 8).into()));
    }
}
