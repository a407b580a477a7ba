//! `/register`: somebody who can see the terminal makes the computer theirs, once.

use axum::body::Body;
use http::StatusCode;
use nacre_atproto::{Did, Handle};

use super::{Answered, Caller, account, form_page, view};
use crate::auth::Purpose;
use crate::web::form::Form;
use crate::web::reply;

pub(super) fn show(caller: &Caller<'_>) -> Answered {
    if caller.auth().owner().is_some() {
        return Ok(reply::page(StatusCode::FORBIDDEN, view::taken()));
    }
    if caller.auth().client().is_none() {
        return Ok(reply::page(StatusCode::OK, view::no_accounts_here()));
    }
    Ok(form_page(StatusCode::OK, view::register(None)))
}

/// Nobody is asked anything before the code is right.
pub(super) async fn begin(caller: &Caller<'_>, body: Body) -> Answered {
    if caller.auth().owner().is_some() || caller.auth().client().is_none() {
        return show(caller);
    }
    if let Err(response) = caller.check_limits() {
        return Ok(*response);
    }
    let form = Form::read(body).await?;
    if !caller.auth().is_setup_code(form.text("code")) {
        caller.refused("claim_refused", "a wrong setup code").await;
        let why =
            "This is not the setup code, or it is too old. nacre register prints a fresh one.";
        return Ok(form_page(StatusCode::FORBIDDEN, view::register(Some(why))));
    }
    let account = form.text("account").trim();
    let account = account.strip_prefix('@').unwrap_or(account);
    match resolve(caller, account).await {
        Ok(did) => {
            let purpose = Purpose::Claim { expected: did.clone() };
            account::send_away(caller, &did, purpose, None).await
        }
        Err(why) => Ok(form_page(StatusCode::BAD_REQUEST, view::register(Some(&why)))),
    }
}

async fn resolve(caller: &Caller<'_>, account: &str) -> Result<Did, String> {
    if let Ok(did) = account.parse::<Did>() {
        return Ok(did);
    }
    let handle: Handle = account
        .parse()
        .map_err(|()| "Write your handle, such as alice.bsky.social, or your DID.".to_owned())?;
    let Some(client) = caller.auth().client() else { return Err(String::new()) };
    client.resolve_handle(&handle).await.map_err(|error| {
        tracing::info!(%handle, %error, "a handle was not found");
        format!("Nobody called {handle} was found. Your DID works too.")
    })
}
