use nacre_wire::history::{Author, FileChange};
use nacre_wire::{ApiError, ErrorKind, WirePath};

use super::*;

const HOSTILE: &str = "<img src=x onerror=alert(1)>\"'{nonce}{sections}";

fn checkpoint(id: u64, line: &str) -> Changes {
    let authors = vec![Author::Command { id: "1".into(), line: line.into() }];
    let info = CheckpointInfo {
        id,
        time: 0,
        cause: Cause::Change,
        authors,
        label: Some(line.into()),
        added: 1,
        changed: 0,
        removed: 0,
        moved: Vec::new(),
        remarks: Vec::new(),
        undone: false,
    };
    let change = FileChange {
        path: WirePath::from(line),
        from: Some(WirePath::from(line)),
        old: None,
        new: None,
        diff: Some(format!("+{line}\n")),
        omitted: None,
    };
    Changes { checkpoint: Some(info), changes: vec![change], total: 3 }
}

fn process(name: &str) -> Shown {
    let info = serde_json::json!({
        "name": name, "state": "failed", "reason": name, "since": 0, "restarts": 0, "run": 1,
        "command": name, "directory": "/workspace", "log_seq": 0,
    });
    let info = serde_json::from_value(info).unwrap();
    Shown { info, log: Vec::new() }
}

fn seen(text: &str) -> Seen {
    Seen {
        processes: vec![process(text)],
        config_error: Some(ConfigError { line: Some(3), reason: text.into() }),
        timeline: History::Known(vec![checkpoint(2, text), checkpoint(1, text)]),
        opened: Some(Ok(checkpoint(2, text))),
        note: Some(Note::Failed(text.into())),
    }
}

#[test]
fn nothing_that_others_wrote_becomes_markup() {
    let asked = Asked { reason: Some(HOSTILE), ..Asked::default() };
    let html = render("abc", "/dev", &asked, &seen(HOSTILE));
    assert!(!html.contains("<img"), "{html}");
    assert!(html.contains("&lt;img src=x onerror=alert(1)&gt;&quot;&#39;{nonce}{sections}"));
    for tag in ["<script", "<style"] {
        let with_nonce = html.matches(&format!("{tag} nonce=\"abc\">")).count();
        assert_eq!((with_nonce, html.matches(tag).count()), (1, 1), "{tag}");
    }
    for inline in [" onclick", " style=", "http://", "https://"] {
        assert!(!html.contains(inline), "{inline}");
    }
}

#[test]
fn the_script_has_no_place_that_would_be_filled() {
    for place in ["{style}", "{own}", "{nonce}", "{prefix}", "{flags}", "{refresh}", "{sections}"] {
        assert!(!SCRIPT.contains(place) && !OWN_STYLE.contains(place), "{place}");
    }
}

#[test]
fn every_address_is_below_where_the_sandbox_is_mounted() {
    let html = render("abc", "/dev", &Asked::default(), &seen("a"));
    let addresses = html.split(" href=\"").chain(html.split(" action=\"")).skip(1);
    for address in addresses.filter(|rest| rest.starts_with('/')) {
        let address = address.split('"').next().unwrap_or_default();
        assert!(address.starts_with("/dev/") || address == "/admin/sandboxes", "{address}");
    }
    assert!(html.contains("action=\"/dev/supervisor/rescue/undo\""), "{html}");
    assert!(html.contains("href=\"/dev/supervisor/rescue?checkpoint=2#opened\""));
}

#[test]
fn a_history_that_does_not_answer_still_has_an_undo() {
    let busy = Seen { timeline: History::Busy, ..seen("a") };
    let html = render("abc", "", &Asked::default(), &busy);
    assert!(html.contains("action=\"/supervisor/rescue/undo\"><button"), "{html}");
    assert!(html.contains("http-equiv=\"refresh\""));
    let error = ApiError::new(ErrorKind::Unsupported, "this sandbox keeps no history");
    let off = Seen { timeline: History::Unknown(error), ..seen("a") };
    let html = render("abc", "", &Asked::default(), &off);
    assert!(html.contains("This sandbox keeps no history."), "{html}");
    assert!(!html.contains("rescue/undo\""), "{html}");
}
