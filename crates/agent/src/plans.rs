//! Plan templates: ways to go about a kind of task, adopted by name.
//!
//! A template is a file `plans/NAME.md` of the workspace, or one that this crate carries; the owner's
//! wins where both have the same name. Between two lines of `---` it says what it is called and what it
//! is for; every heading of the second level is a step.

use crate::body::{Body, EntryKind};
use crate::events::{PlanEntry, PlanStatus, Priority};
use crate::matter::Matter;

const FOLDER: &str = "plans";
const LARGEST: u64 = 64 * 1024;
const MOST: usize = 50;
const MOST_STEPS: usize = 30;
const LONGEST_STEP: usize = 200;

const OWN: [(&str, &str); 3] = [
    ("hypothesis-design-research", include_str!("../plans/hypothesis-design-research.md")),
    ("build-a-feature", include_str!("../plans/build-a-feature.md")),
    ("fix-a-bug", include_str!("../plans/fix-a-bug.md")),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pub name: String,
    pub description: String,
    pub steps: Vec<String>,
    /// All of it, without its head.
    pub text: String,
    /// The owner's file; none for one that this crate carries.
    pub path: Option<String>,
}

impl Template {
    /// Its steps as a list of what is to be done.
    pub fn entries(&self) -> Vec<PlanEntry> {
        let entry = |step: &String| PlanEntry {
            content: step.clone(),
            status: PlanStatus::Pending,
            priority: Priority::Medium,
        };
        self.steps.iter().map(entry).collect()
    }

    /// Case, spaces and punctuation do not count.
    fn is_called(&self, name: &str) -> bool {
        key(&self.name) == key(name)
    }
}

/// A file that is no template, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    pub path: String,
    pub reason: String,
}

/// All there are: the owner's by name, then those of this crate that the owner has not replaced.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plans {
    pub templates: Vec<Template>,
    pub malformed: Vec<Malformed>,
}

impl Plans {
    pub async fn of(body: &dyn Body) -> Self {
        let mut plans = Self::default();
        let entries = body.list_files(FOLDER).await.unwrap_or_default();
        let files = entries.into_iter().filter(|entry| entry.kind != EntryKind::Directory);
        for file in files.filter(|file| file.name.ends_with(".md")).take(MOST) {
            let path = format!("{FOLDER}/{}", file.name);
            let read = body.read_text(&path, LARGEST).await.map_err(|error| error.message);
            match read.and_then(|(text, _)| parse(file.name.trim_end_matches(".md"), &text)) {
                Ok(template) => plans.add(Template { path: Some(path), ..template }),
                Err(reason) => plans.malformed.push(Malformed { path, reason }),
            }
        }
        for (stem, text) in OWN {
            // One that is no template would be found by a test.
            if let Ok(template) = parse(stem, text)
                && plans.find(&template.name).is_none()
            {
                plans.templates.push(template);
            }
        }
        plans
    }

    fn add(&mut self, template: Template) {
        let path = template.path.clone().unwrap_or_default();
        match self.find(&template.name).and_then(|other| other.path.clone()) {
            Some(other) => {
                let reason = format!("{other} has the same name, \"{}\"", template.name);
                self.malformed.push(Malformed { path, reason });
            }
            None => self.templates.push(template),
        }
    }

    pub fn find(&self, name: &str) -> Option<&Template> {
        self.templates.iter().find(|template| template.is_called(name))
    }

    /// The template of that name, or why there is none.
    pub fn adopt(&self, name: &str) -> Result<&Template, String> {
        if let Some(template) = self.find(name) {
            return Ok(template);
        }
        let file = |path: &str| path.trim_end_matches(".md").rsplit('/').next().map(key);
        if let Some(bad) = self.malformed.iter().find(|bad| file(&bad.path) == Some(key(name))) {
            return Err(format!("{} cannot be used: {}", bad.path, bad.reason));
        }
        let names: Vec<&str> = self.templates.iter().map(|plan| plan.name.as_str()).collect();
        Err(format!("there is no plan \"{name}\"; there are: {}", names.join(", ")))
    }
}

/// Letters and digits alone: people write the rest as they like.
fn key(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// What a file says, or what is wrong with it.
fn parse(stem: &str, text: &str) -> Result<Template, String> {
    let Matter { lines, rest } = Matter::of(text)?;
    let field = |name: &str| Matter::field(&lines, name);
    let name = field("name").unwrap_or_else(|| stem.to_owned());
    if key(&name).is_empty() {
        return Err(format!("its name \"{name}\" has neither letters nor digits"));
    }
    let description = field("description").ok_or("its head has no line `description: ...`")?;
    let steps = steps(rest)?;
    Ok(Template { name, description, steps, text: rest.trim().to_owned(), path: None })
}

fn steps(text: &str) -> Result<Vec<String>, String> {
    let mut steps = Vec::new();
    let mut code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            code = !code;
        }
        let Some(step) = line.strip_prefix("## ").map(str::trim).filter(|_| !code) else {
            continue;
        };
        if step.is_empty() || step.chars().count() > LONGEST_STEP {
            return Err(format!("its step {} is empty or too long", steps.len() + 1));
        }
        steps.push(step.to_owned());
    }
    match steps.len() {
        0 => Err("it has no step; a step is a heading such as `## Look around`".to_owned()),
        1..=MOST_STEPS => Ok(steps),
        many => Err(format!("it has {many} steps; {MOST_STEPS} is the most")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Local;

    #[test]
    fn the_templates_of_this_crate_are_templates() {
        for (stem, text) in OWN {
            let template = parse(stem, text).unwrap();
            assert_eq!(key(&template.name), key(stem), "the file is called like the plan");
            assert!(template.steps.len() >= 5, "{stem}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        let check = |text: &str, expected: &str| {
            let error = parse("x", text).unwrap_err();
            assert!(error.contains(expected), "{text:?}: {error}");
        };
        check("## Step", "does not begin with a line of ---");
        check("---\ndescription: d\n## Step", "does not end with a line of ---");
        check("---\nname: n\n---\n## Step", "no line `description: ...`");
        check("---\nname: '-'\ndescription: d\n---\n## Step", "neither letters nor digits");
        check("---\ndescription: d\n---\n# Title\n```\n## code\n```\n", "it has no step");
        check("---\ndescription: d\n---\n## \n", "step 1 is empty");
        check(&format!("---\ndescription: d\n---\n{}", "## s\n".repeat(31)), "31 steps");
        let template =
            parse("x", "---\ndescription: d\n---\ntext\n## One\nmore\n## Two\n").unwrap();
        assert_eq!((template.name.as_str(), template.steps.len()), ("x", 2));
    }

    #[tokio::test]
    async fn the_owners_template_wins() {
        let dir = tempfile::tempdir().unwrap();
        let body = Local::new(dir.path());
        let names =
            |plans: &Plans| plans.templates.iter().map(|p| p.name.clone()).collect::<Vec<_>>();
        let own = ["Hypothesis -> Design -> Research", "Build a feature", "Fix a bug"];
        assert_eq!(names(&Plans::of(&body).await), own);
        std::fs::create_dir_all(dir.path().join("plans/sub.md")).unwrap();
        let put =
            |name: &str, text: &str| std::fs::write(dir.path().join("plans").join(name), text);
        put("a.md", "---\nname: fix a BUG\ndescription: mine\n---\n## Only\n").unwrap();
        put("b.md", "---\nname: Fix a bug!\ndescription: again\n---\n## Only\n").unwrap();
        put("broken.md", "## Only\n").unwrap();
        put("notes.txt", "no plan").unwrap();
        let plans = Plans::of(&body).await;
        assert_eq!(names(&plans), ["fix a BUG", own[0], own[1]]);
        assert_eq!(plans.adopt("Fix a bug").unwrap().path.as_deref(), Some("plans/a.md"));
        let reasons: Vec<&str> = plans.malformed.iter().map(|bad| bad.path.as_str()).collect();
        assert_eq!(reasons, ["plans/b.md", "plans/broken.md"]);
        let error = plans.adopt("Broken").unwrap_err();
        assert!(error.starts_with("plans/broken.md cannot be used: it does not"), "{error}");
        let error = plans.adopt("nothing").unwrap_err();
        assert!(error.contains("there are: fix a BUG, Hypothesis"), "{error}");
    }
}
