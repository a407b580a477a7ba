//! Text records, asked of the system's own name servers. Only what a handle needs of DNS (RFC 1035).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use rustix::rand::{GetRandomFlags, getrandom};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

const SETTINGS: &str = "/etc/resolv.conf";
const PORT: u16 = 53;
const MOST_SERVERS: usize = 3;
const PATIENCE: Duration = Duration::from_secs(2);
const TEXT: u16 = 16;
const INTERNET: u16 = 1;
const HEADER: usize = 12;
/// What fits into one datagram anywhere.
const LARGEST_DATAGRAM: usize = 1232;
const LARGEST: usize = 16 * 1024;

/// The texts of this name, each put together from its parts. None when there is no such name.
pub(crate) async fn texts(name: &str) -> io::Result<Vec<String>> {
    let settings = tokio::fs::read_to_string(SETTINGS).await.unwrap_or_default();
    texts_from(&servers(&settings), name).await
}

async fn texts_from(servers: &[SocketAddr], name: &str) -> io::Result<Vec<String>> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "there is no name server");
    for server in servers {
        match tokio::time::timeout(PATIENCE, ask(*server, name)).await {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(error)) => last = error,
            Err(_) => last = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(last)
}

fn servers(settings: &str) -> Vec<SocketAddr> {
    let lines = settings.lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
    let addresses = lines.filter_map(|rest| rest.split_whitespace().next()?.parse::<IpAddr>().ok());
    let found: Vec<_> = addresses.take(MOST_SERVERS).map(|ip| SocketAddr::new(ip, PORT)).collect();
    // As the C library has it when nothing is said.
    if found.is_empty() { vec![SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT)] } else { found }
}

async fn ask(server: SocketAddr, name: &str) -> io::Result<Vec<String>> {
    let query = Query::new(name)?;
    let here: IpAddr =
        if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((here, 0)).await?;
    // The kernel then drops what others send.
    socket.connect(server).await?;
    socket.send(&query.bytes).await?;
    let mut buffer = vec![0; LARGEST_DATAGRAM];
    loop {
        let length = socket.recv(&mut buffer).await?;
        match query.read(&buffer[..length]) {
            Some(Answer::Texts(texts)) => return Ok(texts),
            Some(Answer::Truncated) => return ask_stream(server, &query).await,
            Some(Answer::Failed) => return Err(io::Error::other("the name server failed")),
            // Not the answer to this; the right one may still come.
            None => {}
        }
    }
}

async fn ask_stream(server: SocketAddr, query: &Query) -> io::Result<Vec<String>> {
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(query.bytes.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes()[..], &query.bytes].concat()).await?;
    let length = usize::from(stream.read_u16().await?).min(LARGEST);
    let mut buffer = vec![0; length];
    stream.read_exact(&mut buffer).await?;
    match query.read(&buffer) {
        Some(Answer::Texts(texts)) => Ok(texts),
        _ => Err(io::Error::other("the name server's answer makes no sense")),
    }
}

struct Query {
    bytes: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Texts(Vec<String>),
    /// The whole is to be had over a stream.
    Truncated,
    Failed,
}

impl Query {
    fn new(name: &str) -> io::Result<Self> {
        let mut id = [0; 2];
        getrandom(&mut id, GetRandomFlags::empty())?;
        // Recursion desired, one question.
        let mut bytes = [&id[..], &[1, 0, 0, 1, 0, 0, 0, 0, 0, 0]].concat();
        for label in name.split('.') {
            let length = u8::try_from(label.len()).map_err(io::Error::other)?;
            bytes.push(length);
            bytes.extend(label.as_bytes());
        }
        bytes.push(0);
        bytes.extend([TEXT.to_be_bytes(), INTERNET.to_be_bytes()].concat());
        Ok(Self { bytes })
    }

    /// `None` when it is no answer to this question.
    fn read(&self, reply: &[u8]) -> Option<Answer> {
        let question = self.bytes.get(HEADER..)?;
        let rest = reply.get(HEADER..)?;
        let [id0, id1, flags0, flags1, ..] = *reply else { return None };
        let ours =
            [id0, id1] == self.bytes[..2] && flags0 & 0x80 != 0 && rest.starts_with(question);
        if !ours || reply[4..6] != [0, 1] {
            return None;
        }
        if flags0 & 0x02 != 0 {
            return Some(Answer::Truncated);
        }
        match flags1 & 0x0f {
            0 => {}
            // There is no such name.
            3 => return Some(Answer::Texts(Vec::new())),
            _ => return Some(Answer::Failed),
        }
        let count = u16::from_be_bytes([reply[6], reply[7]]);
        let mut at = HEADER + question.len();
        let mut texts = Vec::new();
        for _ in 0..count {
            let (kind, data, end) = record(reply, at)?;
            texts.extend((kind == TEXT).then(|| join(data)).flatten());
            at = end;
        }
        Some(Answer::Texts(texts))
    }
}

/// Kind and data of the record that begins here, and where the next one does.
fn record(reply: &[u8], at: usize) -> Option<(u16, &[u8], usize)> {
    let at = skip_name(reply, at)?;
    let head = reply.get(at..at + 10)?;
    let length = usize::from(u16::from_be_bytes([head[8], head[9]]));
    let data = reply.get(at + 10..at + 10 + length)?;
    Some((u16::from_be_bytes([head[0], head[1]]), data, at + 10 + length))
}

/// Names are not compared: the server was asked about one, and aliases lead elsewhere.
fn skip_name(reply: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *reply.get(at)? {
            0 => return Some(at + 1),
            length if length & 0xc0 == 0xc0 => return Some(at + 2),
            length if length & 0xc0 == 0 => at += 1 + usize::from(length),
            _ => return None,
        }
    }
}

/// A text comes in pieces of at most 255 bytes.
fn join(mut data: &[u8]) -> Option<String> {
    let mut whole = Vec::new();
    while let Some((length, rest)) = data.split_first() {
        let piece = rest.get(..usize::from(*length))?;
        whole.extend(piece);
        data = &rest[piece.len()..];
    }
    String::from_utf8(whole).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reply(query: &[u8], flags: [u8; 2], records: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let count = u16::try_from(records.len()).unwrap().to_be_bytes();
        let mut bytes = [&query[..2], &flags, &[0, 1], &count, &[0; 4], &query[HEADER..]].concat();
        for (kind, data) in records {
            bytes.extend([0xc0, 0x0c]);
            bytes.extend(kind.to_be_bytes());
            bytes.extend([0, 1, 0, 0, 0, 60]);
            bytes.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
            bytes.extend(data);
        }
        bytes
    }

    fn text(parts: &[&str]) -> (u16, Vec<u8>) {
        let part = |part: &&str| [&[u8::try_from(part.len()).unwrap()], part.as_bytes()].concat();
        (TEXT, parts.iter().flat_map(part).collect())
    }

    #[test]
    fn an_answer_is_read_and_only_to_what_was_asked() {
        let query = Query::new("_atproto.alice.test").unwrap();
        let alias = (5, vec![0]);
        let good =
            reply(&query.bytes, [0x81, 0x80], &[alias, text(&["did=", "x"]), text(&["other"])]);
        let texts = vec!["did=x".to_owned(), "other".to_owned()];
        assert_eq!(query.read(&good), Some(Answer::Texts(texts)));
        let read = |flags| query.read(&reply(&query.bytes, flags, &[]));
        assert_eq!(read([0x83, 0x80]), Some(Answer::Truncated));
        assert_eq!(read([0x81, 0x83]), Some(Answer::Texts(vec![])));
        assert_eq!(read([0x81, 0x82]), Some(Answer::Failed));
        assert_eq!(read([0x01, 0x00]), None, "a question is no answer");
        let mut other = good.clone();
        other[0] ^= 1;
        assert_eq!(query.read(&other), None);
        let another = Query::new("_atproto.mallory.test").unwrap();
        let mut forged = reply(&another.bytes, [0x81, 0x80], &[text(&["did=y"])]);
        forged[..2].copy_from_slice(&query.bytes[..2]);
        assert_eq!(query.read(&forged), None);
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic(tail in prop::collection::vec(any::<u8>(), 0..200), count in any::<u16>()) {
            let query = Query::new("_atproto.alice.test").unwrap();
            let mut bytes = reply(&query.bytes, [0x81, 0x80], &[]);
            bytes[6..8].copy_from_slice(&count.to_be_bytes());
            bytes.extend(&tail);
            let _ = (query.read(&bytes), query.read(&tail));
        }
    }

    #[test]
    fn servers_are_read_from_the_settings() {
        let read = |text: &str| servers(text).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            read("# x\nnameserver 1.1.1.1 # y\n nameserver ::1\nsearch a\n"),
            ["1.1.1.1:53", "[::1]:53"]
        );
        assert_eq!(read(""), ["127.0.0.1:53"]);
    }

    #[tokio::test]
    async fn a_long_answer_comes_over_a_stream() {
        let stream = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = stream.local_addr().unwrap();
        let datagrams = UdpSocket::bind(server).await.unwrap();
        tokio::spawn(async move {
            let mut query = vec![0; 512];
            let (length, from) = datagrams.recv_from(&mut query).await.unwrap();
            datagrams.send_to(b"nonsense", from).await.unwrap();
            datagrams.send_to(&reply(&query[..length], [0x83, 0x80], &[]), from).await.unwrap();
            let (mut client, _) = stream.accept().await.unwrap();
            let length = client.read_u16().await.unwrap();
            query.resize(usize::from(length), 0);
            client.read_exact(&mut query).await.unwrap();
            let answer = reply(&query, [0x81, 0x80], &[text(&["did=did:web:a.example.net"])]);
            client.write_u16(u16::try_from(answer.len()).unwrap()).await.unwrap();
            client.write_all(&answer).await.unwrap();
        });
        let found = texts_from(&[server], "_atproto.alice.test").await.unwrap();
        assert_eq!(found, ["did=did:web:a.example.net"]);
    }
}
