//! What the command line says about itself.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::Command;

fn nacre(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_nacre"))
        .args(args)
        .env_remove("NACRE_DATA")
        .env_remove("NACRE_CONFIG")
        .env_remove("PUBLIC_URL")
        .env_remove("NACRE_TRUSTED_PROXIES")
        .env_remove("OWNER_DID")
        .env_remove("ATPROTO_PLC_URL")
        .env_remove("ATPROTO_CA_FILE")
        .env_remove("NACRE_DESKTOP_SEED")
        .env("COLUMNS", "100")
        .output()
        .unwrap();
    format!(
        "{}{}",
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap()
    )
}

#[test]
fn help_teaches() {
    insta::assert_snapshot!("help", nacre(&["--help"]));
    for command in [
        "up",
        "exec",
        "shell",
        "cp",
        "logs",
        "sandbox",
        "doctor",
        "history",
        "diff",
        "undo",
        "redo",
        "restore",
        "dev",
        "swap",
        "sessions",
        "token",
        "audit",
        "register",
        "ports",
        "forward",
        "egress",
        "run",
        "runs",
        "memory",
        "knowledge",
        "publish",
        "publications",
        "chat",
        "conversations",
        "desktop",
    ] {
        insta::assert_snapshot!(format!("help-{command}"), nacre(&[command, "--help"]));
    }
}

#[test]
fn every_shell_gets_a_completion() {
    for shell in ["bash", "zsh", "fish"] {
        let script = nacre(&["completions", shell]);
        assert!(script.contains("sandbox") && script.contains("completions"), "{shell}");
    }
}

#[test]
fn a_manual_page_per_command() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(nacre(&["man", dir.path().to_str().unwrap()]), "");
    for page in ["nacre.1", "nacre-exec.1", "nacre-sandbox-create.1", "nacre-history-show.1"] {
        assert!(dir.path().join(page).is_file(), "{page}");
    }
}
