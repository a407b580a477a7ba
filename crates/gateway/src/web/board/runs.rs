//! `/admin/sandboxes/runs/new`: a task for a run of its own, and the runs that can be ended.
//!
//! A run spends, so no script may begin one. The desktop shows runs and leads here.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Extension, State};
use axum::response::Response;
use http::StatusCode;
use nacre_wire::conductor::ModelChoices;
use nacre_wire::runs::{RunInfo, RunLimits, RunState, StartRun};
use nacre_wire::{ApiError, ErrorKind};

use super::acts::with_hint;
use super::layout::{self, FOOT, Forms, Place};
use super::{Note, Notes, Person};
use crate::clock::ago;
use crate::web::form::Form;
use crate::web::pages::escape;
use crate::web::{App, reply};

const TITLE: &str = "Runs";
/// Those that are known to the gateway by name.
const AGENTS: [(&str, &str); 4] = [
    ("nacre", "Nacre\u{2019}s own"),
    ("codex", "Codex"),
    ("claude", "Claude Code"),
    ("opencode", "opencode"),
];

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(notes): Extension<Notes>,
    person: Person,
) -> Response {
    let forms = person.forms(Place::Runs);
    let begin = match person.certain {
        true => beginning(&app, &forms, &Form::parse(b"")),
        false => "<section><p>Over plain http nobody can tell that you sent a form, and not a script of a \
                  page. Use https, or the host:</p><pre>nacre run spec.txt --detach</pre></section>"
            .to_owned(),
    };
    page(&app, &forms, StatusCode::OK, notes.take().as_ref(), &begin)
}

/// What was typed is there again when it was refused.
pub(super) fn begun(
    app: &App,
    token: &str,
    form: &Form,
    begun: Result<RunInfo, ApiError>,
) -> Response {
    match begun {
        // It is watched in the desktop.
        Ok(run) => reply::redirect(&format!("/#/runs/{}", run.id)),
        Err(error) => {
            let forms = Forms { token: token.to_owned(), from: Place::Runs };
            let note = Note { ok: false, text: with_hint(&error) };
            let begin = beginning(app, &forms, form);
            page(app, &forms, error.kind.status(), Some(&note), &begin)
        }
    }
}

pub(super) fn begin(app: &App, form: &Form) -> Result<RunInfo, ApiError> {
    app.runs.begin(asked_for(form)?)
}

/// One that ended by itself meanwhile is kept.
pub(super) async fn cancel(app: &App, form: &Form) -> Result<String, ApiError> {
    let id = form.text("name");
    match app.runs.end(id).await? {
        true => Ok(format!("{id} is cancelled")),
        false => Ok(format!("{id} had ended already")),
    }
}

fn asked_for(form: &Form) -> Result<StartRun, ApiError> {
    const MINUTE: Duration = Duration::from_secs(60);
    let given = |name| Some(form.text(name).trim()).filter(|text| !text.is_empty());
    let minutes = number::<u64>("minutes", given("minutes"))?;
    let minute = u64::try_from(MINUTE.as_millis()).unwrap_or(u64::MAX);
    Ok(StartRun {
        // Browsers end lines as in mail.
        spec: form.text("spec").replace("\r\n", "\n"),
        agent: given("agent").map(str::to_owned),
        model: given("model").map(str::to_owned),
        max_steps: number("steps", given("max_steps"))?,
        timeout_ms: minutes.map(|minutes| minutes.saturating_mul(minute)),
        dollars: number("dollars", given("dollars"))?,
        tokens: number("tokens", given("tokens"))?,
        input: false,
        keep: false,
        detach: true,
    })
}

fn number<T: std::str::FromStr>(what: &str, text: Option<&str>) -> Result<Option<T>, ApiError> {
    let parse = |text: &str| {
        text.parse().map_err(|_| {
            let message = format!("\"{}\" is no number of {what}", text.escape_debug());
            ApiError::new(ErrorKind::InvalidRequest, message)
        })
    };
    text.map(parse).transpose()
}

fn page(
    app: &App,
    forms: &Forms,
    status: StatusCode,
    note: Option<&Note>,
    begin: &str,
) -> Response {
    let open: Vec<_> =
        app.runs.list().runs.into_iter().filter(|run| run.state != RunState::Ended).collect();
    let open: String = open.iter().map(|run| under_way(forms, run)).collect();
    let html = format!("{}{begin}{open}{FOOT}", layout::head(TITLE, None, note));
    reply::form_page(status, html)
}

fn beginning(app: &App, forms: &Forms, typed: &Form) -> String {
    let fields = fields(&app.brain.models(), app.runs.usual(), typed);
    let form = forms.form_like("tall", "start-run", &[], &fields);
    format!(
        "<section><h2>A new run</h2><p class=\"soft\">A task for an agent, in a sandbox that is made for \
         it and removed when it is over. What it changed stays, and is shown in the desktop.</p>{form}\
         </section>"
    )
}

fn fields(choices: &ModelChoices, usual: RunLimits, typed: &Form) -> String {
    let value = |name: &str| escape(typed.text(name));
    let agents: String = AGENTS
        .iter()
        .map(|(name, words)| {
            let now = if typed.text("agent") == *name { " selected" } else { "" };
            format!("<option value=\"{name}\"{now}>{words}</option>")
        })
        .collect();
    let models: String = choices
        .models
        .iter()
        .filter(|choice| choice.problem.is_none())
        .map(|choice| format!("<option value=\"{}\">", escape(&choice.model)))
        .collect();
    let default = choices.models.iter().find(|choice| choice.default);
    let model = default.map_or("provider/model", |choice| choice.model.as_str());
    let dollars = usual.dollars.map_or("no limit".to_owned(), |most| most.to_string());
    let tokens = usual.tokens.map_or("no limit".to_owned(), |most| most.to_string());
    format!(
        "<label>Task<textarea name=\"spec\" required>{}</textarea></label>\
         <div class=\"sides\"><label>Agent<select name=\"agent\">{agents}</select></label>\
         <label>Model<input type=\"text\" name=\"model\" list=\"models\" value=\"{}\" \
         placeholder=\"{}\" autocapitalize=\"none\" spellcheck=\"false\"></label>\
         <datalist id=\"models\">{models}</datalist></div>\
         <div class=\"sides\"><label>Most steps<input type=\"number\" name=\"max_steps\" min=\"1\" \
         value=\"{}\" placeholder=\"{}\"></label>\
         <label>Most minutes<input type=\"number\" name=\"minutes\" min=\"1\" value=\"{}\" \
         placeholder=\"{}\"></label>\
         <label>Most dollars<input type=\"number\" name=\"dollars\" min=\"0\" step=\"any\" value=\"{}\" \
         placeholder=\"{dollars}\"></label>\
         <label>Most tokens<input type=\"number\" name=\"tokens\" min=\"0\" value=\"{}\" \
         placeholder=\"{tokens}\"></label></div>\
         <p class=\"soft\">What is left empty is as nacre.toml says. 0 dollars or tokens is no limit of its \
         own.</p>\
         <div class=\"row\"><button class=\"main\">Begin the run</button></div>",
        value("spec"),
        value("model"),
        escape(model),
        value("max_steps"),
        usual.max_steps,
        value("minutes"),
        (usual.timeout_ms / 60_000).max(1),
        value("dollars"),
        value("tokens"),
    )
}

fn under_way(forms: &Forms, run: &RunInfo) -> String {
    let state = match run.state {
        RunState::Waiting | RunState::Queued => "waits for its turn",
        RunState::Starting => "starts",
        RunState::Running => "runs",
        RunState::Finishing | RunState::Ended => "ends",
    };
    let model = run.model.as_ref().map_or_else(String::new, |model| format!(" with {model}"));
    let most = run.limits.dollars.map_or_else(String::new, |most| format!(" of ${most:.2}"));
    let id = escape(&run.id);
    format!(
        "<section id=\"{id}\"><div class=\"head\"><h2>{}</h2><span class=\"state running\">{state}</span>\
         </div><dl><dt>Begun</dt><dd>{} ago</dd><dt>Agent</dt><dd>{}</dd><dt>Cost</dt>\
         <dd>${:.4}{most}</dd></dl><div class=\"row\"><a class=\"button\" href=\"/#/runs/{id}\">Watch it</a>{}\
         </div></section>",
        escape(&run.title),
        ago(run.created_at),
        escape(&format!("{}{model}", run.agent)),
        run.used.dollars,
        forms.button("cancel-run", &run.id, "Cancel it", "bad"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(form: &str) -> Result<StartRun, String> {
        asked_for(&Form::parse(form.as_bytes())).map_err(|error| error.message)
    }

    #[test]
    fn what_is_left_empty_is_left_to_the_configuration() {
        let wanted = StartRun { spec: "x".to_owned(), detach: true, ..StartRun::default() };
        assert_eq!(parse("spec=x&agent=&model=+&max_steps=&minutes=&dollars="), Ok(wanted));
    }

    #[test]
    fn what_is_typed_is_asked_for() {
        let form =
            "spec=a%0D%0Ab&agent=codex&model=p%2Fm&max_steps=3&minutes=2&dollars=0.25&tokens=9000";
        let wanted = StartRun {
            spec: "a\nb".to_owned(),
            agent: Some("codex".to_owned()),
            model: Some("p/m".to_owned()),
            max_steps: Some(3),
            timeout_ms: Some(120_000),
            dollars: Some(0.25),
            tokens: Some(9000),
            input: false,
            keep: false,
            detach: true,
        };
        assert_eq!(parse(form), Ok(wanted));
        let refused = Err("\"many\" is no number of steps".to_owned());
        assert_eq!(parse("spec=x&max_steps=many"), refused);
    }

    #[test]
    fn what_was_typed_stays_and_is_only_text() {
        let typed = Form::parse(b"spec=%3C%2Ftextarea%3E%3Cb%3E&agent=claude&dollars=%22%3E");
        let html = fields(&ModelChoices::default(), RunLimits::default(), &typed);
        assert!(html.contains(">&lt;/textarea&gt;&lt;b&gt;</textarea>"), "{html}");
        assert!(html.contains("value=\"claude\" selected"), "{html}");
        assert!(html.contains("value=\"&quot;&gt;\""), "{html}");
    }
}
