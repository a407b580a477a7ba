//! `/login`: one button, or what to type in a terminal; and the one-time link.

use axum::response::Response;
use http::header::SET_COOKIE;
use http::{HeaderValue, StatusCode};
use nacre_wire::access::SignInMethod;

use super::{Answered, Caller, form_page, view};
use crate::store::SIGN_IN_LIFETIME;
use crate::web::way_back::WayBack;
use crate::web::{pages, reply};

pub(super) async fn show(caller: &Caller<'_>) -> Answered {
    let query = caller.query();
    let asked = WayBack::from_query(query);
    let way_back = asked.clone().or_else(|| WayBack::from_cookie(&caller.parts.headers));
    let to = way_back.as_ref().map_or("/", WayBack::as_str);
    let token = query.split('&').find_map(|pair| pair.strip_prefix("token="));
    if let Some(token) = token {
        return redeem(caller, token, to).await;
    }
    // The back button after signing in must not look like a failure.
    if caller.session().is_some() {
        return Ok(reply::redirect(to));
    }
    page(caller, asked.as_ref()).await
}

/// `HEAD`: nothing is used up, and nothing is asked of anybody.
pub(super) async fn look(_caller: &Caller<'_>) -> Answered {
    Ok(reply::page(StatusCode::OK, String::new()))
}

async fn redeem(caller: &Caller<'_>, token: &str, to: &str) -> Answered {
    if let Err(response) = caller.check_limits() {
        return Ok(*response);
    }
    if caller.auth().redeem(token).await? {
        return caller.welcome(SignInMethod::Link, reply::redirect(to)).await;
    }
    if caller.session().is_some() {
        return Ok(reply::redirect(to));
    }
    caller.refused("sign_in_refused", "a link that no longer works").await;
    Ok(reply::page(StatusCode::UNAUTHORIZED, pages::link_spent()))
}

async fn page(caller: &Caller<'_>, way_back: Option<&WayBack>) -> Answered {
    let auth = caller.auth();
    let html = match auth.owner_name().await {
        Some(owner) => view::login(&view::Login {
            owner: &owner,
            start: auth.client().map(|_| start_address(caller)),
            passkey: !auth.passkeys_at(caller.visitor.name()).await?.is_empty(),
            next: way_back.map(WayBack::as_str),
        }),
        None => view::unowned(auth.client().is_some()),
    };
    let mut response = form_page(StatusCode::OK, html);
    keep(&mut response, way_back);
    Ok(response)
}

/// At the address that accounts send people back to, whatever name this page was opened under.
fn start_address(caller: &Caller<'_>) -> String {
    format!("{}/auth/start", caller.app.url())
}

fn keep(response: &mut Response, way_back: Option<&WayBack>) {
    let cookie = way_back.map(|way_back| way_back.cookie(SIGN_IN_LIFETIME.as_secs()));
    if let Some(cookie) = cookie.and_then(|cookie| HeaderValue::try_from(cookie).ok()) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
}
