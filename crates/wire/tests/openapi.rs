//! The OpenAPI document is the one that is committed and describes what the routers answer.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn the_committed_document_is_current() {
    let committed = fs::read_to_string(crates().join("../docs/openapi.json")).unwrap_or_default();
    let current = nacre_wire::openapi::text().unwrap();
    assert!(committed == current, "docs/openapi.json is stale; run `cargo xtask docs`");
}

#[test]
fn every_schema_that_is_named_is_there() {
    let document: Value = serde_json::from_str(&nacre_wire::openapi::text().unwrap()).unwrap();
    let mut named = BTreeSet::new();
    references(&document, &mut named);
    assert!(named.contains("/components/schemas/ErrorBody"), "{named:?}");
    for name in named {
        assert!(document.pointer(&name).is_some(), "{name}");
    }
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(name)) = fields.get("$ref") {
                found.insert(name.trim_start_matches('#').to_owned());
            }
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

/// A router cannot be asked for its routes, but its source can.
#[test]
fn what_the_routers_answer_is_what_is_described() {
    let document: Value = serde_json::from_str(&nacre_wire::openapi::text().unwrap()).unwrap();
    let mut described = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            described.insert(format!("{method} {path}"));
        }
    }
    let mut answered = BTreeSet::new();
    for source in sources(&crates().join("supervisor/src")) {
        answered.extend(routes(&source, ""));
    }
    // These are for people.
    for page in ["/", "/supervisor", "/supervisor/desktop", "/supervisor/desktop/{name}"] {
        assert!(answered.remove(&format!("get {page}")), "{page}");
    }
    for file in
        ["web/control.rs", "knowledge/admin.rs", "knowledge/memory.rs", "knowledge/writer.rs"]
    {
        let source = fs::read_to_string(crates().join("gateway/src").join(file)).unwrap();
        answered.extend(routes(&source, "/admin/sandboxes"));
    }
    let memory = fs::read_to_string(crates().join("gateway/src/knowledge/memory.rs")).unwrap();
    answered.extend(routes(&memory, "/conductor"));
    let conductor = fs::read_to_string(crates().join("gateway/src/brain/http.rs")).unwrap();
    answered.extend(routes(&conductor, ""));
    assert_eq!(described, answered);
}

fn sources(directory: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            all.extend(sources(&entry.path()));
        } else {
            all.push(fs::read_to_string(entry.path()).unwrap());
        }
    }
    all
}

/// `method path` of each `.route("path", method(handler))` outside the tests of a file.
fn routes(source: &str, prefix: &str) -> Vec<String> {
    let source = source.split("mod tests {").next().unwrap();
    let mut found = Vec::new();
    for call in source.split(".route(").skip(1) {
        let (path, rest) = call.trim_start().trim_start_matches('"').split_once('"').unwrap();
        let handlers = rest.split("\n").next().unwrap();
        let methods: Vec<_> = ["get", "post", "put", "patch", "delete"]
            .into_iter()
            .filter(|method| {
                [" ", "."].iter().any(|before| handlers.contains(&format!("{before}{method}(")))
                    || handlers.contains("any(")
            })
            .collect();
        assert!(!methods.is_empty(), "no method understood: {path}{handlers}");
        let path = described_as(&format!("{prefix}{path}"));
        found.extend(methods.into_iter().map(|method| format!("{method} {path}")));
    }
    found
}

/// A nested root has no slash at its end, and a door with nothing behind it is still the door.
fn described_as(path: &str) -> String {
    let path = path.replace("{*", "{");
    let path = if path.len() > 1 { path.trim_end_matches('/') } else { &path };
    if path.ends_with("/door") { format!("{path}/{{rest}}") } else { path.to_owned() }
}
