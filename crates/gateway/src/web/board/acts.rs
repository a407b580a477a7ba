//! What the forms do.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Extension, State};
use axum::response::Response;
use http::HeaderMap;
use nacre_wire::egress::{EgressEffect, EgressMode, EgressRule};
use nacre_wire::roles::{SwapRequest, UNSYNCED};
use nacre_wire::{ApiError, ErrorKind};

use super::layout::Place;
use super::{Note, Notes, runs};
use crate::sandboxes::dev::IfThere;
use crate::sandboxes::policy::Op;
use crate::sandboxes::swap::Refusal;
use crate::web::form::Form;
use crate::web::intent::{self, FormToken};
use crate::web::{App, Entrance, egress, models, reply};

/// Who sent a form.
struct Sender {
    entrance: Entrance,
    /// Their browser says that somebody did.
    certain: bool,
}

/// A form was sent.
pub(super) async fn act(
    State(app): State<Arc<App>>,
    Extension(notes): Extension<Notes>,
    Extension(entrance): Extension<Entrance>,
    token: Option<Extension<FormToken>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let form = Form::parse(&body);
    let token = token.as_ref().map(|Extension(token)| token.as_str());
    if token.is_none() || form.field("token") != token {
        return reply::error(
            &ApiError::new(ErrorKind::Permission, "this form is not from the page of this session")
                .hint("open /admin/sandboxes again"),
        );
    }
    let from = Place::parse(form.text("from"));
    let sender = Sender { entrance, certain: intent::is_certain(&headers) };
    if form.field("action") == Some("start-run") {
        let begun = require_certain(&sender).and_then(|()| runs::begin(&app, &form));
        return runs::begun(&app, token.unwrap_or_default(), &form, begun);
    }
    let (ok, text) = match carry_out(&app, &sender, &form).await {
        // What was promoted is to be seen.
        Ok(_) if from == Place::Promote && form.field("action") == Some("swap") => {
            return reply::redirect("/");
        }
        Ok(text) => (true, text),
        Err(error) => (false, with_hint(&error)),
    };
    notes.put(Note { ok, text });
    reply::redirect(from.path())
}

pub(super) fn with_hint(error: &ApiError) -> String {
    match &error.hint {
        Some(hint) => format!("{}. {hint}", error.message),
        None => error.message.clone(),
    }
}

async fn carry_out(app: &App, sender: &Sender, form: &Form) -> Result<String, ApiError> {
    match form.field("action") {
        Some("start") => operate(app, form, Op::Start, "has started").await,
        Some("stop") => operate(app, form, Op::Stop, "has stopped").await,
        Some("restart") => operate(app, form, Op::Restart, "has started again").await,
        Some("resume") => operate(app, form, Op::Resume, "goes on").await,
        Some("create-dev") => made(app.sandboxes.make_dev(IfThere::Refuse).await?),
        Some("reset-dev") => {
            require_sure(form)?;
            made(app.sandboxes.make_dev(IfThere::Replace { force: false }).await?)
        }
        Some("delete-dev") => {
            require_sure(form)?;
            app.sandboxes.delete_dev(false).await.map(|()| "dev is removed".to_owned())
        }
        Some("swap") => swap(app, SwapRequest::default()).await,
        Some("rollback") => swap(app, SwapRequest { rollback: true, force: false }).await,
        Some("egress-mode") => set_mode(app, sender, form).await,
        Some("egress-rule") => add_rule(app, sender, form).await,
        Some("egress-remove") => remove_rule(app, sender, form).await,
        Some("cancel-run") => runs::cancel(app, form).await,
        Some("provider-stop") => stop_provider(app, sender, form).await,
        Some("provider-start") => start_provider(app, sender, form).await,
        other => Err(no_such("action", other.unwrap_or(""))),
    }
}

async fn operate(app: &App, form: &Form, op: Op, done: &str) -> Result<String, ApiError> {
    let sandbox = app.sandboxes.find(form.text("name"))?;
    sandbox.ask(op).await?;
    Ok(format!("{} {done}", sandbox.name))
}

fn made(made: nacre_wire::roles::DevMade) -> Result<String, ApiError> {
    let seconds = made.copy.took_ms as f64 / 1000.0;
    Ok(format!("dev is a copy of live: {} names in {seconds:.1} s", made.copy.names))
}

async fn swap(app: &App, wanted: SwapRequest) -> Result<String, ApiError> {
    let done = match wanted.rollback {
        true => "what was live before is live again",
        false => "what was dev is live, and what was live is dev",
    };
    match app.sandboxes.swap(wanted).await {
        Ok(swapped) if swapped.durable_in_us.is_none() => Ok(format!("{done}; {UNSYNCED}")),
        Ok(_) => Ok(done.to_owned()),
        Err(Refusal::Error(error)) => Err(error),
        Err(Refusal::Checks(refused)) => Err(refused.error),
    }
}

async fn set_mode(app: &App, sender: &Sender, form: &Form) -> Result<String, ApiError> {
    require_certain(sender)?;
    let (name, text) = (form.text("name"), form.text("mode"));
    let mode = match text {
        "" => None,
        text => Some(EgressMode::parse(text).ok_or_else(|| no_such("mode", text))?),
    };
    egress::change_mode(app, sender.entrance, name, mode).await?;
    let shown = if text.is_empty() { "as configured" } else { text };
    Ok(format!("the way out of {name} is {shown}"))
}

async fn add_rule(app: &App, sender: &Sender, form: &Form) -> Result<String, ApiError> {
    require_certain(sender)?;
    let (name, effect) = (form.text("name"), form.text("effect"));
    let rule = EgressRule {
        effect: EgressEffect::parse(effect).ok_or_else(|| no_such("effect", effect))?,
        target: form.text("target").trim().to_owned(),
        private: form.field("private").is_some(),
        default: false,
    };
    egress::put_rule(app, sender.entrance, name, &rule).await?;
    Ok(format!("{name}: {effect} {}", rule.target))
}

async fn remove_rule(app: &App, sender: &Sender, form: &Form) -> Result<String, ApiError> {
    require_certain(sender)?;
    let (name, target) = (form.text("name"), form.text("target"));
    egress::drop_rule(app, sender.entrance, name, target).await?;
    Ok(format!("{name}: no rule about {target}"))
}

async fn stop_provider(app: &App, sender: &Sender, form: &Form) -> Result<String, ApiError> {
    let provider = form.field("name").map(str::to_owned);
    let which = provider.clone().unwrap_or_else(|| "every provider".to_owned());
    let switched = models::switch_off(app, sender.entrance, provider).await?;
    Ok(format!("{which} is stopped; {} calls were ended", switched.ended))
}

async fn start_provider(app: &App, sender: &Sender, form: &Form) -> Result<String, ApiError> {
    require_certain(sender)?;
    let provider = form.field("name").map(str::to_owned);
    let which = provider.clone().unwrap_or_else(|| "every provider".to_owned());
    models::switch_on(app, sender.entrance, provider).await?;
    Ok(format!("{which} is asked again"))
}

fn no_such(what: &str, text: &str) -> ApiError {
    let message = format!("no such {what}: \"{}\"", text.escape_debug());
    ApiError::new(ErrorKind::InvalidRequest, message)
}

fn require_sure(form: &Form) -> Result<(), ApiError> {
    if form.field("sure").is_some() {
        return Ok(());
    }
    Err(ApiError::new(ErrorKind::InvalidRequest, "nothing was done: the box was not ticked"))
}

/// What opens a way, out or to models. Over plain http a browser does not tell a person from a script of
/// a page, and such a script could have read the token.
fn require_certain(sender: &Sender) -> Result<(), ApiError> {
    if sender.certain {
        return Ok(());
    }
    let message = "over plain http nobody can tell that you sent this, and not a script of a page";
    Err(ApiError::new(ErrorKind::Permission, message)
        .hint("use https, or the nacre command on the host"))
}
