//! `/auth/ports`: leads a browser that is signed in to the host of a port, with a code that lets it in
//! there. The other end is `web::ports`.

use std::sync::Arc;

use nacre_wire::{ApiError, ErrorKind};

use super::{Answered, Caller, fresh_secret};
use crate::secret::SecretHash;
use crate::web::form::Form;
use crate::web::ports::{ENTER, is_path};
use crate::web::reply;
use crate::web::visitor::PortHost;
use crate::web::way_back::WayBack;

pub(super) fn lead(caller: &Caller<'_>) -> Answered {
    let query = Form::parse(caller.query().as_bytes());
    let wrong = || ApiError::new(ErrorKind::InvalidRequest, "this does not lead to a port");
    let place: PortHost = query.text("to").parse().map_err(|()| wrong())?;
    let knock = SecretHash::from_hex(query.text("knock")).ok_or_else(wrong)?;
    let next = Some(query.text("next")).filter(|next| is_path(next)).unwrap_or("/");
    let Some(origin) = caller.app.front.port_origin(caller.visitor, place) else {
        let message = "ports have no hosts of their own here";
        return Err(ApiError::new(ErrorKind::NotFound, message).hint("see gateway.wildcard_host"));
    };
    let Some(session) = caller.session() else {
        let here = caller.parts.uri.path_and_query().and_then(|path| WayBack::parse(path.as_str()));
        return Ok(reply::redirect(&here.map_or("/login".to_owned(), |here| here.sign_in_page())));
    };
    if !caller.is_person() {
        return Err(ApiError::new(ErrorKind::Permission, "this page is not for scripts"));
    }
    let code = fresh_secret()?;
    caller.auth().ports.allow(&code, knock, place, Arc::clone(&session));
    let next = crate::web::ports::encode(next);
    let to = format!("{origin}{ENTER}?code={}&next={next}", code.reveal());
    let mut response = reply::redirect(&to);
    let policy = http::HeaderValue::from_static("no-referrer");
    response.headers_mut().insert("referrer-policy", policy);
    Ok(response)
}
