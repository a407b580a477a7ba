//! `nacre.toml`: what it may say, and how it is read.
//!
//! The file belongs to whoever writes in the workspace, so it is hostile: it is opened like any
//! file of the files API, as the user and confined, and its size, its names and their number are
//! bounded. Nothing in it gives its author more than a shell in the sandbox would.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use nacre_wire::processes::{ConfigError, RUNTIME};
use nacre_wire::{ApiError, ErrorKind};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Unexpected, Visitor};

use super::policy::Rules;
use crate::files::root::Root;
use crate::files::{identity, open_to_read};
use crate::users::User;

pub(crate) const FILE: &str = "nacre.toml";
const LARGEST: usize = 64 * 1024;
const MOST_PROCESSES: usize = 32;
const LONGEST_NAME: usize = 64;

/// What the file asks for, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) processes: BTreeMap<String, Spec>,
    /// The copy of the desktop that the supervisor carries is to own the pages.
    pub(crate) built: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Spec {
    pub(crate) command: Command,
    #[serde(default)]
    pub(crate) port: Option<Port>,
    #[serde(default)]
    pub(crate) ready: Option<ReadyPath>,
    #[serde(default)]
    pub(crate) restart: Restart,
    #[serde(default)]
    pub(crate) start_timeout: StartTimeout,
    #[serde(default)]
    pub(crate) directory: Directory,
    #[serde(default)]
    pub(crate) environment: BTreeMap<Variable, Value>,
    /// One instance for each address that it is mounted at.
    #[serde(default)]
    pub(crate) per_mount: bool,
    /// The supervisor looks after its pages.
    #[serde(default)]
    pub(crate) guard: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "a command is a text for the shell or a list of words")]
pub(crate) enum Command {
    Shell(String),
    Words(Vec<String>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Restart {
    #[default]
    Always,
    OnFailure,
    Never,
}

/// How many seconds a start may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "i64")]
pub(crate) struct StartTimeout(pub(crate) u16);

impl Default for StartTimeout {
    fn default() -> Self {
        Self(60)
    }
}

impl TryFrom<i64> for StartTimeout {
    type Error = String;

    fn try_from(number: i64) -> Result<Self, String> {
        match u16::try_from(number) {
            Ok(seconds) if (1..=3600).contains(&seconds) => Ok(Self(seconds)),
            _ => Err(format!("{number} is no start_timeout: it goes from 1 to 3600 seconds")),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "i64")]
pub(crate) struct Port(pub(crate) u16);

impl TryFrom<i64> for Port {
    type Error = String;

    fn try_from(number: i64) -> Result<Self, String> {
        match u16::try_from(number) {
            Ok(port) if port > 0 => Ok(Self(port)),
            _ => Err(format!("{number} is not a port: it goes from 1 to 65535")),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct ReadyPath(pub(crate) String);

impl TryFrom<String> for ReadyPath {
    type Error = String;

    fn try_from(path: String) -> Result<Self, String> {
        match path.parse::<http::uri::PathAndQuery>() {
            Ok(_) if path.starts_with('/') => Ok(Self(path)),
            _ => Err(format!("{path:?} is not a path: it begins with /")),
        }
    }
}

/// Relative to the workspace, without a way up.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Directory(pub(crate) PathBuf);

impl TryFrom<String> for Directory {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut plain = PathBuf::new();
        for part in Path::new(&text).components() {
            match part {
                Component::Normal(name) => plain.push(name),
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(format!("{text:?} leads out of the workspace"));
                }
            }
        }
        if text.contains('\0') || text.len() >= 4096 {
            return Err("a directory is a path below the workspace".to_owned());
        }
        Ok(Self(plain))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Variable(pub(crate) String);

impl TryFrom<String> for Variable {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(format!("{name:?} cannot name an environment variable"));
        }
        Ok(Self(name))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Value(pub(crate) String);

impl TryFrom<String> for Value {
    type Error = String;

    fn try_from(value: String) -> Result<Self, String> {
        if value.contains('\0') {
            return Err("the value of a variable holds a zero byte".to_owned());
        }
        Ok(Self(value))
    }
}

/// As it stands in the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    runtime: Option<toml::Spanned<Pages>>,
    #[serde(default)]
    process: BTreeMap<toml::Spanned<String>, toml::Spanned<Spec>>,
}

/// Who owns the pages: `[runtime]`, or `runtime = "built"`.
#[derive(Debug)]
enum Pages {
    Built,
    App(Box<Spec>),
}

const BUILT: &str = "built";

/// By hand: an untagged enum would lose which line is wrong, and why.
impl<'de> Deserialize<'de> for Pages {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Pages;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "a table, or the word \"{BUILT}\"")
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Pages, E> {
                match word {
                    BUILT => Ok(Pages::Built),
                    _ => Err(E::invalid_value(Unexpected::Str(word), &self)),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Pages, A::Error> {
                let spec = Spec::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Pages::App(Box::new(spec)))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// Reads the file as the user. One that is not there asks for nothing.
pub(crate) fn load(root: &Root, user: &User) -> Result<Config, ConfigError> {
    match read(root, user) {
        Ok(text) => parse(&text),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(Config::default()),
        Err(error) => Err(whole(error.message)),
    }
}

fn read(root: &Root, user: &User) -> Result<Vec<u8>, ApiError> {
    let path = root.absolute(Path::new(FILE))?;
    let _acting = identity::act_as(user)?;
    let file = open_to_read(root, &path)?;
    let mut content = Vec::new();
    let mut limited = std::io::Read::take(std::fs::File::from(file), LARGEST as u64 + 1);
    std::io::Read::read_to_end(&mut limited, &mut content)
        .map_err(|error| ApiError::io(path.display(), &error))?;
    Ok(content)
}

pub(crate) fn parse(content: &[u8]) -> Result<Config, ConfigError> {
    if content.len() > LARGEST {
        return Err(whole(format!("{FILE} is larger than {} KiB", LARGEST / 1024)));
    }
    let text = std::str::from_utf8(content).map_err(|error| {
        at(content, error.valid_up_to(), "the file is not UTF-8 here".to_owned())
    })?;
    let file: File = toml::from_str(text).map_err(|error| {
        let reason = error.message().lines().collect::<Vec<_>>().join(" ");
        match error.span() {
            Some(span) => at(content, span.start, reason),
            None => whole(reason),
        }
    })?;
    let mut config = Config::default();
    for (name, spec) in file.process {
        check_name(name.get_ref()).map_err(|reason| at(content, name.span().start, reason))?;
        config.insert(content, name.into_inner(), spec.span().start, spec.into_inner())?;
    }
    if let Some(pages) = file.runtime {
        let start = pages.span().start;
        match pages.into_inner() {
            Pages::Built => config.built = true,
            Pages::App(spec) => config.insert(content, RUNTIME.to_owned(), start, *spec)?,
        }
    }
    if config.processes.len() > MOST_PROCESSES {
        return Err(whole(format!("more than {MOST_PROCESSES} processes are asked for")));
    }
    Ok(config)
}

impl Config {
    fn insert(
        &mut self,
        content: &[u8],
        name: String,
        start: usize,
        spec: Spec,
    ) -> Result<(), ConfigError> {
        spec.check(&name).map_err(|reason| at(content, start, format!("{name}: {reason}")))?;
        self.processes.insert(name, spec);
        Ok(())
    }
}

impl Spec {
    fn check(&self, name: &str) -> Result<(), String> {
        let words: &[String] = match &self.command {
            Command::Shell(text) => std::slice::from_ref(text),
            Command::Words(words) => words,
        };
        if words.first().is_none_or(|word| word.trim().is_empty()) {
            return Err("the command is empty".to_owned());
        }
        if words.iter().any(|word| word.contains('\0')) {
            return Err("the command holds a zero byte".to_owned());
        }
        if self.ready.is_some() && self.port.is_none() {
            return Err("ready names a path, but there is no port to ask".to_owned());
        }
        for (key, set) in [("per_mount", self.per_mount), ("guard", self.guard)] {
            if set && name != RUNTIME {
                return Err(format!("{key} is for [runtime] alone"));
            }
            if set && self.port.is_none() {
                return Err(format!("{key} is about pages, but there is no port to ask for them"));
            }
        }
        Ok(())
    }

    pub(crate) fn rules(&self) -> Rules {
        let patience = Duration::from_secs(self.start_timeout.0.into());
        Rules { restart: self.restart, patience }
    }

    /// Whether the same process would run with the other one.
    pub(crate) fn runs_the_same(&self, other: &Self) -> bool {
        let Self { restart, start_timeout, guard, .. } = *self;
        *self == Self { restart, start_timeout, guard, ..other.clone() }
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name == RUNTIME {
        return Err("the name runtime belongs to [runtime]".to_owned());
    }
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(plain) {
        return Err(format!("{name:?} is not a name: use letters, digits, - and _"));
    }
    Ok(())
}

fn whole(reason: String) -> ConfigError {
    ConfigError { line: None, reason }
}

fn at(content: &[u8], offset: usize, reason: String) -> ConfigError {
    let before = &content[..offset.min(content.len())];
    let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
    ConfigError { line: u32::try_from(line).ok(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> (Option<u32>, String) {
        let error = parse(text.as_bytes()).unwrap_err();
        (error.line, error.reason)
    }

    #[test]
    fn a_whole_file_is_understood() {
        let config = parse(
            br#"
            [runtime]
            command = "npm run dev"
            port = 5173
            ready = "/"
            restart = "on-failure"
            start_timeout = 300
            directory = "./shell/"
            [runtime.environment]
            NODE_ENV = "development"

            [process.worker]
            command = ["python3", "worker.py"]
            "#,
        )
        .unwrap();
        let runtime = &config.processes[RUNTIME];
        assert_eq!(runtime.port, Some(Port(5173)));
        assert_eq!(runtime.directory.0, Path::new("shell"));
        let patience = Duration::from_secs(300);
        assert_eq!(runtime.rules(), Rules { restart: Restart::OnFailure, patience });
        assert_eq!(runtime.environment[&Variable("NODE_ENV".into())].0, "development");
        let worker = &config.processes["worker"];
        assert_eq!(worker.rules().patience, Duration::from_secs(60));
        assert_eq!(worker.command, Command::Words(vec!["python3".into(), "worker.py".into()]));
        assert_eq!(parse(b"").unwrap(), Config::default());
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let cases = [
            ("[runtime\n", 1),
            ("\n[runtime]\ncommand = 5\n", 3),
            ("[runtime]\ncommand = \"a\"\nport = 99999\n", 3),
            ("[runtime]\ncommand = \"a\"\nprot = 1\n", 3),
            ("[runtime]\ncommand = \"a\"\ndirectory = \"../up\"\n", 3),
            ("[runtime]\ncommand = \"\"\n", 1),
            ("[runtime]\ncommand = \"a\"\nready = \"/\"\n", 1),
            ("\n[process.\"a b\"]\ncommand = \"a\"\n", 2),
            ("\n[process.runtime]\ncommand = \"a\"\n", 2),
            ("[process.a]\ncommand = \"a\"\n[process.a.environment]\n\"A=B\" = \"c\"\n", 4),
            ("\nruntime = \"built in\"\n", 2),
            ("\nruntime = 5\n", 2),
            ("[runtime]\ncommand = \"a\"\nport = 1\nguard = \"yes\"\n", 4),
            ("\n[runtime]\ncommand = \"a\"\nper_mount = true\n", 2),
            ("\n[process.a]\ncommand = \"a\"\nport = 1\nguard = true\n", 2),
            ("\n[process.a]\ncommand = \"a\"\nport = 1\nper_mount = true\n", 2),
            ("[runtime]\nport = 1\n", 1),
            ("[runtime]\ncommand = \"a\"\nstart_timeout = 0\n", 3),
            ("[runtime]\ncommand = \"a\"\nstart_timeout = 3601\n", 3),
        ];
        for (text, line) in cases {
            assert_eq!(fault(text).0, Some(line), "{text}: {}", fault(text).1);
        }
    }

    #[test]
    fn a_file_without_end_or_depth_is_refused() {
        assert_eq!(fault(&"#".repeat(LARGEST + 1)).0, None);
        assert!(parse(format!("a = {}", "[".repeat(60_000)).as_bytes()).is_err());
        let many: String =
            (0..=MOST_PROCESSES).map(|n| format!("[process.p{n}]\ncommand = \"a\"\n")).collect();
        assert!(fault(&many).1.contains("more than"));
        assert_eq!(parse(b"[runtime]\ncommand = \"\xff\"").unwrap_err().line, Some(2));
    }

    #[test]
    fn the_pages_are_an_apps_or_the_built_copys() {
        let config = parse(b"runtime = \"built\"\n[process.a]\ncommand = \"a\"\n").unwrap();
        assert!(config.built && !config.processes.contains_key(RUNTIME));
        assert!(config.processes.contains_key("a"));
        let text = "[runtime]\ncommand = \"a\"\nport = 1\nper_mount = true\nguard = true\n";
        let config = parse(text.as_bytes()).unwrap();
        let spec = &config.processes[RUNTIME];
        assert!(spec.per_mount && spec.guard && !config.built);
        assert!(
            fault("runtime = \"bulit\"").1.contains("\"built\""),
            "{:?}",
            fault("runtime = \"bulit\"")
        );
    }

    #[test]
    fn another_restart_rule_is_no_other_process() {
        let one = parse(b"[runtime]\ncommand = \"a\"\nrestart = \"never\"").unwrap();
        let two = parse(b"[runtime]\ncommand = \"a\"").unwrap();
        let other = parse(b"[runtime]\ncommand = \"b\"").unwrap();
        let mut guarded = two.processes[RUNTIME].clone();
        guarded.guard = true;
        guarded.start_timeout = StartTimeout(5);
        assert!(two.processes[RUNTIME].runs_the_same(&guarded));
        guarded.per_mount = true;
        assert!(!two.processes[RUNTIME].runs_the_same(&guarded));
        assert!(one.processes[RUNTIME].runs_the_same(&two.processes[RUNTIME]));
        assert!(!one.processes[RUNTIME].runs_the_same(&other.processes[RUNTIME]));
    }
}
