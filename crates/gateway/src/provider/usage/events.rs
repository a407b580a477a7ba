//! The data of server-sent events, while they come: no line is ever held.

/// A piece of the data of one event.
pub(super) enum Piece<'a> {
    Begin,
    Data(&'a [u8]),
}

const FIELD: &[u8] = b"data:";

/// Where in a line we are.
#[derive(Default)]
enum At {
    /// So many bytes of the field's name have come.
    #[default]
    Start,
    Name(usize),
    Data,
    /// Another field, or a comment.
    Other,
}

#[derive(Default)]
pub(super) struct Events {
    at: At,
}

impl Events {
    pub(super) fn read(&mut self, bytes: &[u8], mut piece: impl FnMut(Piece<'_>)) {
        let mut rest = bytes;
        while let Some(byte) = rest.first() {
            match self.at {
                At::Data | At::Other => {
                    let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
                    let line = &rest[..end.unwrap_or(rest.len())];
                    if matches!(self.at, At::Data) {
                        piece(Piece::Data(line));
                    }
                    rest = &rest[end.map_or(rest.len(), |end| end + 1)..];
                    if end.is_some() {
                        self.at = At::Start;
                    }
                    continue;
                }
                At::Start if matches!(byte, b'\n' | b'\r') => {}
                At::Start => self.named(0, *byte, &mut piece),
                At::Name(count) => self.named(count, *byte, &mut piece),
            }
            rest = &rest[1..];
        }
    }

    fn named(&mut self, count: usize, byte: u8, piece: &mut impl FnMut(Piece<'_>)) {
        self.at = match (FIELD[count] == byte, count + 1 == FIELD.len()) {
            (true, true) => {
                piece(Piece::Begin);
                At::Data
            }
            (true, false) => At::Name(count + 1),
            (false, _) if byte == b'\n' => At::Start,
            (false, _) => At::Other,
        };
    }
}
