//! The board as text. Pure, but for the clock.

use nacre_wire::control::{Alert, SandboxInfo, SandboxState};
use nacre_wire::roles::{RolesStatus, SwapKind, SwapRecord};

use super::layout::{self, FOOT, Forms, bytes, check};
use super::{Line, Note};
use crate::clock::{ago, now_ms};
use crate::web::pages::escape;

const MOST_ALERTS: usize = 5;
const A_DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// While something moves by itself.
const LOOK_AGAIN_S: u32 = 5;

pub(super) struct Page<'p> {
    pub(super) roles: &'p RolesStatus,
    pub(super) lines: &'p [Line],
    pub(super) alerts: &'p [Alert],
    pub(super) note: Option<Note>,
    pub(super) forms: Forms,
}

pub(super) fn page(page: &Page<'_>) -> String {
    let moving = page.roles.copying.is_some() || watched(page.roles).is_some();
    let others = page.lines.iter().filter(|line| line.info.role.is_none());
    let others: String = others.map(|line| sandbox(page, line)).collect();
    format!(
        "{}{}{}{}{}{others}{FOOT}",
        layout::head("Sandboxes", moving.then_some(LOOK_AGAIN_S), page.note.as_ref()),
        alerts(page.alerts),
        role(page, "live"),
        role(page, "dev"),
        swap(page),
    )
}

/// What was noticed lately, newest first.
fn alerts(alerts: &[Alert]) -> String {
    let recent =
        alerts.iter().rev().filter(|alert| now_ms() - alert.last_at.min(now_ms()) < A_DAY_MS);
    let lines: String = recent.take(MOST_ALERTS).map(alert).collect();
    if lines.is_empty() {
        return lines;
    }
    format!("<section><h2>Alerts of the last day</h2><ul>{lines}</ul></section>")
}

fn alert(alert: &Alert) -> String {
    let times = alert.count;
    let ago = ago(alert.last_at);
    format!("<li class=\"not\">{} ({times} times, last {ago} ago)</li>", escape(&alert.message))
}

fn role(page: &Page<'_>, role: &str) -> String {
    match page.lines.iter().find(|line| line.info.role.as_deref() == Some(role)) {
        Some(line) => sandbox(page, line),
        None if role == "dev" => no_dev(page),
        None => "<section><h2>live</h2><p class=\"why\">There is no live sandbox.</p>\
                 <pre>nacre sandbox create live --start</pre></section>"
            .to_owned(),
    }
}

fn no_dev(page: &Page<'_>) -> String {
    let body = match page.roles.copying {
        Some(copying) => format!(
            "<p>Copying live: {} files, {}, {} s.</p>",
            copying.files,
            bytes(copying.bytes),
            copying.elapsed_ms / 1000
        ),
        None => format!(
            "<p class=\"soft\">A copy of live to try things on. Nothing there touches live until you \
             swap.</p><div class=\"row\">{}</div>",
            page.forms.button("create-dev", "", "Make dev", "main")
        ),
    };
    format!("<section id=\"dev\"><div class=\"head\"><h2>dev</h2></div>{body}</section>")
}

fn sandbox(page: &Page<'_>, line: &Line) -> String {
    let info = &line.info;
    let state = state(info.state);
    let failure = info
        .failure
        .as_ref()
        .map_or_else(String::new, |why| format!("<p class=\"why\">{}</p>", escape(why)));
    let role = info.role.as_ref().map_or_else(String::new, |role| {
        let at = if role == "dev" { "/dev/" } else { "/" };
        format!("<span class=\"role\">answers at {at}</span>")
    });
    let name = escape(&info.name);
    format!(
        "<section id=\"{name}\"><div class=\"head\"><h2>{name}</h2>\
         <span class=\"state {state}\">{state}</span>{role}\
         </div>{failure}{}<div class=\"row\">{}{}</div>{}</section>",
        facts(line),
        buttons(page, info),
        links(info),
        dev_only(page, info),
    )
}

fn facts(line: &Line) -> String {
    let mut facts = vec![("Id", line.info.id.clone())];
    facts.push(("Made", format!("{} ago", ago(line.info.created_at))));
    if let Some(version) = &line.info.supervisor {
        facts.push(("Supervisor", version.clone()));
    }
    if let Some(memory) = line.stats.memory_bytes {
        facts.push(("Memory", bytes(memory)));
    }
    if let Some(pids) = line.stats.pids {
        facts.push(("Processes", pids.to_string()));
    }
    let rows: String = facts
        .iter()
        .map(|(name, value)| format!("<dt>{name}</dt><dd>{}</dd>", escape(value)))
        .collect();
    format!("<dl>{rows}</dl>")
}

fn buttons(page: &Page<'_>, info: &SandboxInfo) -> String {
    let button = |action, text, class| page.forms.button(action, &info.id, text, class);
    match info.state {
        SandboxState::Running => button("restart", "Restart", "") + &button("stop", "Stop", ""),
        SandboxState::Paused => button("resume", "Resume", "main") + &button("stop", "Stop", ""),
        SandboxState::Stopped | SandboxState::Failed => button("start", "Start", "main"),
    }
}

fn links(info: &SandboxInfo) -> String {
    let prefix = match info.role.as_deref() {
        Some("live") => "",
        Some("dev") => "/dev",
        _ => return String::new(),
    };
    if info.state != SandboxState::Running {
        return String::new();
    }
    format!(
        "<a class=\"button\" href=\"{prefix}/\">Open</a>\
         <a class=\"button\" href=\"{prefix}/supervisor/rescue\">Rescue</a>"
    )
}

/// What removes something, behind a box to tick.
fn dev_only(page: &Page<'_>, info: &SandboxInfo) -> String {
    if info.role.as_deref() != Some("dev") {
        return String::new();
    }
    let form = |action: &str, question: &str, text: &str| {
        let inner = format!(
            "<label><input type=\"checkbox\" name=\"sure\" value=\"1\" required> {question}</label>\
             <button class=\"bad\">{text}</button>"
        );
        page.forms.form(action, &[], &inner)
    };
    format!(
        "<h3 id=\"reset-dev\">Reset or delete</h3><p>{}</p><p id=\"delete-dev\">{}</p>",
        form("reset-dev", "Replace dev and all its files by a fresh copy of live", "Reset dev"),
        form("delete-dev", "Remove dev and all its files", "Delete dev"),
    )
}

fn swap(page: &Page<'_>) -> String {
    let roles = page.roles;
    let mut body = String::new();
    if let Some(last) = &roles.last_swap {
        body.push_str(&last_swap(last));
    }
    if let Some(dev) = &roles.dev {
        body.push_str("<div class=\"row\" id=\"roll-back\">");
        body.push_str(&page.forms.button("swap", "", "Make dev live", "main"));
        body.push_str(
            "<a class=\"button\" href=\"/admin/sandboxes/promote\">See the checks first</a>",
        );
        if roles.last_swap.as_ref().is_some_and(|last| last.before == dev.id) {
            body.push_str(&page.forms.button("rollback", "", "Roll back", ""));
        }
        body.push_str("</div>");
    }
    if !roles.checks.is_empty() {
        let checks: String = roles.checks.iter().map(check).collect();
        body.push_str(&format!(
            "<p class=\"soft\">Checks, when they were last made:</p><ul>{checks}</ul>"
        ));
    }
    if body.is_empty() {
        return String::new();
    }
    format!("<section id=\"swap\"><h2>Swap</h2>{body}</section>")
}

fn last_swap(last: &SwapRecord) -> String {
    let what = match last.kind {
        SwapKind::Swap => "live and dev changed places",
        SwapKind::Rollback => "a swap was taken back",
        SwapKind::AutoRollback => "a swap was taken back by itself",
    };
    let mut text = format!("<p>{} ago {what}.</p>", ago(last.at));
    if let Some(reason) = &last.reason {
        text.push_str(&format!("<p class=\"why\">{}</p>", escape(reason)));
    }
    if let Some(until) = last.watched_until.filter(|until| *until > now_ms()) {
        let seconds = (until - now_ms()).div_ceil(1000);
        text.push_str(&format!(
            "<p class=\"soft\">It is watched for {seconds} s more, and taken back if it does worse.</p>"
        ));
    }
    if let Some(verdict) = &last.verdict {
        text.push_str(&format!("<p class=\"soft\">{}</p>", escape(verdict)));
    }
    text
}

fn watched(roles: &RolesStatus) -> Option<u64> {
    roles.last_swap.as_ref()?.watched_until.filter(|until| *until > now_ms())
}

fn state(state: SandboxState) -> &'static str {
    match state {
        SandboxState::Stopped => "stopped",
        SandboxState::Running => "running",
        SandboxState::Paused => "paused",
        SandboxState::Failed => "failed",
    }
}
