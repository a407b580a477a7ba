//! `/admin/sandboxes/models`: who is asked, the switch, and what it cost today.

use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::response::Response;
use http::StatusCode;
use nacre_wire::models::{ProviderInfo, ProviderList, UsageBy, UsageReport, UsageRow};

use super::layout::{self, FOOT, Forms, Place};
use super::{Notes, Person};
use crate::clock::now_ms;
use crate::provider::day_began;
use crate::web::pages::escape;
use crate::web::{Answer, App, reply};

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(notes): Extension<Notes>,
    person: Person,
) -> Answer<Response> {
    let forms = person.forms(Place::Models);
    let today = app.models.usage(UsageBy::Model, day_began(now_ms())).await?;
    let list = app.models.providers();
    let providers: String = list.providers.iter().map(|one| provider(&forms, &list, one)).collect();
    let html = format!(
        "{}{}{providers}{}{FOOT}",
        layout::head("Models", None, notes.take().as_ref()),
        switch(&forms, &list),
        spent(&today),
    );
    Ok(reply::form_page(StatusCode::OK, html))
}

/// For all of them.
fn switch(forms: &Forms, list: &ProviderList) -> String {
    let body = match (list.providers.is_empty(), list.stopped) {
        (true, _) => {
            "<p>No provider is configured.</p><pre>nacre provider add anthropic</pre>".to_owned()
        }
        (false, true) => format!(
            "<p class=\"why\">Every call of a model is refused.</p><div class=\"row\">{}</div>",
            forms.button("provider-start", "", "Let models be asked again", "main"),
        ),
        (false, false) => format!(
            "<p class=\"soft\">The switch ends the calls that are under way, and refuses others until \
             it is turned back.</p><div class=\"row\">{}</div>",
            forms.button("provider-stop", "", "Stop every call", "bad"),
        ),
    };
    format!("<section id=\"switch\"><h2>All providers</h2>{body}</section>")
}

fn provider(forms: &Forms, list: &ProviderList, one: &ProviderInfo) -> String {
    let name = escape(&one.name);
    let (state, class) = match (&one.problem, one.stopped) {
        (Some(_), _) => ("cannot be used", "failed"),
        (None, true) => ("stopped", "stopped"),
        (None, false) => ("in use", "running"),
    };
    let problem = one
        .problem
        .as_ref()
        .map_or_else(String::new, |why| format!("<p class=\"why\">{}</p>", escape(why)));
    let button = match (list.stopped, one.stopped) {
        (true, _) => String::new(),
        (false, true) => forms.button("provider-start", &one.name, "Start", "main"),
        (false, false) => forms.button("provider-stop", &one.name, "Stop", ""),
    };
    format!(
        "<section id=\"{name}\"><div class=\"head\"><h2>{name}</h2>\
         <span class=\"state {class}\">{state}</span></div>{problem}{}<div class=\"row\">{button}</div>\
         </section>",
        facts(one),
    )
}

fn facts(one: &ProviderInfo) -> String {
    let models = match one.models.is_empty() {
        true => "every model".to_owned(),
        false => one.models.join(", "),
    };
    let most = one.dollars_per_day.map_or_else(String::new, |most| format!(" of ${most:.2}"));
    let facts = [
        ("Address", one.base_url.clone()),
        ("Models", models),
        ("Today", format!("${:.4}{most}, {} tokens", one.dollars_today, one.tokens_today)),
        ("Under way", format!("{} calls", one.under_way)),
    ];
    let rows: String = facts
        .iter()
        .map(|(name, value)| format!("<dt>{name}</dt><dd>{}</dd>", escape(value)))
        .collect();
    format!("<dl>{rows}</dl>")
}

fn spent(today: &UsageReport) -> String {
    let line = |name: &str, row: &UsageRow| {
        format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>${:.4}</td></tr>",
            escape(name),
            row.calls,
            row.input_tokens,
            row.output_tokens,
            row.dollars,
        )
    };
    let rows: String = today.rows.iter().map(|row| line(&row.key, row)).collect();
    let body = match rows.is_empty() {
        true => "<p class=\"soft\">Nobody was asked today.</p>".to_owned(),
        false => format!(
            "<table><thead><tr><th>Model</th><th>Calls</th><th>Input</th><th>Output</th><th>Cost</th>\
             </tr></thead><tbody>{rows}{}</tbody></table>",
            line("All of them", &today.total),
        ),
    };
    format!("<section id=\"spend\"><h2>Today (UTC)</h2>{body}</section>")
}
