//! `/auth/me` as text. Pure, but for the clock.

use nacre_wire::access::{SessionInfo, SignInMethod, TokenInfo};

use super::super::me::passkey_id;
use super::{PASSKEY_END, SCRIPT, escape, hidden, layout, passkey_data, passkey_fields};
use crate::auth::OwnerName;
use crate::clock::ago;
use crate::store::PasskeyRow;

pub(in crate::web::enter) struct Me<'a> {
    pub(in crate::web::enter) owner: Option<&'a OwnerName>,
    pub(in crate::web::enter) sessions: &'a [SessionInfo],
    pub(in crate::web::enter) tokens: &'a [TokenInfo],
    pub(in crate::web::enter) passkeys: &'a [PasskeyRow],
    pub(in crate::web::enter) codes_left: u32,
    pub(in crate::web::enter) host: &'a str,
    /// Absent where browsers have no passkeys.
    pub(in crate::web::enter) challenge: Option<&'a str>,
    pub(in crate::web::enter) token: &'a str,
    pub(in crate::web::enter) note: Option<&'a str>,
}

pub(in crate::web::enter) fn me(me: &Me<'_>) -> String {
    let note = me
        .note
        .map(|note| format!("<p class=\"note\" role=\"status\">{}</p>", escape(note)))
        .unwrap_or_default();
    let body = format!(
        "<nav><a href=\"/\">Back to the desktop</a><a href=\"/admin/sandboxes\">Sandboxes</a></nav>\
         {note}{}{}{}{}{}",
        who(me),
        sessions(me),
        tokens(me),
        passkeys(me),
        codes(me),
    );
    let script = me.challenge.map(|_| format!("<script>{SCRIPT}</script>")).unwrap_or_default();
    layout("Your access", "", &body, &script)
}

fn who(me: &Me<'_>) -> String {
    let name = match me.owner {
        Some(OwnerName { did, handle: Some(handle) }) => {
            let (did, handle) = (escape(did.as_str()), escape(handle.as_str()));
            format!("<strong>@{handle}</strong> <span class=\"soft\">{did}</span>")
        }
        Some(OwnerName { did, handle: None }) => {
            format!("<strong>{}</strong>", escape(did.as_str()))
        }
        None => "Nobody yet. <a href=\"/register\">Make it yours</a>".to_owned(),
    };
    format!(
        "<section><h2>Owner</h2><p>{name}</p><div class=\"row\">{}</div></section>",
        button(me, "sign-out", "", "Sign out", "")
    )
}

fn sessions(me: &Me<'_>) -> String {
    let lines: String = me.sessions.iter().map(|session| line(me, session)).collect();
    format!("<section id=\"sessions\"><h2>Signed in</h2><ul>{lines}</ul></section>")
}

/// They are made in the terminal, and may be ended anywhere.
fn tokens(me: &Me<'_>) -> String {
    let lines: String = me.tokens.iter().map(|one| token(me, one)).collect();
    let body = match lines.is_empty() {
        true => "<p class=\"soft\">No program has one. In the terminal:</p>\
                 <pre>nacre token create NAME</pre>"
            .to_owned(),
        false => format!("<ul>{lines}</ul>"),
    };
    format!("<section id=\"tokens\"><h2>Tokens of programs</h2>{body}</section>")
}

fn token(me: &Me<'_>, token: &TokenInfo) -> String {
    let scopes: Vec<_> = token.scopes.iter().map(|scope| scope.as_str()).collect();
    let used = token
        .used_at
        .map_or_else(|| "never used".to_owned(), |at| format!("last used {} ago", ago(at)));
    format!(
        "<li>{}<br><span class=\"soft\">{}, made {} ago, {used}</span><div class=\"row\">{}</div></li>",
        escape(&token.name),
        scopes.join(" "),
        ago(token.created_at),
        button(me, "revoke-token", &token.id, "Revoke", "bad"),
    )
}

fn line(me: &Me<'_>, session: &SessionInfo) -> String {
    let method = match session.method {
        SignInMethod::Link => "by link",
        SignInMethod::Account => "by account",
        SignInMethod::RecoveryCode => "by recovery code",
        SignInMethod::Passkey => "by passkey",
        SignInMethod::Unknown => "",
    };
    let agent = session.agent.as_deref().unwrap_or("a browser that says nothing of itself");
    let address = session.address.as_deref().unwrap_or("");
    let end = if session.current {
        "<span class=\"soft\">This browser.</span>".to_owned()
    } else {
        button(me, "end-session", &session.id, "Sign it out", "bad")
    };
    format!(
        "<li>{}<br><span class=\"soft\">{method} from {} {} ago, last used {} ago</span>\
         <div class=\"row\">{end}</div></li>",
        escape(agent),
        escape(address),
        ago(session.created_at),
        ago(session.seen_at),
    )
}

fn passkeys(me: &Me<'_>) -> String {
    let lines: String = me
        .passkeys
        .iter()
        .map(|passkey| {
            let used = passkey
                .used_at
                .map_or_else(|| "never used".to_owned(), |at| format!("last used {} ago", ago(at)));
            format!(
                "<li>{}<br><span class=\"soft\">for {}, {used}</span><div class=\"row\">{}</div></li>",
                escape(&passkey.name),
                escape(&passkey.host),
                button(me, "remove-passkey", &passkey_id(&passkey.id), "Remove", "bad"),
            )
        })
        .collect();
    let add = match me.challenge {
        None => {
            "<p class=\"soft\">Browsers keep passkeys for names, not for addresses: open this page \
                 under a name to add one.</p>"
                .to_owned()
        }
        Some(challenge) => add_passkey(me, challenge),
    };
    format!(
        "<section id=\"passkeys\"><h2>Passkeys</h2><p class=\"soft\">They let you in without your account's server.\
         </p><ul>{lines}</ul>{add}</section>"
    )
}

fn add_passkey(me: &Me<'_>, challenge: &str) -> String {
    let here = me.passkeys.iter().filter(|passkey| passkey.host == me.host);
    let known: Vec<String> = here.map(|passkey| passkey_id(&passkey.id)).collect();
    let user = match me.owner {
        Some(OwnerName { handle: Some(handle), .. }) => format!("@{handle}"),
        Some(OwnerName { did, handle: None }) => did.to_string(),
        None => "owner".to_owned(),
    };
    format!(
        "<form method=\"post\" action=\"/auth/me\" {}>{}{}{}\
         <label for=\"name\">What to call it</label>\
         <input id=\"name\" name=\"name\" maxlength=\"64\" placeholder=\"Phone\">\
         <button class=\"main\">Add a passkey</button></form>{PASSKEY_END}",
        passkey_data("add", me.host, &user, &known),
        hidden("token", me.token),
        hidden("action", "add-passkey"),
        passkey_fields(challenge),
    )
}

fn codes(me: &Me<'_>) -> String {
    format!(
        "<section id=\"codes\"><h2>Recovery codes</h2><p>{} of ten are left.</p><div class=\"row\">{}</div></section>",
        me.codes_left,
        button(me, "new-codes", "", "Make ten new ones", ""),
    )
}

fn button(me: &Me<'_>, action: &str, id: &str, text: &str, class: &str) -> String {
    format!(
        "<form method=\"post\" action=\"/auth/me\">{}{}{}<button class=\"{class}\">{text}</button></form>",
        hidden("token", me.token),
        hidden("action", action),
        hidden("id", id),
    )
}
