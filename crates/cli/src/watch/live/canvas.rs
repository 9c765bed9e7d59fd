//! The terminal as a sheet of lines; only changed lines are written.

use std::io;

use console::Term;

use super::line::Line;

/// The terminal, and what it shows.
#[derive(Debug)]
pub struct Canvas {
    terminal: Term,
    /// Rows and columns, when it was last drawn.
    size: (u16, u16),
    shown: Vec<String>,
}

impl Canvas {
    /// A terminal that shows nothing of ours yet. Where it gathers what is written to it, a drawing
    /// is one write.
    pub fn new(terminal: Term) -> Canvas {
        Canvas { terminal, size: (0, 0), shown: Vec::new() }
    }

    /// Draws what `page` makes of so many columns and rows.
    pub fn draw(&mut self, page: impl FnOnce(usize, usize) -> Vec<Line>) -> io::Result<()> {
        let size = self.terminal.size();
        let (height, width) = (usize::from(size.0), usize::from(size.1));
        if size != self.size {
            self.terminal.clear_screen()?;
            self.shown = vec![String::new(); height];
            self.size = size;
        }
        let lines = page(width, height).into_iter().map(|line| line.cut(width));
        let lines = lines.chain(std::iter::repeat(String::new()));
        for (row, (shown, line)) in self.shown.iter_mut().zip(lines).enumerate() {
            if *shown != line {
                // Cleared first: behind a line that is full the cursor is still on its last column.
                self.terminal.move_cursor_to(0, row)?;
                self.terminal.clear_line()?;
                self.terminal.write_str(&line)?;
                *shown = line;
            }
        }
        self.terminal.flush()
    }
}
