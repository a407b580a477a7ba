//! The head of a Markdown file: lines `name: value` between two lines of `---`.

const LONGEST: usize = 300;

pub(crate) struct Matter<'a> {
    pub(crate) lines: Vec<&'a str>,
    /// What follows the head.
    pub(crate) rest: &'a str,
}

impl<'a> Matter<'a> {
    pub(crate) fn of(text: &'a str) -> Result<Self, &'static str> {
        let mut all = text.split_inclusive('\n');
        if all.next().map(str::trim_end) != Some("---") {
            return Err("it does not begin with a line of ---");
        }
        let mut lines = Vec::new();
        let mut length = text.find('\n').map_or(text.len(), |end| end + 1);
        for line in all {
            length += line.len();
            match line.trim_end() {
                "---" => return Ok(Self { lines, rest: &text[length..] }),
                line => lines.push(line),
            }
        }
        Err("its head does not end with a line of ---")
    }

    pub(crate) fn field(lines: &[&str], name: &str) -> Option<String> {
        let value = lines.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let value = value.trim().trim_matches(['"', '\'']);
        (!value.is_empty()).then(|| value.chars().take(LONGEST).collect())
    }
}
