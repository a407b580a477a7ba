//! `/admin/sandboxes/promote`: each check of a swap as it is made, then the swap.
//!
//! The page is sent piece by piece, so that it shows what is known so far without a script.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::response::Response;
use futures_util::{StreamExt, stream};
use http::{HeaderName, HeaderValue, StatusCode};
use nacre_wire::roles::{CopyProgress, SwapVerdict};
use nacre_wire::{ApiError, ErrorKind};

use super::layout::{self, FOOT, Forms, Place, bytes};
use super::{Notes, Person};
use crate::sandboxes::looking::{Seen, Viewer};
use crate::web::pages::escape;
use crate::web::reply::{self, UNBUFFERED};
use crate::web::{Answer, App};

const TITLE: &str = "Promote dev";
/// While live is copied.
const LOOK_AGAIN_S: u32 = 2;
const BACK: &str = "<a class=\"button\" href=\"/\">Back to the desktop</a>";

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(notes): Extension<Notes>,
    person: Person,
) -> Answer<Response> {
    let forms = person.forms(Place::Promote);
    let head = |refresh| layout::head(TITLE, refresh, notes.take().as_ref());
    let seen = match app.sandboxes.look(Viewer::Page) {
        Ok(seen) => seen,
        Err(error) if error.kind == ErrorKind::NotFound => {
            let copying = app.sandboxes.roles_status().await?.copying;
            let refresh = copying.map(|_| LOOK_AGAIN_S);
            let html = format!("{}{}{FOOT}", head(refresh), no_dev(&forms, copying));
            return Ok(reply::form_page(StatusCode::OK, html));
        }
        Err(error) => {
            let html = format!("{}{}{FOOT}", head(None), busy(&error));
            return Ok(reply::form_page(error.kind.status(), html));
        }
    };
    let begins = format!("{}{CHECKS}", head(None));
    let pieces = seen.map(move |seen| match seen {
        Seen::Check(check) => layout::check(&check),
        Seen::Verdict(found) => format!("</ul></section>{}{FOOT}", verdict(&forms, &found)),
    });
    let pieces = stream::once(async move { begins }).chain(pieces).map(Ok::<_, Infallible>);
    let mut response = reply::form_page(StatusCode::OK, Body::from_stream(pieces));
    let (name, value) = UNBUFFERED;
    response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    Ok(response)
}

const CHECKS: &str = "<section><h2>Checks</h2><p class=\"soft\">dev is asked for what people will ask \
                      it for as live. Looking moves nothing.</p><ul>";

fn verdict(forms: &Forms, found: &SwapVerdict) -> String {
    let said = escape(&found.verdict);
    if found.ok {
        return format!(
            "<section><p role=\"status\">All of them hold: {said}.</p><p>What is dev now will answer \
             at / and what is live now will be dev, so that you can roll back.</p>\
             <div class=\"row\">{}<a class=\"button\" href=\"/dev/\">Open dev</a>{BACK}</div></section>",
            forms.button("swap", "", "Promote dev to live", "main"),
        );
    }
    format!(
        "<section><p class=\"why\" role=\"status\">{said}.</p><p>Live is as it was. Mend dev, and look \
         again.</p><div class=\"row\"><a class=\"button\" href=\"{}\">Check again</a>\
         <a class=\"button\" href=\"/dev/\">Open dev</a>\
         <a class=\"button\" href=\"/dev/supervisor/rescue\">Rescue dev</a>{BACK}</div></section>",
        Place::Promote.path(),
    )
}

fn no_dev(forms: &Forms, copying: Option<CopyProgress>) -> String {
    let body = match copying {
        Some(copying) => format!(
            "<p role=\"status\">dev is being made: {} files, {}, {} s.</p><div class=\"row\">{BACK}</div>",
            copying.files,
            bytes(copying.bytes),
            copying.elapsed_ms / 1000,
        ),
        None => format!(
            "<p>There is no dev to promote. It is a copy of live to try things on.</p>\
             <div class=\"row\">{}{BACK}</div>",
            forms.button("create-dev", "", "Make dev", "main"),
        ),
    };
    format!("<section>{body}</section>")
}

fn busy(error: &ApiError) -> String {
    format!(
        "<section><p class=\"why\" role=\"status\">{}.</p><div class=\"row\">\
         <a class=\"button\" href=\"{}\">Check again</a>{BACK}</div></section>",
        escape(&error.message),
        Place::Promote.path(),
    )
}
