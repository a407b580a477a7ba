//! The last word: a real sandbox, started and removed.

use std::path::Path;
use std::time::Instant;

use nacre_sandbox::Driver;
use nacre_wire::control::{Check, CheckStatus};

use super::machine::existing_ancestor;
use super::{failed, ok};
use crate::driver;
use crate::failure::Failure;

const REMEDY: &str =
    "fix what failed above first; nacre doctor --json has the details for a report";

/// On the same disk as the data directory, and apart from it: a gateway may be running there.
pub(super) async fn check(data_dir: &Path) -> Vec<Check> {
    let place = existing_ancestor(data_dir);
    let scratch = match tempfile::Builder::new().prefix(".nacre-doctor-").tempdir_in(&place) {
        Ok(scratch) => scratch,
        Err(error) => {
            let detail = format!("{}: {error}", place.display());
            return vec![failed(
                "sandbox",
                detail,
                "choose another data directory with --data DIR",
            )];
        }
    };
    let driver = match driver::open(scratch.path(), driver::NOTHING_PARKED, Vec::new()) {
        Ok(driver) => driver,
        Err(Failure::Error { message, .. }) => return vec![failed("sandbox", message, REMEDY)],
        Err(Failure::BrokenPipe) => return Vec::new(),
    };
    let began = Instant::now();
    let mut checks = vec![match driver.probe().await {
        Ok(()) => {
            ok("sandbox", format!("one started and answered in {} ms", began.elapsed().as_millis()))
        }
        Err(error) => failed("sandbox", error.to_string(), REMEDY),
    }];
    checks.extend(driver.capabilities().reduced.into_iter().map(|reduction| Check {
        name: format!("sandbox {}", reduction.what),
        status: CheckStatus::Reduced,
        detail: reduction.why,
        remedy: reduction.remedy,
    }));
    checks
}
