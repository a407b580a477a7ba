//! Whether what is shown at `/` works: asked of the app itself, with little patience, so that who
//! stands in front of it soon knows.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::State;
use futures_util::future::join_all;
use http::{HeaderMap, Request, StatusCode, header};
use nacre_wire::ApiError;
use nacre_wire::desktop::{DesktopCheck, DesktopHealth, DesktopMode};
use nacre_wire::processes::ProcessState;
use rustix::fs::{Mode, OFlags};
use tokio::time::timeout;

use super::{Context, Desktop, html};
use crate::failure::Failure;
use crate::files::hop;
use crate::files::identity::act_as;
use crate::files::root::Root;
use crate::runtime::{App, Broken, Mount, Pages, exchange, in_words};

const PATIENCE: Duration = Duration::from_millis(1200);
const LARGEST_PAGE: usize = 1 << 20;
/// Nothing of a script is read beyond what came with its head.
const MOST_SCRIPTS: usize = 16;
const SCRIPTS: [&str; 4] =
    ["text/javascript", "application/javascript", "application/ecmascript", "text/ecmascript"];

pub(super) async fn health(
    State(desktop): State<Arc<Desktop>>,
    headers: HeaderMap,
) -> Result<Json<DesktopHealth>, Failure> {
    let context = &desktop.context;
    let mount = Mount::of(&headers);
    let (mode, checks) = match context.runtime.pages(&mount).await? {
        Pages::App(app) => {
            let mode = if app.entry.spec.guard { DesktopMode::Source } else { DesktopMode::App };
            (mode, of_app(context, &app).await)
        }
        Pages::Built | Pages::Nobody => (DesktopMode::Built, Vec::new()),
        Pages::Unknown => {
            let why = format!("{} is not in order", crate::runtime::CONFIG);
            (DesktopMode::Built, vec![check("process", Err(why))])
        }
    };
    Ok(Json(DesktopHealth { ok: checks.iter().all(|check| check.ok), mode, checks }))
}

async fn of_app(context: &Context, app: &App) -> Vec<DesktopCheck> {
    let info = &app.entry.info;
    let is_ready = info.state == ProcessState::Ready;
    let is_well = is_ready && info.responding != Some(false);
    let process = if is_well { Ok(()) } else { Err(in_words(info)) };
    let mut checks = vec![check("process", process)];
    let answers = async {
        if !is_ready {
            return Vec::new();
        }
        match page(app).await {
            Ok(page) => vec![check("page", Ok(())), check("entry", entry(app, &page).await)],
            Err(why) => vec![check("page", Err(why))],
        }
    };
    let (answers, modules) = tokio::join!(answers, modules(context, &app.entry.spec.directory.0));
    checks.extend(answers);
    checks.extend(modules.map(|found| check("modules", found)));
    checks
}

fn check(name: &str, found: Result<(), String>) -> DesktopCheck {
    DesktopCheck { name: name.to_owned(), ok: found.is_ok(), detail: found.err() }
}

/// What came for a path.
struct Came {
    status: StatusCode,
    kind: String,
    body: Bytes,
}

/// The page that people get.
async fn page(app: &App) -> Result<String, String> {
    let path = app.entry.mount.base();
    let came = ask(app, &path, "text/html", LARGEST_PAGE).await?;
    if came.status != StatusCode::OK {
        return Err(format!("{path} answers with {}", came.status));
    }
    if came.kind != "text/html" {
        return Err(format!("{path} is not a page but {:?}", came.kind));
    }
    Ok(String::from_utf8_lossy(&came.body).into_owned())
}

/// The modules that the page begins with.
async fn entry(app: &App, page: &str) -> Result<(), String> {
    let base = app.entry.mount.base();
    let paths = html::modules(page).into_iter().filter_map(|source| path_of(&source, &base));
    let asked = paths.take(MOST_SCRIPTS).map(|path| async move {
        let came = ask(app, &path, "*/*", 0).await?;
        if came.status != StatusCode::OK {
            return Err(format!("{path} answers with {}", came.status));
        }
        if !SCRIPTS.contains(&came.kind.as_str()) {
            return Err(format!("{path} is not a script but {:?}", came.kind));
        }
        Ok(())
    });
    join_all(asked).await.into_iter().collect()
}

/// Where a script of the page is on the app's own port; `None` when it is somebody else's.
fn path_of(source: &str, base: &str) -> Option<String> {
    let supervisors = format!("{base}supervisor/");
    let has_scheme = source.split(['/', '?', '#']).next().is_some_and(|first| first.contains(':'));
    if has_scheme || source.starts_with("//") || source.starts_with(&supervisors) {
        return None;
    }
    let path = source.split('#').next().unwrap_or_default();
    if path.starts_with('/') {
        return Some(path.to_owned());
    }
    Some(format!("{base}{}", path.strip_prefix("./").unwrap_or(path)))
}

/// With `most` of 0 the body is not read.
async fn ask(app: &App, path: &str, accept: &str, most: usize) -> Result<Came, String> {
    let request = Request::get(path)
        .header(header::HOST, "localhost")
        .header(header::ACCEPT, accept)
        .header(header::ACCEPT_ENCODING, "identity")
        .body(Body::empty())
        .map_err(|_| format!("{path:?} cannot be asked for"))?;
    let asked = async {
        let response = exchange(app.port, request).await.map_err(|broken| match broken {
            Broken::Unreachable => format!("nothing listens on port {}", app.port),
            Broken::Off(error) => format!("{path} broke off: {error}"),
        })?;
        let (parts, body) = response.into_parts();
        let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
        let body = match most {
            0 => Bytes::new(),
            _ => to_bytes(body, most).await.map_err(|_| format!("{path} broke off or is huge"))?,
        };
        Ok(Came { status: parts.status, kind: kind.trim().to_ascii_lowercase(), body })
    };
    timeout(PATIENCE, asked).await.unwrap_or_else(|_| {
        Err(format!("{path} does not answer within {} ms", PATIENCE.as_millis()))
    })
}

/// Whether the packages of the app are there; `None` when it has none.
async fn modules(context: &Context, directory: &Path) -> Option<Result<(), String>> {
    let (workspace, user) = (context.workspace.clone(), context.user.clone());
    let directory = workspace.join(directory);
    let looked = hop(move || {
        let root = Root::open(Path::new("/"), &workspace)?;
        let _acting = act_as(&user)?;
        let is_there = |name: &str, flags| {
            let path = root.absolute(&directory.join(name))?;
            Ok::<_, ApiError>(root.descend(&path, OFlags::PATH | flags, Mode::empty()).is_ok())
        };
        if !is_there("package.json", OFlags::empty())? {
            return Ok(None);
        }
        let found = is_there("node_modules", OFlags::DIRECTORY)?;
        let missing = || format!("{} is not there", directory.join("node_modules").display());
        Ok(Some(if found { Ok(()) } else { Err(missing()) }))
    });
    looked.await.unwrap_or_else(|error| Some(Err(error.message)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_asked_for_where_the_browser_would() {
        let check = |source: &str, expected: Option<&str>| {
            assert_eq!(path_of(source, "/dev/").as_deref(), expected, "{source}");
        };
        check("/dev/src/main.tsx?t=1#x", Some("/dev/src/main.tsx?t=1"));
        check("./assets/a.js", Some("/dev/assets/a.js"));
        check("b.js", Some("/dev/b.js"));
        check("/@vite/client", Some("/@vite/client"));
        check("https://cdn.example/a.js", None);
        check("//cdn.example/a.js", None);
        check("data:text/javascript,1", None);
        check("/dev/supervisor/guard.js", None);
        check("a?b=c:d", Some("/dev/a?b=c:d"));
    }
}
