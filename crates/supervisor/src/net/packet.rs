//! IPv4 packets: read strictly, changed in place, made. Pure.

use std::net::Ipv4Addr;

const IP: usize = 20;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const TCP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
const TIME_TO_LIVE: u8 = 64;

/// Codes of ICMP "destination unreachable".
pub(super) const HOST_UNREACHABLE: u8 = 1;
pub(super) const PORT_UNREACHABLE: u8 = 3;
pub(super) const PROHIBITED: u8 = 13;

const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;
const FIN: u8 = 0x01;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Tcp,
    Udp,
    Other,
}

/// A whole packet with a whole header of its transport.
#[derive(Debug)]
pub(super) struct Packet<'a> {
    bytes: &'a mut [u8],
    /// Where the transport begins.
    at: usize,
}

impl<'a> Packet<'a> {
    /// `None` for whatever is not IPv4, is cut short or is a piece of a larger packet.
    pub(super) fn read(bytes: &'a mut [u8]) -> Option<Self> {
        let first = *bytes.first()?;
        let at = usize::from(first & 0x0f) * 4;
        if first >> 4 != 4 || at < IP || bytes.len() < at {
            return None;
        }
        let length = usize::from(half(bytes, 2));
        let (bytes, _) = bytes.split_at_mut_checked(length)?;
        let piece = half(bytes, 6) & 0x3fff != 0;
        let needed = match *bytes.get(9)? {
            TCP => TCP_HEADER,
            UDP => UDP_HEADER,
            _ => 0,
        };
        (!piece && length >= at + needed).then_some(Self { bytes, at })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes
    }

    pub(super) fn transport(&self) -> Transport {
        match self.bytes[9] {
            TCP => Transport::Tcp,
            UDP => Transport::Udp,
            _ => Transport::Other,
        }
    }

    pub(super) fn source(&self) -> Ipv4Addr {
        address(self.bytes, 12)
    }

    pub(super) fn destination(&self) -> Ipv4Addr {
        address(self.bytes, 16)
    }

    /// Source and destination. Only of TCP and UDP.
    pub(super) fn ports(&self) -> (u16, u16) {
        (half(self.bytes, self.at), half(self.bytes, self.at + 2))
    }

    /// What a datagram carries.
    pub(super) fn payload(&self) -> &[u8] {
        self.bytes.get(self.at + UDP_HEADER..).unwrap_or_default()
    }

    /// Whether a segment begins a connection.
    pub(super) fn is_syn(&self) -> bool {
        self.bytes[self.at + 13] & (SYN | ACK | RST) == SYN
    }

    /// Whether it breaks one off.
    pub(super) fn is_reset(&self) -> bool {
        self.bytes[self.at + 13] & RST != 0
    }

    /// Gives a segment other ends, and corrects both checksums by the difference (RFC 1624).
    pub(super) fn rewrite(&mut self, from: (Ipv4Addr, u16), to: (Ipv4Addr, u16)) {
        let (ip, tcp) = (10, self.at + 16);
        for (at, address) in [(12, from.0), (16, to.0)] {
            for (at, new) in (at..).step_by(2).zip(halves(address)) {
                let old = half(self.bytes, at);
                put(self.bytes, at, new);
                self.correct(ip, old, new);
                self.correct(tcp, old, new);
            }
        }
        for (at, new) in [(self.at, from.1), (self.at + 2, to.1)] {
            let old = half(self.bytes, at);
            put(self.bytes, at, new);
            self.correct(tcp, old, new);
        }
    }

    fn correct(&mut self, at: usize, old: u16, new: u16) {
        let sum = u32::from(!half(self.bytes, at)) + u32::from(!old) + u32::from(new);
        put(self.bytes, at, !fold(sum));
    }

    /// What ends a connection that is not there.
    pub(super) fn reset(&self) -> Vec<u8> {
        let segment = &self.bytes[self.at..];
        let flags = segment[13];
        let offset = usize::from(segment[12] >> 4) * 4;
        let carried = segment.len().saturating_sub(offset) as u32
            + u32::from(flags & SYN != 0)
            + u32::from(flags & FIN != 0);
        let sequence = u32::from_be_bytes([segment[4], segment[5], segment[6], segment[7]]);
        let (from, to) = self.ports();
        let mut reply = vec![0; TCP_HEADER];
        put(&mut reply, 0, to);
        put(&mut reply, 2, from);
        if flags & ACK != 0 {
            reply[4..8].copy_from_slice(&segment[8..12]);
        }
        reply[8..12].copy_from_slice(&sequence.wrapping_add(carried).to_be_bytes());
        reply[12] = 5 << 4;
        reply[13] = RST | ACK;
        self.back(TCP, reply, 16)
    }

    /// A datagram in answer to this one.
    pub(super) fn reply(&self, payload: &[u8]) -> Vec<u8> {
        let (from, to) = self.ports();
        let mut reply = vec![0; UDP_HEADER];
        put(&mut reply, 0, to);
        put(&mut reply, 2, from);
        put(&mut reply, 4, (UDP_HEADER + payload.len()) as u16);
        reply.extend(payload);
        self.back(UDP, reply, 6)
    }

    /// Tells the sender why it did not arrive. The code is one of those above.
    pub(super) fn unreachable(&self, code: u8) -> Vec<u8> {
        let quoted = &self.bytes[..self.bytes.len().min(self.at + 8)];
        let mut message = vec![3, code, 0, 0, 0, 0, 0, 0];
        message.extend(quoted);
        let sum = !checksum(0, &message);
        put(&mut message, 2, sum);
        header(ICMP, self.destination(), self.source(), &message)
    }

    /// A packet to where this one came from; its checksum goes to `at` of `message`.
    fn back(&self, transport: u8, mut message: Vec<u8>, at: usize) -> Vec<u8> {
        let (from, to) = (self.destination(), self.source());
        let pseudo = halves(from).into_iter().chain(halves(to)).map(u32::from).sum::<u32>()
            + u32::from(transport)
            + message.len() as u32;
        let sum = !checksum(pseudo, &message);
        // Zero would mean that there is none.
        put(&mut message, at, if sum == 0 { 0xffff } else { sum });
        header(transport, from, to, &message)
    }
}

fn header(transport: u8, from: Ipv4Addr, to: Ipv4Addr, message: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; IP];
    packet[0] = 0x45;
    put(&mut packet, 2, (IP + message.len()) as u16);
    packet[8] = TIME_TO_LIVE;
    packet[9] = transport;
    packet[12..16].copy_from_slice(&from.octets());
    packet[16..20].copy_from_slice(&to.octets());
    let sum = !checksum(0, &packet);
    put(&mut packet, 10, sum);
    packet.extend(message);
    packet
}

/// The sum of the internet checksum, not yet turned over.
fn checksum(start: u32, bytes: &[u8]) -> u16 {
    let pair =
        |pair: &[u8]| u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
    // Folded as it goes: a packet has at most 2^15 pairs.
    fold(bytes.chunks(2).map(pair).fold(start, |sum, next| u32::from(fold(sum)) + next))
}

fn fold(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    ((once & 0xffff) + (once >> 16)) as u16
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

fn halves(address: Ipv4Addr) -> [u16; 2] {
    let [a, b, c, d] = address.octets();
    [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]
}

fn address(bytes: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(93, 184, 216, 34);

    fn segment(flags: u8, payload: &[u8]) -> Vec<u8> {
        let mut tcp = vec![0; TCP_HEADER];
        put(&mut tcp, 0, 40_000);
        put(&mut tcp, 2, 443);
        tcp[4..8].copy_from_slice(&7_u32.to_be_bytes());
        tcp[12] = 5 << 4;
        tcp[13] = flags;
        tcp.extend(payload);
        // Sent by B to A first, so that the answer goes from A to B.
        let mut frame = header(TCP, B, A, &[0; TCP_HEADER]);
        let packet = Packet::read(&mut frame).unwrap();
        packet.back(TCP, tcp, 16)
    }

    /// Both checksums add up.
    fn is_whole(bytes: &[u8]) -> bool {
        let at = usize::from(bytes[0] & 0x0f) * 4;
        let message = &bytes[at..];
        let pseudo = match bytes[9] {
            ICMP => 0,
            transport => {
                let ends = [address(bytes, 12), address(bytes, 16)];
                ends.into_iter().flat_map(halves).map(u32::from).sum::<u32>()
                    + u32::from(transport)
                    + message.len() as u32
            }
        };
        checksum(0, &bytes[..at]) == 0xffff && checksum(pseudo, message) == 0xffff
    }

    #[test]
    fn a_segment_is_read_changed_and_changed_back() {
        let before = segment(SYN, b"");
        assert!(is_whole(&before));
        let mut bytes = before.clone();
        let mut packet = Packet::read(&mut bytes).unwrap();
        assert_eq!((packet.source(), packet.destination(), packet.ports()), (A, B, (40_000, 443)));
        assert!(packet.is_syn() && !packet.is_reset());
        packet.rewrite((Ipv4Addr::new(10, 0, 0, 1), 5), (A, 6));
        assert_eq!((packet.destination(), packet.ports()), (A, (5, 6)));
        assert!(is_whole(packet.bytes()));
        packet.rewrite((A, 40_000), (B, 443));
        assert_eq!(bytes, before);
    }

    #[test]
    fn answers_go_back_and_add_up() {
        let mut syn = segment(SYN, b"");
        let packet = Packet::read(&mut syn).unwrap();
        let mut reset = packet.reset();
        assert!(is_whole(&reset));
        assert!(is_whole(&packet.unreachable(PROHIBITED)));
        let reset = Packet::read(&mut reset).unwrap();
        assert_eq!((reset.source(), reset.destination(), reset.ports()), (B, A, (443, 40_000)));
        assert!(reset.is_reset() && !reset.is_syn());
        assert_eq!(reset.bytes[reset.at + 8..][..4], 8_u32.to_be_bytes(), "one behind the SYN");
    }

    #[test]
    fn pieces_and_other_versions_are_left_alone() {
        let good = segment(SYN, b"x");
        for (at, value) in [(0, 0x65), (0, 0x44), (0, 0x4f), (6, 0x20), (7, 1), (2, 0xff)] {
            let mut bad = good.clone();
            bad[at] = value;
            assert!(Packet::read(&mut bad).is_none(), "{at} {value}");
        }
        assert!(Packet::read(&mut good[..30].to_vec()).is_none());
    }

    proptest! {
        #[test]
        fn no_packet_makes_it_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..120), known: bool) {
            if known && bytes.len() >= IP {
                let length = bytes.len() as u16;
                bytes[0] = 0x45;
                put(&mut bytes, 2, length);
                put(&mut bytes, 6, 0);
            }
            if let Some(mut packet) = Packet::read(&mut bytes) {
                let _ = packet.unreachable(PORT_UNREACHABLE);
                match packet.transport() {
                    Transport::Tcp => {
                        let _ = (packet.is_syn(), packet.reset());
                        packet.rewrite((A, 1), (B, 2));
                    }
                    Transport::Udp => {
                        let _ = packet.reply(packet.payload());
                    }
                    Transport::Other => {}
                }
            }
        }

        #[test]
        fn changed_segments_add_up(payload in prop::collection::vec(any::<u8>(), 0..50), ip: u32, port: u16) {
            let mut bytes = segment(ACK, &payload);
            let mut packet = Packet::read(&mut bytes).unwrap();
            packet.rewrite((Ipv4Addr::from_bits(ip), port), (A, 9));
            prop_assert!(is_whole(&bytes));
        }
    }
}
