//! The kernel's tables of TCP sockets, read. Pure but for the reading.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const LISTENING: &str = "0A";

/// A socket that takes connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Listening {
    pub(super) address: IpAddr,
    pub(super) port: u16,
    pub(super) uid: u32,
    pub(super) inode: u64,
}

/// By port and address. A table that is not there (a kernel without IPv6) is empty.
pub(super) fn read() -> Vec<Listening> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let mut all: Vec<_> = tables
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|text| text.lines().skip(1).filter_map(parse).collect::<Vec<_>>())
        .collect();
    all.sort_by_key(|socket| (socket.port, socket.address));
    all
}

/// `sl local remote state tx:rx tr:when retransmits uid timeout inode ...`
fn parse(line: &str) -> Option<Listening> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let &[_, local, _, LISTENING, _, _, _, uid, _, inode, ..] = fields.as_slice() else {
        return None;
    };
    let (address, port) = local.split_once(':')?;
    Some(Listening {
        address: parse_address(address)?,
        port: u16::from_str_radix(port, 16).ok()?,
        uid: uid.parse().ok()?,
        inode: inode.parse().ok()?,
    })
}

/// Words of 32 bits, each as this machine would print the bytes that are on the wire.
fn parse_address(text: &str) -> Option<IpAddr> {
    let word = |index: usize| -> Option<[u8; 4]> {
        let digits = text.get(index * 8..index * 8 + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    match text.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let mut bytes = [0; 16];
            for (index, piece) in bytes.chunks_exact_mut(4).enumerate() {
                piece.copy_from_slice(&word(index)?);
            }
            Some(Ipv6Addr::from(bytes).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn lines_of_the_kernel_are_read() {
        let check = |line: &str, expected: Option<(&str, u16, u32, u64)>| {
            let read = parse(line);
            let expected = expected.map(|(address, port, uid, inode)| Listening {
                address: address.parse().unwrap(),
                port,
                uid,
                inode,
            });
            assert_eq!(read, expected, "{line}");
        };
        check(
            "   0: 0100007F:0BB8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000 \
                    0 4711 1 0000000000000000 100 0 0 10 0",
            Some(("127.0.0.1", 3000, 1000, 4711)),
        );
        check(
            "   1: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A \
             00000000:00000000 00:00000000 00000000     0        0 12 1 0 100 0 0 10 0",
            Some(("::1", 8080, 0, 12)),
        );
        // Connected, and not a line of the table.
        check(
            "   2: 0100007F:0BB8 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1000 \
                    0 4712 1",
            None,
        );
        check("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when", None);
        check("", None);
    }

    #[test]
    fn what_listens_here_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let found = read().into_iter().find(|socket| socket.port == address.port()).unwrap();
        assert_eq!(found.address, address.ip());
    }
}
