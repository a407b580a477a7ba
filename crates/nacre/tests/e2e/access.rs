//! Sessions, tokens and the record, from the command line; and the command line from elsewhere.

use std::process::Output;

use http::StatusCode;

use crate::browser::Browser;
use crate::computer::TestComputer;

#[tokio::test]
async fn sessions_are_listed_and_revoked() {
    let computer = TestComputer::start();
    assert_eq!(computer.ok(&["sessions", "list"]), "No browser is signed in.\n");
    let browser = Browser::of_the_owner(&computer).await;
    let sessions = computer.json(&["sessions", "list", "--json"])["sessions"].clone();
    let id = sessions[0]["id"].as_str().unwrap();
    assert!(computer.ok(&["sessions", "list"]).contains(id));
    assert_eq!(browser.get("/supervisor/health", &[]).await.status, StatusCode::OK);
    assert_eq!(computer.ok(&["sessions", "revoke", id]), "Signed out: 1.\n");
    let refused = browser.get("/supervisor/health", &[]).await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    assert_eq!(computer.ok(&["sessions", "revoke", "--all"]), "Signed out: 0.\n");

    let record = computer.ok(&["audit"]);
    for words in ["link created", "sign in", "session ended"] {
        assert!(record.contains(words), "{words}: {record}");
    }
    let page = computer.json(&["audit", "--limit", "1", "--json"]);
    let next = page["next"].as_i64().unwrap().to_string();
    let older = computer.json(&["audit", "--limit", "1", "--before", &next, "--json"]);
    assert!(older["events"][0]["id"].as_i64() < page["events"][0]["id"].as_i64());
}

/// The command line of another machine: other data, an address and a token.
fn elsewhere(computer: &TestComputer, token: &str, args: &[&str]) -> Output {
    let url = computer.json(&["status", "--json"])["url"].as_str().unwrap().to_owned();
    let other = TestComputer::elsewhere();
    let mut command = other.command(args);
    command.env("NACRE_URL", url).env("NACRE_TOKEN", token).output().unwrap()
}

#[test]
fn the_command_line_works_from_elsewhere_as_far_as_its_token_goes() {
    let computer = TestComputer::start();
    let make = |name: &str, scope: &str| {
        let token = computer.ok(&["token", "create", "--name", name, "--scope", scope]);
        token.trim_end().to_owned()
    };
    let (admin, read) = (make("laptop", "admin"), make("eyes", "read"));
    let output =
        elsewhere(&computer, &admin, &["exec", "--", "sh", "-c", "echo from afar; exit 7"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "from afar\n");
    assert_eq!(output.status.code(), Some(7));
    assert!(elsewhere(&computer, &read, &["status"]).status.success());
    let refused = |token: &str, args: &[&str], why: &str| {
        let output = elsewhere(&computer, token, args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(why), "{args:?}: {said}");
    };
    refused(&read, &["exec", "--", "true"], "not for that");
    refused(&admin, &["login"], "unix socket");
    refused(&admin, &["token", "create", "--name", "x", "--scope", "read"], "unix socket");
    refused("nacre_wrong", &["status"], "not known");

    let list = computer.ok(&["token", "list"]);
    assert!(list.contains("laptop") && !list.contains(&admin), "{list}");
    computer.ok(&["token", "revoke", "laptop"]);
    refused(&admin, &["status"], "not known");
}

#[test]
fn an_owner_who_cannot_be_read_stops_the_start() {
    let computer = TestComputer::switched_off();
    let fails = |owner: &str, listen: &str, why: &str| {
        let mut command = computer.command(&["up", "--detach", "--listen", listen]);
        let output = command.env("OWNER_DID", owner).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(why), "{owner}: {said}");
    };
    for bad in ["", "alice.bsky.social", "did:plc:short"] {
        fails(bad, "127.0.0.1:0", "is not a DID");
    }
    fails("did:web:alice.example.net", "0.0.0.0:0", "PUBLIC_URL");
    let open = computer.run(&["up", "--detach", "--listen", "0.0.0.0:0"]);
    let said = String::from_utf8_lossy(&open.stderr);
    assert!(said.contains("nobody is named as the owner") && said.contains("OWNER_DID"), "{said}");
}
