//! What the pages of the control plane have in common, as text. Pure.

use nacre_wire::roles::{Evidence, SwapCheck};

use super::Note;
use crate::web::intent::FORMS;
use crate::web::pages::escape;

const STYLE: &str = include_str!("board.css");

/// Whose forms these are, and where the browser goes after one.
#[derive(Debug, Clone)]
pub(super) struct Forms {
    pub(super) token: String,
    pub(super) from: Place,
}

/// The pages that have forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Board,
    Promote,
    Network,
    Models,
    Runs,
}

impl Place {
    const ALL: [Self; 5] = [Self::Board, Self::Promote, Self::Network, Self::Models, Self::Runs];

    fn as_str(self) -> &'static str {
        match self {
            Self::Board => "",
            Self::Promote => "promote",
            Self::Network => "network",
            Self::Models => "models",
            Self::Runs => "runs",
        }
    }

    /// The board when it is none of them.
    pub(super) fn parse(text: &str) -> Self {
        Self::ALL.into_iter().find(|place| place.as_str() == text).unwrap_or(Self::Board)
    }

    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Board => "/admin/sandboxes",
            Self::Promote => "/admin/sandboxes/promote",
            Self::Network => "/admin/sandboxes/network",
            Self::Models => "/admin/sandboxes/models",
            Self::Runs => "/admin/sandboxes/runs/new",
        }
    }
}

impl Forms {
    /// A form with these fields, and `inner` with the button.
    pub(super) fn form(&self, action: &str, fields: &[(&str, &str)], inner: &str) -> String {
        self.form_like("", action, fields, inner)
    }

    /// The same with a class.
    pub(super) fn form_like(
        &self,
        class: &str,
        action: &str,
        fields: &[(&str, &str)],
        inner: &str,
    ) -> String {
        let ours =
            [("token", self.token.as_str()), ("action", action), ("from", self.from.as_str())];
        let hidden: String = ours
            .iter()
            .chain(fields)
            .filter(|(_, value)| !value.is_empty())
            .map(|(field, value)| {
                format!("<input type=\"hidden\" name=\"{field}\" value=\"{}\">", escape(value))
            })
            .collect();
        format!("<form class=\"{class}\" method=\"post\" action=\"{FORMS}\">{hidden}{inner}</form>")
    }

    pub(super) fn button(&self, action: &str, name: &str, text: &str, class: &str) -> String {
        let button = format!("<button class=\"{class}\">{text}</button>");
        self.form(action, &[("name", name)], &button)
    }
}

/// Up to what is on the page. With `refresh` it is asked for again after so many seconds.
pub(super) fn head(title: &str, refresh: Option<u32>, note: Option<&Note>) -> String {
    let refresh = refresh.map_or_else(String::new, |seconds| {
        format!("<meta http-equiv=\"refresh\" content=\"{seconds}\">")
    });
    let links: String = [
        ("/", "Back to the desktop"),
        ("/admin/sandboxes", "Sandboxes"),
        ("/admin/sandboxes/network", "Network"),
        ("/admin/sandboxes/models", "Models"),
        ("/admin/sandboxes/runs/new", "Runs"),
        ("/auth/me", "Your access"),
    ]
    .iter()
    .filter(|(_, text)| *text != title)
    .map(|(to, text)| format!("<a href=\"{to}\">{text}</a>"))
    .collect();
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">{refresh}\
         <title>{title} · Nacre</title><style>{STYLE}</style></head><body><main>\
         <header><h1>{title}</h1><nav>{links}</nav></header>{}",
        self::note(note)
    )
}

pub(super) const FOOT: &str = "</main></body></html>";

fn note(note: Option<&Note>) -> String {
    let Some(note) = note else { return String::new() };
    let class = if note.ok { "note" } else { "note failed" };
    format!("<p class=\"{class}\" role=\"status\">{}</p>", escape(&note.text))
}

pub(super) fn check(check: &SwapCheck) -> String {
    let class = if check.ok { "ok" } else { "not" };
    let evidence: String = check.evidence.iter().map(evidence).collect();
    format!(
        "<li class=\"{class}\">{}: {}{evidence}</li>",
        escape(&check.name),
        escape(&check.detail)
    )
}

fn evidence(evidence: &Evidence) -> String {
    let status = evidence.status.map_or_else(String::new, |status| format!(" {status}"));
    let kind = evidence.content_type.as_ref().map_or_else(String::new, |kind| format!(" {kind}"));
    let excerpt = evidence.excerpt.as_ref().map_or_else(String::new, |text| format!("\n{text}"));
    let text = format!("{}: {}{status}{kind}{excerpt}", evidence.url, evidence.problem);
    format!("<pre>{}</pre>", escape(&text))
}

pub(super) fn bytes(count: u64) -> String {
    match count {
        0..1_048_576 => format!("{} KiB", count / 1024),
        1_048_576..1_073_741_824 => format!("{} MiB", count >> 20),
        _ => format!("{:.1} GiB", count as f64 / 1_073_741_824.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_says_where_it_was_and_nothing_that_is_empty() {
        let forms = Forms { token: "t".to_owned(), from: Place::Promote };
        let form = forms.button("swap", "", "Go", "main");
        assert!(form.contains("name=\"from\" value=\"promote\""), "{form}");
        assert!(!form.contains("name=\"name\""), "{form}");
        for place in Place::ALL {
            assert_eq!(Place::parse(place.as_str()), place);
        }
        assert_eq!(Place::parse("//evil.example"), Place::Board);
    }
}
