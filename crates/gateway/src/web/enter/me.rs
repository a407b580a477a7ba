//! `/auth/me`: the owner's own: browsers that are signed in, passkeys, recovery codes, signing out.

use axum::body::Body;
use http::StatusCode;
use nacre_wire::{ApiError, ErrorKind};

use super::cookie::Cookie;
use super::{Answered, Caller, form_page, passkey, view};
use crate::auth::{ChallengeFor, Event, Session, base64url};
use crate::web::form::Form;
use crate::web::intent::FormToken;
use crate::web::reply;

pub(super) async fn show(caller: &Caller<'_>) -> Answered {
    let Some(session) = caller.session() else {
        return Ok(reply::redirect("/login?next=/auth/me"));
    };
    if !caller.is_person() {
        return Err(ApiError::new(ErrorKind::Permission, "this page is not for scripts"));
    }
    page(caller, &session, None).await
}

async fn page(caller: &Caller<'_>, session: &Session, note: Option<&str>) -> Answered {
    let auth = caller.auth();
    let host = caller.visitor.name();
    // Browsers have no passkeys for addresses.
    let offers = !host.is_empty() && host.parse::<std::net::IpAddr>().is_err();
    let challenge = if offers { Some(passkey::challenge_word()?) } else { None };
    if let Some(word) = &challenge {
        let asks = ChallengeFor::Enrol(session.hash());
        auth.challenges.leave(word, session.hash(), passkey::challenge(caller, asks));
    }
    let name = auth.owner_name().await;
    let passkeys = auth.passkeys().await?;
    let html = view::me(&view::Me {
        owner: name.as_ref(),
        sessions: &auth.sessions.list(Some(session.id())),
        tokens: &auth.tokens.list(),
        passkeys: &passkeys,
        codes_left: auth.codes_left().await?,
        host,
        challenge: challenge.as_deref(),
        token: FormToken::of(session.hash()).as_str(),
        note,
    });
    Ok(passkey::script_page(StatusCode::OK, html))
}

pub(super) async fn act(caller: &Caller<'_>, body: Body) -> Answered {
    let Some(session) = caller.session() else {
        return Ok(reply::redirect("/login?next=/auth/me"));
    };
    let form = Form::read(body).await?;
    if form.text("token") != FormToken::of(session.hash()).as_str() {
        let message = "this form is not from the page of this session";
        return Err(ApiError::new(ErrorKind::Permission, message).hint("open /auth/me again"));
    }
    match form.text("action") {
        "sign-out" => sign_out(caller, &session).await,
        "end-session" => {
            end(caller, form.text("id")).await?;
            page(caller, &session, Some("That browser is signed out.")).await
        }
        "revoke-token" => {
            let revoked = caller.auth().tokens.revoke(form.text("id")).await?;
            let event = Event::of("token_revoked").from(caller.address()).saying(revoked.name);
            caller.auth().note(event).await;
            page(caller, &session, Some("The token opens nothing any more.")).await
        }
        "new-codes" => {
            let codes = caller.auth().make_codes().await?;
            Ok(form_page(StatusCode::OK, view::codes(&codes, view::Made::Again)))
        }
        "add-passkey" => add_passkey(caller, &session, &form).await,
        "remove-passkey" => {
            caller.auth().remove_passkey(form.text("id"), caller.address()).await?;
            page(caller, &session, Some("The passkey is removed.")).await
        }
        other => {
            let message = format!("no such action: \"{}\"", other.escape_debug());
            Err(ApiError::new(ErrorKind::InvalidRequest, message))
        }
    }
}

async fn sign_out(caller: &Caller<'_>, session: &Session) -> Answered {
    end(caller, session.id()).await?;
    let mut response = reply::redirect("/login");
    Cookie::Session.clear(response.headers_mut(), caller.visitor.secure);
    Ok(response)
}

async fn end(caller: &Caller<'_>, id: &str) -> Result<(), ApiError> {
    caller.app.end_session(id, Event::of("session_ended").from(caller.address())).await
}

async fn add_passkey(caller: &Caller<'_>, session: &Session, form: &Form) -> Answered {
    let answer = passkey::answer(form);
    let challenge = caller.auth().challenges.take(&answer.challenge, &[session.hash()]);
    let ours = ChallengeFor::Enrol(session.hash());
    let Some(challenge) = challenge.filter(|challenge| challenge.asks == ours) else {
        return page(caller, session, Some("That took too long. Try again.")).await;
    };
    let added =
        caller.auth().enrol_passkey(&challenge, &answer, form.text("name"), caller.address()).await;
    match added {
        Ok(()) => page(caller, session, Some("The passkey is added.")).await,
        Err(error) => {
            let why = format!("The passkey was not added: {}.", error.message);
            page(caller, session, Some(&why)).await
        }
    }
}

/// What identifies a passkey in a form.
pub(super) fn passkey_id(id: &[u8]) -> String {
    base64url(id)
}
