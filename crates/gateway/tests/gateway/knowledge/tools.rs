//! What the agent may call.

use std::sync::Arc;

use nacre_agent::body::{Body, Remote};
use nacre_agent::model::Call;
use nacre_agent::tools::{Answer, Context, Toolbox};
use nacre_gateway::routes::Role;
use serde_json::{Value, json};

use super::workspace::Workspace;
use super::{start, until};
use crate::host::Host;

fn toolboxes(host: &Host) -> Vec<Arc<dyn Toolbox>> {
    let door = host.admin().under("/admin/sandboxes/live/door");
    let body: Arc<dyn Body> = Arc::new(Remote::new(door, "talk-1"));
    host.gateway().knowledge_tools(Role::Live, &body, "talk-1")
}

async fn call(host: &Host, name: &str, arguments: Value) -> Result<Answer, String> {
    let call = Call { id: "call-7".to_owned(), name: name.to_owned(), arguments };
    let toolboxes = toolboxes(host);
    let ready = toolboxes.iter().find_map(|toolbox| toolbox.prepare(&call)).expect("it has it")?;
    assert_eq!(ready.intent().changes, name == "publish", "{name}");
    Ok(ready.run(&mut Context { call: &call.id, tell: &mut |_| () }).await)
}

async fn done(host: &Host, name: &str, arguments: Value) -> String {
    let answer = call(host, name, arguments).await.unwrap();
    assert!(!answer.failed, "{name}: {}", answer.text);
    answer.text
}

#[tokio::test]
async fn a_conversation_remembers_finds_publishes_and_cites() {
    let workspace = Workspace::new();
    workspace.place("shells.md", "# Growth\n\nA shell grows layer by layer.\n");
    let host = start(&workspace).await;
    until(&host, "grows", &["live:shells.md:1-3"]).await;

    assert_eq!(
        done(&host, "remember", json!({ "text": "The owner collects shells." })).await,
        "remembered as 1"
    );
    let recalled = done(&host, "recall", json!({ "query": "what do they collect?" })).await;
    assert!(
        recalled.starts_with("1. The owner collects shells. (conversation talk-1 call call-7, 20"),
        "{recalled}"
    );
    assert_eq!(done(&host, "recall", json!({ "query": "zzyzx" })).await, "(nothing found)\n");

    let found =
        done(&host, "knowledge_search", json!({ "query": "layer", "in": "documents" })).await;
    assert_eq!(found, "shells.md:1-3 (Growth)\n  # Growth A shell grows layer by layer.\n");
    let published =
        done(&host, "publish", json!({ "path": "shells.md", "title": "On shells" })).await;
    let address = published.split_whitespace().nth(1).unwrap().to_owned();
    assert!(address.starts_with("nacre:edition:"), "{published}");
    let quote = json!({ "edition": address, "quote": "layer by\nlayer" });
    let cited = done(&host, "cite", quote).await;
    assert!(cited.ends_with(&format!("{address}#L3 “layer by layer”")), "{cited}");
    let wrong = json!({ "edition": address, "quote": "brick by brick" });
    let refused = call(&host, "cite", wrong).await.unwrap();
    assert!(refused.failed && refused.text.contains("does not stand in"), "{}", refused.text);
    let missing = call(&host, "publish", json!({ "path": "no.md", "title": "x" })).await.unwrap();
    assert!(missing.failed, "{}", missing.text);
    let found =
        done(&host, "knowledge_search", json!({ "query": "layer", "in": "publications" })).await;
    assert!(found.starts_with(&format!("{address}#L1-L3")), "{found}");
}

#[tokio::test]
async fn a_call_that_does_not_fit_its_schema_does_nothing() {
    let host = Host::start().await;
    let bad = [
        ("remember", json!({})),
        ("remember", json!({ "text": "x", "forever": true })),
        ("recall", json!({ "query": 7 })),
        ("knowledge_search", json!({ "query": "x", "in": "everywhere" })),
        ("publish", json!({ "path": "a.md" })),
        ("cite", json!({ "quote": "x" })),
    ];
    for (name, arguments) in bad {
        let shown = arguments.to_string();
        let refused = call(&host, name, arguments).await.map(|_| ()).unwrap_err();
        assert!(refused.starts_with(&format!("{name} cannot be called like this")), "{shown}");
    }
    let names: Vec<_> = toolboxes(&host).iter().flat_map(|toolbox| toolbox.tools()).collect();
    for tool in &names {
        assert_eq!(tool.schema["additionalProperties"], false, "{}", tool.name);
    }
    let names: Vec<_> = names.into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["remember", "recall", "knowledge_search", "publish", "cite"]);
}
