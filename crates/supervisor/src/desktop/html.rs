//! As much of HTML as is needed to find a tag near the beginning of a page. Pure.
//!
//! It is lenient, as pages are: what is not a tag is passed over, and what has no end is reported as
//! such.

/// A tag, from `<` to behind `>`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tag<'a> {
    pub(super) start: usize,
    pub(super) end: usize,
    name: &'a str,
    closing: bool,
    attributes: &'a str,
}

impl<'a> Tag<'a> {
    pub(super) fn opens(&self, name: &str) -> bool {
        !self.closing && self.name.eq_ignore_ascii_case(name)
    }

    /// The value of an attribute as it is written; empty when it has none.
    fn attribute(&self, wanted: &str) -> Option<&'a str> {
        let space = |c: char| c.is_ascii_whitespace() || c == '/';
        let mut rest = self.attributes.trim_start_matches(space);
        while !rest.is_empty() {
            // At least one: a name may begin with what ends others.
            let end = rest.find(|c: char| space(c) || c == '=').unwrap_or(rest.len()).max(1);
            let (name, after) = rest.split_at(end);
            let after = after.trim_start();
            let (value, after) = match after.strip_prefix('=') {
                None => ("", after),
                Some(after) => value(after.trim_start()),
            };
            if name.eq_ignore_ascii_case(wanted) {
                return Some(value);
            }
            rest = after.trim_start_matches(space);
        }
        None
    }
}

/// A value, quoted or not, and what follows it.
fn value(text: &str) -> (&str, &str) {
    for quote in ['"', '\''] {
        if let Some(quoted) = text.strip_prefix(quote) {
            return quoted.split_once(quote).unwrap_or((quoted, ""));
        }
    }
    text.split_at(text.find(|c: char| c.is_ascii_whitespace()).unwrap_or(text.len()))
}

/// What comes next in a page.
#[derive(Debug)]
enum Next<'a> {
    Tag(Tag<'a>),
    /// Something begins here that has no end yet.
    Cut(usize),
    End,
}

/// Tags in their order, without what is in comments and declarations.
struct Tags<'a> {
    html: &'a str,
    at: usize,
}

impl<'a> Tags<'a> {
    fn of(html: &'a str) -> Self {
        Self { html, at: 0 }
    }

    fn next(&mut self) -> Next<'a> {
        loop {
            let Some(found) = self.html[self.at..].find('<') else { return Next::End };
            let start = self.at + found;
            let rest = &self.html[start..];
            let end = if let Some(comment) = rest.strip_prefix("<!--") {
                comment.find("-->").map(|end| end + 7)
            } else if rest.starts_with("<!") || rest.starts_with("<?") {
                rest.find('>').map(|end| end + 1)
            } else if rest.len() < 4 && "<!--".starts_with(rest) {
                None
            } else {
                match tag(rest, start) {
                    Ok(Some(tag)) => {
                        self.at = tag.end;
                        return Next::Tag(tag);
                    }
                    Ok(None) => Some(1),
                    Err(Cut) => None,
                }
            };
            match end {
                Some(end) => self.at = start + end,
                None => return Next::Cut(start),
            }
        }
    }

    /// Passes over what is between a script's tags, which may look like tags.
    fn skip_script(&mut self) {
        const END: &[u8] = b"</script";
        let rest = &self.html.as_bytes()[self.at..];
        let end = rest.windows(END.len()).position(|part| part.eq_ignore_ascii_case(END));
        self.at += end.unwrap_or(rest.len());
    }
}

struct Cut;

/// The tag that `rest` begins with, if it is one.
fn tag(rest: &str, start: usize) -> Result<Option<Tag<'_>>, Cut> {
    let closing = rest.starts_with("</");
    let inner = &rest[if closing { 2 } else { 1 }..];
    if inner.is_empty() {
        return Err(Cut);
    }
    let end = |c: char| !(c.is_ascii_alphanumeric() || c == '-');
    let name = &inner[..inner.find(end).unwrap_or(inner.len())];
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Ok(None);
    }
    let attributes = &inner[name.len()..];
    let length = tag_end(attributes).ok_or(Cut)?;
    let end = start + (rest.len() - attributes.len()) + length + 1;
    Ok(Some(Tag { start, end, name, closing, attributes: &attributes[..length] }))
}

/// Where the `>` is that is not within a quoted value.
fn tag_end(attributes: &str) -> Option<usize> {
    let mut quote = None;
    let mut is_value = false;
    for (at, c) in attributes.char_indices() {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '>') => return Some(at),
            (None, '"' | '\'') if is_value => quote = Some(c),
            (None, _) => {}
        }
        is_value = c == '=' || (is_value && c.is_ascii_whitespace());
    }
    None
}

/// Where a script is the first thing that runs: right behind `<head>`, or before whatever comes
/// without one. `None` when that is still to come; a page that has ended has one always.
pub(super) fn first_place(html: &str, ended: bool) -> Option<usize> {
    let mut tags = Tags::of(html);
    loop {
        match tags.next() {
            Next::Tag(tag) if tag.opens("html") => {}
            Next::Tag(tag) if tag.opens("head") => return Some(tag.end),
            Next::Tag(tag) => return Some(tag.start),
            Next::Cut(start) => return ended.then_some(start),
            Next::End => return ended.then_some(html.len()),
        }
    }
}

/// The addresses of the module scripts that a page names.
pub(super) fn modules(html: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut tags = Tags::of(html);
    loop {
        match tags.next() {
            Next::Tag(tag) if tag.opens("script") => {
                let is_module =
                    tag.attribute("type").is_some_and(|kind| kind.eq_ignore_ascii_case("module"));
                let source = tag.attribute("src").filter(|source| !source.is_empty());
                found.extend(source.filter(|_| is_module).map(|src| src.replace("&amp;", "&")));
                tags.skip_script();
            }
            Next::Tag(_) => {}
            Next::Cut(_) | Next::End => return found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_script_is_put_before_all_others() {
        // Where `|` is.
        let check = |marked: &str| {
            let html = marked.replace('|', "");
            assert_eq!(first_place(&html, true), marked.find('|'), "{marked}");
        };
        check("<!doctype html><html><head>|<title>a</title>");
        check("<!-- <head> --><HTML lang=en>\n<HEAD class='a>b' >|\n");
        check("<html>|<body>no head</body>");
        check("<!doctype html>|<script></script>");
        check("<!doctype html>text and no tags|");
        check("a < b |<b>");
        check("|<head class=\"");
        check("|<!-- no end");
        check("|");
    }

    #[test]
    fn a_place_that_is_still_to_come_is_waited_for() {
        let html = "<!doctype html><!-- a --><html><head class=\"x\"><b>";
        let head_ends = html.find("<b>").unwrap();
        for length in 0..head_ends {
            assert_eq!(first_place(&html[..length], false), None, "{}", &html[..length]);
        }
        assert_eq!(first_place(html, false), Some(head_ends));
    }

    #[test]
    fn module_scripts_are_found_and_nothing_else() {
        let html = r#"<!-- <script type="module" src="/no"></script> -->
            <script type="module">import "/inline"; "<script type=module src=/no>"</script>
            <script src="/classic.js"></script>
            <script src='/src/main.tsx?a=1&amp;b' type="module" async></script>
            <script  TYPE=Module src=./b.js ></script><script type="module" src=""></script>
            <link rel=modulepreload href="/c.js">"#;
        assert_eq!(modules(html), ["/src/main.tsx?a=1&b", "./b.js"]);
    }

    proptest! {
        #[test]
        fn any_text_has_a_place(html in "[<>!/a-c\"'= \\-é]{0,60}", extra in "\\PC{0,20}") {
            let html = format!("{html}{extra}");
            let place = first_place(&html, true).unwrap();
            prop_assert!(html.is_char_boundary(place));
            modules(&html);
            modules(&format!("<script {html}"));
        }
    }
}
