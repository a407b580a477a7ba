//! What may be chosen for a conversation: models, and plans that the agent can adopt.

use std::time::Duration;

use nacre_agent::body::Remote;
use nacre_agent::plans::{Plans, Template};
use nacre_wire::conductor::{
    MalformedPlan, ModelChoice, ModelChoices, PlanInfo, PlanList, PlanSource, ProviderChoice,
};
use nacre_wire::models::ProviderInfo;
use nacre_wire::{ApiError, ErrorKind};

use super::{Brain, policy, turn};

/// How long a sandbox may take to show its plans.
const PATIENCE: Duration = Duration::from_secs(10);

impl Brain {
    pub(crate) fn models(&self) -> ModelChoices {
        choose(&self.0.models.providers().providers, self.0.config.model.as_deref(), |name| {
            self.0.models.priced(name)
        })
    }

    /// Of the workspace that a conversation with that role would act on, and those that every agent has.
    pub(super) async fn plans(&self, role: Option<&str>) -> Result<PlanList, ApiError> {
        policy::check_role(role)?;
        let (role, sandbox) = turn::acts_on(&self.0.sandboxes, role)?;
        // Reading is nobody's doing.
        let body = Remote::new(sandbox.client(), "");
        let plans = tokio::time::timeout(PATIENCE, Plans::of(&body)).await.map_err(|_| {
            ApiError::new(ErrorKind::TimedOut, format!("{} does not answer", role.as_str()))
                .hint("nacre status shows how it is")
        })?;
        let malformed = plans.malformed.into_iter();
        Ok(PlanList {
            plans: plans.templates.into_iter().map(plan).collect(),
            malformed: malformed
                .map(|bad| MalformedPlan { path: bad.path, reason: bad.reason })
                .collect(),
        })
    }
}

fn plan(template: Template) -> PlanInfo {
    let Template { name, description, steps, path, .. } = template;
    let source = match &path {
        Some(_) => PlanSource::Workspace,
        None => PlanSource::Builtin,
    };
    PlanInfo { name, description, steps, source, path }
}

/// A name with `*` is a pattern, and stands for models that only its provider knows by name.
fn choose(
    providers: &[ProviderInfo],
    default: Option<&str>,
    priced: impl Fn(&str) -> Vec<String>,
) -> ModelChoices {
    let mut choices = ModelChoices::default();
    for provider in providers {
        let (patterns, mut names): (Vec<_>, Vec<_>) =
            provider.models.iter().cloned().partition(|name| name.contains('*'));
        let any = provider.models.is_empty();
        if any {
            names = priced(&provider.name);
        }
        if any || !patterns.is_empty() {
            let patterns = if any { vec!["*".to_owned()] } else { patterns };
            choices.providers.push(ProviderChoice { name: provider.name.clone(), patterns });
        }
        let problem = problem(provider);
        choices.models.extend(names.iter().map(|name| ModelChoice {
            model: format!("{}/{name}", provider.name),
            default: false,
            problem: problem.clone(),
        }));
    }
    if let Some(default) = default {
        put_first(&mut choices.models, providers, default);
    }
    choices
}

/// Why it cannot be asked now.
fn problem(provider: &ProviderInfo) -> Option<String> {
    provider.problem.clone().or_else(|| provider.stopped.then(|| "it is stopped".to_owned()))
}

fn put_first(models: &mut Vec<ModelChoice>, providers: &[ProviderInfo], default: &str) {
    let known = models.iter().position(|choice| choice.model == default);
    let mut choice = match known {
        Some(at) => models.remove(at),
        None => {
            let name = default.split('/').next().unwrap_or_default();
            let problem = match providers.iter().find(|provider| provider.name == name) {
                Some(provider) => self::problem(provider),
                None => Some(format!("there is no provider \"{name}\"")),
            };
            ModelChoice { model: default.to_owned(), default: true, problem }
        }
    };
    choice.default = true;
    models.insert(0, choice);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(name: &str, models: &[&str], problem: Option<&str>) -> ProviderInfo {
        ProviderInfo {
            name: name.to_owned(),
            kind: "openai-compatible".to_owned(),
            base_url: String::new(),
            key: String::new(),
            problem: problem.map(str::to_owned),
            paths: Vec::new(),
            models: models.iter().map(|name| (*name).to_owned()).collect(),
            stopped: false,
            under_way: 0,
            dollars_per_day: None,
            tokens_per_day: None,
            dollars_today: 0.0,
            tokens_today: 0,
        }
    }

    #[test]
    fn the_default_comes_first_and_patterns_are_no_names() {
        let providers = [
            provider("a", &["one", "two", "three-*"], None),
            provider("b", &[], Some("it has no key")),
        ];
        let check = |default: Option<&str>, expected: &[&str]| {
            let choices = choose(&providers, default, |_| vec!["priced".to_owned()]);
            let shown: Vec<String> = choices
                .models
                .iter()
                .map(|choice| {
                    let mark = if choice.default { "!" } else { "" };
                    let problem = choice.problem.as_deref().unwrap_or_default();
                    format!("{}{mark} {problem}", choice.model).trim_end().to_owned()
                })
                .collect();
            assert_eq!(shown, expected);
            assert_eq!(choices.providers[0].patterns, ["three-*"]);
            assert_eq!(choices.providers[1].patterns, ["*"]);
        };
        check(None, &["a/one", "a/two", "b/priced it has no key"]);
        check(Some("a/two"), &["a/two!", "a/one", "b/priced it has no key"]);
        check(Some("b/x"), &["b/x! it has no key", "a/one", "a/two", "b/priced it has no key"]);
        let gone = choose(&[], Some("c/x"), |_| Vec::new());
        assert_eq!(gone.models[0].problem.as_deref(), Some("there is no provider \"c\""));
    }
}
