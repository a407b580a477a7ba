//! The checks behind `nacre doctor`: each names what it looked at, and the exact remedy.

mod cgroups;
mod kernel;
mod machine;
mod node;
mod sandbox;
mod users;

use std::net::SocketAddr;
use std::path::Path;

use nacre_wire::control::{Check, CheckStatus};

/// All checks, most basic first. None needs a gateway.
pub(crate) async fn examine(data_dir: &Path, listen: SocketAddr) -> Vec<Check> {
    let mut checks = vec![
        kernel::version(),
        kernel::user_namespaces(),
        kernel::overlayfs(),
        kernel::openat2(),
        kernel::seccomp(),
        kernel::memfd_exec(),
        kernel::packets(),
        cgroups::check(),
    ];
    checks.extend(users::check());
    checks.push(machine::data_dir(data_dir));
    checks.push(machine::disk(data_dir));
    checks.push(machine::inotify());
    checks.push(node::check());
    checks.push(machine::port(data_dir, listen).await);
    checks.extend(sandbox::check(data_dir).await);
    checks
}

fn ok(name: &str, detail: impl Into<String>) -> Check {
    Check { name: name.to_owned(), status: CheckStatus::Ok, detail: detail.into(), remedy: None }
}

fn reduced(name: &str, detail: impl Into<String>, remedy: impl Into<String>) -> Check {
    let status = CheckStatus::Reduced;
    Check { name: name.to_owned(), status, detail: detail.into(), remedy: Some(remedy.into()) }
}

fn failed(name: &str, detail: impl Into<String>, remedy: impl Into<String>) -> Check {
    let status = CheckStatus::Failed;
    Check { name: name.to_owned(), status, detail: detail.into(), remedy: Some(remedy.into()) }
}
