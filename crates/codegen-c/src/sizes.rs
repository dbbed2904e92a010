//! Prints functions of sizes for the functions that callers use, in C and Rust.
//!
//! Arithmetic that fits 64 bits for all sizes is written as is. Other arithmetic uses functions
//! that note in `tw_lost`, or return an error, where a result does not fit.

use tensorwright_lang::dtype::DType;
use tensorwright_lang::program::Interval;
use tensorwright_schedule::Interface;
use tensorwright_schedule::interface::{Argument, Condition, Formula, Number, Part};
use tensorwright_schedule::nest::MAX_BYTES;
use tensorwright_schedule::workspace::ALIGNMENT;

use crate::index::{Summand, sum};
use crate::text::{Binding, Text};

/// The language of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    C,
    Rust,
}

/// A function of sizes, and its values.
struct Value {
    text: Text,
    range: Interval,
}

/// The sizes of an interface, with their names.
#[derive(Debug)]
pub(crate) struct Sizes<'a> {
    pub(crate) interface: &'a Interface,
    /// The names of the sizes that vary, in order.
    pub(crate) names: Vec<String>,
    pub(crate) language: Language,
}

impl Sizes<'_> {
    /// Whether sizes vary.
    pub(crate) fn vary(&self) -> bool {
        self.interface.is_sized()
    }

    /// The numbers that are sizes, with their positions.
    fn sizes(&self) -> impl Iterator<Item = (usize, &Number)> {
        let is_size = |(_, number): &(usize, &Number)| matches!(number, Number::Size { .. });
        self.interface.numbers.iter().enumerate().filter(is_size)
    }

    /// The extents of a parameter, which may be functions of sizes.
    pub(crate) fn extents(&self, argument: &Argument<'_>) -> Vec<String> {
        match argument {
            Argument::Passed(parameter) if !parameter.extents.is_empty() => {
                parameter.extents.iter().map(|e| self.text(e).into_code()).collect()
            }
            _ => argument.shape().iter().map(i64::to_string).collect(),
        }
    }

    /// The position of the stride of a number among those that callers pass: all dimensions but the
    /// last, in the order of the signature. `None` if the number is no stride.
    pub(crate) fn stride(&self, number: &Number) -> Option<usize> {
        let Number::Stride { parameter, dimension } = number else { return None };
        let parameter = Argument::Passed(self.interface.parameters.get(*parameter)?);
        let signature = self.interface.signature();
        let before = signature.iter().take_while(|argument| **argument != parameter);
        let outer = before.map(|argument| argument.shape().len().saturating_sub(1));
        Some(outer.sum::<usize>() + dimension)
    }

    /// The name of a size, by the position of its number.
    fn name(&self, position: usize) -> &str {
        let place = self.sizes().position(|(number, _)| number == position);
        place.and_then(|place| self.names.get(place)).map_or("0", String::as_str)
    }

    /// The parameters of a C function.
    pub(crate) fn parameters(&self) -> Vec<String> {
        self.names.iter().map(|name| format!("int64_t {name}")).collect()
    }

    /// A description of the sizes, one per line.
    pub(crate) fn legend(&self, start: &str) -> String {
        let mut text = String::new();
        for (position, number) in self.sizes() {
            let Number::Size { least, most, multiple, .. } = number else { continue };
            text += &format!("{start}{}: {least} to {most}", self.name(position));
            if *multiple > 1 {
                text += &format!(", a multiple of {multiple}");
            }
            text.push('\n');
        }
        text
    }

    /// The conditions on sizes as text.
    pub(crate) fn conditions(&self) -> Vec<&str> {
        let mut all: Vec<&str> =
            self.interface.conditions.iter().map(|c| c.text.as_str()).collect();
        all.dedup();
        all
    }

    /// The comparisons that sizes have to satisfy. Their arithmetic may set `tw_lost`, or return an
    /// error.
    pub(crate) fn requirements(&self) -> Vec<String> {
        let mut all = Vec::new();
        for (position, number) in self.sizes() {
            let Number::Size { least, most, multiple, .. } = number else { continue };
            let name = self.name(position);
            let [least, most, multiple] =
                [*least, *most, *multiple].map(|number| self.integer(number.into()).into_code());
            all.push(format!("{name} >= {least}"));
            all.push(format!("{name} <= {most}"));
            if multiple != "1" {
                all.push(format!("{name} % {multiple} == 0"));
            }
        }
        all.extend(self.interface.conditions.iter().map(|condition| self.comparison(condition)));
        all
    }

    /// A condition, as a comparison of its positive with its negative terms.
    fn comparison(&self, condition: &Condition) -> String {
        let side = |sign: i64| {
            let terms = condition.formula.terms.iter().filter(|(times, _)| times.signum() == sign);
            let terms = terms.map(|(times, part)| (times.saturating_abs(), part.clone()));
            let constant = condition.formula.constant;
            let constant = if constant.signum() == sign { constant.saturating_abs() } else { 0 };
            self.text(&Formula::new(terms, constant))
        };
        Text::binary(side(1), ">=", side(-1), Binding::Comparison).into_code()
    }

    /// A function of sizes. Its arithmetic may set `tw_lost`, or return an error.
    pub(crate) fn text(&self, formula: &Formula) -> Text {
        self.value(formula).text
    }

    /// The value of a run-time number.
    pub(crate) fn number_text(&self, position: usize) -> String {
        self.number(position).text.into_code()
    }

    fn value(&self, formula: &Formula) -> Value {
        let mut terms: Vec<(bool, Value)> = Vec::new();
        for (times, part) in &formula.terms {
            terms.push(self.term(*times, part));
        }
        if formula.constant != 0 {
            let magnitude = formula.constant.unsigned_abs();
            let value = Value {
                text: self.integer(magnitude.into()),
                range: Interval::point(magnitude.into()),
            };
            terms.push((formula.constant < 0, value));
        }
        // Positive terms first.
        terms.sort_by_key(|(negative, _)| *negative);
        let magnitude = |value: &Value| value.range.magnitude();
        let total =
            terms.iter().fold(0, |all: i128, (_, value)| all.saturating_add(magnitude(value)));
        let range = terms.iter().fold(Interval::point(0), |all, (negative, value)| {
            all.plus(if *negative { value.range.scale(-1) } else { value.range })
        });
        let text = match total <= i128::from(i64::MAX) {
            true => sum(terms
                .into_iter()
                .map(|(negative, Value { text, .. })| Summand { negative, text })
                .collect()),
            false => self.checked_sum(terms),
        };
        Value { text, range: in_64_bits(range) }
    }

    fn checked_sum(&self, terms: Vec<(bool, Value)>) -> Text {
        let mut text: Option<Text> = None;
        for (negative, Value { text: term, .. }) in terms {
            let term = match negative {
                true => self.call("times", term, Text::primary("-1")),
                false => term,
            };
            text = Some(match text {
                Some(text) => self.call("plus", text, term),
                None => term,
            });
        }
        text.unwrap_or_else(|| Text::primary("0"))
    }

    fn call(&self, function: &str, a: Text, b: Text) -> Text {
        match self.language {
            Language::C => Text::call(
                &format!("{}_{function}", self.interface.symbol),
                [a, b, Text::primary("&tw_lost")],
            ),
            Language::Rust => {
                let call = Text::call(function, [a, b]).into_code();
                Text::primary(format!("{call}?"))
            }
        }
    }

    /// The absolute value of a multiple, and whether it is subtracted.
    fn term(&self, times: i64, part: &Part) -> (bool, Value) {
        if let Part::Number(position) = part
            && let Some(Number::Size { least, most, multiple, .. }) =
                self.interface.numbers.get(*position)
            && times % multiple == 0
        {
            // The size itself, and not the number that the kernel gets.
            let value =
                Value { text: Text::primary(self.name(*position)), range: interval(*least, *most) };
            return (
                times < 0,
                self.times(self.constant((times / multiple).saturating_abs()), value),
            );
        }
        (times < 0, self.times(self.constant(times.saturating_abs()), self.part(part)))
    }

    /// A product, as a call where it may not fit 64 bits.
    fn times(&self, a: Value, b: Value) -> Value {
        let range = a.range.times(b.range);
        let text = match range.is_64_bit() {
            _ if a.range == Interval::point(1) => b.text,
            true => Text::binary(a.text, "*", b.text, Binding::Product),
            false => self.call("times", a.text, b.text),
        };
        Value { text, range: in_64_bits(range) }
    }

    /// A sum, as a call where it may not fit 64 bits.
    fn plus(&self, a: Value, b: Value) -> Value {
        let range = a.range.plus(b.range);
        let text = match range.is_64_bit() {
            _ if a.range == Interval::point(0) => b.text,
            _ if b.range == Interval::point(0) => a.text,
            true => Text::binary(a.text, "+", b.text, Binding::Sum),
            false => self.call("plus", a.text, b.text),
        };
        Value { text, range: in_64_bits(range) }
    }

    /// The end of a buffer in the workspace, rounded up.
    fn end(&self, start: &Formula, bytes: i64, extents: &[Formula]) -> Value {
        let size = extents.iter().map(|extent| self.value(extent));
        let size = size.fold(self.constant(bytes), |size, extent| self.times(size, extent));
        let above = self.plus(self.plus(self.value(start), size), self.constant(ALIGNMENT - 1));
        let (by, alignment) = (i128::from(ALIGNMENT), || self.integer(ALIGNMENT.into()));
        let text = Text::binary(above.text, "/", alignment(), Binding::Product);
        let text = Text::binary(text, "*", alignment(), Binding::Product);
        Value { text, range: above.range.floor_div(by).scale(by) }
    }

    /// The statements that return the size of the workspace. In C, it is for `workers`, and -2 if it
    /// is too large; in Rust, it is for the calling thread.
    pub(crate) fn workspace(&self) -> String {
        let (mut text, mut last) = (String::new(), self.constant(0));
        let declaration = match self.language {
            Language::C => "const int64_t",
            Language::Rust => "let",
        };
        for (position, number) in self.interface.numbers.iter().enumerate() {
            let Number::End { start, bytes, extents } = number else { continue };
            let end = self.end(start, *bytes, extents).text.into_code();
            text += &format!("    {declaration} {} = {end};\n", self.end_name(position));
            last = self.number(position);
        }
        let workspace = self.interface.workspace;
        let mut all = self.plus(self.constant(workspace.shared_bytes), last);
        if workspace.private_bytes > 0 {
            let private = self.times(self.constant(workspace.private_bytes), self.workers());
            all = self.plus(all, private);
        }
        match self.language {
            Language::C => limited(text, all),
            Language::Rust => text + &format!("    Ok({})\n", all.text.into_code()),
        }
    }

    /// The number of workers.
    fn workers(&self) -> Value {
        match self.language {
            Language::C => {
                let text = Text::primary("(workers > 1 ? workers : 1)");
                Value { text: Text::cast("int64_t", text), range: interval(1, i32::MAX.into()) }
            }
            Language::Rust => self.constant(1),
        }
    }

    /// A constant that is at least zero.
    fn constant(&self, value: i64) -> Value {
        Value { text: self.integer(value.into()), range: interval(value, value) }
    }

    fn integer(&self, value: i128) -> Text {
        Text::primary(match i32::try_from(value) {
            Err(_) if self.language == Language::C => format!("INT64_C({value})"),
            _ => value.to_string(),
        })
    }

    fn end_name(&self, position: usize) -> String {
        let is_end = |number: &&Number| matches!(number, Number::End { .. });
        let before = self.interface.numbers.iter().take(position).filter(is_end);
        format!("tw_end{}", before.count())
    }

    fn part(&self, part: &Part) -> Value {
        match part {
            Part::Number(position) => self.number(*position),
            Part::Div(inner, by) => {
                let Value { text, range } = self.value(inner);
                let (by, divisor) = (i128::from(*by), self.integer((*by).into()));
                let text = match self.language {
                    _ if range.lo >= 0 => Text::binary(text, "/", divisor, Binding::Product),
                    Language::Rust => Text::call("i64::div_euclid", [text, divisor]),
                    Language::C => floored(text, divisor),
                };
                Value { text, range: range.floor_div(by.max(1)) }
            }
            Part::Mod(inner, by) => {
                let Value { text, range } = self.value(inner);
                let (by, divisor) = (i128::from(*by), self.integer((*by).into()));
                let remainder = |text| Text::binary(text, "%", divisor.clone(), Binding::Product);
                let text = match self.language {
                    _ if range.lo >= 0 => remainder(text),
                    Language::Rust => Text::call("i64::rem_euclid", [text, divisor]),
                    Language::C => {
                        let above = remainder(text);
                        remainder(Text::binary(above, "+", divisor.clone(), Binding::Sum))
                    }
                };
                Value { text, range: Interval { lo: 0, hi: by - 1 } }
            }
            Part::Min(a, b) => self.extreme(a, "<", b, Interval::least),
            Part::Max(a, b) => self.extreme(a, ">", b, Interval::greatest),
            Part::Product(inner, factor) => self.times(self.value(inner), self.number(*factor)),
        }
    }

    fn extreme(
        &self,
        a: &Formula,
        symbol: &str,
        b: &Formula,
        of: impl Fn(Interval, Interval) -> Interval,
    ) -> Value {
        let (a, b) = (self.value(a), self.value(b));
        if self.language == Language::Rust {
            let function = if symbol == "<" { "i64::min" } else { "i64::max" };
            return Value {
                text: Text::call(function, [a.text, b.text]),
                range: of(a.range, b.range),
            };
        }
        let test = Text::binary(a.text.clone(), symbol, b.text.clone(), Binding::Comparison);
        let (test, x, y) = (test.into_code(), a.text.at(Binding::Or), b.text.at(Binding::Or));
        let text = Text::new(format!("{test} ? {x} : {y}"), Binding::Conditional);
        Value { text, range: of(a.range, b.range) }
    }

    /// The value of a run-time number.
    fn number(&self, position: usize) -> Value {
        match self.interface.numbers.get(position) {
            Some(Number::Size { least, most, multiple, .. }) => {
                let name = Text::primary(self.name(position));
                let text = match multiple {
                    1 => name,
                    _ => {
                        Text::binary(name, "/", self.integer((*multiple).into()), Binding::Product)
                    }
                };
                Value { text, range: interval(least / multiple, most / multiple) }
            }
            Some(Number::End { start, bytes, extents }) => {
                let text = Text::primary(self.end_name(position));
                Value { text, range: self.end(start, *bytes, extents).range }
            }
            // No extent depends on these; there would be no call that fits.
            Some(Number::Stride { .. } | Number::Computed) | None => {
                let most = match self.language {
                    Language::C => "INT64_MAX",
                    Language::Rust => "i64::MAX",
                };
                let text = self.call("plus", Text::primary(most), self.integer(1));
                Value { text, range: Interval::of_type(DType::Int64) }
            }
        }
    }
}

/// Values that were computed, or of which it was noted that they do not fit.
fn in_64_bits(range: Interval) -> Interval {
    let (lo, hi) = (i128::from(i64::MIN), i128::from(i64::MAX));
    Interval { lo: range.lo.clamp(lo, hi), hi: range.hi.clamp(lo, hi) }
}

fn interval(lo: i64, hi: i64) -> Interval {
    Interval { lo: lo.into(), hi: hi.into() }
}

/// Adds statements that return a number of bytes, or -2 if it is too large.
fn limited(before: String, Value { text, range }: Value) -> String {
    let text = text.into_code();
    if range.hi <= i128::from(MAX_BYTES) {
        return before + &format!("    return {text};\n");
    }
    let all = before + &format!("    const int64_t tw_bytes = {text};\n");
    let lost = if all.contains("tw_lost") { "tw_lost || " } else { "" };
    all + &format!("    return {lost}tw_bytes > INT64_C({MAX_BYTES}) ? -2 : tw_bytes;\n")
}

/// A quotient in C, rounded down.
fn floored(dividend: Text, divisor: Text) -> Text {
    let remainder = Text::binary(dividend.clone(), "%", divisor.clone(), Binding::Product);
    let quotient = Text::binary(dividend, "/", divisor, Binding::Product);
    let is_below = Text::binary(remainder, "<", Text::primary("0"), Binding::Comparison);
    Text::binary(quotient, "-", is_below, Binding::Sum)
}
