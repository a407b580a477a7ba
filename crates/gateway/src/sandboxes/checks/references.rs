//! What a page and its scripts need to run: scripts, styles and wasm.
//!
//! Tags are read with a tokenizer. In scripts only what is plainly a reference counts: an import in
//! a script of the page itself, and a string that names a `.wasm` by an absolute path or in
//! `new URL(..., import.meta.url)`. A page is never refused for a string that merely looks like one.

use html5gum::{StartTag, Token, Tokenizer};

use super::resolve;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Script,
    Style,
    Wasm,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Reference {
    /// A path and query of the sandbox.
    pub(super) url: String,
    pub(super) kind: Kind,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Script => "JavaScript",
            Self::Style => "CSS",
            Self::Wasm => "WebAssembly",
        }
    }

    /// What browsers run it as.
    pub(super) fn types(self) -> &'static [&'static str] {
        match self {
            Self::Script => &[
                "text/javascript",
                "application/javascript",
                "application/ecmascript",
                "application/x-javascript",
                "text/ecmascript",
            ],
            Self::Style => &["text/css"],
            Self::Wasm => &["application/wasm"],
        }
    }
}

/// What a page that was loaded from `path` refers to.
pub(super) fn of_page(html: &str, path: &str) -> Vec<Reference> {
    let mut emitter = html5gum::emitters::default::DefaultEmitter::default();
    // So that what is inside a script is text and not tags.
    emitter.naively_switch_states(true);
    let mut found = Found { base: path.to_owned(), references: Vec::new() };
    let mut inside_script = false;
    for token in Tokenizer::new_with_emitter(html, emitter) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => {
                inside_script =
                    tag.name.as_slice() == b"script" && attribute(&tag, "src").is_none();
                found.tag(&tag);
            }
            Token::EndTag(_) => inside_script = false,
            Token::String(text) if inside_script => {
                found.script(&String::from_utf8_lossy(&text));
            }
            Token::String(_) | Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    found.references
}

/// What a script that was loaded from `url` refers to.
pub(super) fn of_script(script: &str, url: &str) -> Vec<Reference> {
    wasm_strings(script)
        .filter(|found| found.text.starts_with('/') || found.after_new_url)
        .filter_map(|found| resolve::against(url, found.text))
        .map(|url| Reference { url, kind: Kind::Wasm })
        .collect()
}

struct Found {
    base: String,
    references: Vec<Reference>,
}

impl Found {
    fn add(&mut self, to: &str, kind: Kind) {
        let Some(url) = resolve::against(&self.base, to) else { return };
        let reference = Reference { url, kind };
        if !self.references.contains(&reference) {
            self.references.push(reference);
        }
    }

    fn tag(&mut self, tag: &StartTag<()>) {
        match tag.name.as_slice() {
            b"base" => {
                let base = attribute(tag, "href").and_then(|to| resolve::against(&self.base, &to));
                self.base = base.unwrap_or_else(|| self.base.clone());
            }
            b"script" => {
                let kind = attribute(tag, "type").unwrap_or_default().to_ascii_lowercase();
                let runs = kind.is_empty() || kind == "module" || kind.ends_with("javascript");
                if let Some(source) = attribute(tag, "src").filter(|_| runs) {
                    self.add(&source, Kind::Script);
                }
            }
            b"link" => self.link(tag),
            _ => {}
        }
    }

    fn link(&mut self, tag: &StartTag<()>) {
        let Some(to) = attribute(tag, "href") else { return };
        let word = |name| attribute(tag, name).unwrap_or_default().to_ascii_lowercase();
        let (rel, used_as, media_type) = (word("rel"), word("as"), word("type"));
        let is = |wanted: &str| rel.split_ascii_whitespace().any(|rel| rel == wanted);
        let preloads = is("preload") || is("prefetch");
        let names_wasm = to.split(['?', '#']).next().is_some_and(|path| path.ends_with(".wasm"));
        if is("stylesheet") && !is("alternate") || preloads && used_as == "style" {
            self.add(&to, Kind::Style);
        } else if is("modulepreload") || preloads && used_as == "script" {
            self.add(&to, Kind::Script);
        } else if preloads && (media_type == "application/wasm" || names_wasm) {
            self.add(&to, Kind::Wasm);
        }
    }

    /// A script of the page itself.
    fn script(&mut self, script: &str) {
        for specifier in imports(script) {
            self.add(specifier, Kind::Script);
        }
        let named: Vec<String> = wasm_strings(script).map(|found| found.text.to_owned()).collect();
        for text in named {
            self.add(&text, Kind::Wasm);
        }
    }
}

fn attribute(tag: &StartTag<()>, name: &str) -> Option<String> {
    let value = tag.attributes.get(name.as_bytes())?;
    Some(String::from_utf8_lossy(value.as_ref()).into_owned())
}

/// Specifiers of static and dynamic imports that name a file.
fn imports(script: &str) -> impl Iterator<Item = &str> {
    let words = ["from", "import"];
    words.into_iter().flat_map(move |word| {
        script.match_indices(word).filter_map(move |(at, _)| {
            let before = script[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || "_$.".contains(c)) {
                return None;
            }
            let rest = script[at + word.len()..].trim_start();
            let rest = rest.strip_prefix('(').unwrap_or(rest).trim_start();
            let specifier = quoted(rest)?;
            let names_file = ["/", "./", "../"].iter().any(|start| specifier.starts_with(start));
            let is_code = !specifier.ends_with(".json") && !specifier.ends_with(".css");
            (names_file && is_code).then_some(specifier)
        })
    })
}

/// The string literal that `text` begins with.
fn quoted(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let inside = &text[1..];
    let literal = &inside[..inside.find(quote)?];
    (!literal.contains(['\n', '\\'])).then_some(literal)
}

struct WasmString<'s> {
    text: &'s str,
    after_new_url: bool,
}

/// String literals whose path ends in `.wasm`.
fn wasm_strings(script: &str) -> impl Iterator<Item = WasmString<'_>> {
    script.match_indices(".wasm").filter_map(move |(at, word)| {
        let start = script[..at].rfind(['"', '\'', '`', '\n'])?;
        let quote = script[start..].chars().next().filter(|c| *c != '\n')?;
        let after = &script[at + word.len()..];
        let end = after.find(quote)?;
        let query = &after[..end];
        let text = &script[start + 1..at + word.len() + end];
        let plain = |c: char| c.is_ascii_graphic() && !"<>{}\\^|()*,;".contains(c);
        let good = (query.is_empty() || query.starts_with('?'))
            && text.chars().all(plain)
            && at > start + 1
            && !script[..at].ends_with('/');
        let after_new_url = script[..start].trim_end().ends_with("new URL(");
        good.then_some(WasmString { text, after_new_url })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(html: &str, expected: &[(&str, Kind)]) {
        let found = of_page(html, "/");
        let found: Vec<_> =
            found.iter().map(|reference| (reference.url.as_str(), reference.kind)).collect();
        assert_eq!(found, expected, "{html}");
    }

    #[test]
    fn tags_that_load_something_are_found() {
        use Kind::{Script, Style, Wasm};
        check("<script src=/a.js></script>", &[("/a.js", Script)]);
        check("<SCRIPT TYPE=module SRC='a.js?x=1&amp;y=2'></SCRIPT>", &[("/a.js?x=1&y=2", Script)]);
        check("<script type=application/json src=/a.json></script>", &[]);
        check("<!-- <script src=/a.js></script> -->", &[]);
        check(
            "<script>'<script src=/no.js>'</script><script src=/b.js></script>",
            &[("/b.js", Script)],
        );
        check("<link rel='stylesheet' href=a.css><link rel=icon href=i.png>", &[("/a.css", Style)]);
        check("<link rel='alternate stylesheet' href=a.css>", &[]);
        check("<link rel=modulepreload href=/c.js>", &[("/c.js", Script)]);
        check("<link rel=preload as=fetch href=/x_bg.wasm crossorigin>", &[("/x_bg.wasm", Wasm)]);
        check("<link rel=preload as=font href=/f.woff2>", &[]);
        check("<base href=/app/><script src=a.js></script>", &[("/app/a.js", Script)]);
        check("<script src=https://cdn.example/x.js></script>", &[]);
    }

    #[test]
    fn scripts_of_the_page_name_what_they_import() {
        use Kind::{Script, Wasm};
        let html = "<script type=module>import init, { x } from '/app.js'; import \"./b.js\";\
                    init('/app_bg.wasm'); import('/late.js'); import react from 'react';</script>";
        let expected =
            [("/app.js", Script), ("/b.js", Script), ("/late.js", Script), ("/app_bg.wasm", Wasm)];
        check(html, &expected);
        check("<script>const a = Array.from('/x'); reimport('/y')</script>", &[]);
        check("<script>if (name.endsWith('.wasm')) throw 'no .wasm here'</script>", &[]);
    }

    #[test]
    fn a_script_file_counts_only_where_it_is_plain() {
        let found = |script| {
            let found = of_script(script, "/assets/app.js");
            found.into_iter().map(|reference| reference.url).collect::<Vec<_>>()
        };
        assert_eq!(found("new URL('app_bg.wasm', import.meta.url)"), ["/assets/app_bg.wasm"]);
        assert_eq!(found("fetch(\"/wasm/x.wasm?v=2\")"), ["/wasm/x.wasm?v=2"]);
        assert_eq!(found("load('esbuild.wasm'); /\\.wasm$/.test(x); `${base}.wasm`"), [""; 0]);
    }
}
