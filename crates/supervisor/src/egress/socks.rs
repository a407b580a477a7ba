//! SOCKS5 (RFC 1928), as far as going out needs it: `CONNECT`, without a password, to a name or an
//! address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nacre_wire::client::Client;
use nacre_wire::relay::join;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::PATIENCE;
use super::reply::{reach, socks_code};

pub(super) const VERSION: u8 = 5;
const NO_PASSWORD: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// Why a request is not answered with a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Bad {
    /// The other side is gone, or speaks something else.
    Broken,
    /// It wants a password, or an odd way to sign in.
    Method,
    /// With a code of the protocol.
    Request(u8),
}

impl From<std::io::Error> for Bad {
    fn from(_: std::io::Error) -> Self {
        Self::Broken
    }
}

pub(super) async fn serve<S>(mut stream: S, host: &Client)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let asked = match timeout(PATIENCE, read(&mut stream)).await {
        Ok(asked) => asked,
        Err(_) => return,
    };
    let (name, port) = match asked {
        Ok(asked) => asked,
        Err(Bad::Broken) => return,
        Err(Bad::Method) => {
            let _ = stream.write_all(&[VERSION, NO_METHOD]).await;
            return;
        }
        Err(Bad::Request(code)) => {
            let _ = stream.write_all(&answer(code)).await;
            return;
        }
    };
    match reach(host, &name, port).await {
        Ok(raw) => {
            if stream.write_all(&answer(0)).await.is_ok() {
                join(stream, raw.stream, raw.early).await;
            }
        }
        Err(error) => {
            let _ = stream.write_all(&answer(socks_code(error.kind))).await;
            let _ = stream.shutdown().await;
        }
    }
}

/// Nobody asks what our own address was.
fn answer(code: u8) -> [u8; 10] {
    [VERSION, code, 0, IPV4, 0, 0, 0, 0, 0, 0]
}

/// Reads the greeting and the request, and answers the former.
pub(super) async fn read<S>(stream: &mut S) -> Result<(String, u16), Bad>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let [version, count] = bytes(stream).await?;
    if version != VERSION {
        return Err(Bad::Broken);
    }
    let mut methods = vec![0; usize::from(count)];
    stream.read_exact(&mut methods).await?;
    if !methods.contains(&NO_PASSWORD) {
        return Err(Bad::Method);
    }
    stream.write_all(&[VERSION, NO_PASSWORD]).await?;
    let [version, command, _, kind] = bytes(stream).await?;
    if version != VERSION {
        return Err(Bad::Broken);
    }
    let name = match kind {
        IPV4 => IpAddr::V4(Ipv4Addr::from(bytes::<4, _>(stream).await?)).to_string(),
        IPV6 => IpAddr::V6(Ipv6Addr::from(bytes::<16, _>(stream).await?)).to_string(),
        NAME => {
            let [length] = bytes(stream).await?;
            let mut name = vec![0; usize::from(length)];
            stream.read_exact(&mut name).await?;
            String::from_utf8(name).map_err(|_| Bad::Request(8))?
        }
        _ => return Err(Bad::Request(8)),
    };
    let port = u16::from_be_bytes(bytes(stream).await?);
    if command != CONNECT {
        return Err(Bad::Request(7));
    }
    Ok((name, port))
}

async fn bytes<const N: usize, S: AsyncRead + Unpin>(stream: &mut S) -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(sent: &[u8]) -> (Result<(String, u16), Bad>, Vec<u8>) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (mut ours, mut theirs) = tokio::io::duplex(4096);
            theirs.write_all(sent).await.unwrap();
            theirs.shutdown().await.unwrap();
            let read = read(&mut ours).await;
            drop(ours);
            let mut back = Vec::new();
            theirs.read_to_end(&mut back).await.unwrap();
            (read, back)
        })
    }

    #[test]
    fn names_and_addresses_are_read() {
        let name = [&[5, 2, 2, 0, 5, 1, 0, 3, 11][..], b"example.com", &[1, 187]].concat();
        assert_eq!(parse(&name), (Ok(("example.com".to_owned(), 443)), vec![5, 0]));
        let four = [5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1, 0, 80];
        assert_eq!(parse(&four).0, Ok(("127.0.0.1".to_owned(), 80)));
        let six = [&[5, 1, 0, 5, 1, 0, 4][..], &[0; 15], &[1, 0, 80]].concat();
        assert_eq!(parse(&six).0, Ok(("::1".to_owned(), 80)));
    }

    #[test]
    fn what_is_not_offered_is_said() {
        assert_eq!(parse(&[5, 1, 2]).0, Err(Bad::Method));
        assert_eq!(parse(&[4, 1, 0, 80]).0, Err(Bad::Broken));
        let bind = [5, 1, 0, 5, 2, 0, 1, 1, 1, 1, 1, 0, 80];
        assert_eq!(parse(&bind).0, Err(Bad::Request(7)));
        assert_eq!(parse(&[5, 1, 0, 5, 1, 0, 9]).0, Err(Bad::Request(8)));
        let garbled = [&[5, 1, 0, 5, 1, 0, 3, 2][..], &[0xff, 0xfe, 0, 80]].concat();
        assert_eq!(parse(&garbled).0, Err(Bad::Request(8)));
    }

    proptest! {
        #[test]
        fn hostile_input_ends_and_never_panics(sent in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = parse(&sent);
            let _ = parse(&[&[5, 1, 0, 5, 1, 0][..], &sent].concat());
        }
    }
}
