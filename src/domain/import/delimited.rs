//! Lines of cells under a header: CSV (RFC 4180), and TSV as `mysql --batch` writes it.
//!
//! Strict, so that a file that was cut short or mangled is found out: a quote that is
//! not closed, text behind a closing quote, a line with too few cells are errors.

use super::{Cell, MAX_COLUMNS, MAX_ROWS, Place, Row, Table};
use crate::domain::Error;

/// Whether the first line is a header of cells, and no statement of SQL.
pub(super) fn looks_delimited(text: &str) -> bool {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let header = first.chars().all(|c| c.is_alphanumeric() || "_\" ,\t".contains(c));
    header && first.contains([',', '\t'])
}

/// The table of `text`; the error names line and column.
pub(super) fn read(text: &str) -> Result<Table, Error> {
    let header = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let mut reader = Reader { text: text.chars().peekable(), line: 1, column: 1 };
    let tabs = header.contains('\t');
    let mut table = Table::default();
    loop {
        let place = reader.place();
        let Some(cells) = (match tabs {
            true => reader.tabbed(),
            false => reader.record()?,
        }) else {
            break;
        };
        if cells.len() == 1 && cells[0].text.as_deref().unwrap_or_default().trim().is_empty() {
            continue; // an empty line
        }
        if table.columns.is_empty() {
            if cells.len() > MAX_COLUMNS {
                return Err(place.error(format!("more than {MAX_COLUMNS} columns")));
            }
            let name = |cell: Cell| cell.text.unwrap_or_default().trim().to_lowercase();
            table.columns = cells.into_iter().map(name).collect();
            let mut seen = std::collections::HashSet::new();
            if let Some(twice) = table.columns.iter().find(|name| !seen.insert(name.as_str())) {
                return Err(place.error(format!("column {twice:?} is there twice")));
            }
            continue;
        }
        if cells.len() != table.columns.len() {
            let (found, wanted) = (cells.len(), table.columns.len());
            return Err(place.error(format!("{found} cells where the header has {wanted}")));
        }
        if table.rows.len() == MAX_ROWS {
            return Err(place.error(format!("more than {MAX_ROWS} rows")));
        }
        table.rows.push(Row { cells });
    }
    Ok(table)
}

struct Reader<'a> {
    text: std::iter::Peekable<std::str::Chars<'a>>,
    line: usize,
    column: usize,
}

impl Reader<'_> {
    fn place(&self) -> Place {
        Place { line: self.line, column: self.column }
    }

    fn next(&mut self) -> Option<char> {
        let c = self.text.next()?;
        match c {
            '\n' => (self.line, self.column) = (self.line + 1, 1),
            _ => self.column += 1,
        }
        Some(c)
    }

    /// Passes the end of a line, if it is here.
    fn line_end(&mut self) -> bool {
        if self.text.peek() == Some(&'\r') {
            self.next();
            if self.text.peek() == Some(&'\n') {
                self.next();
            }
            return true;
        }
        self.text.next_if_eq(&'\n').is_some_and(|_| {
            (self.line, self.column) = (self.line + 1, 1);
            true
        })
    }

    /// The cells of a record of CSV; `None` at the end.
    fn record(&mut self) -> Result<Option<Vec<Cell>>, Error> {
        if self.text.peek().is_none() {
            return Ok(None);
        }
        let mut cells = Vec::new();
        loop {
            let place = self.place();
            let text = match self.text.peek() {
                Some('"') => Some(self.quoted(place)?),
                _ => self.plain()?,
            };
            cells.push(Cell { text, place });
            match self.text.peek().copied() {
                Some(',') => {
                    self.next();
                }
                None => return Ok(Some(cells)),
                Some(_) if self.line_end() => return Ok(Some(cells)),
                Some(c) => {
                    let why =
                        format!("{c:?} behind a closing quote: a comma or the end of the line");
                    return Err(self.place().error(why));
                }
            }
        }
    }

    fn quoted(&mut self, place: Place) -> Result<String, Error> {
        self.next();
        let mut text = String::new();
        loop {
            match self.next() {
                Some('"') if self.text.peek() == Some(&'"') => {
                    self.next();
                    text.push('"');
                }
                Some('"') => return Ok(text),
                Some(c) => text.push(c),
                None => {
                    return Err(place.error("the quote is not closed: is the text cut short?"));
                }
            }
        }
    }

    /// An unquoted cell; empty ones, `NULL` and `\N` are NULL.
    fn plain(&mut self) -> Result<Option<String>, Error> {
        let mut text = String::new();
        while let Some(c) = self.text.peek().filter(|c| !",\r\n".contains(**c)) {
            if *c == '"' {
                return Err(self.place().error("a quote in a cell that does not begin with one"));
            }
            text.extend(self.next());
        }
        let text = text.trim();
        Ok((!["", "NULL", "\\N"].contains(&text)).then(|| text.to_owned()))
    }

    /// The cells of a line of TSV, in which `\t`, `\n`, `\0` and `\\` stand for what a
    /// cell cannot hold; `None` at the end.
    fn tabbed(&mut self) -> Option<Vec<Cell>> {
        self.text.peek()?;
        let mut cells = Vec::new();
        loop {
            let place = self.place();
            let mut text = String::new();
            while let Some(c) = self.text.peek().copied().filter(|c| !"\t\r\n".contains(*c)) {
                self.next();
                match (c, self.text.peek()) {
                    ('\\', Some('t' | 'n' | '0' | '\\')) => match self.next() {
                        Some('t') => text.push('\t'),
                        Some('n') => text.push('\n'),
                        Some('0') => text.push('\0'),
                        _ => text.push('\\'),
                    },
                    _ => text.push(c),
                }
            }
            let is_null = ["", "NULL", "\\N"].contains(&text.as_str());
            cells.push(Cell { text: (!is_null).then_some(text), place });
            if self.text.peek() == Some(&'\t') {
                self.next();
                continue;
            }
            self.line_end();
            return Some(cells);
        }
    }
}
