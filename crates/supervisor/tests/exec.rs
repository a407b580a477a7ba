//! Commands over a real door: what they are given, what they say, how they end.

mod support;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use nacre_wire::ErrorKind;
use nacre_wire::exec::{ClientControl, ExecRequest};
use support::{Supervisor, argv, gone, limit_open_files, sh};

#[tokio::test]
async fn exit_codes_and_signals_are_told_apart() {
    let supervisor = Supervisor::start().await;
    assert_eq!(supervisor.sh("exit 7").await.finish().await.code(), Some(7));
    assert_eq!(supervisor.exec(argv(&["true"])).await.finish().await.code(), Some(0));
    let killed = supervisor.sh("kill -SEGV $$").await.finish().await.exit.unwrap();
    assert_eq!((killed.code, killed.signal.as_deref()), (None, Some("SEGV")));
    let mut running = supervisor.sh("echo ready; sleep 1000").await;
    running.socket.until("ready").await;
    running.socket.signal("USR1").await;
    let signalled = running.finish().await.exit.unwrap();
    assert_eq!(signalled.signal.as_deref(), Some("USR1"));
}

#[tokio::test]
async fn the_streams_stay_apart() {
    let supervisor = Supervisor::start().await;
    let heard = supervisor.sh("echo out; echo err >&2; echo more").await.finish().await;
    assert_eq!((heard.stdout, heard.stderr), (b"out\nmore\n".to_vec(), b"err\n".to_vec()));
}

#[tokio::test]
async fn output_arrives_while_the_command_runs() {
    let supervisor = Supervisor::start().await;
    let request = ExecRequest { stdin: true, ..sh("echo first; read line; echo got $line") };
    let mut running = supervisor.exec(request).await;
    running.socket.until("first\n").await;
    running.socket.input("hello\n").await;
    let heard = running.finish().await;
    assert_eq!(heard.text(), "got hello\n");
}

#[tokio::test]
async fn a_command_starts_in_the_workspace_with_a_clean_environment() {
    let supervisor = Supervisor::start_with(|command| {
        command.env("SECRET_OF_THE_HOST", "1");
    })
    .await;
    let mut request =
        sh("pwd; env | grep -v ^PWD= | grep -v ^OLDPWD= | grep -v ^_= | cut -d= -f1 | sort; umask");
    request.env = BTreeMap::from([("EXTRA".into(), Some("x".into())), ("LANG".into(), None)]);
    let heard = supervisor.exec(request).await.finish().await;
    let workspace = supervisor.workspace();
    let expected =
        format!("{}\nEXTRA\nHOME\nLOGNAME\nPATH\nSHELL\nUSER\n0022\n", workspace.display());
    // The shell adds a level counter of its own on some systems.
    assert_eq!(heard.text().replace("SHLVL\n", ""), expected);
}

#[tokio::test]
async fn a_command_inherits_no_descriptors_and_no_blocked_signals() {
    let supervisor = Supervisor::start().await;
    let script = "ls /proc/self/fd | tr '\\n' ' '; grep -E 'Sig(Blk|Ign)' /proc/self/status | tr -d '\\t\\n'";
    let heard = supervisor.sh(script).await.finish().await;
    let none = "0000000000000000";
    // `ls` itself holds 3 on the directory.
    assert_eq!(heard.text(), format!("0 1 2 3 SigBlk:{none}SigIgn:{none}"));
}

#[tokio::test]
async fn a_command_is_limited_as_usual_and_gives_way_to_the_supervisor() {
    let supervisor = Supervisor::start_with(|command| limit_open_files(command, 1000)).await;
    let path = format!("/proc/{}/oom_score_adj", supervisor.pid());
    let own: i32 = std::fs::read_to_string(path).unwrap().trim().parse().unwrap();
    let score = (own.max(0) + 200).min(1000);
    // It is given its score a moment after it begins.
    let script = format!("until grep -qx {score} /proc/self/oom_score_adj; do :; done; ulimit -n");
    let request = ExecRequest { timeout_ms: Some(20_000), ..sh(&script) };
    let heard = supervisor.exec(request).await.finish().await;
    assert_eq!((heard.text().as_str(), heard.code()), ("1000\n", Some(0)));
}

#[tokio::test]
async fn what_cannot_start_says_which_part_is_wrong() {
    let supervisor = Supervisor::start().await;
    let check = async |request: ExecRequest, kind: ErrorKind, names: &str| {
        let error = supervisor.refused(request).await;
        assert_eq!(error.kind, kind, "{error:?}");
        assert!(error.message.contains(names), "{error:?} does not name {names}");
    };
    check(argv(&["no-such-program"]), ErrorKind::NotFound, "program no-such-program").await;
    check(argv(&["/no/such"]), ErrorKind::NotFound, "program /no/such").await;
    check(argv(&["/etc/passwd"]), ErrorKind::Permission, "program /etc/passwd").await;
    let nowhere = ExecRequest { cwd: Some("/no/where".into()), ..argv(&["true"]) };
    check(nowhere, ErrorKind::NotFound, "working directory /no/where").await;
    let file = ExecRequest { cwd: Some("/etc/passwd".into()), ..argv(&["true"]) };
    check(file, ErrorKind::NotDirectory, "working directory /etc/passwd").await;
    let nobody = ExecRequest { user: Some("no-such-user".into()), ..argv(&["true"]) };
    check(nobody, ErrorKind::NotFound, "no-such-user").await;
    check(ExecRequest::default(), ErrorKind::InvalidRequest, "nothing to run").await;
    let long = "x".repeat(3 * 1024 * 1024 / 4);
    check(argv(&["true", &long]), ErrorKind::TooLarge, "true").await;
}

#[tokio::test]
async fn a_script_without_an_interpreter_line_runs_like_in_a_shell() {
    let supervisor = Supervisor::start().await;
    let script = supervisor.workspace().join("script");
    std::fs::write(&script, "echo plain $1").unwrap();
    let made = supervisor.sh("chmod +x script").await.finish().await;
    assert_eq!(made.code(), Some(0));
    let heard = supervisor.exec(argv(&["./script", "words"])).await.finish().await;
    assert_eq!(heard.text(), "plain words\n");
}

#[tokio::test]
async fn another_user_is_that_user_in_every_way() {
    let supervisor = Supervisor::start().await;
    let me = rustix::process::getuid();
    let (user, expected) =
        if me.is_root() { ("65534", "65534 65534 65534 65534") } else { ("0", "") };
    let request = ExecRequest {
        user: Some(user.into()),
        cwd: Some("/".into()),
        ..sh(
            "grep -E '^(Uid|Gid)' /proc/self/status | cut -f2- | tr '\\t' ' ' | sort -u; grep Groups /proc/self/status",
        )
    };
    if !me.is_root() {
        let error = supervisor.refused(request).await;
        assert_eq!(error.kind, ErrorKind::Permission, "{error:?}");
        return;
    }
    let heard = supervisor.exec(request).await.finish().await;
    assert!(heard.text().starts_with(&format!("{expected}\nGroups:")), "{}", heard.text());
}

#[tokio::test]
async fn a_time_out_ends_the_command_and_all_it_started() {
    let supervisor = Supervisor::start().await;
    // One child ignores TERM, one is in a job-control group of its own.
    let script = "sh -c 'trap \"\" TERM; echo deaf $$; while :; do sleep 1; done' & \
                  set -m; sleep 1000 & echo job $!; wait";
    let request = ExecRequest { timeout_ms: Some(300), ..sh(script) };
    let heard = supervisor.exec(request).await.finish().await;
    let exit = heard.exit.clone().unwrap();
    assert!(exit.timed_out, "{exit:?}");
    let pids: Vec<i32> =
        heard.text().lines().map(|line| line.split(' ').nth(1).unwrap().parse().unwrap()).collect();
    assert_eq!(pids.len(), 2, "{}", heard.text());
    for pid in pids {
        gone(pid).await;
    }
}

#[tokio::test]
async fn a_time_out_is_not_late_for_a_command_that_obeys() {
    let supervisor = Supervisor::start().await;
    let began = Instant::now();
    let request = ExecRequest { timeout_ms: Some(100), ..argv(&["sleep", "1000"]) };
    let exit = supervisor.exec(request).await.finish().await.exit.unwrap();
    assert_eq!((exit.timed_out, exit.signal.as_deref()), (true, Some("TERM")));
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_command_ends_with_the_client_that_started_it() {
    let supervisor = Supervisor::start().await;
    let mut running = supervisor.sh("sleep 1000 & echo $!; wait").await;
    let child: i32 = running.socket.until("\n").await.trim().parse().unwrap();
    let pid = running.pid;
    drop(running);
    gone(pid).await;
    gone(child).await;
}

#[tokio::test]
async fn a_command_left_with_a_full_pipe_ends_with_its_client_too() {
    let supervisor = Supervisor::start().await;
    let running = supervisor.exec(argv(&["yes"])).await;
    let pid = running.pid;
    drop(running);
    gone(pid).await;
}

#[tokio::test]
async fn the_exit_does_not_wait_for_what_a_command_leaves_behind() {
    let supervisor = Supervisor::start().await;
    let heard = supervisor.sh("sleep 1000 & echo $!").await.finish().await;
    assert_eq!(heard.code(), Some(0));
    let left: i32 = heard.text().trim().parse().unwrap();
    assert!(std::path::Path::new(&format!("/proc/{left}")).exists());
    supervisor.sh(&format!("kill {left}")).await.finish().await;
    // Its parent is gone, so that it disappears shows that orphans are collected.
    gone(left).await;
}

#[tokio::test]
async fn input_can_be_piped_through_and_ended() {
    let supervisor = Supervisor::start().await;
    let request = ExecRequest { stdin: true, ..argv(&["wc", "-c"]) };
    let mut running = supervisor.exec(request).await;
    for _ in 0..256 {
        running.socket.input(vec![b'x'; 16 * 1024]).await;
    }
    running.socket.control(&ClientControl::StdinEof).await;
    assert_eq!(running.finish().await.text().trim(), (256 * 16 * 1024).to_string());
}

#[tokio::test]
async fn without_stdin_there_is_nothing_to_read() {
    let supervisor = Supervisor::start().await;
    assert_eq!(supervisor.exec(argv(&["wc", "-c"])).await.finish().await.text().trim(), "0");
}

#[tokio::test]
async fn a_command_that_stops_reading_does_not_stop_its_exit() {
    let supervisor = Supervisor::start().await;
    let request = ExecRequest { stdin: true, ..sh("read line; echo $line; sleep 0.2; exit 3") };
    let mut running = supervisor.exec(request).await;
    running.socket.input("first\n").await;
    // More than any pipe takes; most of it is never read.
    for _ in 0..8 {
        running.socket.input(vec![b'x'; 32 * 1024]).await;
    }
    let heard = running.finish().await;
    assert_eq!((heard.text().as_str(), heard.code()), ("first\n", Some(3)));
}
