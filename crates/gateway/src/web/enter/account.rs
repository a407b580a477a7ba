//! Signing in with an account: away to its server, and back.

use axum::Json;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::CACHE_CONTROL;
use nacre_atproto::{Callback, Did, Error, Query, SignedIn};
use nacre_wire::access::SignInMethod;
use nacre_wire::{ApiError, ErrorKind};

use super::{Answered, Caller, form_page, too_often, view, way_back};
use crate::auth::{Away, Event, Purpose};
use crate::web::form::Form;
use crate::web::reply;
use crate::web::way_back::WayBack;

/// The button was pressed.
pub(super) async fn start(caller: &Caller<'_>, body: Body) -> Answered {
    if let Err(response) = caller.check_limits() {
        return Ok(*response);
    }
    let form = Form::read(body).await?;
    let Some(owner) = caller.auth().owner() else { return Ok(reply::redirect("/login")) };
    send_away(caller, &owner, Purpose::SignIn, way_back(form.text("next"))).await
}

/// To the server that speaks for this DID.
pub(super) async fn send_away(
    caller: &Caller<'_>,
    did: &Did,
    purpose: Purpose,
    way_back: Option<WayBack>,
) -> Answered {
    if let Err(wait) = caller.auth().starts.check(caller.address()) {
        return Ok(too_often(wait));
    }
    caller.auth().starts.failed(caller.address());
    let Some(client) = caller.auth().client() else {
        return Err(ApiError::new(
            ErrorKind::Unsupported,
            "accounts cannot be asked from this address",
        )
        .hint("set PUBLIC_URL to an https address, or open it as http://127.0.0.1"));
    };
    match client.begin(did).await {
        Ok(started) => {
            let mut response = reply::redirect(&started.address);
            let browser = caller.new_browser(&mut response)?;
            let state = started.flow.state().to_owned();
            let away = Away { flow: started.flow, purpose, way_back };
            caller.auth().away.leave(&state, browser, away);
            Ok(response)
        }
        Err(error) => failed(caller, &error).await,
    }
}

/// Back from there.
pub(super) async fn callback(caller: &Caller<'_>) -> Answered {
    let query = Query::parse(caller.query());
    let state = query.as_ref().and_then(|query| query.get("state")).unwrap_or("");
    // Gone before anything else happens: a callback counts once.
    let Some(away) = caller.auth().away.take(state, &caller.browsers()) else {
        if caller.session().is_some() {
            return Ok(reply::redirect("/"));
        }
        if let Err(response) = caller.check_limits() {
            return Ok(*response);
        }
        caller.refused("sign_in_refused", "a callback that nobody waits for").await;
        return Ok(reply::page(StatusCode::BAD_REQUEST, view::stale()));
    };
    let Some(callback) = query.as_ref().and_then(Callback::read) else {
        caller.refused("sign_in_refused", "a callback that says nothing").await;
        return Ok(reply::page(StatusCode::BAD_REQUEST, view::stale()));
    };
    let Some(client) = caller.auth().client() else { return Ok(reply::redirect("/login")) };
    let Away { flow, purpose, way_back } = away;
    match client.finish(flow, &callback).await {
        Ok(who) => match purpose {
            Purpose::SignIn => arrive(caller, &who, way_back.as_ref()).await,
            Purpose::Claim { expected } => claim(caller, &who, &expected).await,
        },
        Err(error) => failed(caller, &error).await,
    }
}

/// The only gate: servers do not promise that whoever they were asked for is who signed in.
async fn arrive(caller: &Caller<'_>, who: &SignedIn, way_back: Option<&WayBack>) -> Answered {
    if caller.auth().owner().as_ref() != Some(&who.did) {
        return Ok(wrong_account(caller, who, way_back).await);
    }
    let to = way_back.map_or("/", WayBack::as_str);
    caller.welcome(SignInMethod::Account, reply::redirect(to)).await
}

async fn claim(caller: &Caller<'_>, who: &SignedIn, expected: &Did) -> Answered {
    if who.did != *expected {
        return Ok(wrong_account(caller, who, None).await);
    }
    if !caller.auth().claim(who).await? {
        return Ok(reply::page(StatusCode::FORBIDDEN, view::taken()));
    }
    let codes = caller.auth().make_codes().await?;
    let page = form_page(StatusCode::OK, view::codes(&codes, view::Made::AtRegistration(who)));
    caller.welcome(SignInMethod::Account, page).await
}

async fn wrong_account(
    caller: &Caller<'_>,
    who: &SignedIn,
    way_back: Option<&WayBack>,
) -> Response {
    caller.auth().limits.failed(caller.address());
    let event = Event::of("sign_in_refused").by(&who.did).from(caller.address());
    caller.auth().note(event.saying("not the owner")).await;
    let start = caller.auth().owner().map(|_| "/auth/start");
    let next = way_back.map(WayBack::as_str);
    form_page(StatusCode::FORBIDDEN, view::wrong_account(who, start, next))
}

/// Why nobody was signed in, as a page. Somebody else's server being down is nobody's failure here.
async fn failed(caller: &Caller<'_>, error: &Error) -> Answered {
    tracing::warn!(%error, "a sign-in failed");
    let (status, html) = match error {
        Error::Refused { code, .. } if code == "access_denied" => {
            let event = Event::of("sign_in_refused").by("-").from(caller.address());
            caller.auth().note(event.saying("consent was denied")).await;
            (StatusCode::FORBIDDEN, view::denied())
        }
        Error::Unreachable { place, .. } => {
            let event = Event::of("sign_in_refused").by("-").from(caller.address());
            caller.auth().note(event.saying(error.to_string())).await;
            (StatusCode::BAD_GATEWAY, view::unreachable(place))
        }
        Error::Refused { .. } | Error::Untrusted { .. } => {
            caller.refused("sign_in_refused", &error.to_string()).await;
            (StatusCode::BAD_GATEWAY, view::untrusted(&error.to_string()))
        }
        Error::Local(_) => (StatusCode::INTERNAL_SERVER_ERROR, view::untrusted(&error.to_string())),
    };
    Ok(form_page(status, html))
}

/// Who we are, for the servers of accounts.
pub(super) fn metadata(caller: &Caller<'_>) -> Answered {
    document(caller.auth().client().and_then(|client| client.app().metadata()))
}

pub(super) fn jwks(caller: &Caller<'_>) -> Answered {
    document(caller.auth().client().and_then(|client| client.app().jwks()))
}

fn document(document: Option<serde_json::Value>) -> Answered {
    let document = document.ok_or_else(|| {
        ApiError::new(ErrorKind::NotFound, "a computer on loopback has no client document")
    })?;
    Ok(([(CACHE_CONTROL, "no-cache")], Json(document)).into_response())
}
