//! The pages of signing in, as text. Pure.

mod me;

use nacre_atproto::SignedIn;

pub(super) use me::{Me, me};

use super::passkey::SCRIPT;
use crate::auth::{Code, OwnerName};
use crate::web::pages::escape;

const STYLE: &str = concat!(
    include_str!("../../board/board.css"),
    "main>nav{margin:-.4rem 0 1.1rem}main.narrow{max-width:30rem;padding-top:12vh}\
     main.narrow h1{margin-bottom:.75rem}\
     label{display:block;margin:.75rem 0 .25rem}\
     input:not([type=hidden]){font:inherit;width:100%;padding:.5rem .7rem;border-radius:.5rem;\
     border:1px solid var(--soft);background:var(--page);color:var(--ink)}\
     form.tall{display:block}form.tall button{margin-top:1rem;width:100%}\
     .codes{columns:2;font:1rem/1.9 ui-monospace,monospace;padding:0;margin:.75rem 0}\
     .codes li{border:0;padding:0;break-inside:avoid}\
     .wide{width:100%}\
     @media(max-width:30rem){.codes{columns:1}}"
);

/// What the page at `/login` offers.
pub(super) struct Login<'a> {
    pub(super) owner: &'a OwnerName,
    /// Where the button leads; absent when accounts cannot be asked from here.
    pub(super) start: Option<String>,
    pub(super) passkey: bool,
    pub(super) next: Option<&'a str>,
}

pub(super) fn login(login: &Login<'_>) -> String {
    let who = match &login.owner.handle {
        Some(handle) => format!("Sign in as @{}", escape(handle.as_str())),
        None => "Sign in with your Atmosphere account".to_owned(),
    };
    let button = match &login.start {
        Some(start) => start_button(start, login.next, &who),
        None => "<p>Accounts cannot be asked from this address. On the computer itself:</p>\
                 <pre>nacre login</pre>"
            .to_owned(),
    };
    let did = match &login.owner.handle {
        Some(_) => String::new(),
        None => format!("<p class=\"soft\">{}</p>", escape(login.owner.did.as_str())),
    };
    let passkey = if login.passkey {
        let next = login.next.map(next_query).unwrap_or_default();
        format!("<p><a href=\"/auth/passkey{next}\">Use a passkey</a></p>")
    } else {
        String::new()
    };
    let body = format!(
        "<section><p>This is somebody's computer. If it is yours, come in.</p>{button}{did}</section>\
         {passkey}<p class=\"soft\">Is your account's server down? <a href=\"/recovery\">Recover \
         access</a></p>"
    );
    narrow("Sign in", &body)
}

fn next_query(next: &str) -> String {
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
    format!("?next={}", utf8_percent_encode(next, NON_ALPHANUMERIC))
}

fn start_button(start: &str, next: Option<&str>, text: &str) -> String {
    let next = next.map(|next| hidden("next", next)).unwrap_or_default();
    format!(
        "<form class=\"tall\" method=\"post\" action=\"{}\">{next}\
         <button class=\"main\">{text}</button></form>",
        escape(start)
    )
}

/// Nobody owns it yet.
pub(super) fn unowned(can_register: bool) -> String {
    let register = if can_register {
        "<p class=\"soft\">Or make it yours for good: <a href=\"/register\">sign in with your \
         Atmosphere account</a> (the one for Bluesky, for example).</p>"
    } else {
        ""
    };
    let body = format!(
        "<section><p>This is somebody's computer. If it is yours, ask it for a link:</p>\
         <pre>nacre login</pre><p>and open the link here. It works once, within ten minutes.</p>\
         </section>{register}"
    );
    narrow("Sign in", &body)
}

pub(super) fn register(why: Option<&str>) -> String {
    let body = format!(
        "{}<section><p>Whoever signs in here owns this computer from then on, and nobody else gets \
         in.</p><form class=\"tall\" method=\"post\" action=\"/register\">\
         <label for=\"code\">Setup code, from the terminal: <code>nacre register</code></label>\
         <input id=\"code\" name=\"code\" autocomplete=\"off\" autocapitalize=\"characters\" \
         spellcheck=\"false\" required>\
         <label for=\"account\">Your Atmosphere or Bluesky handle</label>\
         <input id=\"account\" name=\"account\" placeholder=\"alice.bsky.social\" \
         autocomplete=\"username\" autocapitalize=\"none\" spellcheck=\"false\" required>\
         <button class=\"main\">Sign in and make it mine</button></form></section>",
        failure(why)
    );
    narrow("Make this computer yours", &body)
}

pub(super) fn taken() -> String {
    let body = "<section><p>It was made somebody's once, and that is that. If it is yours, \
                <a href=\"/login\">sign in</a>.</p></section>";
    narrow("This computer has an owner", body)
}

pub(super) fn no_accounts_here() -> String {
    let body = "<section><p>Accounts cannot be asked from this address. Open it as \
                <code>http://127.0.0.1</code>, or give it a public https address with \
                <code>PUBLIC_URL</code>.</p></section>";
    narrow("Not from here", body)
}

pub(super) fn recovery(passkey: bool, why: Option<&str>) -> String {
    let passkey = if passkey {
        "<section><h2>With a passkey</h2><div class=\"row\">\
         <a class=\"button wide\" href=\"/auth/passkey\">Use a passkey</a></div></section>"
    } else {
        ""
    };
    let body = format!(
        "{}{passkey}<section><h2>With a recovery code</h2>\
         <form class=\"tall\" method=\"post\" action=\"/recovery\">\
         <label for=\"code\">One of the ten codes you kept</label>\
         <input id=\"code\" name=\"code\" autocomplete=\"one-time-code\" \
         autocapitalize=\"characters\" spellcheck=\"false\" required>\
         <button class=\"main\">Sign in</button></form></section>\
         <p class=\"soft\">Somebody with a terminal on the computer can also run \
         <code>nacre login</code>. <a href=\"/login\">Back to signing in</a></p>",
        failure(why)
    );
    narrow("Recover access", &body)
}

/// When codes are shown.
pub(super) enum Made<'a> {
    AtRegistration(&'a SignedIn),
    Again,
}

/// Shown once.
pub(super) fn codes(codes: &[Code], made: Made<'_>) -> String {
    let first = match made {
        Made::AtRegistration(who) => {
            format!("<p>This computer is yours now, {}.</p>", name(who))
        }
        Made::Again => "<p>The codes you had before no longer work.</p>".to_owned(),
    };
    let list: String = codes.iter().map(|code| format!("<li>{}</li>", code.reveal())).collect();
    let body = format!(
        "<section>{first}<p>Keep these codes where you find them without this computer. Each lets you \
         in once, for the day your account's server is gone. They are not shown again.</p>\
         <ul class=\"codes\">{list}</ul><div class=\"row\">\
         <a class=\"button wide\" href=\"/auth/me\">I have kept them</a></div></section>"
    );
    narrow("Your recovery codes", &body)
}

/// 403: somebody signed in, and it was not the owner.
pub(super) fn wrong_account(who: &SignedIn, start: Option<&str>, next: Option<&str>) -> String {
    let again = match start {
        Some(start) => start_button(start, next, "Try another account"),
        None => {
            "<div class=\"row\"><a class=\"button wide\" href=\"/register\">Try again</a></div>"
                .to_owned()
        }
    };
    let body = format!(
        "<section><p>You signed in as <strong>{}</strong>, and this computer is somebody else's. \
         Nothing was kept.</p><p class=\"soft\">{}</p>{again}</section>",
        name(who),
        escape(who.did.as_str()),
    );
    narrow("Not your computer", &body)
}

fn name(who: &SignedIn) -> String {
    match &who.handle {
        Some(handle) => format!("@{}", escape(handle.as_str())),
        None => escape(who.did.as_str()),
    }
}

pub(super) fn denied() -> String {
    try_again(
        "You said no",
        "<p>Your account's server was told not to let you in here. Nothing was kept.</p>",
    )
}

pub(super) fn stale() -> String {
    try_again(
        "This sign-in is over",
        "<p>It took too long, was used already, or began in another browser.</p>",
    )
}

pub(super) fn unreachable(place: &str) -> String {
    try_again(
        "Your account's server does not answer",
        &format!(
            "<p class=\"why\">{}</p><p>Try again in a while. If it stays away, a passkey or a recovery \
             code lets you in: <a href=\"/recovery\">recover access</a>.</p>",
            escape(place)
        ),
    )
}

pub(super) fn untrusted(why: &str) -> String {
    try_again(
        "That was not believed",
        &format!(
            "<p>Your account's server, or something that speaks for it, gave an answer that must not be \
             trusted:</p><p class=\"why\">{}</p>",
            escape(why)
        ),
    )
}

pub(super) fn too_often(seconds: u64) -> String {
    let body = format!(
        "<section><p>Too many attempts from your address failed. Wait {seconds} seconds.</p></section>"
    );
    narrow("Not so fast", &body)
}

fn try_again(title: &str, why: &str) -> String {
    let again = "<div class=\"row\"><a class=\"button wide\" href=\"/login\">Try again</a></div>";
    narrow(title, &format!("<section>{why}{again}</section>"))
}

pub(super) fn passkey_refused() -> String {
    try_again(
        "This passkey was not accepted",
        "<p>It may have been removed, or it took too long.</p>",
    )
}

/// Asks the authenticator when the button is pressed.
pub(super) fn passkey(challenge: &str, host: &str, known: &[String], next: Option<&str>) -> String {
    let next = next.map(|next| hidden("next", next)).unwrap_or_default();
    let body = format!(
        "<section><form class=\"tall\" method=\"post\" action=\"/auth/passkey\" {}>{}{next}\
         <button class=\"main\">Use your passkey</button></form>{}</section>\
         <p class=\"soft\"><a href=\"/login\">Sign in another way</a></p>",
        passkey_data("use", host, "", known),
        passkey_fields(challenge),
        PASSKEY_END,
    );
    narrow("Sign in with a passkey", &body)
}

const PASSKEY_END: &str = "<p class=\"why\" role=\"alert\" data-passkey-note hidden></p>\
                           <noscript><p class=\"why\">Passkeys need JavaScript.</p></noscript>";

fn passkey_data(how: &str, host: &str, user: &str, known: &[String]) -> String {
    format!(
        "data-passkey=\"{how}\" data-host=\"{}\" data-user=\"{}\" data-known=\"{}\"",
        escape(host),
        escape(user),
        escape(&known.join(" "))
    )
}

fn passkey_fields(challenge: &str) -> String {
    let empty = ["id", "client_data", "authenticator_data", "signature"];
    let empty: String = empty.iter().map(|name| hidden(name, "")).collect();
    hidden("challenge", challenge) + &empty
}

fn failure(why: Option<&str>) -> String {
    why.map(|why| format!("<p class=\"note failed\" role=\"alert\">{}</p>", escape(why)))
        .unwrap_or_default()
}

fn hidden(name: &str, value: &str) -> String {
    format!("<input type=\"hidden\" name=\"{name}\" value=\"{}\">", escape(value))
}

fn narrow(title: &str, body: &str) -> String {
    let script = if body.contains("data-passkey=") {
        format!("<script>{SCRIPT}</script>")
    } else {
        String::new()
    };
    layout(title, "narrow", body, &script)
}

fn layout(title: &str, class: &str, body: &str, script: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{title} · Nacre</title><style>{STYLE}</style></head>\
         <body><main class=\"{class}\"><h1>{title}</h1>{body}</main>{script}</body></html>"
    )
}
