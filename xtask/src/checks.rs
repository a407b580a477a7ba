//! `cargo xtask test`: everything that has to hold before a change lands.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::builds::{self, Profile};
use crate::steps::Steps;
use crate::tools::For;
use crate::{browser, cargo, desktop, docs, failed, fuzz, models, python, shell, tools};

/// Long enough to find what a change broke at once; `cargo xtask fuzz history` finds more.
const FUZZED: Duration = Duration::from_secs(20);

#[derive(Debug, PartialEq, Eq, Default)]
struct Options {
    /// Skip what is slow: the loops over crashes, the browser, the models, the fuzzer, and the licence
    /// check.
    quick: bool,
    filter: Option<String>,
}

impl Options {
    /// All of it, not only what is quick or has a certain name.
    fn everything(&self) -> bool {
        self.filter.is_none() && !self.quick
    }

    fn purposes(&self) -> &'static [For] {
        if self.everything() { &[For::Test, For::Browser, For::Fuzz] } else { &[For::Test] }
    }
}

fn parse(args: &[String]) -> Result<Options> {
    let mut options = Options::default();
    for arg in args {
        match arg.as_str() {
            "--quick" => options.quick = true,
            flag if flag.starts_with('-') => bail!("test takes --quick and a filter, not {flag}"),
            filter if options.filter.is_none() => options.filter = Some(filter.to_owned()),
            extra => bail!("one filter at a time; {extra} is a second"),
        }
    }
    Ok(options)
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let options = parse(args)?;
    let mut steps = Steps::default();
    if steps.run("tools", || tools::ensure(options.purposes())).is_none() {
        return steps.finish();
    }
    if options.filter.is_none() {
        steps.run("format", || shell::run(&mut cargo::command(&["fmt", "--all", "--check"])));
    }
    // First, because whatever builds `nacre` without one builds one of its own.
    let built = steps.run("desktop", desktop::build);
    let guest = built.and_then(|()| steps.run("guest", || builds::guest(Profile::Debug)));
    let whole = guest.and_then(|guest| {
        // What the tests, the browser and the pages that are generated share.
        steps.run("build", || builds::debug(&guest)).map(|_| guest)
    });
    if let Some(guest) = whole {
        if options.filter.is_none() {
            steps.run("lints", || lints(&guest));
            steps.run("generated docs", docs::check);
            steps.run("desktop tests", desktop::check);
        }
        let python = steps.run("python", python::ensure);
        if let Some(python) = &python {
            steps.run_remarking("tests", || tests(&options, &guest, python));
        }
        if options.filter.is_none() {
            let words = ["test", "--quiet", "--workspace", "--doc"];
            steps.run("doc tests", || shell::run(&mut builds::with_guest(&words, &guest)));
        }
        if let (true, Some(python)) = (options.everything(), &python) {
            steps.run_remarking("browser", || browser::run(&guest, python));
            steps.run_remarking("models", || models::run(&guest, python));
        }
    }
    if options.everything() {
        steps.run("fuzz", || fuzz::history(FUZZED));
    }
    if options.everything() && cargo::has_subcommand("deny") {
        steps.run("licences", || shell::run(&mut cargo::command(&["deny", "check"])));
    }
    steps.finish()
}

fn lints(guest: &Path) -> Result<()> {
    let words = ["clippy", "--quiet", "--workspace", "--all-targets"];
    shell::run(builds::with_guest(&words, guest).args(["--", "-D", "warnings"]))?;
    // As `cargo xtask bench` builds it.
    let words = ["clippy", "--quiet", "--workspace", "--exclude", "nacre", "--lib", "--bins"];
    let mut bench = builds::with_guest(&words, guest);
    bench.args(["--features", "nacre-bench/unguarded", "--", "-D", "warnings"]);
    shell::run(&mut bench)
}

/// nextest where it is installed: it runs each test in its own process and knows slow ones.
fn tests(options: &Options, guest: &Path, python: &Path) -> Result<Option<String>> {
    if cargo::has_subcommand("nextest") {
        let profile = if options.quick { "quick" } else { "default" };
        let words = ["nextest", "run", "--workspace", "--no-fail-fast", "--profile", profile];
        let mut command = builds::with_guest(&words, guest);
        return failed::naming(
            command.args(&options.filter).env(python::VARIABLE, python),
            profile,
        );
    }
    let words = ["test", "--workspace", "--all-targets", "--no-fail-fast"];
    let mut command = builds::with_guest(&words, guest);
    // Some tests look at what the whole machine holds, and only nextest knows which.
    command.args(&options.filter).args(["--", "--test-threads=1"]);
    shell::run(command.env(python::VARIABLE, python)).map(|()| None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(args: &[&str], expected: Option<Options>) {
        let args: Vec<_> = args.iter().map(|arg| (*arg).to_owned()).collect();
        assert_eq!(parse(&args).ok(), expected, "{args:?}");
    }

    #[test]
    fn options() {
        check(&[], Some(Options::default()));
        check(&["--quick"], Some(Options { quick: true, filter: None }));
        check(&["exec", "--quick"], Some(Options { quick: true, filter: Some("exec".to_owned()) }));
        check(&["exec", "files"], None);
        check(&["--slow"], None);
    }
}
