//! What listens in a sandbox, and the way to it.

use serde::{Deserialize, Serialize};

/// What an upgrade at `/supervisor/ports/{port}` asks for: bytes, both ways, as they are.
pub const PROTOCOL: &str = "tcp";

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PortList {
    /// By number.
    pub ports: Vec<PortInfo>,
}

/// A socket that takes connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PortInfo {
    pub port: u16,
    /// Where it listens: `127.0.0.1`, or `0.0.0.0` and `::` for everywhere.
    pub address: String,
    /// Who listens, where that can be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<PortProcess>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PortProcess {
    /// In the sandbox.
    pub pid: i32,
    /// As the kernel calls it: its first fifteen bytes.
    pub name: String,
}

/// A port as we write it, and in no other way: not 0, no sign, no leading zero.
pub fn parse(text: &str) -> Option<u16> {
    let port = text.parse::<u16>().ok().filter(|port| *port != 0)?;
    (text.len() == port.ilog10() as usize + 1).then_some(port)
}

/// `/ports/{port}` at the beginning of a path, and what follows: nothing, or something with a slash.
pub fn split(path: &str) -> Option<(u16, &str)> {
    let rest = path.strip_prefix("/ports/")?;
    let (port, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    Some((parse(port)?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_written_in_one_way() {
        for (text, port) in [("1", 1), ("3000", 3000), ("65535", 65535), ("10", 10)] {
            assert_eq!(parse(text), Some(port));
        }
        for bad in ["", "0", "00", "080", "+80", "-1", "65536", "8O", "3000 ", "%33000"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_port_and_what_follows_are_told_apart() {
        for (path, expected) in [
            ("/ports/3000", Some((3000, ""))),
            ("/ports/3000/", Some((3000, "/"))),
            ("/ports/3000/a/b", Some((3000, "/a/b"))),
            ("/ports/3000//a", Some((3000, "//a"))),
            ("/ports/", None),
            ("/ports", None),
            ("/ports/x/", None),
            ("/ports/03/", None),
            ("/Ports/3000/", None),
            ("/a/ports/3000/", None),
        ] {
            assert_eq!(split(path), expected, "{path}");
        }
    }
}
