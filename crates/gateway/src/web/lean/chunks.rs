//! A chunked body, followed strictly and framed anew. Pure.
//!
//! What hyper takes is taken and what it refuses is refused. Extensions and trailers end here: they
//! are for those who asked for them, and who asks is served by hyper.

use std::io::Write as _;

use super::body::Taken;

/// Of all extensions together, and of all trailers.
const LONGEST_EXTRAS: usize = 16 * 1024;
const MOST_TRAILERS: usize = 100;

/// The body is not framed as it should be; nothing that follows can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bad;

#[derive(Debug, Default)]
pub(super) struct Chunks {
    state: State,
    /// Of the chunk that is read.
    left: u64,
    extensions: usize,
    trailers: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// Before the first digit.
    #[default]
    Start,
    Size,
    /// Spaces behind the size.
    Space,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    /// At the start of a line behind the last chunk.
    EndCr,
    EndLf,
    Trailer,
    TrailerLf,
    Over,
}

impl Chunks {
    pub(super) fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Each piece of data becomes a chunk; the last one is written when the body is over.
    pub(super) fn pass(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<Taken, Bad> {
        let mut taken = Taken { used: 0, data: 0 };
        while taken.used < bytes.len() && !self.is_over() {
            let rest = &bytes[taken.used..];
            if self.state == State::Data {
                let size = usize::try_from(self.left).unwrap_or(usize::MAX).min(rest.len());
                write_chunk(&rest[..size], out);
                self.left -= size as u64;
                if self.left == 0 {
                    self.state = State::DataCr;
                }
                taken = Taken { used: taken.used + size, data: taken.data + size };
            } else {
                self.state = self.step(rest[0])?;
                taken.used += 1;
            }
        }
        if self.is_over() {
            out.extend_from_slice(b"0\r\n\r\n");
        }
        Ok(taken)
    }

    fn step(&mut self, byte: u8) -> Result<State, Bad> {
        use State::*;
        Ok(match (self.state, byte) {
            (Start | Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = (byte as char).to_digit(16).ok_or(Bad)?;
                let size = self.left.checked_mul(16).ok_or(Bad)?;
                self.left = size.checked_add(u64::from(digit)).ok_or(Bad)?;
                Size
            }
            (Size | Space, b' ' | b'\t') => Space,
            (Size | Space, b';') => Extension,
            (Size | Space | Extension, b'\r') => SizeLf,
            (Extension, b'\n') => return Err(Bad),
            (Extension, _) => {
                self.extensions += 1;
                if self.extensions >= LONGEST_EXTRAS {
                    return Err(Bad);
                }
                Extension
            }
            (SizeLf, b'\n') if self.left == 0 => EndCr,
            (SizeLf, b'\n') => Data,
            (DataCr, b'\r') => DataLf,
            (DataLf, b'\n') => Start,
            (EndCr, b'\r') => EndLf,
            (EndLf, b'\n') => self.end()?,
            (EndCr | Trailer, _) => self.trailer(byte)?,
            (TrailerLf, b'\n') => {
                self.trailer(byte)?;
                EndCr
            }
            (
                Start | Size | Space | SizeLf | Data | DataCr | DataLf | EndLf | TrailerLf | Over,
                _,
            ) => {
                return Err(Bad);
            }
        })
    }

    fn trailer(&mut self, byte: u8) -> Result<State, Bad> {
        self.trailers.push(byte);
        if self.trailers.len() >= LONGEST_EXTRAS {
            return Err(Bad);
        }
        Ok(if byte == b'\r' { State::TrailerLf } else { State::Trailer })
    }

    fn end(&mut self) -> Result<State, Bad> {
        if !self.trailers.is_empty() {
            self.trailers.extend_from_slice(b"\r\n");
            let mut found = [httparse::EMPTY_HEADER; MOST_TRAILERS];
            match httparse::parse_headers(&self.trailers, &mut found) {
                Ok(httparse::Status::Complete(_)) => {}
                Ok(httparse::Status::Partial) | Err(_) => return Err(Bad),
            }
        }
        Ok(State::Over)
    }
}

fn write_chunk(data: &[u8], out: &mut Vec<u8>) {
    // Writing to memory cannot fail.
    let _ = write!(out, "{:X}\r\n", data.len());
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What comes out, and how much of what went in was used.
    fn pass(pieces: &[&[u8]]) -> Result<(String, usize), Bad> {
        let (mut chunks, mut out, mut used) = (Chunks::default(), Vec::new(), 0);
        for piece in pieces {
            let taken = chunks.pass(piece, &mut out)?;
            used += taken.used;
            if chunks.is_over() {
                break;
            }
            assert_eq!(taken.used, piece.len());
        }
        let end = if chunks.is_over() { "" } else { "..." };
        Ok((String::from_utf8(out).unwrap() + end, used))
    }

    #[test]
    fn chunks_are_framed_anew() {
        let check = |text: &str, expected: &str, used| {
            assert_eq!(pass(&[text.as_bytes()]), Ok((expected.to_owned(), used)), "{text:?}");
        };
        check("2\r\nhi\r\n0\r\n\r\n", "2\r\nhi\r\n0\r\n\r\n", 12);
        check("002 ; a=\"b\"\r\nhi\r\n0\r\nx-a: 1\r\nx-b: 2\r\n\r\n", "2\r\nhi\r\n0\r\n\r\n", 38);
        check("a\r\n0123456789\r\n0\r\n\r\nmore", "A\r\n0123456789\r\n0\r\n\r\n", 20);
        check("5\r\nhel", "3\r\nhel\r\n...", 6);
        check("", "...", 0);
    }

    #[test]
    fn what_is_framed_otherwise_is_refused() {
        let extension = format!("1;{}\r\n", "x".repeat(LONGEST_EXTRAS));
        let trailer = format!("0\r\nx: {}\r\n\r\n", "x".repeat(LONGEST_EXTRAS));
        for text in [
            "\r\n",
            " 1\r\n",
            "g\r\n",
            "-1\r\n",
            "+1\r\n",
            "0x1\r\n",
            "1\n",
            "1\rx",
            "1 1\r\n",
            "1;\nx\r\n",
            "1\r\nxx",
            "1\r\nx\rx",
            "1\r\nx\n",
            "0\r\n\rx",
            "0\r\nx\r\n\r\n",
            "0\r\n: x\r\n\r\n",
            "0\r\nx: y\rz",
            "10000000000000000\r\n",
            &extension,
            &trailer,
        ] {
            assert_eq!(pass(&[text.as_bytes()]), Err(Bad), "{text:.40?}");
        }
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_the_bytes_arrive(
            body in "([0-3]|;|x|\r\n|[0-3]\r\nhi\r\n){0,12}",
            cut in 0usize..40,
        ) {
            let (bytes, cut) = (body.as_bytes(), cut.min(body.len()));
            let whole = pass(&[bytes]).map(|(out, used)| (joined(&out), used));
            let parts = pass(&[&bytes[..cut], &bytes[cut..]]);
            prop_assert_eq!(parts.map(|(out, used)| (joined(&out), used)), whole);
        }
    }

    /// The data alone, and what stands for the end.
    fn joined(mut out: &str) -> String {
        let mut data = String::new();
        while let Some((size, rest)) = out.split_once("\r\n") {
            let size = usize::from_str_radix(size, 16).unwrap();
            data.push_str(&rest[..size]);
            out = &rest[size + 2..];
        }
        data + out
    }
}
