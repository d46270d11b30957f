//! Dumps of MySQL and MariaDB: `CREATE TABLE` and `INSERT`, nothing else counts.
//!
//! A parser of its own rather than one of all SQL: a dump is a small language, and what
//! matters here is that one that was cut short, or that holds a value which is no plain
//! value, is refused with its line and column instead of being read in part.

use std::collections::HashMap;
use std::iter::Peekable;
use std::str::Chars;

use super::{Cell, Kind, MAX_COLUMNS, MAX_ROWS, Place, Row, Table};
use crate::domain::Error;

/// Statements that change rows in another way than a dump does.
const FOREIGN: [&str; 6] = ["UPDATE", "DELETE", "REPLACE", "LOAD", "TRUNCATE", "CALL"];

/// What a dump that tells where it began ends with.
const COMPLETED: &str = "-- Dump completed";

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// A word without quotes.
    Word(String),
    /// A name in backquotes.
    Name(String),
    /// A text in quotes.
    Text(String),
    /// A number, as it stands.
    Number(String),
    /// Another character.
    Mark(char),
    End,
}

/// The rows of the table of `kind`, or of the one table that belongs to a kind; of a
/// table with another name, if it is the only one and `kind` is given.
pub(super) fn read(text: &str, kind: Option<Kind>) -> Result<Table, Error> {
    let mut tables = tables_of(text)?;
    let known = |name: &str| Kind::ALL.into_iter().find(|kind| kind.table() == Some(name));
    let wanted = |name: &str| match kind {
        Some(kind) => kind.table() == Some(name),
        None => known(name).is_some(),
    };
    let matching = tables.iter().filter(|(name, _)| wanted(name)).count();
    let place = match (matching, tables.len()) {
        (1, _) => tables.iter().position(|(name, _)| wanted(name)),
        (0, 1) => Some(0),
        _ => None,
    };
    if let Some(place) = place {
        return Ok(tables.swap_remove(place).1);
    }
    let names: Vec<_> = tables.iter().take(20).map(|(name, _)| name.as_str()).collect();
    Err(match matching {
        0 if names.is_empty() => Error::invalid(
            "source.text",
            "source.text holds no INSERT: a dump of MySQL, lines with a header or our own export \
             is wanted",
        ),
        0 => Error::invalid(
            "source.text",
            format!("source.text has rows of {}, none of which is known", names.join(", ")),
        ),
        _ => Error::invalid(
            "format",
            format!("format must be named: source.text has rows of {}", names.join(", ")),
        ),
    })
}

/// The rows of the table called `name`.
pub(super) fn read_table(text: &str, name: &str) -> Result<Table, Error> {
    let found = tables_of(text)?.into_iter().find(|(table, _)| table == name);
    let missing = || Error::invalid("source.text", format!("source.text has no rows of {name}"));
    found.map(|(_, table)| table).ok_or_else(missing)
}

/// The tables with rows, in the order of their first.
fn tables_of(text: &str) -> Result<Vec<(String, Table)>, Error> {
    // The first line may be a command for the client that reads the dump.
    let begins = ["-- MySQL dump", "-- MariaDB dump"];
    let says_so = text.lines().take(8).any(|line| begins.iter().any(|b| line.starts_with(b)));
    let tail = text.trim_end().lines().next_back().unwrap_or_default();
    if says_so && !tail.starts_with(COMPLETED) {
        let line = text.lines().count().max(1);
        return Err(Place { line, column: 1 }
            .error(format!("the dump does not end with {COMPLETED:?}: it is cut short")));
    }
    let mut parser =
        Parser { lexer: Lexer::new(text), columns: HashMap::new(), tables: Vec::new() };
    while parser.statement()? {}
    Ok(parser.tables)
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// By table, from `CREATE TABLE`.
    columns: HashMap<String, Vec<String>>,
    /// Those with rows, in the order of their first.
    tables: Vec<(String, Table)>,
}

impl Parser<'_> {
    /// Reads one statement; false at the end of the text.
    fn statement(&mut self) -> Result<bool, Error> {
        let (place, token) = self.lexer.next()?;
        match token {
            Token::End => Ok(false),
            Token::Mark(';') => Ok(true),
            Token::Word(word) => {
                match word.to_ascii_uppercase().as_str() {
                    "INSERT" => self.insert()?,
                    "CREATE" => self.create()?,
                    "DELIMITER" => self.lexer.skip_delimited(place)?,
                    foreign if FOREIGN.contains(&foreign) => {
                        return Err(place.error(format!(
                            "{foreign} is not understood: rows count only where INSERT writes them"
                        )));
                    }
                    _ => self.skip_statement()?,
                }
                Ok(true)
            }
            other => Err(place.error(format!("{} is no statement of a dump", shown(&other)))),
        }
    }

    fn skip_statement(&mut self) -> Result<(), Error> {
        loop {
            match self.lexer.next()? {
                (_, Token::Mark(';')) => return Ok(()),
                (place, Token::End) => return Err(cut_short(place)),
                _ => {}
            }
        }
    }

    /// `CREATE TABLE [IF NOT EXISTS] name (column …, …) …;`
    fn create(&mut self) -> Result<(), Error> {
        if !self.word_is("TABLE")? {
            return self.skip_statement();
        }
        if self.word_is("IF")? {
            self.lexer.next()?;
            self.lexer.next()?;
        }
        let name = self.table_name()?;
        if !self.mark_is('(')? {
            return self.skip_statement();
        }
        let mut columns = Vec::new();
        loop {
            // The first token of a definition: a column, or the word of a key.
            match self.lexer.next()? {
                (_, Token::Name(column)) => columns.push(column.to_lowercase()),
                (place, Token::End) => return Err(cut_short(place)),
                (_, Token::Word(word)) if !is_key(&word) => columns.push(word.to_lowercase()),
                _ => {}
            }
            let mut depth = 0;
            loop {
                match self.lexer.next()? {
                    (_, Token::Mark('(')) => depth += 1,
                    (_, Token::Mark(')')) if depth > 0 => depth -= 1,
                    (_, Token::Mark(')')) => {
                        self.columns.insert(name, columns);
                        return self.skip_statement();
                    }
                    (_, Token::Mark(',')) if depth == 0 => break,
                    (place, Token::End) => return Err(cut_short(place)),
                    _ => {}
                }
            }
        }
    }

    /// `INSERT [IGNORE …] INTO name [(columns)] VALUES (…), (…);`
    fn insert(&mut self) -> Result<(), Error> {
        for word in ["LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "INTO"] {
            self.word_is(word)?;
        }
        let place = self.lexer.peek()?.0;
        let name = self.table_name()?;
        let listed = match self.mark_is('(')? {
            true => Some(self.names()?),
            false => None,
        };
        let place_of_values = self.lexer.peek()?.0;
        if !self.word_is("VALUES")? && !self.word_is("VALUE")? {
            let what = match &self.lexer.peek()?.1 {
                Token::End => return Err(cut_short(place_of_values)),
                other => shown(other),
            };
            return Err(place_of_values.error(format!("VALUES is wanted, but this is {what}")));
        }
        let columns = listed.or_else(|| self.columns.get(&name).cloned()).ok_or_else(|| {
            place.error(format!(
                "the columns of {name} are not told: dump with CREATE TABLE or with \
                 --complete-insert"
            ))
        })?;
        if columns.len() > MAX_COLUMNS {
            return Err(place.error(format!("more than {MAX_COLUMNS} columns")));
        }
        let table = match self.tables.iter().position(|(known, _)| *known == name) {
            Some(table) => table,
            None => {
                let table = Table { columns: columns.clone(), rows: Vec::new() };
                self.tables.push((name, table));
                self.tables.len() - 1
            }
        };
        if self.tables[table].1.columns != columns {
            return Err(place.error("the columns are others than those of the rows before"));
        }
        loop {
            let row = self.row(columns.len())?;
            let rows = &mut self.tables[table].1.rows;
            if rows.len() == MAX_ROWS {
                return Err(row.cells[0].place.error(format!("more than {MAX_ROWS} rows")));
            }
            rows.push(row);
            match self.lexer.next()? {
                (_, Token::Mark(',')) => {}
                (_, Token::Mark(';')) => return Ok(()),
                (place, Token::End) => return Err(cut_short(place)),
                (place, Token::Word(word)) if word.eq_ignore_ascii_case("ON") => {
                    return Err(place.error("ON DUPLICATE KEY is not understood in a dump"));
                }
                (place, other) => {
                    let what = shown(&other);
                    return Err(place.error(format!("{what} between rows: a comma or ; is wanted")));
                }
            }
        }
    }

    /// `(value, …)` with `width` values.
    fn row(&mut self, width: usize) -> Result<Row, Error> {
        let (place, token) = self.lexer.next()?;
        match token {
            Token::Mark('(') => {}
            Token::End => return Err(cut_short(place)),
            other => return Err(place.error(format!("{} where a row begins", shown(&other)))),
        }
        let mut cells = Vec::with_capacity(width);
        loop {
            cells.push(self.value()?);
            match self.lexer.next()? {
                (_, Token::Mark(',')) if cells.len() < width => {}
                (_, Token::Mark(')')) if cells.len() == width => return Ok(Row { cells }),
                (place, Token::End) => return Err(cut_short(place)),
                (place, Token::Mark(',' | ')')) => {
                    return Err(place.error(format!("a row has {width} values, not more or fewer")));
                }
                (place, other) => {
                    let what = shown(&other);
                    return Err(place.error(format!("{what} behind a value: it is no plain value")));
                }
            }
        }
    }

    fn value(&mut self) -> Result<Cell, Error> {
        let (place, token) = self.lexer.next()?;
        let text = match token {
            Token::Text(text) | Token::Number(text) => Some(text),
            Token::Mark(sign @ ('-' | '+')) => match self.lexer.next()? {
                (_, Token::Number(digits)) if sign == '-' => Some(format!("-{digits}")),
                (_, Token::Number(digits)) => Some(digits),
                (place, other) => {
                    return Err(place.error(format!("{} behind a sign", shown(&other))));
                }
            },
            Token::Word(word) if word.eq_ignore_ascii_case("NULL") => None,
            Token::Word(word) if word.eq_ignore_ascii_case("TRUE") => Some("1".to_owned()),
            Token::Word(word) if word.eq_ignore_ascii_case("FALSE") => Some("0".to_owned()),
            // A character set before a text.
            Token::Word(word) if word.starts_with('_') => match self.lexer.next()? {
                (_, Token::Text(text)) => Some(text),
                (place, other) => {
                    return Err(place.error(format!("{} behind {word:?}", shown(&other))));
                }
            },
            Token::End => return Err(cut_short(place)),
            other => {
                return Err(place.error(format!("{} is no plain value", shown(&other))));
            }
        };
        Ok(Cell { text, place })
    }

    /// Names up to the closing parenthesis.
    fn names(&mut self) -> Result<Vec<String>, Error> {
        let mut names = Vec::new();
        loop {
            names.push(self.name()?.to_lowercase());
            match self.lexer.next()? {
                (_, Token::Mark(',')) => {}
                (_, Token::Mark(')')) => return Ok(names),
                (place, Token::End) => return Err(cut_short(place)),
                (place, other) => {
                    return Err(place.error(format!("{} in a list of columns", shown(&other))));
                }
            }
        }
    }

    /// The name of a table, without that of its database.
    fn table_name(&mut self) -> Result<String, Error> {
        let mut name = self.name()?;
        while self.mark_is('.')? {
            name = self.name()?;
        }
        Ok(name)
    }

    fn name(&mut self) -> Result<String, Error> {
        match self.lexer.next()? {
            (_, Token::Name(name) | Token::Word(name)) => Ok(name),
            (place, Token::End) => Err(cut_short(place)),
            (place, other) => Err(place.error(format!("{} where a name is wanted", shown(&other)))),
        }
    }

    fn word_is(&mut self, wanted: &str) -> Result<bool, Error> {
        let is = matches!(&self.lexer.peek()?.1, Token::Word(w) if w.eq_ignore_ascii_case(wanted));
        if is {
            self.lexer.next()?;
        }
        Ok(is)
    }

    fn mark_is(&mut self, wanted: char) -> Result<bool, Error> {
        let is = self.lexer.peek()?.1 == Token::Mark(wanted);
        if is {
            self.lexer.next()?;
        }
        Ok(is)
    }
}

/// Whether a definition that begins with `word` is a key and no column.
fn is_key(word: &str) -> bool {
    let keys = ["PRIMARY", "UNIQUE", "KEY", "INDEX", "CONSTRAINT", "FULLTEXT", "SPATIAL", "CHECK"];
    keys.iter().any(|key| word.eq_ignore_ascii_case(key)) || word.eq_ignore_ascii_case("FOREIGN")
}

fn cut_short(place: Place) -> Error {
    place.error("the text ends in the middle of a statement: it is cut short")
}

fn shown(token: &Token) -> String {
    let (text, what) = match token {
        Token::Word(text) | Token::Number(text) => (text.clone(), ""),
        Token::Name(text) => (text.clone(), "the name "),
        Token::Text(text) => (text.clone(), "the text "),
        Token::Mark(c) => (c.to_string(), ""),
        Token::End => return "the end of the text".to_owned(),
    };
    let short: String = text.chars().take(32).collect();
    format!("{what}{short:?}")
}

struct Lexer<'a> {
    text: Peekable<Chars<'a>>,
    place: Place,
    held: Option<(Place, Token)>,
}

impl<'a> Lexer<'a> {
    fn new(text: &'a str) -> Self {
        Lexer { text: text.chars().peekable(), place: Place { line: 1, column: 1 }, held: None }
    }

    fn take(&mut self) -> Option<char> {
        let c = self.text.next()?;
        match c {
            '\n' => self.place = Place { line: self.place.line + 1, column: 1 },
            _ => self.place.column += 1,
        }
        Some(c)
    }

    fn take_while(&mut self, into: &mut String, wanted: impl Fn(char) -> bool) {
        while self.text.peek().copied().is_some_and(&wanted) {
            into.extend(self.take());
        }
    }

    fn peek(&mut self) -> Result<&(Place, Token), Error> {
        if self.held.is_none() {
            self.held = Some(self.read()?);
        }
        Ok(self.held.as_ref().expect("just read"))
    }

    fn next(&mut self) -> Result<(Place, Token), Error> {
        match self.held.take() {
            Some(held) => Ok(held),
            None => self.read(),
        }
    }

    fn read(&mut self) -> Result<(Place, Token), Error> {
        loop {
            let place = self.place;
            let Some(c) = self.take() else { return Ok((place, Token::End)) };
            let next = self.text.peek().copied();
            let token = match c {
                c if c.is_whitespace() => continue,
                '#' => {
                    self.skip_line();
                    continue;
                }
                '-' if next == Some('-') => {
                    self.skip_line();
                    continue;
                }
                '/' if next == Some('*') => {
                    self.skip_comment(place)?;
                    continue;
                }
                '`' => Token::Name(self.quoted(place, '`')?),
                '\'' | '"' => Token::Text(self.quoted(place, c)?),
                c if c.is_ascii_digit() => {
                    let mut text = c.to_string();
                    self.take_while(&mut text, |c| c.is_ascii_alphanumeric() || c == '.');
                    let exponent = text.ends_with(['e', 'E']) && !text.starts_with("0x");
                    if exponent && self.text.peek().is_some_and(|c| "+-".contains(*c)) {
                        text.extend(self.take());
                        self.take_while(&mut text, |c| c.is_ascii_digit());
                    }
                    Token::Number(text)
                }
                c if c.is_alphabetic() || "_@$".contains(c) => {
                    let mut text = c.to_string();
                    self.take_while(&mut text, |c| c.is_alphanumeric() || "_@$".contains(c));
                    Token::Word(text)
                }
                c => Token::Mark(c),
            };
            return Ok((place, token));
        }
    }

    fn skip_line(&mut self) {
        while self.take().is_some_and(|c| c != '\n') {}
    }

    fn skip_comment(&mut self, place: Place) -> Result<(), Error> {
        self.take();
        let mut last = ' ';
        while let Some(c) = self.take() {
            if (last, c) == ('*', '/') {
                return Ok(());
            }
            last = c;
        }
        Err(place.error("the comment does not end: the text is cut short"))
    }

    /// Up to the closing `quote`. In backquotes only the quote itself is written twice;
    /// in others there are escapes, too.
    fn quoted(&mut self, place: Place, quote: char) -> Result<String, Error> {
        let mut text = String::new();
        loop {
            match self.take() {
                Some(c) if c == quote => match self.text.peek() {
                    Some(next) if *next == quote => text.extend(self.take()),
                    _ => return Ok(text),
                },
                Some('\\') if quote != '`' => match self.take() {
                    Some('0') => text.push('\0'),
                    Some('b') => text.push('\u{8}'),
                    Some('n') => text.push('\n'),
                    Some('r') => text.push('\r'),
                    Some('t') => text.push('\t'),
                    Some('Z') => text.push('\u{1a}'),
                    Some(c) => text.push(c),
                    None => return Err(cut_short(place)),
                },
                Some(c) => text.push(c),
                None => return Err(place.error("the quote is not closed: the text is cut short")),
            }
        }
    }

    /// Routines and triggers, between `DELIMITER ;;` and `DELIMITER ;`.
    fn skip_delimited(&mut self, place: Place) -> Result<(), Error> {
        self.held = None;
        self.skip_line();
        loop {
            let mut line = String::new();
            self.take_while(&mut line, |c| c != '\n');
            if line.trim().eq_ignore_ascii_case("DELIMITER ;") {
                return Ok(());
            }
            if self.take().is_none() {
                return Err(place.error("DELIMITER is never set back: the text is cut short"));
            }
        }
    }
}
