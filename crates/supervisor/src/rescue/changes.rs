//! Changes line by line, and what was in the way of taking them back.

use nacre_wire::ApiError;
use nacre_wire::history::{Changes, Conflict, FileChange};

use super::act::Act;
use super::view::{Page, lines};
use super::words;
use crate::runtime::escape;

/// Bytes of one file's lines, and of all of them.
const MOST_OF_A_FILE: usize = 32 * 1024;
const MOST_OF_ALL: usize = 256 * 1024;
const MOST_CONFLICTS: usize = 100;

/// A checkpoint in full.
pub(super) fn opened(page: &Page<'_>, found: &Result<Changes, ApiError>) -> String {
    let changes = match found {
        Ok(changes) => changes,
        Err(error) => {
            let said = escape(&words::error(error));
            return format!(
                "<section id=\"opened\"><p class=\"note\" data-kind=\"bad\">{said}</p></section>\n"
            );
        }
    };
    let what = changes.checkpoint.as_ref().map(|checkpoint| {
        // Its names follow with their lines.
        let none = Changes { checkpoint: None, changes: Vec::new(), total: 0 };
        page.what(checkpoint, &none)
    });
    let mut room = MOST_OF_ALL;
    let files: String = changes.changes.iter().map(|change| file(change, &mut room)).collect();
    let rest = match changes.total.saturating_sub(changes.changes.len() as u64) {
        0 => String::new(),
        rest => format!("<li class=\"rest\">and {rest} more</li>"),
    };
    format!(
        "<section id=\"opened\" aria-labelledby=\"opened-title\"><h2 id=\"opened-title\">\
         What changed</h2>{}<ul class=\"changes\">{files}{rest}</ul></section>\n",
        what.unwrap_or_default()
    )
}

fn file(change: &FileChange, room: &mut usize) -> String {
    let (class, mark, said) = match (&change.old, &change.new) {
        (None, _) => ("new", '+', "added"),
        (Some(_), None) => ("gone", '−', "removed"),
        (Some(_), Some(_)) => ("other", '~', "changed"),
    };
    let from = change.from.as_ref().map(|from| {
        format!(" <span class=\"rest\">was <bdi>{}</bdi></span>", escape(&words::name(from)))
    });
    let name = format!(
        "<span class=\"mark {class}\" aria-label=\"{said}\">{mark}</span>\
         <bdi class=\"name\">{}</bdi>{}",
        escape(&words::name(&change.path)),
        from.unwrap_or_default()
    );
    let diff = match (&change.diff, change.omitted.as_deref()) {
        (Some(diff), _) if !diff.is_empty() => diff,
        (_, Some("binary")) => {
            return format!("<li>{name} <span class=\"rest\">binary</span></li>");
        }
        (_, Some(_)) => return format!("<li>{name} <span class=\"rest\">too large</span></li>"),
        _ => return format!("<li>{name}</li>"),
    };
    let shown = cut(diff, MOST_OF_A_FILE.min(*room));
    *room -= shown.len();
    let more = if shown.len() < diff.len() { "\n…" } else { "" };
    let marked: Vec<String> = shown.lines().map(diff_line).collect();
    format!(
        "<li><details open><summary>{name}</summary><pre class=\"diff\" tabindex=\"0\">{}{more}\
         </pre></details></li>",
        marked.join("\n")
    )
}

fn diff_line(line: &str) -> String {
    let class = match line.as_bytes().first() {
        Some(b'+') => "new",
        Some(b'-') => "gone",
        Some(b'@') => "place",
        _ => return escape(line),
    };
    format!("<span class=\"{class}\">{}</span>", escape(line))
}

/// Whole characters only.
fn cut(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

/// Nothing was touched, and what should happen is asked.
pub(super) fn conflicts(page: &Page<'_>, act: &Act, conflicts: &[Conflict]) -> String {
    let mut rows: String = conflicts.iter().take(MOST_CONFLICTS).map(conflict).collect();
    if conflicts.len() > MOST_CONFLICTS {
        let rest = conflicts.len() - MOST_CONFLICTS;
        rows.push_str(&format!("<li class=\"rest\">and {rest} more</li>"));
    }
    let choice = |value: &str, class: &str, label: &str| {
        page.button_with(act, &[("choice", value.to_owned())], class, label)
    };
    format!(
        "<section class=\"trouble\" role=\"alert\"><div><h2>Changed since then</h2>\
         <p>Nothing was touched. What should become of these?</p><ul class=\"changes\">{rows}</ul>\
         <div class=\"acts\">{}{}</div></div></section>\n",
        choice("keep", "", "Keep mine"),
        choice("overwrite", "stop", "Undo anyway"),
    )
}

fn conflict(conflict: &Conflict) -> String {
    let by = conflict
        .by
        .as_ref()
        .map(|by| format!(" by #{}: <code>{}</code>", by.id, escape(&words::who(by))));
    format!(
        "<li><bdi class=\"name\">{}</bdi> {}{}</li>",
        escape(&words::name(&conflict.path)),
        lines(words::why(&conflict.reason)),
        by.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(cut("aüb", 2), "a");
        assert_eq!(cut("aüb", 3), "aü");
        assert_eq!(cut("ab", 9), "ab");
        assert_eq!(cut("üb", 0), "");
    }

    #[test]
    fn a_diff_is_text_whatever_it_says() {
        assert_eq!(
            diff_line("+<script>x</script>"),
            "<span class=\"new\">+&lt;script&gt;x&lt;/script&gt;</span>"
        );
    }
}
