//! Up and down, crashes and restarts.

use nacre_wire::client::Client;
use nacre_wire::status::Version;
use rustix::process::Signal;

use crate::computer::TestComputer;

#[test]
fn up_says_where_to_sign_in_and_again_when_it_runs() {
    let pc = TestComputer::start();
    let again = pc.up();
    assert!(again.starts_with("Nacre is already running (process "), "{again}");
    assert!(again.contains("/login?token="), "{again}");
    let log = std::fs::read_to_string(pc.data().join("gateway.log")).unwrap();
    assert!(!log.contains("token="), "a link is a secret: {log}");
}

#[test]
fn a_sandbox_survives_its_gateway() {
    let pc = TestComputer::start();
    let id = pc.ok(&["exec", "--detach", "--", "sleep", "600"]);
    for signal in [Signal::TERM, Signal::KILL] {
        pc.signal_gateway(signal);
        assert_eq!(pc.run(&["status"]).status.code(), Some(3), "{signal:?}");
        pc.up();
        assert_eq!(pc.json(&["ps", "--json"])[0]["id"], id.trim(), "{signal:?}");
    }
}

#[test]
fn a_sandbox_hears_its_gateway_and_the_next_one() {
    let pc = TestComputer::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // The gateway's own version, by way of the supervisor.
    let heard = || {
        let socket = Client::unix(pc.data().join("nacre.sock"));
        let door = socket.under("/admin/sandboxes/live/door");
        runtime.block_on(door.get_json::<Version>("/supervisor/host")).unwrap().version
    };
    assert_eq!(heard(), env!("CARGO_PKG_VERSION"));
    for signal in [Signal::TERM, Signal::KILL] {
        pc.signal_gateway(signal);
        pc.up();
        assert_eq!(heard(), env!("CARGO_PKG_VERSION"), "{signal:?}");
    }
}

#[test]
fn down_stops_everything_and_files_stay() {
    let pc = TestComputer::start();
    pc.exec("echo kept > file");
    let id = pc.ok(&["exec", "--detach", "--", "sleep", "600"]);
    assert_eq!(pc.ok(&["down"]), "Nacre has stopped.\n");
    assert_eq!(pc.ok(&["down"]), "Nacre was not running.\n");
    pc.up();
    assert_eq!(pc.exec("cat file"), "kept\n");
    assert!(!pc.ok(&["ps", "--all", "--json"]).contains(id.trim()));
}

#[test]
fn sandboxes_are_made_used_and_removed() {
    let pc = TestComputer::start();
    pc.ok(&["sandbox", "create", "dev", "--start"]);
    pc.ok(&["exec", "-s", "dev", "--", "sh", "-c", "echo hello > f"]);
    pc.ok(&["cp", "dev:f", ":f"]);
    assert_eq!(pc.exec("cat f"), "hello\n");

    pc.ok(&["sandbox", "stop", "dev"]);
    let refused = pc.run(&["exec", "-s", "dev", "--", "true"]);
    assert_eq!(refused.status.code(), Some(125));
    let complaint = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(complaint, "error: sandbox \"dev\" is stopped\nhint: nacre sandbox start dev\n");

    let refused = pc.run(&["sandbox", "destroy", "dev"]);
    assert_eq!(refused.status.code(), Some(1), "not without --yes");
    pc.ok(&["sandbox", "destroy", "dev", "--yes"]);
    let list = pc.json(&["sandbox", "list", "--json"]);
    assert_eq!(list["sandboxes"].as_array().unwrap().len(), 1);
}

#[test]
fn a_port_in_use_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let data = tempfile::tempdir().unwrap();
    for detach in [&["--detach"][..], &[]] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_nacre"))
            .args(["up", "--listen", &address])
            .args(detach)
            .env("NACRE_DATA", data.path())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert!(complaint.contains(&format!("error: cannot listen on {address}")), "{complaint}");
        assert!(complaint.contains("hint: another program has this port"), "{complaint}");
    }
}
