//! `/recovery`: for the day the account's server is gone.

use axum::body::Body;
use http::StatusCode;
use nacre_wire::access::SignInMethod;

use super::{Answered, Caller, form_page, view};
use crate::web::form::Form;
use crate::web::reply;

pub(super) async fn show(caller: &Caller<'_>) -> Answered {
    page(caller, StatusCode::OK, None).await
}

pub(super) async fn redeem(caller: &Caller<'_>, body: Body) -> Answered {
    if let Err(response) = caller.check_limits() {
        return Ok(*response);
    }
    let form = Form::read(body).await?;
    if caller.auth().redeem_code(form.text("code")).await? {
        return caller.welcome(SignInMethod::RecoveryCode, reply::redirect("/auth/me")).await;
    }
    caller.refused("recovery_refused", "a wrong recovery code").await;
    page(caller, StatusCode::FORBIDDEN, Some("This is not a recovery code, or it was used.")).await
}

async fn page(caller: &Caller<'_>, status: StatusCode, why: Option<&str>) -> Answered {
    let passkey = !caller.auth().passkeys_at(caller.visitor.name()).await?.is_empty();
    Ok(form_page(status, view::recovery(passkey, why)))
}
