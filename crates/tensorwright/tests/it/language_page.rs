//! Runs every example of `docs/language.md`, to keep the reference page correct.
//!
//! The info string of a fenced block says what must happen to its program:
//!
//! | info string                     | the program                                               |
//! | ------------------------------- | --------------------------------------------------------- |
//! | `tc`                            | checks without errors and warnings                        |
//! | `tc warning=W0903`              | checks, with exactly this warning                         |
//! | `tc error=E0301`                | is refused, with exactly this code                        |
//! | `tc bind=f M=4,K=5`             | binds; a `text` block right after it shows the ranges     |
//! | `tc bind=f M=4 error=E0604`     | checks, and binding is refused with exactly this code     |
//! | `tc run=f N=3`                  | runs; `# A = 1 2 3` is an input, `# -> C = 4 5 6` a result |
//! | `tc run=f N=3 error=E0805`      | binds, and running is refused with exactly this code      |
//!
//! All blocks are tried before the test fails, and each failure names its line.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use tensorwright_lang::builtin::{Builtin, CONSTANTS};
use tensorwright_lang::diagnostic::{Code, Diagnostic, Diagnostics, Severity};
use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::{ArithOp, AssignOp, CompareOp, LogicOp, ReductionOp, UnaryOp};
use tensorwright_lang::program::{Axis, AxisKind, RangeReason, Read, Stage, Tensor};
use tensorwright_lang::source::{MAX_SOURCE_BYTES, Source};
use tensorwright_lang::syntax::ast::MAX_DEPTH;
use tensorwright_lang::syntax::{parse, prelude};
use tensorwright_lang::{Module, Program};
use tensorwright_random::SplitMix;
use tensorwright_reference::{Buffer, Value};

const PAGE: &str = include_str!("../../../../docs/language.md");

/// A fenced block of the page.
struct Block {
    /// The line of its opening fence, from 1.
    line: usize,
    info: String,
    text: String,
    /// Whether nothing but blank lines stands between it and the block before.
    follows_block: bool,
}

impl Block {
    fn language(&self) -> &str {
        self.info.split_whitespace().next().unwrap_or_default()
    }
}

fn blocks() -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut open: Option<Block> = None;
    let mut follows_block = false;
    for (number, line) in PAGE.lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => {
                found.extend(open.take());
                follows_block = true;
            }
            (Some(info), None) => {
                let (info, text) = (info.to_owned(), String::new());
                open = Some(Block { line: number + 1, info, text, follows_block });
            }
            (None, Some(block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => follows_block &= line.trim().is_empty(),
        }
    }
    assert!(open.is_none(), "the last block of the page is never closed");
    found
}

/// What the info string of a `tc` block asks for.
#[derive(Default)]
struct Request {
    bind: Option<String>,
    run: bool,
    error: Option<String>,
    warning: Option<String>,
    sizes: Vec<(String, i64)>,
}

fn request(info: &str) -> Result<Request, String> {
    let mut request = Request::default();
    for word in info.split_whitespace().skip(1) {
        for pair in word.split(',') {
            let (key, value) = pair.split_once('=').ok_or(format!("`{pair}` is not key=value"))?;
            match key {
                "bind" => request.bind = Some(value.to_owned()),
                "run" => (request.bind, request.run) = (Some(value.to_owned()), true),
                "error" => request.error = Some(value.to_owned()),
                "warning" => request.warning = Some(value.to_owned()),
                size => {
                    let value = value.parse().map_err(|_| format!("`{pair}` is not a size"))?;
                    request.sizes.push((size.to_owned(), value));
                }
            }
        }
    }
    Ok(request)
}

/// The result of a step that may be the one that is to fail. `Ok(None)`: it failed as it should.
fn outcome<T>(
    result: Result<T, Diagnostics>,
    error: Option<&str>,
    step: &str,
) -> Result<Option<T>, String> {
    match (result, error) {
        (Ok(_), Some(code)) => Err(format!("{step} ought to fail with {code}, and does not")),
        (Ok(value), None) => Ok(Some(value)),
        (Err(diagnostics), None) => Err(format!("{step}:\n{}", diagnostics.render(false))),
        (Err(diagnostics), Some(code)) => {
            let errors = diagnostics.list().iter().filter(|d| d.severity() == Severity::Error);
            let found: BTreeSet<&str> = errors.map(|d| d.code.id()).collect();
            if found == BTreeSet::from([code]) {
                return Ok(None);
            }
            Err(format!("expected {code}, found {found:?}:\n{}", diagnostics.render(false)))
        }
    }
}

/// Does with a `tc` block what its info string says; `ranges` is the `text` block after it.
fn check(block: &Block, ranges: Option<&str>) -> Result<(), String> {
    let request = request(&block.info)?;
    let error = request.error.as_deref();
    let Some(def) = &request.bind else {
        let module = outcome(Module::parse("page.tc", &block.text), error, "the check")?;
        return module.map_or(Ok(()), |module| warnings(&module, request.warning.as_deref()));
    };
    let module = Module::parse("page.tc", &block.text).map_err(|d| d.render(false))?;
    warnings(&module, request.warning.as_deref())?;
    let bound = module.def(def).and_then(|def| def.bind(request.sizes));
    let Some(program) = outcome(bound, error.filter(|_| !request.run), "binding")? else {
        return Ok(());
    };
    if request.run {
        run(&program, &block.text, error)?;
    }
    match ranges.map(str::trim) {
        Some(expected) if expected != ranges_text(&program) => {
            Err(format!("the ranges are\n{}\nand not\n{expected}", ranges_text(&program)))
        }
        _ => Ok(()),
    }
}

fn warnings(module: &Module, expected: Option<&str>) -> Result<(), String> {
    let warnings = module.warnings();
    let found: Vec<&str> = warnings.list().iter().map(|d| d.code.id()).collect();
    if found == Vec::from_iter(expected) {
        return Ok(());
    }
    Err(format!("expected the warnings {expected:?}:\n{}", warnings.render(false)))
}

/// The ranges of a program as the page shows them: `C: m 0:4 @1, n 0:6 @1 | k 0:5 @1`.
fn ranges_text(program: &Program) -> String {
    let lines: Vec<String> =
        program.stages.iter().map(|stage| stage_text(program, stage)).collect();
    lines.join("\n")
}

fn stage_text(program: &Program, stage: &Stage) -> String {
    let axes =
        |kind| -> Vec<String> { stage.axes_of(kind).map(|(_, axis)| axis_text(axis)).collect() };
    let mut text = format!("{}:", program.tensor(stage.output).name);
    for (separator, list) in [(" ", axes(AxisKind::Spatial)), (" | ", axes(AxisKind::Reduce))] {
        if !list.is_empty() {
            text += separator;
            text += &list.join(", ");
        }
    }
    let mut checked = BTreeSet::new();
    let mut look = |read: &Read| {
        let name = &program.tensor(read.tensor).name;
        checked.extend(read.checked.iter().map(|dimension| format!("{name}.{dimension}")));
    };
    stage.body.walk_reads(&mut |read| look(read));
    look(&stage.element());
    if !checked.is_empty() {
        text += "; checked ";
        text += &Vec::from_iter(checked).join(", ");
    }
    text
}

fn axis_text(axis: &Axis) -> String {
    let origin = match &axis.reason {
        RangeReason::Where { .. } => "where".to_owned(),
        RangeReason::Access { round, .. } => round.to_string(),
    };
    format!("{} {}:{} @{origin}", axis.name, axis.lo, axis.hi)
}

/// Runs a program on the inputs in the comments of its text, and compares with the results there.
fn run(program: &Program, text: &str, error: Option<&str>) -> Result<(), String> {
    let mut inputs = BTreeMap::new();
    for (name, values) in comments(text, "# ") {
        let tensor = program.tensors[..program.inputs].iter().find(|tensor| tensor.name == name);
        if let Some(tensor) = tensor {
            inputs.insert(name.to_owned(), buffer(tensor, values)?);
        }
    }
    let run = tensorwright_reference::run(program, &inputs)
        .map_err(|failure: Diagnostic| Diagnostics::new(program.source.clone(), vec![failure]));
    let Some(run) = outcome(run, error, "the run")? else { return Ok(()) };
    let mut compared = 0;
    for (name, values) in comments(text, "# -> ") {
        let output = run.output(name).ok_or(format!("there is no result `{name}`"))?;
        let id = program.outputs.iter().find(|id| program.tensor(**id).name == name);
        let id = id.ok_or(format!("there is no result `{name}`"))?;
        let expected = buffer(program.tensor(*id), values)?;
        let pairs = output.buffer.values().zip(expected.values());
        if pairs.map(|(a, b)| a.distance(b)).any(|distance| distance != 0.0) {
            let found: Vec<String> = output.buffer.values().map(|v| v.to_string()).collect();
            return Err(format!("`{name}` is {} and not {values}", found.join(" ")));
        }
        compared += 1;
    }
    if compared == program.outputs.len() {
        return Ok(());
    }
    Err(format!("{compared} of {} results are shown", program.outputs.len()))
}

/// The comments `<prefix>name = values` of a text.
fn comments<'t>(text: &'t str, prefix: &str) -> impl Iterator<Item = (&'t str, &'t str)> {
    text.lines().filter_map(move |line| {
        let (name, values) = line.trim().strip_prefix(prefix)?.split_once(" = ")?;
        (!name.contains(' ')).then_some((name, values))
    })
}

fn buffer(tensor: &Tensor, values: &str) -> Result<Buffer, String> {
    let values: Vec<Value> = values
        .split_whitespace()
        .map(|text| value(tensor.dtype, text))
        .collect::<Result<_, _>>()?;
    if values.len() as i64 != tensor.elements() {
        let (found, needed) = (values.len(), tensor.elements());
        return Err(format!("`{}` has {needed} elements, and {found} are given", tensor.name));
    }
    let mut buffer =
        Buffer::zeros(tensor.dtype, &tensor.shape).map_err(|error| error.to_string())?;
    for (position, value) in values.into_iter().enumerate() {
        buffer.set(position, value);
    }
    Ok(buffer)
}

fn value(dtype: DType, text: &str) -> Result<Value, String> {
    let bad = || format!("`{text}` is not a `{dtype}`");
    if dtype.is_float() {
        return Ok(Value::Float(text.parse().map_err(|_| bad())?).convert(dtype));
    }
    match text {
        "true" => Ok(Value::Integer(1)),
        "false" => Ok(Value::Integer(0)),
        _ => Ok(Value::Integer(text.parse().map_err(|_| bad())?)),
    }
}

#[test]
fn every_example_does_what_the_page_says() {
    let blocks = blocks();
    let mut failures = Vec::new();
    let mut examples = 0;
    for (number, block) in blocks.iter().enumerate() {
        let result = match block.language() {
            "tc" => {
                examples += 1;
                let next = blocks.get(number + 1);
                let ranges = next.filter(|next| next.follows_block && next.language() == "text");
                check(block, ranges.map(|ranges| ranges.text.as_str()))
            }
            "text" | "ebnf" => Ok(()),
            other => Err(format!("unknown language `{other}`")),
        };
        let failure = result.err();
        failures.extend(failure.map(|why| format!("language.md:{}: {why}", block.line)));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(examples > 50, "only {examples} examples were found");
}

#[test]
fn every_name_of_the_language_is_on_the_page() {
    let builtins = Builtin::ALL.iter().map(|builtin| builtin.name());
    let types = DType::ALL.into_iter().map(DType::name);
    let aliases = DType::ALIASES.into_iter().map(|(alias, _)| alias);
    let constants = CONSTANTS.into_iter().map(|(name, _)| name);
    let missing: Vec<&str> = builtins
        .chain(types)
        .chain(aliases)
        .chain(constants)
        .chain(prelude().iter().map(|function| function.name.name.as_str()))
        .filter(|name| !PAGE.contains(&format!("`{name}`")) && !PAGE.contains(&format!("`{name}(")))
        .collect();
    assert!(missing.is_empty(), "not on the page: {missing:?}");
}

#[test]
fn every_code_on_the_page_exists() {
    let known: BTreeSet<&str> = Code::ALL.iter().map(|code| code.id()).collect();
    let words = PAGE.split(|c: char| !c.is_ascii_alphanumeric());
    let is_code = |word: &&str| {
        let digits = word.strip_prefix(['E', 'W']).unwrap_or_default();
        digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let unknown: Vec<&str> = words.filter(is_code).filter(|code| !known.contains(code)).collect();
    assert!(unknown.is_empty(), "no such codes: {unknown:?}");
}

/// Every operator of the language, as text spells it.
fn operators() -> BTreeSet<&'static str> {
    use ReductionOp::{Max, Min, Product, Sum};
    let reductions = [Sum, Product, Min, Max].into_iter().flat_map(|op| {
        [true, false].map(|initialize| AssignOp::Reduce { op, initialize }.symbol())
    });
    let arithmetic = [ArithOp::Add, ArithOp::Sub, ArithOp::Mul, ArithOp::Div, ArithOp::Rem];
    let comparisons =
        [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge];
    reductions
        .chain(arithmetic.map(ArithOp::symbol))
        .chain(comparisons.map(CompareOp::symbol))
        .chain([LogicOp::And, LogicOp::Or].map(LogicOp::symbol))
        .chain([UnaryOp::Neg, UnaryOp::Not].map(UnaryOp::symbol))
        .chain(Builtin::ALL.iter().filter_map(|builtin| builtin.operator()))
        .chain([AssignOp::Assign.symbol(), "argmin=!", "argmax=!", "?", ":"])
        .collect()
}

#[test]
fn the_grammar_has_the_words_of_the_language_and_no_others() {
    let mut known = operators();
    known.extend([
        "def", "fn", "scan", "from", "scatter", "where", "in", "const", "true", "false", "concat",
    ]);
    known.extend(["(", ")", "{", "}", ",", ";", "->", "."]);
    known.extend(DType::ALL.into_iter().map(DType::name));
    known.extend(DType::ALIASES.into_iter().map(|(alias, _)| alias));
    let grammar = grammar_text();
    let terminals: BTreeSet<&str> = grammar.split('"').skip(1).step_by(2).collect();
    let unknown: Vec<_> = terminals.difference(&known).collect();
    let missing: Vec<_> = known.difference(&terminals).filter(|word| **word != "concat").collect();
    assert!(unknown.is_empty(), "terminals that the language does not have: {unknown:?}");
    assert!(missing.is_empty(), "words that the grammar does not have: {missing:?}");
}

fn grammar_text() -> String {
    blocks().iter().filter(|block| block.info == "ebnf").map(|block| block.text.as_str()).collect()
}

/// What stands on the right of a rule of the grammar: alternatives of sequences.
type Choice = Vec<Vec<Item>>;

enum Item {
    Terminal(String),
    Rule(String),
    Group(Choice),
    Optional(Choice),
    Repeated(Choice),
}

/// The words of the grammar, last one first; comments and the rules for single words are left out.
fn grammar_words() -> Vec<String> {
    let mut text = grammar_text();
    while let (Some(start), Some(end)) = (text.find("(*"), text.find("*)")) {
        text.replace_range(start..end + 2, "");
    }
    let rules = text.lines().filter(|line| !line.contains('?') || line.contains("\"?\""));
    let words = rules.flat_map(str::split_whitespace).map(str::to_owned);
    let mut words: Vec<String> = words.collect();
    words.reverse();
    words
}

/// Reads alternatives up to the bracket or `;` that ends them.
fn choice(words: &mut Vec<String>) -> Choice {
    let (mut alternatives, mut sequence) = (Vec::new(), Vec::new());
    while let Some(word) = words.pop() {
        let item = match word.as_str() {
            "|" => {
                alternatives.push(std::mem::take(&mut sequence));
                continue;
            }
            ")" | "]" | "}" | ";" => break,
            "(" => Item::Group(choice(words)),
            "[" => Item::Optional(choice(words)),
            "{" => Item::Repeated(choice(words)),
            word if word.starts_with('"') => Item::Terminal(word.trim_matches('"').to_owned()),
            word => Item::Rule(word.to_owned()),
        };
        sequence.push(item);
    }
    alternatives.push(sequence);
    alternatives
}

fn grammar() -> BTreeMap<String, Choice> {
    let mut words = grammar_words();
    let mut rules = BTreeMap::new();
    while let Some(name) = words.pop() {
        assert_eq!(words.pop().as_deref(), Some("="), "after `{name}` in the grammar");
        rules.insert(name, choice(&mut words));
    }
    rules
}

/// How many rules within rules a random text may have before it comes to an end.
const DEEP: usize = 32;

/// Writes random texts that the grammar allows.
struct Writer {
    rules: Rc<BTreeMap<String, Choice>>,
    random: SplitMix,
    text: String,
}

impl Writer {
    fn below(&mut self, end: usize) -> usize {
        self.random.index(end)
    }

    /// Writes one of the alternatives; deep down the shortest, so that texts end.
    fn choice(&mut self, choice: &Choice, depth: usize) {
        let shortest = choice.iter().min_by_key(|sequence| sequence.len());
        let any = &choice[self.below(choice.len())];
        for item in if depth > DEEP { shortest.unwrap_or(any) } else { any } {
            self.item(item, depth + 1);
        }
    }

    fn item(&mut self, item: &Item, depth: usize) {
        // Mostly none, so that texts stay small.
        let times = if depth > DEEP { 0 } else { self.below(6).saturating_sub(3) };
        match item {
            Item::Terminal(word) => self.word(word),
            Item::Rule(name) => self.rule(name, depth),
            Item::Group(choice) => self.choice(choice, depth),
            Item::Optional(choice) => {
                (0..times.min(1)).for_each(|_| self.choice(choice, depth));
            }
            Item::Repeated(choice) => (0..times).for_each(|_| self.choice(choice, depth)),
        }
    }

    fn rule(&mut self, name: &str, depth: usize) {
        let words: &[&str] = match name {
            "id" => &["A", "i", "2LUT", "in", "_x", "k1"],
            "integer" => &["0", "12", "0x1F", "3u"],
            "digits" => &["0", "1", "23"],
            "fraction" => &["1.5", ".5", "2.", "1e-3f"],
            "statement" => &["\n"],
            _ => &[],
        };
        if !words.is_empty() {
            let word = words[self.below(words.len())];
            self.word(word);
        }
        // The rules of single words are not among those that were read.
        let rules = Rc::clone(&self.rules);
        if let Some(choice) = rules.get(name) {
            self.choice(choice, depth);
        }
    }

    /// Writes a word and a blank; there is none around the `.` of `A.0`.
    fn word(&mut self, word: &str) {
        if word == "." {
            self.text.pop();
            self.text.push('.');
        } else {
            self.text.push_str(word);
            self.text.push(' ');
        }
    }
}

#[test]
fn the_parser_accepts_whatever_the_grammar_allows() {
    let rules = Rc::new(grammar());
    let mut longest = 0;
    for seed in 0..2000 {
        let random = SplitMix::new(seed);
        let mut writer = Writer { rules: Rc::clone(&rules), random, text: String::new() };
        writer.rule("module", 0);
        let (_, diagnostics) = parse(&Source::new("random.tc", &writer.text));
        longest = longest.max(writer.text.len());
        let first = diagnostics.first().map(|diagnostic| (diagnostic.code, &diagnostic.message));
        assert_eq!(first, None, "{}", writer.text);
    }
    assert!(longest > 1000, "the longest text has only {longest} bytes");
}

/// The codes of the errors of a text.
fn errors(text: &str) -> Vec<&'static str> {
    let diagnostics = Module::parse("limit.tc", text).err();
    let list = diagnostics.iter().flat_map(|diagnostics| diagnostics.list());
    list.filter(|d| d.severity() == Severity::Error).map(|d| d.code.id()).collect()
}

/// `s() = A + A + ... + A`, with so many operands.
fn chain(operands: usize) -> String {
    format!("def f(float A) -> (s) {{ s() = {} }}", vec!["A"; operands].join(" + "))
}

/// A statement with so many index variables.
fn variables(count: usize) -> String {
    let names: Vec<String> = (0..count).map(|i| format!("i{i}")).collect();
    let reads: Vec<String> = names.iter().map(|name| format!("A({name})")).collect();
    format!("def f(float(N) A) -> (s) {{ s() +=! {} }}", reads.join(" + "))
}

/// A `concat` of so many tensors.
fn parts(count: usize) -> String {
    format!("def f(float(N) A) -> (B) {{ B = concat({}) }}", vec!["A"; count].join(", "))
}

/// A `def` of ten statements and one that calls it so often.
fn statements(calls: usize) -> String {
    let ten: String = (1..10).map(|i| format!("t{i}(i) = t{}(i)\n", i - 1)).collect();
    let ten = format!("def ten(float(N) A) -> (t9) {{ t0(i) = A(i)\n{ten} }}\n");
    let calls: String = (1..=calls).map(|i| format!("x{i} = ten(x{})\n", i - 1)).collect();
    let last = calls.lines().count();
    format!("{ten} def f(float(N) x0) -> (x{last}) {{ {calls} }}")
}

#[test]
fn the_limits_are_those_of_the_page() {
    assert_eq!(errors(&chain(MAX_DEPTH)), [""; 0]);
    assert_eq!(errors(&chain(MAX_DEPTH + 1)), ["E0105"]);
    assert_eq!(errors(&variables(32)), [""; 0]);
    assert_eq!(errors(&variables(33)), ["E0217"]);
    assert_eq!(errors(&parts(64)), [""; 0]);
    assert_eq!(errors(&parts(65)), ["E0503"]);
    assert_eq!(errors(&statements(2000)), [""; 0]);
    assert_eq!(errors(&statements(2001)), ["E0507"]);
    assert_eq!(errors(&" ".repeat(MAX_SOURCE_BYTES + 1)), ["E0107"]);
    let mib = format!("{} MiB", MAX_SOURCE_BYTES >> 20);
    for limit in [format!("{MAX_DEPTH} levels"), mib, "20 000 statements".to_owned()] {
        assert!(PAGE.contains(&limit), "the page does not say `{limit}`");
    }
}
