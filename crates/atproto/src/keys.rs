//! P-256 keys: made, kept in a file for its owner alone, and used to sign.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};

#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{} can be read by others", .0.display())]
    Open(PathBuf),
    #[error("{} is not a P-256 key", .0.display())]
    Unreadable(PathBuf),
    #[error("a key cannot be made")]
    Made,
}

/// A private key with the name it goes by. It has no `Debug` that shows it.
pub struct SigningKey {
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SigningKey(..)")
    }
}

impl SigningKey {
    pub(crate) fn generate() -> Result<Self, KeyError> {
        Self::parse(&new_document()?).ok_or(KeyError::Made)
    }

    /// The key in this file; made when there is none. One that others can read is not used: it may
    /// have been read.
    pub fn load_or_make(path: &Path) -> Result<Self, KeyError> {
        let failed = |source| KeyError::Io { path: path.to_owned(), source };
        match fs::metadata(path) {
            Ok(found) if found.mode() & 0o077 != 0 => return Err(KeyError::Open(path.to_owned())),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                write_new(path, &new_document()?).map_err(failed)?;
            }
            Err(error) => return Err(failed(error)),
        }
        let document = fs::read(path).map_err(failed)?;
        Self::parse(&document).ok_or_else(|| KeyError::Unreadable(path.to_owned()))
    }

    fn parse(document: &[u8]) -> Option<Self> {
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document, &random);
        Some(Self { pair: pair.ok()?, random })
    }

    /// The public half as RFC 7517 writes it.
    pub(crate) fn jwk(&self) -> Value {
        let (x, y) = self.coordinates();
        json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y })
    }

    /// RFC 7638: the same key always has the same name.
    pub(crate) fn thumbprint(&self) -> String {
        let (x, y) = self.coordinates();
        let canonical = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
        URL_SAFE_NO_PAD.encode(digest(&SHA256, canonical.as_bytes()))
    }

    pub(crate) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        Some(self.pair.sign(&self.random, message).ok()?.as_ref().to_vec())
    }

    fn coordinates(&self) -> (String, String) {
        // Uncompressed: a byte that says so, then both.
        let point = self.pair.public_key().as_ref();
        (URL_SAFE_NO_PAD.encode(&point[1..33]), URL_SAFE_NO_PAD.encode(&point[33..65]))
    }
}

fn new_document() -> Result<Vec<u8>, KeyError> {
    let random = SystemRandom::new();
    let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
    Ok(made.map_err(|_| KeyError::Made)?.as_ref().to_vec())
}

/// Whole or not at all: a crash leaves no half of a key under its name.
fn write_new(path: &Path, document: &[u8]) -> std::io::Result<()> {
    let draft = path.with_extension("new");
    let _ = fs::remove_file(&draft);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    file.write_all(document)?;
    file.sync_all()?;
    fs::rename(&draft, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_made_once_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("client.key");
        let first = SigningKey::load_or_make(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let again = SigningKey::load_or_make(&path).unwrap();
        assert_eq!(first.thumbprint(), again.thumbprint());
        assert_eq!(format!("{first:?}"), "SigningKey(..)");

        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(SigningKey::load_or_make(&path), Err(KeyError::Open(_))));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, b"nonsense").unwrap();
        assert!(matches!(SigningKey::load_or_make(&path), Err(KeyError::Unreadable(_))));
    }

    #[test]
    fn keys_differ() {
        let names = [(); 2].map(|()| SigningKey::generate().unwrap().thumbprint());
        assert_ne!(names[0], names[1]);
    }
}
