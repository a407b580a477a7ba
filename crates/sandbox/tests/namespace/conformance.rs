use nacre_sandbox::conformance::Subject;

use crate::machine::driver_on;

fn subject() -> Subject {
    let data = tempfile::tempdir().unwrap();
    let path = data.path().to_owned();
    Subject { restart: Box::new(move || driver_on(&path)), keep: Box::new(data) }
}

nacre_sandbox::conformance_tests!(subject());
