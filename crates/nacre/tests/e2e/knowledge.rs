//! Documents, facts and editions of a real computer.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::computer::TestComputer;

impl TestComputer {
    /// Paths and lines of what is found, once that is as expected.
    fn finds(&self, question: &str, expected: &[&str]) {
        let began = Instant::now();
        loop {
            let found = self.json(&["knowledge", "search", question, "--in", "live", "--json"]);
            let place = |hit: &serde_json::Value| {
                format!(
                    "{}:{}-{}",
                    hit["path"].as_str().unwrap(),
                    hit["first_line"],
                    hit["last_line"]
                )
            };
            let hits = found["hits"].as_array().unwrap().iter();
            let places: Vec<_> = hits.filter(|hit| hit["by_word"] == true).map(place).collect();
            if places == expected {
                return;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{question}: {found}");
        }
    }
}

#[test]
fn a_file_is_found_as_it_changes_and_after_a_crash() {
    let pc = TestComputer::start();
    pc.exec("mkdir notes && printf '# Sea\\n\\nThe quahog is a clam.\\n' > notes/sea.md");
    pc.finds("quahog", &["notes/sea.md:1-3"]);
    pc.exec("printf 'Whelks instead.\\n' > notes/sea.md");
    pc.finds("whelks", &["notes/sea.md:1-1"]);
    pc.finds("quahog", &[]);
    pc.signal_gateway(Signal::KILL);
    pc.up();
    pc.finds("whelks", &["notes/sea.md:1-1"]);
    pc.exec("mv notes shore");
    pc.finds("whelks", &["shore/sea.md:1-1"]);
    pc.exec("rm -r shore");
    pc.finds("whelks", &[]);
    // What is undone is found again.
    pc.ok(&["undo"]);
    pc.finds("whelks", &["shore/sea.md:1-1"]);
    assert!(pc.ok(&["knowledge", "search", "whelks"]).starts_with("live:shore/sea.md:1-1  ("));
    assert!(pc.ok(&["knowledge", "status"]).contains("live"));
}

#[test]
fn what_is_published_holds_and_what_is_invented_does_not() {
    let pc = TestComputer::start();
    pc.exec("printf '# On shells\\n\\nThey grow layer\\nby layer.\\n' > paper.md");
    let address = pc.ok(&["publish", "paper.md", "--title", "On shells"]);
    let address = address.trim();
    assert!(address.starts_with("nacre:edition:"), "{address}");
    assert_eq!(pc.ok(&["publish", ":paper.md", "--title", "On shells"]).trim(), address);

    let invented = pc.run(&["publications", "cite", address, "--quote", "brick by brick"]);
    assert!(!invented.status.success());
    let said = String::from_utf8_lossy(&invented.stderr).into_owned();
    assert!(said.contains("does not stand in") && said.contains("hint:"), "{said}");
    let note = pc.ok(&["publications", "cite", address, "--quote", "layer by layer"]);
    assert!(note.trim().ends_with(&format!("{address}#L3-L4 “layer by layer”")), "{note}");

    let reply = format!("See the source.\n\n{note}");
    let copied = pc.pipe(&["exec", "--", "sh", "-c", "cat > reply.md"], reply.into_bytes());
    assert!(copied.status.success());
    let second = pc.ok(&["publish", "reply.md", "--title", "A reply"]);
    let shown = pc.ok(&["publications", "show", "reply.md"]);
    assert!(shown.contains("References\n  1. On shells. local, "), "{shown}");
    let first = pc.json(&["publications", "show", address, "--json"]);
    assert_eq!(first["cited_by"][0], second.trim());
    let listed = pc.ok(&["publications"]);
    assert_eq!(listed.lines().count(), 3, "{listed}");
    let verified = pc.ok(&["publications", "verify"]);
    assert!(verified.starts_with("2 editions are what was published.\nhead "), "{verified}");

    // The file may go; the edition stays.
    pc.exec("rm paper.md");
    let content = pc.ok(&["publications", "show", address, "--content"]);
    assert_eq!(content, "# On shells\n\nThey grow layer\nby layer.\n");
}

#[test]
fn facts_are_the_owners_to_keep_and_to_remove() {
    let pc = TestComputer::start();
    assert_eq!(pc.ok(&["memory"]), "Nothing is remembered yet.\n");
    let told = ["memory", "add", "The staging server is called otter.", "--tag", "servers"];
    assert_eq!(pc.ok(&told), "Remembered as 1.\n");
    assert!(pc.ok(&["memory", "search", "servers"]).contains("otter"));
    assert_eq!(
        pc.ok(&["memory", "edit", "1", "The staging server is called heron."]),
        "Changed 1.\n"
    );
    let listed = pc.json(&["memory", "list", "--json"]);
    assert_eq!(listed["facts"][0]["text"], "The staging server is called heron.");
    assert_eq!(listed["facts"][0]["tags"][0], "servers");
    assert_eq!(pc.ok(&["memory", "rm", "1"]), "Removed.\n");
    assert_eq!(pc.ok(&["memory"]), "Nothing is remembered yet.\n");
    assert!(!pc.run(&["memory", "rm", "1"]).status.success());
    for file in ["knowledge.db", "knowledge.db-wal"] {
        let bytes = std::fs::read(pc.data().join(file)).unwrap_or_default();
        assert!(!bytes.windows(5).any(|window| window == b"heron"), "{file}");
    }
}
