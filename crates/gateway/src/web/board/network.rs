//! `/admin/sandboxes/network`: what sandboxes may reach, and did.

use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::response::Response;
use http::StatusCode;
use nacre_wire::egress::{EgressMode, EgressRecord, EgressRule, EgressView};
use nacre_wire::{ApiError, ErrorKind};

use super::layout::{self, FOOT, Forms, Place, bytes};
use super::{Notes, Person};
use crate::clock::ago;
use crate::egress::log::Query;
use crate::web::pages::escape;
use crate::web::{Answer, App, reply};

const SHOWN: u32 = 50;
const UNCERTAIN: &str = "<section><p class=\"soft\">Over plain http a browser does not say whether \
                         you or a script of a page sends a form, so nothing is changed here:</p>\
                         <pre>nacre egress --help</pre></section>";

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(notes): Extension<Notes>,
    person: Person,
) -> Answer<Response> {
    let egress = app.sandboxes.egress();
    let query = Query { limit: SHOWN, ..Query::default() };
    let records = egress.log().read(query).await;
    let records = records.map_err(|error| ApiError::new(ErrorKind::Internal, error))?;
    let forms = person.certain.then(|| person.forms(Place::Network));
    let mut html = layout::head("Network", None, notes.take().as_ref());
    if forms.is_none() {
        html.push_str(UNCERTAIN);
    }
    for info in app.sandboxes.list().iter().filter(|info| info.run.is_none()) {
        let Ok(sandbox) = app.sandboxes.find(&info.id) else { continue };
        html.push_str(&section(forms.as_ref(), &egress.view(&sandbox.id, &sandbox.name)));
    }
    html.push_str(&log(&records));
    html.push_str(FOOT);
    Ok(reply::form_page(StatusCode::OK, html))
}

fn section(forms: Option<&Forms>, view: &EgressView) -> String {
    let name = escape(&view.sandbox);
    let means = match view.mode {
        EgressMode::Open => "It reaches the public internet, and what rules allow.",
        EgressMode::AllowList => "It reaches what rules allow, and nothing else.",
        EgressMode::None => "It reaches nothing, whatever the rules say.",
    };
    let rules: String = view.rules.iter().map(|shown| rule(forms, view, shown)).collect();
    let rules =
        if rules.is_empty() { "<li class=\"soft\">No rules.</li>".to_owned() } else { rules };
    let change = forms.map(|forms| change(forms, view)).unwrap_or_default();
    format!(
        "<section id=\"{name}\"><div class=\"head\"><h2>{name}</h2><span class=\"role\">{}</span></div>\
         <p class=\"soft\">{means} {} connections are open.</p><ul>{rules}</ul>{change}</section>",
        view.mode.as_str(),
        view.open.len(),
    )
}

fn rule(forms: Option<&Forms>, view: &EgressView, rule: &EgressRule) -> String {
    let private = if rule.private { " (private addresses too)" } else { "" };
    let after = match forms {
        _ if rule.default => "<span class=\"soft\">from nacre.toml</span>".to_owned(),
        Some(forms) => {
            let fields = [("name", view.sandbox.as_str()), ("target", rule.target.as_str())];
            let label = escape(&format!("Remove the rule about {}", rule.target));
            let button = format!("<button class=\"bad\" aria-label=\"{label}\">Remove</button>");
            forms.form("egress-remove", &fields, &button)
        }
        None => String::new(),
    };
    let (effect, target) = (rule.effect.as_str(), escape(&rule.target));
    format!("<li><div class=\"head\"><span>{effect} {target}{private}</span>{after}</div></li>")
}

fn change(forms: &Forms, view: &EgressView) -> String {
    let name = [("name", view.sandbox.as_str())];
    let label = escape(&view.sandbox);
    let selected = |yes| if yes { " selected" } else { "" };
    let modes: String = EgressMode::ALL
        .iter()
        .map(|mode| {
            let now = selected(!view.default_mode && *mode == view.mode);
            format!("<option value=\"{0}\"{now}>{0}</option>", mode.as_str())
        })
        .collect();
    let mode = format!(
        "<select name=\"mode\" aria-label=\"Mode of {label}\"><option value=\"\"{}>as configured</option>\
         {modes}</select><button>Set the mode</button>",
        selected(view.default_mode),
    );
    let rule = format!(
        "<select name=\"effect\" aria-label=\"Effect of a rule for {label}\">\
         <option value=\"allow\">allow</option><option value=\"deny\">deny</option></select>\
         <input type=\"text\" name=\"target\" required placeholder=\"example.com:443\" \
         autocapitalize=\"none\" spellcheck=\"false\" aria-label=\"Target of a rule for {label}\">\
         <label><input type=\"checkbox\" name=\"private\" value=\"1\"> private addresses too</label>\
         <button>Add the rule</button>"
    );
    format!(
        "<div class=\"row\">{}</div><div class=\"row\">{}</div>",
        forms.form("egress-mode", &name, &mode),
        forms.form("egress-rule", &name, &rule),
    )
}

fn log(records: &[EgressRecord]) -> String {
    let rows: String = records.iter().map(row).collect();
    let body = match rows.is_empty() {
        true => "<p class=\"soft\">Nothing has gone out yet.</p>".to_owned(),
        false => format!(
            "<table><thead><tr><th>When</th><th>Sandbox</th><th>How</th><th>Where to</th>\
             <th>Sent</th><th>Received</th></tr></thead><tbody>{rows}</tbody></table>"
        ),
    };
    format!("<section id=\"log\"><h2>The last {SHOWN} connections</h2>{body}</section>")
}

fn row(record: &EgressRecord) -> String {
    let times = match record.times {
        1 => String::new(),
        times => format!(" ({times} times)"),
    };
    let reason = record
        .reason
        .as_ref()
        .map_or_else(String::new, |why| format!("<br><span class=\"why\">{}</span>", escape(why)));
    format!(
        "<tr><td>{} ago</td><td>{}</td><td>{}{times}</td><td>{}:{}{reason}</td><td>{}</td><td>{}</td></tr>",
        ago(record.at),
        escape(&record.sandbox),
        record.verdict.as_str(),
        escape(&record.host),
        record.port,
        bytes(record.sent),
        bytes(record.received),
    )
}
