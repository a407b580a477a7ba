//! Bringing the database and the driver back in line when the gateway starts.
//!
//! The last process may have died anywhere. [`plan`] is pure and never plans to remove a workspace
//! that its owner did not ask to have removed: what only the driver knows is adopted.

use std::collections::HashMap;

use nacre_sandbox::SandboxId;
use nacre_wire::control::SandboxState;

use crate::store::{Desired, Row};

/// What to do with one sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Recovery {
    /// Creation never got as far as files: forget the row.
    Forget(Row),
    /// Destruction was asked for: finish it.
    FinishDestroy(Row),
    /// It is there; make it what it should be.
    Adopt { row: Row, found: SandboxState, then: Then },
    /// The driver has it and the database does not: write a row for it.
    Rescue { id: SandboxId, name: String, found: SandboxState },
    /// The row stays so that nothing disappears silently.
    Unusable { row: Row, why: &'static str },
}

/// The step from what was found to what should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    Nothing,
    Start,
    Stop,
    Pause,
    Resume,
}

pub(crate) fn plan(
    rows: Vec<Row>,
    driver: &str,
    found: Vec<(SandboxId, SandboxState)>,
) -> Vec<Recovery> {
    let mut unclaimed: HashMap<_, _> = found.into_iter().collect();
    let names: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
    let mut plan: Vec<Recovery> = rows
        .into_iter()
        .map(|row| {
            let state = unclaimed.remove(&row.id);
            recover(row, driver, state)
        })
        .collect();
    let mut strangers: Vec<_> = unclaimed.into_iter().collect();
    strangers.sort_by(|(a, _), (b, _)| a.cmp(b));
    plan.extend(strangers.into_iter().map(|(id, found)| {
        let name = free_name(id.as_str(), &names);
        Recovery::Rescue { id, name, found }
    }));
    plan
}

fn recover(row: Row, driver: &str, found: Option<SandboxState>) -> Recovery {
    if row.driver != driver {
        return Recovery::Unusable { row, why: "it was made by another driver" };
    }
    match (row.desired, found) {
        // A copy that never came to be anything's dev can be made again.
        (Desired::Destroying | Desired::Cloning, _) => Recovery::FinishDestroy(row),
        // Nobody waits for a run that was cut off.
        _ if row.run.as_ref().is_some_and(|run| !run.kept) => Recovery::FinishDestroy(row),
        (Desired::Creating, None) => Recovery::Forget(row),
        (_, None) => Recovery::Unusable { row, why: "its files are gone" },
        (desired, Some(found)) => Recovery::Adopt { row, found, then: step(desired, found) },
    }
}

fn step(desired: Desired, found: SandboxState) -> Then {
    use SandboxState::{Failed, Paused, Running, Stopped};
    match (desired, found) {
        (
            Desired::Creating | Desired::Cloning | Desired::Stopped | Desired::Destroying,
            Stopped,
        )
        | (Desired::Running, Running)
        | (Desired::Paused, Paused) => Then::Nothing,
        (
            Desired::Creating | Desired::Cloning | Desired::Stopped | Desired::Destroying,
            Running | Paused | Failed,
        ) => Then::Stop,
        (Desired::Running, Stopped | Failed) => Then::Start,
        (Desired::Running, Paused) => Then::Resume,
        (Desired::Paused, Running) => Then::Pause,
        // What it held in memory is lost; the owner starts it when they want it.
        (Desired::Paused, Stopped) => Then::Nothing,
        (Desired::Paused, Failed) => Then::Stop,
    }
}

/// `name`, or `name-2`, `name-3`, ... cut to fit.
fn free_name(name: &str, taken: &[String]) -> String {
    if !taken.iter().any(|other| other == name) {
        return name.to_owned();
    }
    (2u32..)
        .map(|number| {
            let suffix = format!("-{number}");
            format!("{}{suffix}", &name[..name.len().min(32 - suffix.len())])
        })
        .find(|candidate| !taken.contains(candidate))
        .unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::RunTie;
    use nacre_sandbox::SandboxSpec;

    fn row(id: &str, desired: Desired) -> Row {
        Row {
            id: id.parse().unwrap(),
            name: format!("{id}-name"),
            driver: "fake".to_owned(),
            spec: SandboxSpec::default(),
            desired,
            created_at: 1,
            run: None,
            unseeded: false,
        }
    }

    fn check(desired: Desired, found: Option<SandboxState>, expected: &str) {
        let id: SandboxId = "sb-1".parse().unwrap();
        let found = found.map(|state| (id, state)).into_iter().collect();
        let plan = plan(vec![row("sb-1", desired)], "fake", found);
        let word = match &plan[..] {
            [Recovery::Forget(_)] => "forget".to_owned(),
            [Recovery::FinishDestroy(_)] => "destroy".to_owned(),
            [Recovery::Adopt { then, .. }] => format!("{then:?}").to_lowercase(),
            [Recovery::Unusable { .. }] => "unusable".to_owned(),
            other => panic!("{other:?}"),
        };
        assert_eq!(word, expected, "{desired:?}");
    }

    #[test]
    fn a_sandbox_never_outlives_its_run_unless_it_is_kept() {
        let check = |kept, found: Option<SandboxState>, destroyed| {
            let run = Some(RunTie { id: "run-1".to_owned(), kept });
            let row = Row { run, ..row("sb-1", Desired::Running) };
            let found = found.map(|state| (row.id.clone(), state)).into_iter().collect();
            let plan = plan(vec![row], "fake", found);
            let destroys = matches!(&plan[..], [Recovery::FinishDestroy(_)]);
            assert_eq!(destroys, destroyed, "{plan:?}");
        };
        check(false, Some(SandboxState::Running), true);
        check(false, Some(SandboxState::Stopped), true);
        check(false, None, true);
        check(true, Some(SandboxState::Running), false);
    }

    #[test]
    fn every_half_done_operation_is_finished_or_undone() {
        use SandboxState::{Failed, Paused, Running, Stopped};
        check(Desired::Creating, None, "forget");
        check(Desired::Creating, Some(Stopped), "nothing");
        check(Desired::Creating, Some(Running), "stop");
        check(Desired::Cloning, None, "destroy");
        check(Desired::Cloning, Some(Stopped), "destroy");
        check(Desired::Destroying, None, "destroy");
        check(Desired::Destroying, Some(Running), "destroy");
        check(Desired::Stopped, Some(Stopped), "nothing");
        check(Desired::Stopped, Some(Running), "stop");
        check(Desired::Running, Some(Running), "nothing");
        check(Desired::Running, Some(Stopped), "start");
        check(Desired::Running, Some(Failed), "start");
        check(Desired::Running, Some(Paused), "resume");
        check(Desired::Paused, Some(Running), "pause");
        check(Desired::Paused, Some(Stopped), "nothing");
    }

    #[test]
    fn a_row_without_files_stays_in_sight() {
        check(Desired::Running, None, "unusable");
        check(Desired::Stopped, None, "unusable");
    }

    #[test]
    fn files_without_a_row_are_adopted_under_a_free_name() {
        let id: SandboxId = "sb-9".parse().unwrap();
        let mut other = row("sb-1", Desired::Creating);
        other.name = "sb-9".to_owned();
        let found = vec![(id.clone(), SandboxState::Running)];
        let rescued = plan(vec![other], "fake", found).pop().unwrap();
        let expected =
            Recovery::Rescue { id, name: "sb-9-2".to_owned(), found: SandboxState::Running };
        assert_eq!(rescued, expected);
    }
}
