//! Text building: expressions with operator precedence, and indented lines.

/// The precedence of the outermost operator, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Binding {
    /// `c ? a : b`
    Conditional,
    /// `a || b`
    Or,
    /// `a && b`
    And,
    /// `a < b`, `a == b`; and `!a`, because compilers warn about it in a comparison.
    Comparison,
    /// `a + b`
    Sum,
    /// `a * b`
    Product,
    /// `-a`, `(type)a`
    Unary,
    /// A name, a constant, a call, an element.
    Primary,
}

/// An expression as text.
#[derive(Debug, Clone)]
pub(crate) struct Text {
    code: String,
    binding: Binding,
}

impl Text {
    pub(crate) fn new(code: impl Into<String>, binding: Binding) -> Self {
        Self { code: code.into(), binding }
    }

    /// A name, a constant, a call or an element.
    pub(crate) fn primary(code: impl Into<String>) -> Self {
        Self::new(code, Binding::Primary)
    }

    /// A call of a function.
    pub(crate) fn call(function: &str, args: impl IntoIterator<Item = Text>) -> Self {
        let args: Vec<String> = args.into_iter().map(|arg| arg.code).collect();
        Self::primary(format!("{function}({})", args.join(", ")))
    }

    /// A conversion.
    pub(crate) fn cast(ctype: &str, operand: Text) -> Self {
        Self::new(format!("({ctype}){}", operand.at(Binding::Unary)), Binding::Unary)
    }

    /// A left-associative binary operator.
    pub(crate) fn binary(lhs: Text, symbol: &str, rhs: Text, binding: Binding) -> Self {
        // Comparisons do not chain; parentheses avoid warnings.
        let (left, right) = match binding {
            Binding::Comparison => (Binding::Sum, Binding::Sum),
            Binding::Or => (Binding::Comparison, Binding::Comparison),
            Binding::And => (Binding::And, Binding::Comparison),
            Binding::Sum => (Binding::Sum, Binding::Product),
            _ => (Binding::Product, Binding::Unary),
        };
        Self::new(format!("{} {symbol} {}", lhs.at(left), rhs.at(right)), binding)
    }

    /// The text, in parentheses if its operator binds less strongly.
    pub(crate) fn at(self, least: Binding) -> String {
        if self.binding < least { format!("({})", self.code) } else { self.code }
    }

    /// The text without parentheses.
    pub(crate) fn code(&self) -> &str {
        &self.code
    }

    /// The text without parentheses.
    pub(crate) fn into_code(self) -> String {
        self.code
    }
}

/// A position between lines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InsertPoint {
    at: usize,
    depth: usize,
}

/// Indented lines.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    text: String,
    depth: usize,
}

impl Lines {
    /// Appends a line.
    pub(crate) fn line(&mut self, line: impl AsRef<str>) {
        let line = line.as_ref();
        if !line.is_empty() {
            self.text.extend(std::iter::repeat_n("    ", self.depth));
            self.text.push_str(line);
        }
        self.text.push('\n');
    }

    /// Appends a line that opens a block.
    pub(crate) fn open(&mut self, line: &str) {
        self.line(format!("{line} {{").trim_start());
        self.depth += 1;
    }

    /// Closes the block.
    pub(crate) fn close(&mut self) {
        self.close_with("}");
    }

    /// Closes the block with something after the brace.
    pub(crate) fn close_with(&mut self, line: &str) {
        self.depth = self.depth.saturating_sub(1);
        self.line(line);
    }

    /// The position of the next line.
    pub(crate) fn here(&self) -> InsertPoint {
        InsertPoint { at: self.text.len(), depth: self.depth }
    }

    /// Whether the text after a position mentions a name.
    pub(crate) fn mentions(&self, place: InsertPoint, name: &str) -> bool {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let mut words = self.text.get(place.at..).unwrap_or_default().split(|c| !is_word(c));
        words.any(|word| word == name)
    }

    /// Inserts a line at a position if the text after it mentions a name.
    pub(crate) fn declare(&mut self, place: InsertPoint, name: &str, line: &str) {
        if self.mentions(place, name) {
            let indent = "    ".repeat(place.depth);
            self.text.insert_str(place.at, &format!("{indent}{line}\n"));
        }
    }

    /// The whole text.
    pub(crate) fn into_text(self) -> String {
        self.text
    }
}
