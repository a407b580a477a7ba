//! The page as HTML. Everything that is not ours passes [`escape`] on its way in.

use nacre_wire::history::{Cause, Changes, CheckpointInfo};
use nacre_wire::path::text_to_query;
use nacre_wire::processes::{ConfigError, ProcessState};

use super::act::Act;
use super::changes;
use super::notes::Note;
use super::{Asked, CHECKPOINTS, History, Seen, Shown, words};
use crate::page::STYLE;
use crate::runtime::escape;

const PAGE: &str = include_str!("rescue.html");
const OWN_STYLE: &str = include_str!("rescue.css");
const SCRIPT: &str = include_str!("rescue.js");
const LONGEST_LINE: usize = 400;

pub(super) fn render(nonce: &str, prefix: &str, asked: &Asked<'_>, seen: &Seen) -> String {
    let page = Page { prefix, now: now() };
    let sections = [
        page.reason(asked.reason),
        page.config_error(seen.config_error.as_ref()),
        page.note(seen.note.as_ref()),
        page.last(&seen.timeline),
        seen.opened.as_ref().map(|found| changes::opened(&page, found)).unwrap_or_default(),
        page.processes(&seen.processes),
        page.timeline(&seen.timeline),
    ];
    // The sections last: what they hold must not be taken for a place to fill.
    PAGE.replace("{style}", STYLE)
        .replace("{own}", OWN_STYLE)
        .replace("{script}", SCRIPT)
        .replace("{nonce}", nonce)
        .replace("{prefix}", prefix)
        .replace("{flags}", &flags(asked, seen))
        .replace("{refresh}", refresh(asked, seen))
        .replace("{sections}", &sections.concat())
}

/// What the script goes by.
fn flags(asked: &Asked<'_>, seen: &Seen) -> String {
    let flags = [
        ("data-instead", asked.reason.is_some()),
        ("data-acted", matches!(seen.note, Some(Note::Done(_)))),
        ("data-working", matches!(seen.note, Some(Note::Working(_)))),
        ("data-reading", seen.opened.is_some()),
    ];
    flags.into_iter().filter(|(_, set)| *set).map(|(flag, _)| format!(" {flag}")).collect()
}

/// Without a script a page that is about to change asks again by itself; one to read stands still.
fn refresh(asked: &Asked<'_>, seen: &Seen) -> &'static str {
    let busy = matches!(seen.timeline, History::Busy);
    if matches!(seen.note, Some(Note::Working(_))) || busy {
        "<noscript><meta http-equiv=\"refresh\" content=\"2\"></noscript>"
    } else if asked.reason.is_some() {
        "<noscript><meta http-equiv=\"refresh\" content=\"10\"></noscript>"
    } else {
        ""
    }
}

pub(super) struct Page<'a> {
    prefix: &'a str,
    /// Milliseconds since 1970.
    now: i64,
}

impl Page<'_> {
    fn reason(&self, reason: Option<&str>) -> String {
        let Some(reason) = reason else { return String::new() };
        let (title, reason) = ("The desktop cannot be shown", escape(reason));
        format!(
            "<section class=\"trouble\" role=\"alert\"><div><h2>{title}</h2><p>{reason}</p></div>\
             </section>\n"
        )
    }

    fn config_error(&self, error: Option<&ConfigError>) -> String {
        let Some(ConfigError { line, reason }) = error else { return String::new() };
        let line = line.map(|line| format!(", line {line}")).unwrap_or_default();
        format!(
            "<section class=\"trouble\"><div><h2>nacre.toml cannot be used{line}</h2>\
             <pre>{}</pre></div></section>\n",
            lines(reason)
        )
    }

    fn note(&self, note: Option<&Note>) -> String {
        let (kind, said) = match note {
            None => return String::new(),
            Some(Note::Conflicts(act, conflicts)) => {
                return changes::conflicts(self, act, conflicts);
            }
            Some(Note::Working(_)) => ("", "Still at it. This page tells when it is done."),
            Some(Note::Done(said)) => ("good", said.as_str()),
            Some(Note::Failed(said)) => ("bad", said.as_str()),
        };
        let said = escape(said);
        format!(
            "<section class=\"said\" role=\"status\"><p class=\"result\" data-kind=\"{kind}\">\
             {said}</p></section>\n"
        )
    }

    /// The first thing to try.
    fn last(&self, history: &History) -> String {
        let (undo, what) = match history {
            History::Unknown(error) => {
                let said = escape(&words::error(error));
                return format!(
                    "<section class=\"last\"><h2>Undo</h2><p class=\"note\" data-kind=\"bad\">\
                     {said}</p></section>\n"
                );
            }
            History::Busy => (
                Act::Undo(None, Default::default()),
                "<p class=\"note\">History is busy. What was done last can be undone all the same.\
                 </p>"
                    .to_owned(),
            ),
            History::Known(timeline) => match timeline.iter().find_map(standing) {
                None => {
                    let what = "<p class=\"note\">There is nothing to undo.</p>";
                    return format!(
                        "<section class=\"last\"><h2>Undo</h2>{what}<div class=\"acts\">{}</div>\
                         </section>\n",
                        self.button(&Act::Redo(Default::default()), "quiet", "Redo")
                    );
                }
                Some((last, changes)) => {
                    (Act::Undo(Some(last.id), Default::default()), self.what(last, changes))
                }
            },
        };
        let undo = self.button(&undo, "", "Undo");
        let redo = self.button(&Act::Redo(Default::default()), "quiet", "Redo");
        format!(
            "<section class=\"last\"><h2>Undo the last change</h2>{what}\
             <div class=\"acts\">{undo}{redo}</div></section>\n"
        )
    }

    /// A checkpoint in short.
    pub(super) fn what(&self, checkpoint: &CheckpointInfo, changes: &Changes) -> String {
        let CheckpointInfo { id, time, added, changed, removed, .. } = checkpoint;
        let mut names: Vec<String> = changes
            .changes
            .iter()
            .map(|change| format!("<bdi>{}</bdi>", escape(&words::name(&change.path))))
            .collect();
        match changes.total.saturating_sub(names.len() as u64) {
            0 => {}
            rest if names.is_empty() => names.push(format!("{rest} names")),
            rest => names.push(format!("{rest} more")),
        }
        let counts: String = [("new", '+', added), ("other", '~', changed), ("gone", '−', removed)]
            .into_iter()
            .filter(|(_, _, count)| **count > 0)
            .map(|(class, sign, count)| format!(" <span class=\"{class}\">{sign}{count}</span>"))
            .collect();
        let mut tags = String::new();
        if let Some(label) = &checkpoint.label {
            tags.push_str(&format!(" <span class=\"tag\">{}</span>", escape(label)));
        }
        if checkpoint.undone {
            tags.push_str(" <span class=\"tag\">undone</span>");
        }
        format!(
            "<div class=\"what\"><span class=\"name\">{}</span><span class=\"names\">{}</span>\
             <span class=\"meta\">#{id} <time data-at=\"{time}\">{}</time>{counts}{tags}</span></div>",
            escape(&words::who(checkpoint)),
            names.join(", "),
            words::ago(*time, self.now),
        )
    }

    fn timeline(&self, history: &History) -> String {
        let History::Known(timeline) = history else { return String::new() };
        let mut rows = String::new();
        for (index, changes) in timeline.iter().take(CHECKPOINTS).enumerate() {
            let Some(checkpoint) = &changes.checkpoint else { continue };
            let before = timeline.get(index + 1).and_then(|older| older.checkpoint.as_ref());
            rows.push_str(&self.row(checkpoint, changes, before));
        }
        if rows.is_empty() {
            return String::new();
        }
        format!(
            "<section class=\"history\" aria-labelledby=\"history-title\">\
             <h2 id=\"history-title\">What happened</h2><ol class=\"timeline\">{rows}</ol>\
             </section>\n"
        )
    }

    fn row(
        &self,
        checkpoint: &CheckpointInfo,
        changes: &Changes,
        before: Option<&CheckpointInfo>,
    ) -> String {
        let id = checkpoint.id;
        let class = if checkpoint.undone { " class=\"undone\"" } else { "" };
        let unseen = format!("<span class=\"unseen\"> (#{id})</span>");
        let back = match before {
            Some(before) => {
                let restore = Act::Restore(before.id, Default::default());
                self.button(&restore, "quiet", &format!("Undo to here{unseen}"))
            }
            None => String::new(),
        };
        format!(
            "<li{class}>{}<div class=\"acts\">{back}<a class=\"link\" \
             href=\"{}/supervisor/rescue?checkpoint={id}#opened\">Diff{unseen}</a></div></li>",
            self.what(checkpoint, changes),
            self.prefix,
        )
    }

    fn processes(&self, processes: &[Shown]) -> String {
        let rows: String = processes.iter().map(|shown| self.process(shown)).collect();
        let rows = if rows.is_empty() {
            "<p class=\"note\">No nacre.toml names one.</p>".to_owned()
        } else {
            format!("<ul class=\"timeline\">{rows}</ul>")
        };
        format!(
            "<section class=\"processes\" aria-labelledby=\"processes-title\">\
             <h2 id=\"processes-title\">Processes</h2>{rows}</section>\n"
        )
    }

    fn process(&self, Shown { info, log }: &Shown) -> String {
        let (name, command) = (escape(&info.name), escape(&info.command));
        let (dot, open) = match info.state {
            ProcessState::Ready => ("ok", ""),
            ProcessState::Starting | ProcessState::Stopping => ("waiting", ""),
            ProcessState::Stopped
            | ProcessState::BackingOff
            | ProcessState::CrashLooping
            | ProcessState::Failed
            | ProcessState::Unknown => ("lost", " open"),
        };
        let reason = info.reason.as_deref().map(|why| escape(&words::sentence(why)));
        let log: Vec<String> = log
            .iter()
            .map(|line| escape(&line.text.chars().take(LONGEST_LINE).collect::<String>()))
            .collect();
        format!(
            "<li data-process=\"{name}\"><div class=\"what\"><span class=\"name\">{name}</span>\
             <span class=\"meta\"><span class=\"state\" data-state=\"{dot}\">{}</span> \
             <code>{command}</code></span><span class=\"why\">{}</span></div>\
             <div class=\"acts\">{}<a class=\"link\" href=\"{}/logs/{}\">Log<span class=\"unseen\"> \
             of {name}</span></a></div><details{open}><summary>Last lines</summary>\
             <pre class=\"output\" tabindex=\"0\">{}</pre></details></li>",
            words::state(info.state),
            reason.unwrap_or_default(),
            self.button(&Act::Restart(info.name.clone()), "quiet", "Restart"),
            self.prefix,
            text_to_query(&info.name),
            log.join("\n"),
        )
    }

    /// A form of one button; `label` is markup.
    pub(super) fn button(&self, act: &Act, class: &str, label: &str) -> String {
        self.button_with(act, &[], class, label)
    }

    pub(super) fn button_with(
        &self,
        act: &Act,
        more: &[(&'static str, String)],
        class: &str,
        label: &str,
    ) -> String {
        let (to, fields) = act.fields();
        let fields: String = fields
            .iter()
            .chain(more)
            .map(|(name, value)| {
                format!("<input type=\"hidden\" name=\"{name}\" value=\"{}\">", escape(value))
            })
            .collect();
        format!(
            "<form method=\"post\" action=\"{}/supervisor/rescue/{to}\">{fields}\
             <button class=\"{class}\">{label}</button></form>",
            self.prefix
        )
    }
}

/// What an undo takes back when nothing else is said.
fn standing(changes: &Changes) -> Option<(&CheckpointInfo, &Changes)> {
    let checkpoint = changes.checkpoint.as_ref()?;
    let can_be = matches!(checkpoint.cause, Cause::Change | Cause::Restore { .. });
    (can_be && !checkpoint.undone).then_some((checkpoint, changes))
}

/// Text of several lines.
pub(super) fn lines(text: &str) -> String {
    text.lines().map(escape).collect::<Vec<_>>().join("\n")
}

fn now() -> i64 {
    let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
