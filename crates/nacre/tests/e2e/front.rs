//! How browsers come in, as `nacre up` is told.

use std::path::Path;

use crate::computer::TestComputer;

fn make_certificate(directory: &Path, cert: &str, key: &str) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(directory.join(cert), made.cert.pem()).unwrap();
    std::fs::write(directory.join(key), made.signing_key.serialize_pem()).unwrap();
}

#[test]
fn with_a_certificate_the_address_is_https_also_in_the_background() {
    let (computer, files) = (TestComputer::switched_off(), tempfile::tempdir().unwrap());
    make_certificate(files.path(), "cert.pem", "key.pem");
    let mut up = computer.command(&["up", "--detach", "--listen", "127.0.0.1:0"]);
    up.args(["--tls-cert", "cert.pem", "--tls-key", "key.pem"]).current_dir(files.path());
    let output = up.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let link = computer.json(&["login", "--json"])["url"].as_str().unwrap().to_owned();
    assert!(link.starts_with("https://127.0.0.1:"), "{link}");
}

#[test]
fn a_certificate_that_cannot_be_used_is_named() {
    let (computer, files) = (TestComputer::switched_off(), tempfile::tempdir().unwrap());
    make_certificate(files.path(), "cert.pem", "key.pem");
    make_certificate(files.path(), "other.pem", "other-key.pem");
    for (cert, key, expected) in [
        ("cert.pem", "other-key.pem", "other-key.pem does not belong to the certificate in "),
        ("key.pem", "key.pem", "key.pem holds no certificate"),
        ("missing.pem", "key.pem", "missing.pem: No such file"),
    ] {
        for detach in [&["--detach"][..], &[]] {
            let mut up = computer.command(&["up", "--listen", "127.0.0.1:0"]);
            up.args(["--tls-cert", cert, "--tls-key", key]).args(detach);
            let output = up.current_dir(files.path()).output().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.contains("error: TLS: ") && said.contains(expected), "{said}");
            assert!(said.contains("\nhint: "), "{said}");
        }
    }
}

#[test]
fn the_public_address_is_taken_from_the_environment() {
    let computer = TestComputer::switched_off();
    let mut up = computer.command(&["up", "--detach", "--listen", "127.0.0.1:0"]);
    up.env("PUBLIC_URL", "https://pc.example/").env("OWNER_DID", "did:web:alice.example.net");
    let output = up.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let link = computer.json(&["login", "--json"])["url"].as_str().unwrap().to_owned();
    assert!(link.starts_with("https://pc.example/login?token="), "{link}");
    let status = computer.json(&["status", "--json"]);
    assert_eq!(status["url"], "https://pc.example");
}

#[test]
fn an_address_that_others_reach_needs_an_owner_wherever_we_listen() {
    let computer = TestComputer::elsewhere();
    let refused = |computer: &TestComputer, url: &str| {
        let mut up = computer.command(&["up", "--listen", "127.0.0.1:0"]);
        let output = up.env("PUBLIC_URL", url).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("pc.example is an address that others reach"), "{said}");
        for way in ["OWNER_DID", "without PUBLIC_URL", "/register"] {
            assert!(said.contains(way), "{said}");
        }
    };
    refused(&computer, "https://pc.example");
    std::fs::write(computer.data().join("nacre.toml"), "gateway.host = \"pc.example\"\n").unwrap();
    refused(&computer, "");
}
