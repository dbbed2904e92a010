//! The words of a line of a schedule.

use crate::refusal::Refusal;

/// What follows the name of a loop, once for each loop of that name inside of it that is not meant.
pub(crate) const OUTER: char = '\'';

/// A range of bytes of the text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ByteRange {
    /// The first byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// The words of a line, to be taken one after the other.
///
/// A word is a name (letters, digits, `_` and `.`, and `'` behind them), a number, or one of `:`, `->`, `[`, `]`, `,`,
/// `/`, `%`.
#[derive(Debug)]
pub struct Words<'a> {
    words: Vec<(&'a str, ByteRange)>,
    next: usize,
    end: ByteRange,
}

impl<'a> Words<'a> {
    /// The words of a line that begins at byte `start` of its text.
    ///
    /// # Errors
    /// A character that no word has, and where it is.
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

    /// The whole line without the space around it.
    #[must_use]
    pub fn span(&self) -> ByteRange {
        let start = self.words.first().map_or(self.end.start, |(_, span)| span.start);
        ByteRange { start, end: self.end.end }
    }

    /// The word that was taken last, or the end of the line.
    #[must_use]
    pub fn last_span(&self) -> ByteRange {
        let taken = self.next.checked_sub(1).and_then(|last| self.words.get(last));
        taken.map_or(self.end, |(_, span)| *span)
    }

    /// The next word, which stays.
    #[must_use]
    pub fn peek(&self) -> Option<&'a str> {
        self.words.get(self.next).map(|(word, _)| *word)
    }

    /// Takes the next word; past the last one, the end of the line is what errors point at.
    pub fn take(&mut self) -> Option<&'a str> {
        let word = self.peek();
        self.next += 1;
        word
    }

    /// Takes a name; `what` says what it names.
    ///
    /// # Errors
    /// Something else stands there.
    pub fn name(&mut self, what: &str) -> Result<String, Refusal> {
        match self.take() {
            Some(word) if is_name(word) => Ok(word.to_owned()),
            Some(word) => Err(Refusal::new(format!("expected {what}, found `{word}`"))),
            None => Err(Refusal::new(format!("expected {what}, but the line ends"))),
        }
    }

    /// Takes a positive number; `what` says of what.
    ///
    /// # Errors
    /// Something else stands there.
    pub fn number(&mut self, what: &str) -> Result<i64, Refusal> {
        let word = self.take();
        let wrong = || {
            let found = word.map_or("the end of the line".to_owned(), |word| format!("`{word}`"));
            Refusal::new(format!("expected {what}, a number from 1 to 2147483647, found {found}"))
        };
        let number: i64 = word.and_then(|word| word.parse().ok()).ok_or_else(wrong)?;
        if (1..=i64::from(i32::MAX)).contains(&number) { Ok(number) } else { Err(wrong()) }
    }

    /// Whether the next word is a number.
    #[must_use]
    pub fn at_number(&self) -> bool {
        self.peek().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit()))
    }

    /// Whether the next word is a name.
    #[must_use]
    pub fn at_name(&self) -> bool {
        self.peek().is_some_and(is_name)
    }

    /// Takes a certain word if it is next.
    pub fn accept(&mut self, word: &str) -> bool {
        let found = self.peek() == Some(word);
        self.next += usize::from(found);
        found
    }

    /// Takes a certain word.
    ///
    /// # Errors
    /// Something else stands there.
    pub fn symbol(&mut self, symbol: &str) -> Result<(), Refusal> {
        match self.take() {
            Some(word) if word == symbol => Ok(()),
            Some(word) => Err(Refusal::new(format!("expected `{symbol}`, found `{word}`"))),
            None => Err(Refusal::new(format!("expected `{symbol}`, but the line ends"))),
        }
    }

    /// Takes names until something else comes.
    pub fn names(&mut self) -> Vec<String> {
        let mut names = Vec::new();
        while self.at_name() {
            names.extend(self.take().map(str::to_owned));
        }
        names
    }

    /// Checks that the line ends here.
    ///
    /// # Errors
    /// Something follows.
    pub fn end(&mut self) -> Result<(), Refusal> {
        match self.take() {
            None => Ok(()),
            Some(word) => {
                Err(Refusal::new(format!("expected the end of the line, found `{word}`")))
            }
        }
    }
}

/// The name of a loop without what says that an outer one is meant, and how many loops of that name lie inside.
pub(crate) fn without_marks(name: &str) -> (&str, usize) {
    let plain = name.trim_end_matches(OUTER);
    (plain, name.len() - plain.len())
}

/// Names may begin with a digit, as those of tensors may; but a number is no name.
fn is_name(word: &str) -> bool {
    word.contains(|c: char| c.is_alphabetic() || c == '_')
}
