//! Signing in with a passkey. The page asks the authenticator and sends its answer as a form: a script
//! that could send it by itself would be one that a sandbox's page could also write.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode};
use nacre_wire::ApiError;
use nacre_wire::access::SignInMethod;
use ring::digest::{SHA256, digest};

use super::{Answered, Caller, form_page, view, way_back};
use crate::auth::{Challenge, ChallengeFor, PasskeyAnswer, base64url};
use crate::secret::random;
use crate::web::form::Form;
use crate::web::reply;
use crate::web::way_back::WayBack;

/// The one script of the gateway.
pub(super) const SCRIPT: &str = include_str!("passkey.js");

pub(super) async fn show(caller: &Caller<'_>) -> Answered {
    let next = WayBack::from_query(caller.query());
    if caller.session().is_some() {
        return Ok(reply::redirect(next.as_ref().map_or("/", WayBack::as_str)));
    }
    let known = caller.auth().passkeys_at(caller.visitor.name()).await?;
    if known.is_empty() {
        return Ok(reply::redirect("/recovery"));
    }
    let word = challenge_word()?;
    let ids: Vec<String> = known.iter().map(|passkey| base64url(&passkey.id)).collect();
    let page =
        view::passkey(&word, caller.visitor.name(), &ids, next.as_ref().map(WayBack::as_str));
    let mut response = script_page(StatusCode::OK, page);
    let browser = caller.new_browser(&mut response)?;
    caller.auth().challenges.leave(&word, browser, challenge(caller, ChallengeFor::SignIn));
    Ok(response)
}

pub(super) async fn sign_in(caller: &Caller<'_>, body: Body) -> Answered {
    if let Err(response) = caller.check_limits() {
        return Ok(*response);
    }
    let form = Form::read(body).await?;
    let answer = answer(&form);
    let challenge = caller.auth().challenges.take(&answer.challenge, &caller.browsers());
    let why = match challenge {
        Some(challenge) if challenge.asks == ChallengeFor::SignIn => {
            match caller.auth().check_passkey(&challenge, &answer).await? {
                Ok(()) => {
                    let next = way_back(form.text("next"));
                    let to = next.as_ref().map_or("/", WayBack::as_str);
                    return caller.welcome(SignInMethod::Passkey, reply::redirect(to)).await;
                }
                Err(why) => why,
            }
        }
        Some(_) | None => "nobody asked for it".to_owned(),
    };
    caller.refused("passkey_refused", &why).await;
    Ok(form_page(StatusCode::FORBIDDEN, view::passkey_refused()))
}

pub(super) fn challenge(caller: &Caller<'_>, asks: ChallengeFor) -> Challenge {
    let visitor = caller.visitor;
    Challenge { origin: visitor.origin(), host: visitor.name().to_owned(), asks }
}

pub(super) fn challenge_word() -> Result<String, ApiError> {
    let bytes = random::<32>().map_err(|error| ApiError::io("random numbers", &error))?;
    Ok(base64url(&bytes))
}

pub(super) fn answer(form: &Form) -> PasskeyAnswer {
    let field = |name| form.text(name).to_owned();
    PasskeyAnswer {
        challenge: field("challenge"),
        id: field("id"),
        client_data: field("client_data"),
        authenticator_data: field("authenticator_data"),
        signature: field("signature"),
    }
}

/// A page that may run our script and no other.
pub(super) fn script_page(status: StatusCode, html: String) -> Response {
    use base64::Engine;
    let hash = base64::engine::general_purpose::STANDARD.encode(digest(&SHA256, SCRIPT.as_bytes()));
    let policy = format!("{}; script-src 'sha256-{hash}'", reply::CONTENT_POLICY);
    let mut response = form_page(status, html);
    // Letters, digits and quotes always make a header.
    if let Ok(policy) = HeaderValue::try_from(policy) {
        response.headers_mut().insert("content-security-policy", policy);
    }
    response
}
