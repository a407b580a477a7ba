//! Terminals: sizes, several clients, and the screen for who comes late.

mod support;

use nacre_wire::ErrorKind;
use nacre_wire::exec::{ClientControl, CommandInfo, ExecRequest, TtySize};
use support::{Supervisor, sh, terminal};

const WIDE: TtySize = TtySize { cols: 132, rows: 43 };

/// What a terminal of the usual size shows after these bytes.
fn shown(bytes: &str) -> vt100::Parser {
    let (rows, cols) = (vt100::Parser::DEFAULT_ROWS, vt100::Parser::DEFAULT_COLS);
    let mut screen = vt100::Parser::new(rows, cols, 1000);
    screen.process(bytes.as_bytes());
    screen
}

#[tokio::test]
async fn a_command_on_a_terminal_has_one_of_the_right_size() {
    let supervisor = Supervisor::start().await;
    let heard = supervisor
        .exec(terminal("stty size; test -t 0 && test -t 1 && test -t 2 && echo $TERM; : > /dev/tty && echo mine"))
        .await
        .finish()
        .await;
    assert_eq!(heard.text(), "24 80\r\nxterm-256color\r\nmine\r\n");
    assert_eq!(heard.code(), Some(0));
}

#[tokio::test]
async fn a_resize_reaches_the_program() {
    let supervisor = Supervisor::start().await;
    let script = "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.05; done";
    let mut running = supervisor.exec(terminal(script)).await;
    running.socket.until("ready").await;
    running.socket.control(&ClientControl::Resize(WIDE)).await;
    running.socket.until("43 132").await;
    let info: CommandInfo = supervisor.get(&format!("/supervisor/commands/{}", running.id)).await;
    assert_eq!(info.tty, Some(WIDE));
}

#[tokio::test]
async fn keys_work_as_on_a_terminal() {
    let supervisor = Supervisor::start().await;
    // No program of its own at the end: while one is started, a shell may hear the key for it and let it pass.
    let script = "echo ready; cat; echo over; read held";
    let mut running = supervisor.exec(terminal(script)).await;
    running.socket.until("ready").await;
    running.socket.input("typed\r").await;
    running.socket.until("typed\r\ntyped\r\n").await;
    running.socket.control(&ClientControl::StdinEof).await;
    // Both at once are for the terminal to put in order, and either may be lost on the way.
    running.socket.until("over").await;
    running.socket.input("\x03").await;
    assert_eq!(running.finish().await.exit.unwrap().signal.as_deref(), Some("INT"));
}

#[tokio::test]
async fn two_clients_see_and_drive_one_terminal() {
    let supervisor = Supervisor::start().await;
    let mut first = supervisor.exec(terminal("PS1='> ' exec sh -i")).await;
    first.socket.until("> ").await;
    let mut second = supervisor.attach(&first.id).await;
    second.until("> ").await;
    first.socket.input("echo fir''st\r").await;
    second.until("first\r\n").await;
    second.input("echo sec''ond\r").await;
    first.socket.until("second\r\n").await;
}

#[tokio::test]
async fn a_terminal_survives_its_client_and_shows_its_screen_to_the_next() {
    let supervisor = Supervisor::start().await;
    let script = "seq 1 100; printf '\\033[31mred\\033[m'; read x";
    let mut running = supervisor.exec(ExecRequest { detach: true, ..terminal(script) }).await;
    running.socket.until("red").await;
    let id = running.id.clone();
    drop(running);
    let mut next = supervisor.attach(&id).await;
    let replay = next.until("red").await;
    let mut screen = shown(&replay);
    assert!(screen.screen().contents().ends_with("99\n100\nred"));
    let cell = screen.screen().cell(23, 0).unwrap();
    assert_eq!((cell.contents(), cell.fgcolor()), ("r", vt100::Color::Idx(1)));
    screen.screen_mut().set_scrollback(1000);
    assert!(screen.screen().contents().starts_with("1\n2\n3\n"));
    next.input("\r").await;
    next.finish().await;
}

#[tokio::test]
async fn a_full_screen_program_is_redrawn_for_who_attaches() {
    let supervisor = Supervisor::start().await;
    let script = "printf 'shell\\033[?1049h\\033[2J\\033[5;10Heditor'; read x; printf '\\033[?1049l'; read x";
    let mut running = supervisor.exec(ExecRequest { detach: true, ..terminal(script) }).await;
    running.socket.until("editor").await;
    let mut guest = supervisor.attach(&running.id).await;
    let mut bytes = guest.until("editor").await;
    let screen = shown(&bytes);
    assert!(screen.screen().alternate_screen());
    assert_eq!(screen.screen().cell(4, 9).unwrap().contents(), "e");
    guest.input("\r").await;
    bytes += &guest.until("\x1b[?1049l").await;
    assert!(shown(&bytes).screen().contents().starts_with("shell"));
}

#[tokio::test]
async fn a_size_that_cannot_be_is_refused_and_so_is_one_without_a_terminal() {
    let supervisor = Supervisor::start().await;
    let none = TtySize { cols: 0, rows: 24 };
    let error = supervisor.refused(ExecRequest { tty: Some(none), ..sh("true") }).await;
    assert_eq!(error.kind, ErrorKind::InvalidRequest);
    let running = supervisor.sh("sleep 1000").await;
    let path = format!("/supervisor/commands/{}/resize", running.id);
    let (status, _) = supervisor.call("POST", &path, r#"{"cols":80,"rows":24}"#).await;
    assert_eq!(status, hyper::StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_finished_terminal_still_shows_its_last_screen() {
    let supervisor = Supervisor::start().await;
    let idle = supervisor.stats().await.open_fds;
    let running =
        supervisor.exec(ExecRequest { detach: true, ..terminal("echo last words") }).await;
    let id = running.id.clone();
    running.finish().await;
    let heard = supervisor.attach(&id).await.finish().await;
    assert!(shown(&heard.text()).screen().contents().contains("last words"));
    for _ in 0..10 {
        supervisor.exec(terminal("true")).await.finish().await;
    }
    supervisor.open_files_back_to(idle).await;
}
