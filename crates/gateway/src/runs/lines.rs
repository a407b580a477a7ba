//! Output as lines, each as soon as it is whole.

/// A line that is longer is passed on in pieces.
const LONGEST: usize = 1 << 20;

/// The lines of one stream.
#[derive(Debug, Default)]
pub(super) struct Lines {
    waiting: Vec<u8>,
}

impl Lines {
    /// Gives the lines that these bytes complete, without their ends.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            match piece.strip_suffix(b"\n") {
                Some(rest) => {
                    self.waiting.extend_from_slice(rest);
                    lines.push(self.line());
                }
                None => {
                    self.waiting.extend_from_slice(piece);
                    if self.waiting.len() >= LONGEST {
                        lines.push(self.line());
                    }
                }
            }
        }
        lines
    }

    /// What has no end, at the end.
    pub(super) fn rest(&mut self) -> Option<String> {
        (!self.waiting.is_empty()).then(|| self.line())
    }

    fn line(&mut self) -> String {
        let line = std::mem::take(&mut self.waiting);
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        String::from_utf8_lossy(line).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_given_when_it_is_whole() {
        let mut lines = Lines::default();
        let check = |lines: &mut Lines, bytes: &[u8], expected: &[&str]| {
            assert_eq!(lines.take(bytes), expected, "{bytes:?}");
        };
        check(&mut lines, b"a", &[]);
        check(&mut lines, b"b\nc\r\n\nd", &["ab", "c", ""]);
        // A character that comes in two pieces stays one.
        check(&mut lines, "é".as_bytes().split_at(1).0, &[]);
        check(&mut lines, "é".as_bytes().split_at(1).1, &[]);
        check(&mut lines, b"\n\xff\n", &["dé", "\u{fffd}"]);
        assert_eq!(lines.rest(), None);
        check(&mut lines, b"end", &[]);
        assert_eq!(lines.rest().as_deref(), Some("end"));
    }

    #[test]
    fn a_line_without_end_is_not_gathered_for_ever() {
        let mut lines = Lines::default();
        assert_eq!(lines.take(&vec![b'x'; LONGEST])[0].len(), LONGEST);
        assert_eq!(lines.rest(), None);
    }
}
