//! The OpenAPI document of the supervisor and of the control plane, committed as
//! `docs/openapi.json`.
//!
//! The routers cannot be asked for their routes, so the calls are written down here a second time;
//! a test compares them with what the routers register. Schemas come from the wire types.

mod access;
mod call;
mod conductor;
mod control;
mod egress;
mod history;
mod knowledge;
mod models;
mod runs;
mod supervisor;

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::openapi::path::Paths;
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Ref, ResponseBuilder,
};

use self::call::{Call, Schemas};
use crate::error::ErrorBody;
use crate::events::EventMessage;
use crate::exec::{ClientControl, ServerControl};
use crate::processes::LogLine;
use crate::roles::SwapVerdict;
use crate::runs::RunEvent;
use crate::watch::WatchMessage;

const DESCRIPTION: &str = "\
Calls under /supervisor are answered inside a sandbox; behind the gateway they are found under \
/admin/sandboxes/{name}/door, and those of the live sandbox also at the root. Calls under \
/admin/sandboxes are the gateway's own. Those under /conductor are passed up by a sandbox to the \
gateway, which has them under /admin/sandboxes/conductor as well. WebSockets are described as GET with 101; the schemas \
ClientControl, ServerControl, WatchMessage and EventMessage are their text messages.";

pub fn document() -> OpenApi {
    let mut schemas = Schemas::default();
    let mut paths = Paths::new();
    let gateway = control::calls().into_iter().chain(access::calls());
    let gateway = gateway.chain(egress::calls()).chain(models::calls()).chain(runs::calls());
    let gateway = gateway.chain(conductor::calls()).chain(knowledge::calls());
    for call in supervisor::calls().into_iter().chain(gateway) {
        let Call { method, path, operation, schemas: used } = call;
        schemas.merge(used);
        paths.add_path_operation(path, vec![method], operation);
    }
    schemas.add::<ErrorBody>();
    schemas.add::<ClientControl>();
    schemas.add::<ServerControl>();
    schemas.add::<WatchMessage>();
    schemas.add::<EventMessage>();
    schemas.add::<LogLine>();
    schemas.add::<RunEvent>();
    schemas.add::<SwapVerdict>();
    let components = ComponentsBuilder::new()
        .schemas_from_iter(schemas.into_inner())
        .response(ERROR, error_response());
    let info = InfoBuilder::new()
        .title("Nacre")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(DESCRIPTION));
    OpenApiBuilder::new().info(info).paths(paths).components(Some(components.build())).build()
}

/// As it is committed.
pub fn text() -> Result<String, serde_json::Error> {
    // The file must not change with a library's habits, nor with what else is built.
    let value = sorted(serde_json::from_str(&document().to_json()?)?);
    Ok(format!("{}\n", serde_json::to_string_pretty(&value)?))
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<String, Value> =
                fields.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(values) => Value::Array(values.into_iter().map(sorted).collect()),
        plain => plain,
    }
}

const ERROR: &str = "Error";

fn error_response() -> utoipa::openapi::Response {
    let body = Ref::from_schema_name("ErrorBody");
    ResponseBuilder::new()
        .description("It was not done; the status fits the kind of the error.")
        .content("application/json", ContentBuilder::new().schema(Some(body)).build())
        .build()
}
