//! The pages of `/writer/*`: plain HTML that was put together from escaped text.

use std::fmt::Write as _;

use nacre_wire::knowledge::{
    CitationGraph, DocumentList, EditionInfo, EditionList, EditionView, SearchAnswer, SearchHit,
};
use nacre_wire::path::{text_to_query, to_query};

use crate::web::pages::escape;

const SCHEME: &str = "nacre:edition:";

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:1rem/1.6 system-ui,sans-serif;max-width:46rem;margin:3rem auto;padding:0 1.5rem}\
h1{font-size:1.5rem;font-weight:600}h2{font-size:1.1rem;font-weight:600;margin-top:2rem}\
nav a{margin-right:1rem}a:focus-visible,input:focus-visible,button:focus-visible{outline:3px solid}\
pre{padding:.8rem 1rem;border-radius:.5rem;background:color-mix(in srgb,currentColor 6%,transparent);\
white-space:pre-wrap;overflow-wrap:anywhere}\
code{overflow-wrap:anywhere}li{margin:.4rem 0}small{opacity:.75}\
input{font:inherit;padding:.4rem .6rem;width:60%}button{font:inherit;padding:.4rem .8rem}\
:target{background:color-mix(in srgb,gold 40%,transparent)}";

/// `up` leads from the page to `/writer/`.
fn layout(title: &str, up: &str, body: &str) -> String {
    let title = escape(title);
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{title} · Nacre</title><style>{STYLE}</style></head><body>\
         <nav><a href=\"{up}./\">Writer</a><a href=\"{up}documents\">Documents</a>\
         <a href=\"{up}editions\">Editions</a><a href=\"{up}graph\">Citations</a></nav>\
         <main><h1>{title}</h1>{body}</main></body></html>"
    )
}

fn form(up: &str, question: &str) -> String {
    format!(
        "<form action=\"{up}search\"><input type=\"search\" name=\"q\" aria-label=\"Search\" \
         value=\"{}\"> <button>Search</button></form>",
        escape(question)
    )
}

pub(super) fn home(list: &EditionList) -> String {
    let body = format!("{}<h2>Newest editions</h2>{}", form("", ""), edition_items(list, ""));
    layout("Writer", "", &body)
}

pub(super) fn editions(list: &EditionList) -> String {
    let mut body = edition_items(list, "");
    if let Some(next) = list.next {
        let _ = write!(body, "<p><a href=\"editions?before={next}\">Older ones</a></p>");
    }
    layout("Editions", "", &body)
}

fn edition_items(list: &EditionList, up: &str) -> String {
    if list.editions.is_empty() {
        return "<p>Nothing is published yet: <code>nacre publish :FILE --title TITLE</code></p>"
            .to_owned();
    }
    let items: String = list.editions.iter().map(|edition| edition_item(edition, up)).collect();
    format!("<ul>{items}</ul>")
}

fn edition_item(edition: &EditionInfo, up: &str) -> String {
    format!(
        "<li>{} <small>{} · {} · {}</small></li>",
        link(&edition.address, &edition.title, up),
        escape(&edition.document),
        escape(&edition.author),
        escape(edition.date.get(..10).unwrap_or(&edition.date)),
    )
}

/// To the page of an edition.
fn link(address: &str, text: &str, up: &str) -> String {
    let hash = address.strip_prefix(SCHEME).unwrap_or(address);
    format!("<a href=\"{up}editions/{}\">{}</a>", text_to_query(hash), escape(text))
}

pub(super) fn documents(list: &DocumentList) -> String {
    if list.documents.is_empty() {
        return layout("Documents", "", "<p>No documents are indexed.</p>");
    }
    let mut body = String::from("<ul>");
    for document in &list.documents {
        let title = document.title.as_deref().unwrap_or(&document.path);
        let _ = write!(
            body,
            "<li><a href=\"documents/{}?sandbox={}\">{}</a> <small>{}:{}</small></li>",
            to_query(&document.path),
            text_to_query(&document.source),
            escape(title),
            escape(&document.source),
            escape(&document.path),
        );
    }
    body.push_str("</ul>");
    if let (true, Some(last)) = (list.more, list.documents.last()) {
        let after = text_to_query(&last.path);
        let _ = write!(body, "<p><a href=\"documents?after={after}\">More</a></p>");
    }
    layout("Documents", "", &body)
}

pub(super) fn document(path: &str, text: &str, list: &EditionList) -> String {
    let up = "../".repeat(path.split('/').count());
    let mut body = String::new();
    if !list.editions.is_empty() {
        let _ = write!(body, "<h2>Editions</h2>{}", edition_items(list, &up));
    }
    let _ = write!(body, "<h2>As it is now</h2>{}", lines(text));
    layout(path, &up, &body)
}

pub(super) fn edition(view: &EditionView) -> String {
    let EditionView { edition, references, cited_by, text, .. } = view;
    let up = "../";
    let hash = edition.address.strip_prefix(SCHEME).unwrap_or(&edition.address);
    let mut body = format!(
        "<p>{} · {} · {}, {} bytes</p><p><code>{}</code></p>\
         <p><a href=\"{hash}/content\">Content</a> · <a href=\"{hash}/manifest\">Manifest</a> · \
         <a href=\"{hash}/references\">References</a></p>",
        escape(&edition.author),
        escape(&edition.date),
        escape(&edition.media_type),
        edition.bytes,
        escape(&edition.address),
        hash = text_to_query(hash),
    );
    if let Some(previous) = &edition.previous {
        let _ = write!(body, "<p>{}</p>", link(previous, "The edition before", up));
    }
    match text {
        Some(text) => body.push_str(&lines(text)),
        None => body.push_str("<p>It is not text.</p>"),
    }
    if !references.is_empty() {
        body.push_str("<h2>References</h2><ul>");
        for (reference, place) in references.iter().zip(&edition.citations) {
            let to = link_to_place(place, up);
            let _ = write!(body, "<li>{} {to}</li>", escape(reference));
        }
        body.push_str("</ul>");
    }
    if !cited_by.is_empty() {
        body.push_str("<h2>Cited by</h2><ul>");
        for address in cited_by {
            let _ = write!(body, "<li>{}</li>", link(address, address, up));
        }
        body.push_str("</ul>");
    }
    layout(&edition.title, up, &body)
}

/// To the line in the page of the edition.
fn link_to_place(place: &str, up: &str) -> String {
    let place = place.strip_prefix(SCHEME).unwrap_or(place);
    let (hash, lines) = place.split_once('#').unwrap_or((place, ""));
    let first = lines.split('-').next().unwrap_or("");
    let fragment = if first.is_empty() { String::new() } else { format!("#{}", escape(first)) };
    format!("<a href=\"{up}editions/{}{fragment}\">open</a>", text_to_query(hash))
}

/// Each line with its number as an anchor, which is what addresses of passages name.
fn lines(text: &str) -> String {
    let mut shown = String::from("<pre>");
    for (number, line) in (1..).zip(text.lines()) {
        let _ = writeln!(shown, "<span id=\"L{number}\">{}</span>", escape(line));
    }
    shown.push_str("</pre>");
    shown
}

pub(super) fn graph(graph: &CitationGraph) -> String {
    if graph.edges.is_empty() {
        return layout("Citations", "", "<p>No edition cites another yet.</p>");
    }
    let short = |address: &str| {
        let hash = address.strip_prefix(SCHEME).unwrap_or(address);
        link(address, hash.get(..12).unwrap_or(hash), "")
    };
    let item =
        |citing: &str, cited: &str| format!("<li>{} cites {}</li>", short(citing), short(cited));
    let items: String = graph.edges.iter().map(|edge| item(&edge.citing, &edge.cited)).collect();
    layout("Citations", "", &format!("<ul>{items}</ul>"))
}

pub(super) fn search(question: &str, found: &SearchAnswer) -> String {
    let mut body = form("", question);
    if let Some(note) = &found.note {
        let _ = write!(body, "<p><small>{}</small></p>", escape(note));
    }
    if found.hits.is_empty() {
        body.push_str("<p>Nothing was found.</p>");
    } else {
        let items: String = found.hits.iter().map(hit_item).collect();
        let _ = write!(body, "<ol>{items}</ol>");
    }
    layout("Search", "", &body)
}

fn hit_item(hit: &SearchHit) -> String {
    let href = match hit.path.strip_prefix(SCHEME) {
        Some(hash) => format!("editions/{}", text_to_query(hash)),
        None => format!("documents/{}?sandbox={}", to_query(&hit.path), text_to_query(&hit.source)),
    };
    let title = hit.title.as_deref().unwrap_or(&hit.path);
    let by = match (hit.by_word, hit.by_meaning) {
        (true, true) => "word and meaning",
        (false, true) => "meaning",
        (true | false, false) => "word",
    };
    format!(
        "<li><a href=\"{href}#L{first}\">{}</a> <small>{}:{first}-{} · by {by}</small><br>{}</li>",
        escape(title),
        escape(&hit.path),
        hit.last_line,
        escape(&hit.snippet),
        first = hit.first_line,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "\"><script>alert(1)</script>'&";

    fn check(html: &str) {
        assert!(!html.contains("<script"), "{html}");
        assert!(!html.contains("\"><scr") && !html.contains("'&<"), "{html}");
    }

    fn info() -> EditionInfo {
        EditionInfo {
            address: format!("{SCHEME}{}", "ab".repeat(32)),
            number: 1,
            title: HOSTILE.to_owned(),
            author: HOSTILE.to_owned(),
            date: HOSTILE.to_owned(),
            document: HOSTILE.to_owned(),
            media_type: HOSTILE.to_owned(),
            bytes: 1,
            content: String::new(),
            previous: Some(HOSTILE.to_owned()),
            citations: vec![format!("{SCHEME}{HOSTILE}#L1-{HOSTILE}")],
            new: None,
        }
    }

    #[test]
    fn nothing_that_somebody_wrote_is_markup() {
        let list = EditionList { editions: vec![info()], next: Some(1) };
        check(&home(&list));
        check(&editions(&list));
        check(&document(HOSTILE, HOSTILE, &list));
        check(&edition(&EditionView {
            edition: info(),
            references: vec![HOSTILE.to_owned()],
            cites: vec![HOSTILE.to_owned()],
            cited_by: vec![HOSTILE.to_owned()],
            text: Some(HOSTILE.to_owned()),
        }));
        let hit = SearchHit {
            source: HOSTILE.to_owned(),
            path: HOSTILE.to_owned(),
            title: Some(HOSTILE.to_owned()),
            first_line: 1,
            last_line: 2,
            headings: HOSTILE.to_owned(),
            snippet: HOSTILE.to_owned(),
            score: 1.0,
            by_word: true,
            by_meaning: true,
        };
        let note = Some(HOSTILE.to_owned());
        check(&search(HOSTILE, &SearchAnswer { hits: vec![hit], note }));
    }

    #[test]
    fn lines_have_the_names_that_addresses_use() {
        assert_eq!(
            lines("a\n<b>\n"),
            "<pre><span id=\"L1\">a</span>\n<span id=\"L2\">&lt;b&gt;</span>\n</pre>"
        );
        let place = format!("{SCHEME}{}#L3-L5", "ab".repeat(32));
        assert!(link_to_place(&place, "../").contains("#L3\""));
    }
}
