//! Named steps, timed, with a table at the end. A step that fails does not hide the next.

use std::fmt::Write;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

struct Step {
    name: &'static str,
    took: Duration,
    failure: Option<String>,
    remark: Option<String>,
}

#[derive(Default)]
pub(crate) struct Steps(Vec<Step>);

impl Steps {
    /// `None` when it failed; what it said is printed at once and again in the table.
    pub(crate) fn run<T>(
        &mut self,
        name: &'static str,
        work: impl FnOnce() -> Result<T>,
    ) -> Option<T> {
        eprintln!("\n==> {name}");
        let began = Instant::now();
        let result = work();
        let failure = result.as_ref().err().map(|error| format!("{error:#}"));
        if let Some(failure) = &failure {
            eprintln!("error: {failure}");
        }
        self.0.push(Step { name, took: began.elapsed(), failure, remark: None });
        result.ok()
    }

    /// The same for work that may have something to be seen beside its verdict.
    pub(crate) fn run_remarking(
        &mut self,
        name: &'static str,
        work: impl FnOnce() -> Result<Option<String>>,
    ) {
        let remark = self.run(name, work).flatten();
        if let Some(last) = self.0.last_mut() {
            last.remark = remark;
        }
    }

    /// Prints the table and fails when a step did.
    pub(crate) fn finish(self) -> Result<()> {
        eprint!("\n{}", self.table());
        let failed: Vec<_> =
            self.0.iter().filter(|s| s.failure.is_some()).map(|s| s.name).collect();
        if !failed.is_empty() {
            bail!("failed: {}", failed.join(", "));
        }
        Ok(())
    }

    fn table(&self) -> String {
        let width = self.0.iter().map(|step| step.name.len()).max().unwrap_or(0);
        let mut table = String::new();
        for Step { name, took, failure, remark } in &self.0 {
            let verdict = match (failure, remark) {
                (Some(why), _) => format!("FAILED: {why}"),
                (None, Some(remark)) => format!("ok, {remark}"),
                (None, None) => "ok".to_owned(),
            };
            // Writing to a string cannot fail.
            let _ = writeln!(table, "{name:<width$}  {:>7.1} s  {verdict}", took.as_secs_f64());
        }
        let total: Duration = self.0.iter().map(|step| step.took).sum();
        let _ = writeln!(table, "{:<width$}  {:>7.1} s", "total", total.as_secs_f64());
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_fails_the_whole_and_hides_nothing() {
        let mut steps = Steps::default();
        assert_eq!(steps.run("first", || Ok(1)), Some(1));
        assert_eq!(steps.run::<()>("second", || bail!("broken pipe")), None);
        steps.run_remarking("third", || Ok(Some("but slowly".to_owned())));
        let table = steps.table();
        assert!(table.contains("ok, but slowly"), "{table}");
        assert!(table.contains("second") && table.contains("FAILED: broken pipe"), "{table}");
        assert_eq!(steps.finish().unwrap_err().to_string(), "failed: second");
    }
}
