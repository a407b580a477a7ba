//! Our certificate: read, held to its key, and read again when its files change.
//!
//! [`Certificate`] owns the one in use. Whoever renews it only replaces the files; connections that
//! are open keep what they have. Files that cannot be used change nothing, and the log says why.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// Where the certificate is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The chain, ours first.
    pub cert: PathBuf,
    pub key: PathBuf,
    pub look_every: Duration,
}

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} holds no certificate", .0.display())]
    NoCertificate(PathBuf),
    #[error("{} holds no private key that can be read", .0.display())]
    NoKey(PathBuf),
    #[error("the key in {} does not belong to the certificate in {}", .0.key.display(), .0.cert.display())]
    Mismatch(TlsFiles),
    #[error("{0}")]
    Unusable(rustls::Error),
}

impl TlsError {
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::Read { .. } => "name readable files with --tls-cert and --tls-key",
            Self::NoCertificate(_) => {
                "it must be a PEM file, with BEGIN CERTIFICATE; certbot calls it fullchain.pem"
            }
            Self::NoKey(_) => {
                "it must be a PEM file without a passphrase; certbot calls it privkey.pem"
            }
            Self::Mismatch(_) => "name the two files that were made together",
            Self::Unusable(_) => "use an RSA, ECDSA or Ed25519 certificate of X.509 version 3",
        }
    }
}

/// Tells two states of the files apart.
type Signature = [(u64, u64, u64, i64, i64); 2];

#[derive(Debug)]
pub(crate) struct Certificate {
    files: TlsFiles,
    current: RwLock<(Signature, Arc<CertifiedKey>)>,
}

impl Certificate {
    pub(crate) fn load(files: TlsFiles) -> Result<Self, TlsError> {
        // What changes while it is read is read again.
        let signature = sign(&files)?;
        let current = RwLock::new((signature, Arc::new(read(&files)?)));
        Ok(Self { files, current })
    }

    pub(crate) fn acceptor(self: Arc<Self>) -> Result<TlsAcceptor, TlsError> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Unusable)?
            .with_no_client_auth()
            .with_cert_resolver(self);
        config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Looks at the files for ever. They are looked at by name, since whoever renews a certificate
    /// tends to replace links and directories.
    pub(crate) async fn keep_current(self: Arc<Self>) {
        // The last state that could not be used, so that it is told once.
        let mut refused = None;
        loop {
            tokio::time::sleep(self.files.look_every).await;
            let this = self.clone();
            match tokio::task::spawn_blocking(move || this.look_again(refused)).await {
                Ok(outcome) => refused = outcome,
                Err(error) => tracing::warn!(%error, "the certificate was not looked at"),
            }
        }
    }

    /// The state of the files, when it cannot be used.
    fn look_again(&self, refused: Option<Signature>) -> Option<Signature> {
        // Between the removal of a file and its replacement there is nothing to say.
        let signature = sign(&self.files).ok()?;
        let used = self.current.read().unwrap_or_else(PoisonError::into_inner).0;
        if signature == used {
            return None;
        }
        match read(&self.files) {
            Ok(fresh) => {
                let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
                *current = (signature, Arc::new(fresh));
                tracing::info!(file = %self.files.cert.display(), "a new certificate is in use");
                None
            }
            Err(error) => {
                if refused != Some(signature) {
                    tracing::warn!(%error, "the changed certificate is not used");
                }
                Some(signature)
            }
        }
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.read().unwrap_or_else(PoisonError::into_inner).1.clone())
    }
}

/// What the client and we agreed on.
pub(crate) fn is_http2<S>(stream: &TlsStream<S>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(HTTP2)
}

fn sign(files: &TlsFiles) -> Result<Signature, TlsError> {
    let one = |path: &Path| {
        let metadata = fs::metadata(path)
            .map_err(|source| TlsError::Read { path: path.to_owned(), source })?;
        let (device, inode, size) = (metadata.dev(), metadata.ino(), metadata.size());
        Ok((device, inode, size, metadata.mtime(), metadata.mtime_nsec()))
    };
    Ok([one(&files.cert)?, one(&files.key)?])
}

fn read(files: &TlsFiles) -> Result<CertifiedKey, TlsError> {
    let open = |path: &Path| {
        fs::read(path).map_err(|source| TlsError::Read { path: path.to_owned(), source })
    };
    let chain = CertificateDer::pem_slice_iter(&open(&files.cert)?)
        .collect::<Result<Vec<_>, _>>()
        .ok()
        .filter(|chain| !chain.is_empty())
        .ok_or_else(|| TlsError::NoCertificate(files.cert.clone()))?;
    let key = PrivateKeyDer::from_pem_slice(&open(&files.key)?)
        .map_err(|_| TlsError::NoKey(files.key.clone()))?;
    CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => TlsError::Mismatch(files.clone()),
        other => TlsError::Unusable(other),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Made {
        directory: tempfile::TempDir,
    }

    impl Made {
        fn new() -> Self {
            Self { directory: tempfile::tempdir().unwrap() }
        }

        fn write(&self, name: &str, content: &str) -> PathBuf {
            let path = self.directory.path().join(name);
            fs::write(&path, content).unwrap();
            path
        }

        fn load(&self, cert: &str, key: &str) -> Result<Certificate, TlsError> {
            let (cert, key) = (self.write("cert.pem", cert), self.write("key.pem", key));
            Certificate::load(TlsFiles { cert, key, look_every: Duration::ZERO })
        }
    }

    fn pair() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    #[test]
    fn what_is_wrong_with_the_files_is_said() {
        let made = Made::new();
        let ((cert, key), (_, other)) = (pair(), pair());
        let check = |cert: &str, key: &str, expected: &str| {
            let error = made.load(cert, key).err().unwrap().to_string();
            assert!(error.contains(expected), "{error}");
        };
        made.load(&cert, &key).unwrap();
        check(&cert, &other, "key.pem does not belong to the certificate in ");
        check("", &key, "cert.pem holds no certificate");
        check(&key, &key, "cert.pem holds no certificate");
        check(&cert, &cert, "key.pem holds no private key");
        let encrypted = key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
        check(&cert, &encrypted, "key.pem holds no private key");
        let broken = cert.replace(|c: char| c.is_ascii_digit(), "A");
        assert!(made.load(&broken, &key).is_err());
        let missing = made.directory.path().join("nothing.pem");
        let files = TlsFiles { cert: missing.clone(), key: missing, look_every: Duration::ZERO };
        let error = Certificate::load(files).err().unwrap().to_string();
        assert!(error.contains("nothing.pem: No such file"), "{error}");
    }

    #[test]
    fn a_changed_pair_is_taken_and_a_broken_one_is_not() {
        let made = Made::new();
        let ((cert, key), (next_cert, next_key)) = (pair(), pair());
        let certificate = made.load(&cert, &key).unwrap();
        let used = || certificate.current.read().unwrap().1.cert[0].clone();
        let first = used();
        assert_eq!(certificate.look_again(None), None);
        assert_eq!(used(), first);

        // As certbot does it: for a moment the two do not match.
        made.write("cert.pem", &next_cert);
        assert!(certificate.look_again(None).is_some());
        assert_eq!(used(), first);
        made.write("key.pem", &next_key);
        assert_eq!(certificate.look_again(None), None);
        assert_ne!(used(), first);

        fs::remove_file(made.directory.path().join("cert.pem")).unwrap();
        assert_eq!(certificate.look_again(None), None);
    }
}
