//! What has to be on the machine, for what, and the Debian package that brings it.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::apt::{self, Fix};
use crate::shell;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum For {
    Build,
    Run,
    Test,
    /// The part of the tests that `--quick` leaves out.
    Browser,
    /// Of the tests too, but for `--quick`.
    Fuzz,
    /// What every benchmark needs.
    Bench,
    /// Peers of the sandboxes.
    BenchSandbox,
    /// Peers of the history, and the file system it is measured on.
    BenchHistory,
    /// The peer of the gateway, and what loads both.
    BenchGateway,
    /// The peer of the way out.
    BenchEgress,
    /// The peer of model calls is a Python program.
    BenchProvider,
}

/// How to tell that something is there.
enum Sign {
    Program(&'static str),
    /// A file the C compiler finds in its own library folders.
    Library(&'static str),
    /// A module of Python's own library that Debian ships apart.
    Module(&'static str),
}

struct Tool {
    sign: Sign,
    package: &'static str,
    needed: &'static [For],
    why: &'static str,
}

const TOOLS: &[Tool] = &[
    Tool {
        sign: Sign::Program("cc"),
        package: "gcc",
        needed: &[For::Build, For::Test, For::Bench],
        why: "links, and compiles the bundled SQLite",
    },
    Tool {
        sign: Sign::Program("c++"),
        package: "g++",
        needed: &[For::Fuzz],
        why: "compiles libFuzzer",
    },
    Tool {
        sign: Sign::Library("libc.a"),
        package: "libc6-dev",
        needed: &[For::Build, For::Test, For::Bench],
        why: "the guest is static",
    },
    Tool {
        sign: Sign::Program("newuidmap"),
        package: "uidmap",
        needed: &[For::Run, For::Test],
        why: "gives an ordinary user's sandboxes more than one uid",
    },
    Tool {
        sign: Sign::Program("strace"),
        package: "strace",
        needed: &[For::Test],
        why: "counts system calls in tests, and stops a process at a chosen one",
    },
    Tool {
        sign: Sign::Program("tar"),
        package: "tar",
        needed: &[For::Build, For::Test, For::Bench],
        why: "packs the desktop, and the archive calls are compared with it",
    },
    Tool {
        sign: Sign::Program("busybox"),
        package: "busybox-static",
        needed: &[For::Test, For::Bench],
        why: "the smallest root filesystem that is not the host's",
    },
    Tool {
        sign: Sign::Program("chromium"),
        package: "chromium",
        needed: &[For::Browser],
        why: "the page is tested in a real browser",
    },
    Tool {
        sign: Sign::Program("vim"),
        package: "vim",
        needed: &[For::Browser],
        why: "draws in a terminal of the desktop",
    },
    Tool { sign: Sign::Program("htop"), package: "htop", needed: &[For::Browser], why: "the same" },
    Tool {
        sign: Sign::Program("openssl"),
        package: "openssl",
        needed: &[For::Browser],
        why: "makes the certificate that a browser is shown",
    },
    Tool {
        sign: Sign::Program("ip"),
        package: "iproute2",
        needed: &[For::Browser],
        why: "gives a test an internet of its own",
    },
    Tool {
        sign: Sign::Program("nsenter"),
        package: "util-linux",
        needed: &[For::Browser],
        why: "the same",
    },
    Tool {
        sign: Sign::Program("node"),
        package: "nodejs",
        needed: &[For::Build, For::Test],
        why: "builds the desktop, and drives the browser in tests",
    },
    Tool {
        sign: Sign::Program("npm"),
        package: "npm",
        needed: &[For::Build, For::Test],
        why: "installs what the desktop is built with and what drives the browser, and works beside a history in tests",
    },
    Tool {
        sign: Sign::Program("g++"),
        package: "g++",
        needed: &[For::Browser],
        why: "compiles a part of the account server that people sign in with in tests",
    },
    Tool { sign: Sign::Program("make"), package: "make", needed: &[For::Browser], why: "the same" },
    Tool {
        sign: Sign::Program("bwrap"),
        package: "bubblewrap",
        needed: &[For::BenchSandbox],
        why: "a peer in the benchmarks",
    },
    Tool {
        sign: Sign::Program("runc"),
        package: "runc",
        needed: &[For::BenchSandbox],
        why: "a peer in the benchmarks",
    },
    Tool {
        sign: Sign::Program("dockerd"),
        package: "docker.io",
        needed: &[For::BenchSandbox],
        why: "a peer in the benchmarks",
    },
    Tool {
        sign: Sign::Program("git"),
        package: "git",
        needed: &[For::Test, For::BenchHistory],
        why: "takes the export of a history, works beside one in tests, and is a peer of it",
    },
    Tool {
        sign: Sign::Program("restic"),
        package: "restic",
        needed: &[For::BenchHistory],
        why: "a peer in the benchmarks",
    },
    Tool {
        sign: Sign::Program("mkfs.ext4"),
        package: "e2fsprogs",
        needed: &[For::Test, For::BenchHistory],
        why: "makes the file systems that history is filled up, cut off and measured on",
    },
    Tool {
        sign: Sign::Program("python3"),
        package: "python3",
        needed: &[For::Test, For::BenchProvider],
        why: "is the app that a sandbox runs in tests",
    },
    Tool {
        sign: Sign::Module("pip"),
        package: "python3-pip",
        needed: &[For::Test],
        why: "installs a package in a sandbox, through the way out",
    },
    Tool {
        sign: Sign::Program("curl"),
        package: "curl",
        needed: &[For::Test, For::BenchEgress, For::BenchProvider],
        why: "goes out of a sandbox by every kind of proxy",
    },
    Tool {
        sign: Sign::Program("ip"),
        package: "iproute2",
        needed: &[For::Test],
        why: "gives a network that a test has made an address",
    },
    Tool {
        sign: Sign::Program("sshd"),
        package: "openssh-server",
        needed: &[For::Test],
        why: "is what git clones from in a test",
    },
    Tool {
        sign: Sign::Program("tinyproxy"),
        package: "tinyproxy-bin",
        needed: &[For::BenchEgress, For::BenchProvider],
        why: "the peer of the way out",
    },
    Tool {
        sign: Sign::Module("ensurepip"),
        package: "python3-venv",
        needed: &[For::Test, For::BenchProvider],
        why: "makes a place for the Python packages of the tests",
    },
    Tool {
        sign: Sign::Program("nginx"),
        package: "nginx-light",
        needed: &[For::Browser, For::BenchGateway, For::BenchProvider],
        why: "a peer in the benchmarks, and the proxy that people put in front",
    },
    Tool {
        sign: Sign::Program("wrk"),
        package: "wrk",
        needed: &[For::BenchGateway],
        why: "loads the gateway and its peer",
    },
];

impl Tool {
    fn present(&self) -> bool {
        match self.sign {
            Sign::Program(name) => shell::find(name).is_some(),
            Sign::Module(name) => {
                shell::output(Command::new("python3").args(["-c", &format!("import {name}")]))
                    .is_ok()
            }
            // The compiler echoes a bare name back when it does not find the file.
            Sign::Library(name) => {
                shell::output(Command::new("cc").arg(format!("-print-file-name={name}")))
                    .is_ok_and(|found| Path::new(&found).is_absolute())
            }
        }
    }

    fn name(&self) -> &'static str {
        match self.sign {
            Sign::Program(name) | Sign::Library(name) | Sign::Module(name) => name,
        }
    }

    /// Root's sandboxes take their uids without help, and without a uid map helper everything
    /// works in reduced form.
    fn skipped(&self, purposes: &[For]) -> bool {
        self.package == "uidmap" && apt::is_root() && !purposes.contains(&For::Test)
    }
}

/// Installs what is missing for these purposes, or fails with the command that would.
pub(crate) fn ensure(purposes: &[For]) -> Result<()> {
    if cfg!(not(target_os = "linux")) {
        bail!("Nacre runs on Linux only: its sandboxes are made of Linux namespaces");
    }
    let missing: Vec<&Tool> = TOOLS
        .iter()
        .filter(|tool| tool.needed.iter().any(|purpose| purposes.contains(purpose)))
        .filter(|tool| !tool.skipped(purposes) && !tool.present())
        .collect();
    for tool in &missing {
        eprintln!("missing: {:<10} {} (package {})", tool.name(), tool.why, tool.package);
    }
    let mut fixes = Vec::new();
    let packages: BTreeSet<&str> = missing.iter().map(|tool| tool.package).collect();
    if !packages.is_empty() {
        fixes.push(Fix::install(packages));
    }
    if purposes.contains(&For::Run) {
        fixes.extend(apt::subordinate_ids()?);
    }
    let required = missing.iter().any(|tool| tool.package != "uidmap");
    apt::apply(&fixes, required)?;
    match missing.iter().find(|tool| tool.package != "uidmap" && !tool.present()) {
        Some(tool) => bail!("{} is still missing after installing {}", tool.name(), tool.package),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_says_why_and_for_what() {
        for tool in TOOLS {
            assert!(!tool.needed.is_empty() && !tool.why.is_empty(), "{}", tool.name());
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_missing() {
        let sign = Sign::Program("nacre-no-such-program");
        let tool = Tool { sign, package: "none", needed: &[For::Test], why: "a test" };
        assert!(!tool.present());
    }
}
