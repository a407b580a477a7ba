//! Adopting a plan by its name.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Answer, Context, Intent, Ready, arguments, tool};
use crate::body::Body;
use crate::events::{ToolKind, Update};
use crate::model::{Call, Tool};
use crate::plans::Plans;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AdoptPlan {
    /// One of the plans that you were told of.
    name: String,
}

struct AdoptCall {
    body: Arc<dyn Body>,
    asked: AdoptPlan,
}

pub(super) fn tools() -> Vec<Tool> {
    let description = "Adopt a plan: its steps become the todo list, in place of the one before, and \
                       you are told what each of them is about.";
    vec![tool::<AdoptPlan>("adopt_plan", description)]
}

pub(super) fn prepare(body: &Arc<dyn Body>, call: &Call) -> Option<Result<Box<dyn Ready>, String>> {
    if call.name != "adopt_plan" {
        return None;
    }
    let body = body.clone();
    Some(arguments(call).map(|asked| Box::new(AdoptCall { body, asked }) as Box<dyn Ready>))
}

#[async_trait]
impl Ready for AdoptCall {
    fn intent(&self) -> Intent {
        Intent {
            title: format!("adopt the plan \"{}\"", self.asked.name),
            kind: ToolKind::Think,
            locations: Vec::new(),
            changes: false,
            asks: false,
        }
    }

    async fn run(self: Box<Self>, context: &mut Context<'_>) -> Answer {
        let plans = Plans::of(&*self.body).await;
        match plans.adopt(&self.asked.name) {
            Ok(template) => {
                (context.tell)(Update::Plan { entries: template.entries() });
                let from = template.path.as_deref().unwrap_or("built in");
                let steps = template.steps.len();
                Answer::ok(format!(
                    "# {} ({from})\n\nIts {steps} steps are the todo list now. Mark each with \
                     write_todos as you begin and finish it, and go on only when it says so.\n\n{}",
                    template.name, template.text
                ))
            }
            Err(reason) => Answer::failed(reason),
        }
    }
}
