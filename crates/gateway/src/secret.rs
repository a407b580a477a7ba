//! Bearer secrets: made here, shown once, kept only as hashes.

use std::fmt;

use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest, Sha256};

const BYTES: usize = 32;

/// 256 random bits as lower case hex. It has no `Debug` that shows it and no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

/// What the database keeps. A stolen database opens no session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SecretHash(pub(crate) [u8; 32]);

impl Secret {
    pub(crate) fn generate() -> std::io::Result<Self> {
        Ok(Self(hex(&random::<BYTES>()?)))
    }

    /// The same with a word before it, by which it is known for what it is.
    pub(crate) fn named(&self, prefix: &str) -> Self {
        Self(format!("{prefix}{}", self.0))
    }

    pub(crate) fn hash(&self) -> SecretHash {
        SecretHash::of(&self.0)
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl SecretHash {
    /// As [`hex`] writes it.
    pub(crate) fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[index * 2..index * 2 + 2], 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// Of what a client sent, whatever it is: only its hash is ever compared.
    pub(crate) fn of(presented: &str) -> Self {
        Self(Sha256::digest(presented.as_bytes()).into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// `prefix` and ten random characters: a fresh sandbox id.
pub(crate) fn random_id(prefix: &str) -> std::io::Result<String> {
    Ok(format!("{prefix}{}", hex(&random::<5>()?)))
}

pub(crate) fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
    }
    Ok(bytes)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_differ_are_long_and_do_not_print() {
        let (a, b) = (Secret::generate().unwrap(), Secret::generate().unwrap());
        assert_ne!(a, b);
        assert_eq!(a.reveal().len(), 64);
        assert_eq!(format!("{a:?}"), "Secret(..)");
        assert_eq!(SecretHash::of(a.reveal()), a.hash());
    }
}
