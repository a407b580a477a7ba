//! `/supervisor/guard.js`: a script of the supervisor's in the pages of a guarded app, which offers Undo
//! when they break. It depends on nothing of theirs.

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};

/// One script in the order of its parts, in a scope of its own.
const SCRIPT: &str = concat!(
    "(() => {\n",
    include_str!("base.js"),
    include_str!("troubles.js"),
    include_str!("page.js"),
    include_str!("look.js"),
    include_str!("socket.js"),
    "\nconst STYLE = `",
    include_str!("guard.css"),
    "`;\n",
    include_str!("panel.js"),
    include_str!("undo.js"),
    include_str!("start.js"),
    "})();\n",
);

pub fn router() -> Router {
    Router::new().route("/supervisor/guard.js", get(script))
}

async fn script() -> Response {
    let headers = [
        (CONTENT_TYPE, "text/javascript; charset=utf-8"),
        // A page that outlives the supervisor gets the new one's with its next load.
        (CACHE_CONTROL, "no-cache"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, SCRIPT).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_small_and_finds_everything_from_where_it_is() {
        assert!(SCRIPT.len() < 28 * 1024, "{} bytes", SCRIPT.len());
        assert!(!include_str!("guard.css").contains(['`', '\\', '$']), "it stands in a template");
        for absolute in ["fetch(\"/", "href = \"/", "innerHTML", "http://", "https://"] {
            assert!(!SCRIPT.contains(absolute), "{absolute}");
        }
    }
}
