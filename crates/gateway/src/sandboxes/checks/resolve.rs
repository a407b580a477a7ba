//! Where a reference of a page leads, as far as it stays with the sandbox.

/// `to`, as written in what was loaded from `base`, as a path and query; `None` when it leads
/// elsewhere (another host, `data:`) or nowhere.
pub(super) fn against(base: &str, to: &str) -> Option<String> {
    let to = to.trim().split('#').next().unwrap_or("");
    if to.is_empty() || to.starts_with("//") || has_scheme(to) {
        return None;
    }
    let base_path = base.split('?').next().unwrap_or("/");
    if to.starts_with('?') {
        return Some(format!("{base_path}{to}"));
    }
    let (path, query) = match to.split_once('?') {
        Some((path, query)) => (path, format!("?{query}")),
        None => (to, String::new()),
    };
    let whole = if path.starts_with('/') {
        path.to_owned()
    } else {
        let directory = base_path.rsplit_once('/').map_or("", |(directory, _)| directory);
        format!("{directory}/{path}")
    };
    Some(format!("{}{query}", without_dots(&whole)))
}

fn has_scheme(to: &str) -> bool {
    let end = to.find([':', '/', '?']);
    end.is_some_and(|end| {
        to[end..].starts_with(':')
            && to.starts_with(|c: char| c.is_ascii_alphabetic())
            && to[..end].chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    })
}

fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    let last = segments.len().saturating_sub(1);
    for (index, segment) in segments.into_iter().enumerate() {
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                if index == last {
                    kept.push("");
                }
            }
            segment => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_resolved_as_browsers_do() {
        let cases = [
            ("/", "app.js", Some("/app.js")),
            ("/", "./a/app.js?v=1#x", Some("/a/app.js?v=1")),
            ("/a/b/page?q=/x/", "c.js", Some("/a/b/c.js")),
            ("/a/b/page", "../c.js", Some("/a/c.js")),
            ("/a/b/page", "../../../../c.js", Some("/c.js")),
            ("/a/b/page", "..", Some("/a/")),
            ("/a/b", ".", Some("/a/")),
            ("/a/b", "/x/./y/../z", Some("/x/z")),
            ("/a/b?c", "?d", Some("/a/b?d")),
            ("/", "@vite/client", Some("/@vite/client")),
            ("/", "a:b", None),
            ("/", "./a:b", Some("/a:b")),
            ("/", "https://cdn.example/x.js", None),
            ("/", "//cdn.example/x.js", None),
            ("/", "data:text/javascript,1", None),
            ("/", "#top", None),
            ("/", "", None),
        ];
        for (base, to, expected) in cases {
            assert_eq!(against(base, to).as_deref(), expected, "{to} in {base}");
        }
    }
}
