//! [`Words`]: the tokens of a line of a schedule.

use crate::refusal::Refusal;

/// The suffix that selects an outer loop, once for each inner loop of the same name to skip.
pub(crate) const OUTER: char = '\'';

/// A range of bytes of the text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ByteRange {
    /// The first byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// The tokens of a line, consumed one by one.
///
/// A token is a name (letters, digits, `_` and `.`, with optional `'` at the end), a number, or one
/// of `:`, `->`, `[`, `]`, `,`, `/`, `%`.
#[derive(Debug)]
pub struct Words<'a> {
    words: Vec<(&'a str, ByteRange)>,
    next: usize,
    end: ByteRange,
}

impl<'a> Words<'a> {
    /// Tokenizes a line that begins at byte `start` of its text.
    ///
    /// # Errors
    /// An invalid character and its location.
    pub fn new(line: &'a str, start: usize) -> Result<Self, (ByteRange, Refusal)> {
        let mut words = Vec::new();
        let mut rest = line;
        loop {
            rest = rest.trim_start();
            let at = start + (line.len() - rest.len());
            let Some(first) = rest.chars().next() else { break };
            let named = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
            let length = if named(first) {
                let name = rest.find(|c| !named(c)).unwrap_or(rest.len());
                rest[name..].find(|c| c != OUTER).map_or(rest.len(), |marks| name + marks)
            } else if rest.starts_with("->") {
                2
            } else if ":[],/%".contains(first) {
                1
            } else {
                let span = ByteRange { start: at, end: at + first.len_utf8() };
                return Err((span, Refusal::new(format!("`{first}` has no place in a schedule"))));
            };
            let (word, after) = rest.split_at(length);
            words.push((word, ByteRange { start: at, end: at + length }));
            rest = after;
        }
        let stop = start + line.trim_end().len();
        Ok(Self { words, next: 0, end: ByteRange { start: stop, end: stop } })
    }

    /// The whole line without surrounding space.
    #[must_use]
    pub fn span(&self) -> ByteRange {
        let start = self.words.first().map_or(self.end.start, |(_, span)| span.start);
        ByteRange { start, end: self.end.end }
    }

    /// The last token that was taken, or the end of the line.
    #[must_use]
    pub fn last_span(&self) -> ByteRange {
        let taken = self.next.checked_sub(1).and_then(|last| self.words.get(last));
        taken.map_or(self.end, |(_, span)| *span)
    }

    /// The next token, without taking it.
    #[must_use]
    pub fn peek(&self) -> Option<&'a str> {
        self.words.get(self.next).map(|(word, _)| *word)
    }

    /// Takes the next token. After the last one, errors point to the end of the line.
    pub fn take(&mut self) -> Option<&'a str> {
        let word = self.peek();
        self.next += 1;
        word
    }

    /// Takes a name; `what` describes it in errors.
    ///
    /// # Errors
    /// The next token is not a name.
    pub fn name(&mut self, what: &str) -> Result<String, Refusal> {
        match self.take() {
            Some(word) if is_name(word) => Ok(word.to_owned()),
            Some(word) => Err(Refusal::new(format!("expected {what}, found `{word}`"))),
            None => Err(Refusal::new(format!("expected {what}, but the line ends"))),
        }
    }

    /// Takes a positive number; `what` describes it in errors.
    ///
    /// # Errors
    /// The next token is not a number.
    pub fn number(&mut self, what: &str) -> Result<i64, Refusal> {
        let word = self.take();
        let wrong = || {
            let found = word.map_or("the end of the line".to_owned(), |word| format!("`{word}`"));
            Refusal::new(format!("expected {what}, a number from 1 to 2147483647, found {found}"))
        };
        let number: i64 = word.and_then(|word| word.parse().ok()).ok_or_else(wrong)?;
        if (1..=i64::from(i32::MAX)).contains(&number) { Ok(number) } else { Err(wrong()) }
    }

    /// Whether the next token is a number.
    #[must_use]
    pub fn at_number(&self) -> bool {
        self.peek().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit()))
    }

    /// Whether the next token is a name.
    #[must_use]
    pub fn at_name(&self) -> bool {
        self.peek().is_some_and(is_name)
    }

    /// Takes a given token if it is next.
    pub fn accept(&mut self, word: &str) -> bool {
        let found = self.peek() == Some(word);
        self.next += usize::from(found);
        found
    }

    /// Takes a given token.
    ///
    /// # Errors
    /// The next token is a different one.
    pub fn symbol(&mut self, symbol: &str) -> Result<(), Refusal> {
        match self.take() {
            Some(word) if word == symbol => Ok(()),
            Some(word) => Err(Refusal::new(format!("expected `{symbol}`, found `{word}`"))),
            None => Err(Refusal::new(format!("expected `{symbol}`, but the line ends"))),
        }
    }

    /// Takes names until another token.
    pub fn names(&mut self) -> Vec<String> {
        let mut names = Vec::new();
        while self.at_name() {
            names.extend(self.take().map(str::to_owned));
        }
        names
    }

    /// Checks that the line ends.
    ///
    /// # Errors
    /// Tokens remain.
    pub fn end(&mut self) -> Result<(), Refusal> {
        match self.take() {
            None => Ok(()),
            Some(word) => {
                Err(Refusal::new(format!("expected the end of the line, found `{word}`")))
            }
        }
    }
}

/// A loop name without its suffix marks, and the number of marks.
pub(crate) fn without_marks(name: &str) -> (&str, usize) {
    let plain = name.trim_end_matches(OUTER);
    (plain, name.len() - plain.len())
}

/// Names may begin with a digit, like those of tensors, but a number is not a name.
fn is_name(word: &str) -> bool {
    word.contains(|c: char| c.is_alphabetic() || c == '_')
}
