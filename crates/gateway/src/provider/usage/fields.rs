//! Values at known places of a JSON document that comes in pieces.
//!
//! Only the wanted values are kept, and only while they come: a list of a million numbers beside
//! them costs nothing. What is no JSON leads nowhere, and is for the client to complain about.

/// A wanted value longer than this is not one.
const LONGEST: usize = 16 * 1024;
const LONGEST_KEY: usize = 32;
/// How deep a place can be.
const DEEPEST: usize = 2;

pub(super) struct Fields {
    places: &'static [&'static [&'static str]],
    depth: usize,
    /// The same, with a list around the documents left out.
    base: usize,
    begun: bool,
    in_string: bool,
    escaped: bool,
    /// Whether the next string in the object at this depth is a key.
    at_key: [bool; DEEPEST],
    /// Whether the string that is being read is one.
    in_key: bool,
    keys: [String; DEEPEST],
    kept: Option<Kept>,
}

struct Kept {
    place: usize,
    depth: usize,
    value: Vec<u8>,
}

impl Fields {
    pub(super) fn new(places: &'static [&'static [&'static str]]) -> Self {
        Self {
            places,
            depth: 0,
            base: 0,
            begun: false,
            in_string: false,
            escaped: false,
            at_key: [false; DEEPEST],
            in_key: false,
            keys: [String::new(), String::new()],
            kept: None,
        }
    }

    /// Another document begins.
    pub(super) fn restart(&mut self) {
        *self = Self::new(self.places);
    }

    pub(super) fn read(&mut self, bytes: &[u8], found: &mut impl FnMut(usize, &[u8])) {
        for byte in bytes {
            self.step(*byte, found);
        }
    }

    fn step(&mut self, byte: u8, found: &mut impl FnMut(usize, &[u8])) {
        if self.in_string {
            self.keep(byte);
            return self.in_text(byte);
        }
        match byte {
            b'"' => {
                self.keep(byte);
                self.in_string = true;
                self.in_key = self.level().is_some_and(|level| self.at_key[level]);
                if let (true, Some(level)) = (self.in_key, self.level()) {
                    self.keys[level].clear();
                }
            }
            b'{' | b'[' => {
                self.keep(byte);
                self.open(byte == b'{');
            }
            b'}' | b']' => {
                self.finish(found);
                self.keep(byte);
                self.depth = self.depth.saturating_sub(1);
                self.close(found);
            }
            b',' => {
                self.finish(found);
                self.keep(byte);
                if let Some(level) = self.level() {
                    self.at_key[level] = !self.keys_end(level);
                }
            }
            b':' => {
                self.keep(byte);
                if let Some(level) = self.level() {
                    self.at_key[level] = false;
                    self.begin(level);
                }
            }
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => self.keep(byte),
        }
    }

    fn in_text(&mut self, byte: u8) {
        if self.escaped {
            self.escaped = false;
        } else if byte == b'\\' {
            self.escaped = true;
        } else if byte == b'"' {
            self.in_string = false;
            return;
        }
        if let (true, Some(level)) = (self.in_key, self.level()) {
            let key = &mut self.keys[level];
            // One that is too long is none of ours, whatever follows.
            if key.len() <= LONGEST_KEY {
                key.push(char::from(byte));
            }
        }
    }

    /// Which of the objects that matter we are in.
    fn level(&self) -> Option<usize> {
        let level = self.depth.checked_sub(self.base + 1)?;
        (level < DEEPEST).then_some(level)
    }

    fn open(&mut self, object: bool) {
        if !self.begun {
            self.begun = true;
            // A list of documents is read as one after the other.
            if !object {
                self.base = 1;
            }
        }
        self.depth += 1;
        if let Some(level) = self.level() {
            self.at_key[level] = object;
            self.keys[level].clear();
            if !object {
                self.keys[level].push('[');
            }
        }
    }

    /// Of a list at this level there are no keys.
    fn keys_end(&self, level: usize) -> bool {
        self.keys[level].starts_with('[')
    }

    /// The value of a key begins.
    fn begin(&mut self, level: usize) {
        if self.kept.is_some() {
            return;
        }
        let wanted = |place: &&[&str]| {
            place.len() == level + 1 && place.iter().zip(&self.keys).all(|(name, key)| name == key)
        };
        if let Some(place) = self.places.iter().position(wanted) {
            self.kept = Some(Kept { place, depth: self.depth, value: Vec::new() });
        }
    }

    fn keep(&mut self, byte: u8) {
        let Some(kept) = &mut self.kept else { return };
        // The colon itself is still before it.
        if kept.value.is_empty() && byte == b':' {
            return;
        }
        kept.value.push(byte);
        if kept.value.len() > LONGEST {
            self.kept = None;
        }
    }

    /// A value without brackets ends with what follows it.
    fn finish(&mut self, found: &mut impl FnMut(usize, &[u8])) {
        if let Some(kept) = self.kept.take_if(|kept| kept.depth == self.depth) {
            found(kept.place, &kept.value);
        }
    }

    /// One with brackets ends with them.
    fn close(&mut self, found: &mut impl FnMut(usize, &[u8])) {
        if let Some(kept) = self.kept.take_if(|kept| kept.depth >= self.depth) {
            found(kept.place, &kept.value);
        }
    }
}
