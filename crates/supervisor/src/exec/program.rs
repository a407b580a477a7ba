//! What a request asks for, checked and in the form the kernel takes it.
//!
//! Everything that allocates happens here, before the fork.

use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use nacre_wire::exec::{ExecRequest, TtySize};
use nacre_wire::{ApiError, ErrorKind};

use super::commands::Defaults;
use super::screen::LARGEST_SIDE;
use crate::users::{self, User};

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A command that can be started.
#[derive(Debug)]
pub(super) struct Program {
    /// As people see it.
    pub(super) line: String,
    pub(super) name: String,
    /// Where the program may be, in the order to try.
    pub(super) candidates: Vec<CString>,
    pub(super) argv: Vec<CString>,
    pub(super) env: Vec<CString>,
    pub(super) user: User,
    pub(super) cwd: PathBuf,
    pub(super) cwd_c: CString,
    pub(super) tty: Option<TtySize>,
    pub(super) stdin: bool,
}

impl Program {
    pub(super) fn new(request: &ExecRequest, defaults: &Defaults) -> Result<Self, ApiError> {
        let Defaults { workspace, user: default_user, surroundings, .. } = defaults;
        let argv = arguments(request)?;
        if let Some(size) = request.tty {
            check_size(size)?;
        }
        let user = match &request.user {
            Some(who) => users::lookup(who)?,
            None => default_user.clone(),
        };
        let cwd = match &request.cwd {
            Some(cwd) => workspace.join(cwd.as_path()),
            None => workspace.to_owned(),
        };
        let env = environment(request, &user, &surroundings.current())?;
        let name = argv.first().cloned().unwrap_or_default();
        Ok(Self {
            line: line(request),
            candidates: candidates(&name, &env)?,
            name,
            argv: argv
                .into_iter()
                .map(|arg| c_string("argument", arg.into()))
                .collect::<Result<_, _>>()?,
            env: env
                .into_iter()
                .map(|(name, value)| c_string("environment", format!("{name}={value}").into()))
                .collect::<Result<_, _>>()?,
            user,
            cwd_c: c_string("working directory", cwd.clone().into_os_string())?,
            cwd,
            tty: request.tty,
            stdin: request.stdin,
        })
    }
}

/// A terminal needs at least one cell, and no display is larger than the limit.
pub(super) fn check_size(size: TtySize) -> Result<(), ApiError> {
    let good = 1..=LARGEST_SIDE;
    if good.contains(&size.cols) && good.contains(&size.rows) {
        return Ok(());
    }
    Err(invalid(format!("a terminal of {} x {} cells cannot be", size.cols, size.rows))
        .hint(format!("columns and rows go from 1 to {LARGEST_SIDE}")))
}

fn arguments(request: &ExecRequest) -> Result<Vec<String>, ApiError> {
    match (&request.shell, request.argv.as_slice()) {
        (Some(script), []) => Ok(vec!["/bin/sh".into(), "-c".into(), script.clone()]),
        (None, [name, ..]) if !name.is_empty() => Ok(request.argv.clone()),
        (None, [_, ..]) => Err(invalid("the program's name is empty")),
        (None, []) => Err(invalid("nothing to run").hint("set argv or shell")),
        (Some(_), [_, ..]) => Err(invalid("both argv and shell are set").hint("set one of them")),
    }
}

fn environment(
    request: &ExecRequest,
    user: &User,
    surroundings: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, ApiError> {
    let mut env = surroundings.clone();
    let own = [
        ("PATH", PATH.to_owned()),
        ("HOME", user.home.to_string_lossy().into_owned()),
        ("USER", user.name.clone()),
        ("LOGNAME", user.name.clone()),
        ("SHELL", user.shell.to_string_lossy().into_owned()),
        ("LANG", "C.UTF-8".to_owned()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value));
    env.extend(own);
    if request.tty.is_some() {
        env.insert("TERM".into(), "xterm-256color".into());
    }
    for (name, value) in &request.env {
        if name.is_empty() || name.contains('=') {
            return Err(invalid(format!("\"{name}\" cannot name an environment variable")));
        }
        match value {
            Some(value) => env.insert(name.clone(), value.clone()),
            None => env.remove(name),
        };
    }
    Ok(env)
}

/// The paths `execvp` would try, in its order; a relative one is found from the working directory.
fn candidates(name: &str, env: &BTreeMap<String, String>) -> Result<Vec<CString>, ApiError> {
    let paths: Vec<OsString> = if name.contains('/') {
        vec![name.into()]
    } else {
        let path = env.get("PATH").map_or(PATH, String::as_str);
        path.split(':').map(|dir| Path::new(dir).join(name).into_os_string()).collect()
    };
    paths.into_iter().map(|path| c_string("program", path)).collect()
}

fn c_string(what: &str, text: OsString) -> Result<CString, ApiError> {
    CString::new(text.into_vec()).map_err(|error| {
        let text = OsString::from_vec(error.into_vec());
        let shown = String::from_utf8_lossy(text.as_bytes()).replace('\0', "\\0");
        invalid(format!("{what} \"{shown}\" holds a zero byte"))
    })
}

/// The command as one line: the script, or the arguments quoted where a shell would need it.
fn line(request: &ExecRequest) -> String {
    match &request.shell {
        Some(script) => script.clone(),
        None => request.argv.iter().map(|arg| quoted(arg)).collect::<Vec<_>>().join(" "),
    }
}

fn quoted(arg: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !arg.is_empty() && arg.chars().all(plain) {
        arg.to_owned()
    } else {
        format!("'{}'", arg.replace('\'', r"'\''"))
    }
}

fn invalid(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorKind::InvalidRequest, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surroundings::Surroundings;

    fn user() -> User {
        User {
            name: "nacre".into(),
            uid: 1000,
            gid: 1000,
            groups: Vec::new(),
            home: "/home/nacre".into(),
            shell: "/bin/sh".into(),
        }
    }

    fn defaults(surroundings: &[(&str, &str)]) -> Defaults {
        let all = Surroundings::default();
        let pairs = surroundings.iter();
        all.set("test", pairs.map(|(name, value)| ((*name).into(), (*value).into())).collect());
        Defaults {
            workspace: "/workspace".into(),
            user: user(),
            limits: crate::limits::Limits::take(),
            recorder: crate::history::Recorder::off(),
            surroundings: all,
        }
    }

    fn program(request: &ExecRequest) -> Result<Program, ApiError> {
        Program::new(request, &defaults(&[]))
    }

    fn argv(args: &[&str]) -> ExecRequest {
        ExecRequest {
            argv: args.iter().map(|arg| (*arg).to_owned()).collect(),
            ..Default::default()
        }
    }

    #[test]
    fn the_environment_is_clean_and_the_request_has_the_last_word() {
        let mut request = argv(&["env"]);
        request.env.insert("LANG".into(), None);
        request.env.insert("EMPTY".into(), Some(String::new()));
        let env: Vec<_> = program(&request).unwrap().env;
        let env: Vec<_> = env.iter().map(|entry| entry.to_str().unwrap()).collect();
        let path = format!("PATH={PATH}");
        assert_eq!(
            env,
            ["EMPTY=", "HOME=/home/nacre", "LOGNAME=nacre", &path, "SHELL=/bin/sh", "USER=nacre"]
        );
    }

    #[test]
    fn what_surrounds_a_command_is_below_its_own_and_the_requests_variables() {
        let mut request = argv(&["env"]);
        request.env.insert("OPENAI_API_KEY".into(), Some("own".into()));
        request.env.insert("GONE".into(), None);
        let around =
            [("OPENAI_API_KEY", "t"), ("OPENAI_BASE_URL", "u"), ("GONE", "1"), ("USER", "x")];
        let env = Program::new(&request, &defaults(&around)).unwrap().env;
        let env: Vec<_> = env.iter().map(|entry| entry.to_str().unwrap()).collect();
        for expected in ["OPENAI_API_KEY=own", "OPENAI_BASE_URL=u", "USER=nacre"] {
            assert!(env.contains(&expected), "{env:?}");
        }
        assert!(!env.iter().any(|entry| entry.starts_with("GONE")), "{env:?}");
    }

    #[test]
    fn a_program_is_looked_for_in_the_requests_own_path() {
        let mut request = argv(&["tool"]);
        request.env.insert("PATH".into(), Some("/a:b::/c".into()));
        let found = program(&request).unwrap().candidates;
        let found: Vec<_> = found.iter().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(found, ["/a/tool", "b/tool", "tool", "/c/tool"]);
    }

    #[test]
    fn what_cannot_be_run_is_refused_with_a_reason() {
        let both = ExecRequest { shell: Some("true".into()), ..argv(&["true"]) };
        let flat = ExecRequest { tty: Some(TtySize { cols: 0, rows: 24 }), ..argv(&["true"]) };
        let mut bad_env = argv(&["true"]);
        bad_env.env.insert("A=B".into(), Some(String::new()));
        for request in [ExecRequest::default(), both, flat, bad_env, argv(&[""]), argv(&["a\0b"])] {
            assert_eq!(
                program(&request).unwrap_err().kind,
                ErrorKind::InvalidRequest,
                "{request:?}"
            );
        }
    }

    #[test]
    fn the_line_for_people_is_quoted_like_a_shells() {
        assert_eq!(program(&argv(&["echo", "it's", ""])).unwrap().line, r"echo 'it'\''s' ''");
    }
}
