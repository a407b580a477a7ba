//! The list of what is to be done, kept by the model and shown to the owner.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Answer, Context, Intent, Ready, Toolbox, arguments, tool};
use crate::events::{PlanEntry, PlanStatus, ToolKind, Update};
use crate::model::{Call, Tool};

const MOST: usize = 100;

/// Has one tool, `write_todos`.
#[derive(Debug, Default)]
pub struct Planner;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WriteTodos {
    /// The whole list, in order; it replaces the one before.
    todos: Vec<PlanEntry>,
}

impl Toolbox for Planner {
    fn tools(&self) -> Vec<Tool> {
        let description = "Write down the steps of the task and how far they are. Use it for anything \
                           of more than two steps, and again whenever one is begun or done.";
        vec![tool::<WriteTodos>("write_todos", description)]
    }

    fn prepare(&self, call: &Call) -> Option<Result<Box<dyn Ready>, String>> {
        if call.name != "write_todos" {
            return None;
        }
        let read = arguments::<WriteTodos>(call).and_then(|asked| match asked.todos.len() {
            0..=MOST => Ok(asked),
            many => Err(format!("a list of {many} is too long; {MOST} is the most")),
        });
        Some(read.map(|asked| Box::new(asked) as Box<dyn Ready>))
    }
}

#[async_trait]
impl Ready for WriteTodos {
    fn intent(&self) -> Intent {
        let title = "write down what is to be done".to_owned();
        Intent { title, kind: ToolKind::Think, locations: Vec::new(), changes: false, asks: false }
    }

    async fn run(self: Box<Self>, context: &mut Context<'_>) -> Answer {
        let open = self.todos.iter().filter(|todo| todo.status != PlanStatus::Completed).count();
        let text = format!("{} of {} are open", open, self.todos.len());
        (context.tell)(Update::Plan { entries: self.todos });
        Answer::ok(text)
    }
}
