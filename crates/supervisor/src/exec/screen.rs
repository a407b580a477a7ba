//! What a terminal shows, so that a client that comes late sees the same.

use std::num::NonZeroU16;
use std::panic::{AssertUnwindSafe, catch_unwind};

use nacre_wire::exec::TtySize;

/// Lines kept above the screen. A cell takes 32 bytes, so this is 2.5 MB at 80 columns.
const SCROLLBACK: usize = 1000;
/// Larger than any display; keeps a client from asking for gigabytes of cells.
pub(super) const LARGEST_SIDE: u16 = 1000;

pub(super) struct Screen {
    parser: vt100::Parser,
    size: (NonZeroU16, NonZeroU16),
}

impl Screen {
    pub(super) fn new(size: TtySize) -> Self {
        let size = sides(size);
        Self { parser: vt100::Parser::new(size.0, size.1, SCROLLBACK), size }
    }

    /// Shows output. The emulator reads whatever a program prints; should it ever panic on it,
    /// the picture starts anew and the command goes on.
    pub(super) fn show(&mut self, output: &[u8]) {
        let shown = catch_unwind(AssertUnwindSafe(|| self.parser.process(output)));
        if shown.is_err() {
            self.parser = vt100::Parser::new(self.size.0, self.size.1, SCROLLBACK);
        }
    }

    pub(super) fn resize(&mut self, size: TtySize) {
        self.size = sides(size);
        let (rows, cols) = self.size;
        let resized =
            catch_unwind(AssertUnwindSafe(|| self.parser.screen_mut().set_size(rows, cols)));
        if resized.is_err() {
            self.parser = vt100::Parser::new(rows, cols, SCROLLBACK);
        }
    }

    /// Bytes that make an empty terminal of the same size look and behave like this one:
    /// the lines scrolled away, the screen, and the modes a program has set.
    pub(super) fn redraw(&self) -> Vec<u8> {
        catch_unwind(AssertUnwindSafe(|| self.draw())).unwrap_or_default()
    }

    fn draw(&self) -> Vec<u8> {
        let screen = self.parser.screen();
        let mut main = self.main_screen();
        let mut out = Vec::from(b"\x1b[?1049l\x1b[m\x1b[H\x1b[J".as_slice());
        scrolled_away(main.screen_mut(), &mut out);
        out.extend_from_slice(main.screen().contents_formatted().as_bytes());
        if screen.alternate_screen() {
            out.extend_from_slice(b"\x1b[?1049h");
            out.extend_from_slice(screen.contents_formatted().as_bytes());
        }
        out.extend_from_slice(screen.input_mode_formatted().as_bytes());
        out
    }

    /// A copy that shows the main screen: the lines scrolled away belong to it, and it is what
    /// the client sees when a full-screen program ends.
    fn main_screen(&self) -> vt100::Parser {
        let one = NonZeroU16::MIN;
        let mut copy = vt100::Parser::new(one, one, 0);
        *copy.screen_mut() = self.parser.screen().clone();
        if copy.screen().alternate_screen() {
            copy.process(b"\x1b[?47l");
        }
        copy
    }
}

/// Prints the lines above the screen and pushes them off it.
fn scrolled_away(screen: &mut vt100::Screen, out: &mut Vec<u8>) {
    let (rows, cols) = (screen.size().0.get(), screen.size().1.get());
    let mut above = screen.scrollback_len();
    if above == 0 {
        return;
    }
    while above > 0 {
        screen.set_scrollback(above);
        let page = above.min(usize::from(rows));
        for row in screen.rows_formatted(0, cols).take(page) {
            out.extend_from_slice(b"\x1b[m");
            out.extend_from_slice(row.as_bytes());
            out.extend_from_slice(b"\x1b[m\r\n");
        }
        above -= page;
    }
    screen.set_scrollback(0);
    out.extend(std::iter::repeat_n(b'\n', usize::from(rows) - 1));
}

fn sides(size: TtySize) -> (NonZeroU16, NonZeroU16) {
    let side = |n: u16| NonZeroU16::new(n.min(LARGEST_SIDE)).unwrap_or(NonZeroU16::MIN);
    (side(size.rows), side(size.cols))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIZE: TtySize = TtySize { cols: 20, rows: 5 };

    fn replayed(screen: &Screen) -> Screen {
        let mut other = Screen::new(SIZE);
        other.show(&screen.redraw());
        other
    }

    fn scrollback(screen: &Screen) -> Vec<String> {
        let mut copy = screen.main_screen();
        let mut lines = Vec::new();
        for above in (1..=copy.screen().scrollback_len()).rev() {
            copy.screen_mut().set_scrollback(above);
            lines.extend(copy.screen().rows(0, SIZE.cols).next());
        }
        lines
    }

    #[test]
    fn a_redraw_brings_back_screen_cursor_and_colour() {
        let mut screen = Screen::new(SIZE);
        screen.show(b"plain \x1b[31mred\x1b[m\r\nsecond\x1b[2;3H");
        let other = replayed(&screen);
        assert_eq!(
            other.parser.screen().contents_formatted(),
            screen.parser.screen().contents_formatted()
        );
        assert_eq!(other.parser.screen().cursor_position(), (1, 2));
    }

    #[test]
    fn a_redraw_brings_back_the_lines_above() {
        let mut screen = Screen::new(SIZE);
        for n in 0..12 {
            screen.show(format!("line {n}\r\n").as_bytes());
        }
        let expected: Vec<String> = (0..8).map(|n| format!("line {n}")).collect();
        assert_eq!(scrollback(&screen), expected);
        assert_eq!(scrollback(&replayed(&screen)), expected);
    }

    #[test]
    fn a_full_screen_program_comes_back_with_the_shell_behind_it() {
        let mut screen = Screen::new(SIZE);
        screen.show(b"$ vim\r\n\x1b[?1049h\x1b[?2004h\x1b[?1h\x1b[Hediting\x1b[?1000h");
        let mut other = replayed(&screen);
        assert!(other.parser.screen().alternate_screen());
        assert!(
            other.parser.screen().bracketed_paste() && other.parser.screen().application_cursor()
        );
        assert_eq!(other.parser.screen().contents().trim(), "editing");
        other.show(b"\x1b[?1049l");
        assert_eq!(other.parser.screen().contents().trim(), "$ vim");
    }

    proptest! {
        #[test]
        fn no_output_and_no_size_breaks_the_screen(
            output in prop::collection::vec(any::<u8>(), 0..400),
            sizes in prop::collection::vec((0u16..50, 0u16..50), 1..4),
        ) {
            let mut screen = Screen::new(SIZE);
            for (cols, rows) in sizes {
                screen.show(&output);
                screen.resize(TtySize { cols, rows });
                screen.redraw();
            }
        }
    }
}
