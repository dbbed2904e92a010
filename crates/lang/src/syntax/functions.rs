//! Expands user-defined scalar functions and those of the prelude.
//!
//! [`expand`] replaces uses of `fn silu(x) = x * sigmoid(x)` by its body, so later passes do not
//! see functions:
//!
//! ```text
//! y(i) = silu(x(i) + 1)    becomes    y(i) = (x(i) + 1) * sigmoid(x(i) + 1)
//! ```
//!
//! A function is untyped: each use is checked with the types of its arguments. A definition's
//! tensor names hide functions, and functions of the text hide those of the prelude.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::argmax;
use super::ast::{Def, Expr, ExprKind, Function, Ident, MAX_DEPTH, Module, Stmt};
use super::print::print_function;
use crate::builtin::{Builtin, CONSTANTS};
use crate::diagnostic::{Code, Diagnostic, nearest};
use crate::dtype::DType;
use crate::source::{Source, Span};

/// The functions available in every text.
pub const PRELUDE: &str = "\
fn relu(x) = max(x, 0)
fn gelu(x) = 0.5 * x * (1 + erf(x * 0.7071067811865476))
fn gelu_tanh(x) = 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))
fn silu(x) = x * sigmoid(x)
fn softplus(x) = (x > 0 ? x : 0) + log1p(exp(x > 0 ? -x : x))
fn select(condition, a, b) = condition ? a : b
";

/// The most nodes of all expansions of a text.
const MAX_NODES: usize = 1 << 20;

/// The functions of the prelude.
pub fn prelude() -> &'static [Function] {
    static FUNCTIONS: LazyLock<Vec<Function>> =
        LazyLock::new(|| super::parse(&Source::new("prelude", PRELUDE)).0.functions);
    &FUNCTIONS
}

/// The result of expanding the functions of a text.
#[derive(Debug, Default)]
pub struct Expansion {
    /// The errors in functions.
    pub diagnostics: Vec<Diagnostic>,
    /// The spans of uses, and the function used. An expansion has the span of the use, except for
    /// its arguments.
    pub uses: HashMap<Span, String>,
}

impl Expansion {
    /// Adds the function's name to a diagnostic inside an expansion, and drops its fix, which would
    /// apply to the function and not to its use.
    pub fn explain(&self, diagnostic: &mut Diagnostic) {
        if let Some(definition) = diagnostic.span().and_then(|span| self.uses.get(&span)) {
            diagnostic.fix = None;
            diagnostic.notes.push(format!("this stands for `{definition}`"));
        }
    }
}

/// Expands the functions and the `argmax=!` statements in the definitions of a text.
pub fn expand(module: &mut Module) -> Expansion {
    let mut expander = Expander::default();
    let defs: HashSet<&str> = module.defs.iter().map(|def| def.name.name.as_str()).collect();
    for function in prelude().iter().filter(|it| !defs.contains(it.name.name.as_str())) {
        expander.define(function);
    }
    expander.prelude_is_over = true;
    for function in &module.functions {
        if expander.is_new(function, &module.defs) {
            expander.names(function, &module.functions);
            expander.define(function);
        }
    }
    for def in &mut module.defs {
        expander.def(def);
        argmax::expand(def, &mut expander.expansion.diagnostics);
    }
    expander.expansion
}

/// A function whose body is fully expanded.
struct ExpandedFunction {
    params: Vec<String>,
    body: Expr,
    /// Its definition in source text.
    definition: String,
    span: Span,
    is_prelude: bool,
}

#[derive(Default)]
struct Expander {
    known: HashMap<String, ExpandedFunction>,
    expansion: Expansion,
    prelude_is_over: bool,
    nodes: usize,
}

impl Expander {
    fn report(&mut self, diagnostic: Diagnostic) {
        self.expansion.diagnostics.push(diagnostic);
    }

    /// Whether the name of a function is unique in the text.
    fn is_new(&mut self, function: &Function, defs: &[Def]) -> bool {
        let name = &function.name;
        let def = defs.iter().find(|def| def.name.name == name.name).map(|def| def.name.span);
        let earlier = self.known.get(&name.name).filter(|known| !known.is_prelude);
        let Some(first) = earlier.map(|known| known.span).or(def) else { return true };
        let message = format!("there are two definitions of the name `{}`", name.name);
        self.report(
            Diagnostic::new(Code::DuplicateDef, name.span, message)
                .here("a function here")
                .label(first, "and here")
                .help("give one of them another name"),
        );
        false
    }

    /// Reports names in a function that are not its parameters.
    fn names(&mut self, function: &Function, all: &[Function]) {
        for (number, param) in function.params.iter().enumerate() {
            if let Some(first) = function.params[..number].iter().find(|it| it.name == param.name) {
                let message = format!("there are two parameters of the name `{}`", param.name);
                self.report(
                    Diagnostic::new(Code::DuplicateParameter, param.span, message)
                        .here("again here")
                        .label(first.span, "first here"),
                );
            }
        }
        let mut open = vec![&function.body];
        while let Some(expr) = open.pop() {
            open.extend(expr.operands());
            let problem = match &expr.kind {
                ExprKind::Name(name) => self.unknown_name(function, name, expr.span),
                ExprKind::DimOf(tensor, _) => Some(no_tensor(tensor)),
                ExprKind::Apply(callee, _) => self.unknown_function(function, callee, all),
                _ => None,
            };
            if let Some(problem) = problem {
                self.report(problem);
            }
        }
    }

    fn unknown_name(&self, function: &Function, name: &str, span: Span) -> Option<Diagnostic> {
        let is_constant = CONSTANTS.iter().any(|(constant, _)| *constant == name);
        if is_constant || function.params.iter().any(|param| param.name == name) {
            return None;
        }
        let message =
            format!("`{name}` is not a parameter of the function `{}`", function.name.name);
        let diagnostic = Diagnostic::new(Code::UnknownName, span, message).here("not known here");
        let params = function.params.iter().map(|param| param.name.as_str());
        Some(match nearest(name, params) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")).fix(span, near),
            None => diagnostic.help("a function sees its parameters alone: pass it as an argument"),
        })
    }

    fn unknown_function(
        &self,
        function: &Function,
        callee: &Ident,
        all: &[Function],
    ) -> Option<Diagnostic> {
        let name = callee.name.as_str();
        if name == function.name.name {
            let message = format!("the function `{name}` calls itself");
            let diagnostic = Diagnostic::new(Code::RecursiveCall, callee.span, message);
            return Some(diagnostic.here("functions are expanded at their uses"));
        }
        let is_known = self.known.contains_key(name)
            || Builtin::from_name(name).is_some()
            || DType::from_name(name).is_some();
        if is_known {
            return None;
        }
        if let Some(later) = all.iter().find(|other| other.name.name == name) {
            let message = format!("the function `{name}` is used before it is defined");
            return Some(
                Diagnostic::new(Code::UsedBeforeDefined, callee.span, message)
                    .here("used here")
                    .label(later.name.span, "defined here")
                    .help(format!("move `fn {name}` up, before `fn {}`", function.name.name)),
            );
        }
        if function.params.iter().any(|param| param.name == name) {
            let message = format!("the parameter `{name}` is a number and has no subscripts");
            return Some(
                Diagnostic::new(Code::NotATensor, callee.span, message)
                    .here("a function takes numbers, not tensors")
                    .help(format!(
                        "write `{name}` alone, and pass an element: `{}(A(i))`",
                        function.name.name
                    )),
            );
        }
        let message = format!("there is no function `{name}`");
        let diagnostic =
            Diagnostic::new(Code::UnknownFunction, callee.span, message).here("not known");
        let known = self.known.keys().map(String::as_str);
        let known = known.chain(Builtin::ALL.iter().map(|builtin| builtin.name()));
        Some(match nearest(name, known) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")).fix(callee.span, near),
            None => {
                diagnostic.help("a function sees its parameters and other functions, no tensors")
            }
        })
    }

    fn define(&mut self, function: &Function) {
        let mut body = function.body.clone();
        self.expr(&mut body, &HashSet::new());
        let known = ExpandedFunction {
            params: function.params.iter().map(|param| param.name.clone()).collect(),
            body,
            definition: print_function(function).trim_end().to_owned(),
            span: function.name.span,
            is_prelude: !self.prelude_is_over,
        };
        self.known.insert(function.name.name.clone(), known);
    }

    fn def(&mut self, def: &mut Def) {
        let params = def.params.iter().map(|param| &param.name);
        let targets = def.body.iter().flat_map(|stmt| match stmt {
            Stmt::Comprehension(stmt) => std::slice::from_ref(&stmt.target),
            Stmt::Call(call) => call.targets.as_slice(),
        });
        let tensors: HashSet<String> =
            params.chain(targets).chain(&def.returns).map(|ident| ident.name.clone()).collect();
        for stmt in &mut def.body {
            match stmt {
                Stmt::Comprehension(stmt) => {
                    self.expr(&mut stmt.rhs, &tensors);
                    stmt.scan.iter_mut().for_each(|scan| self.expr(&mut scan.start, &tensors));
                    stmt.scatter.iter_mut().for_each(|it| self.expr(&mut it.at, &tensors));
                    for range in &mut stmt.constraints {
                        self.expr(&mut range.lo, &tensors);
                        self.expr(&mut range.hi, &tensors);
                    }
                }
                Stmt::Call(call) => {
                    call.args.iter_mut().for_each(|arg| self.expr(arg, &tensors));
                }
            }
        }
    }

    /// Expands operands first, so that bodies are never visited again.
    fn expr(&mut self, expr: &mut Expr, tensors: &HashSet<String>) {
        expr.operands_mut().into_iter().for_each(|operand| self.expr(operand, tensors));
        let ExprKind::Apply(callee, args) = &expr.kind else { return };
        if tensors.contains(&callee.name) {
            return;
        }
        let Some(known) = self.known.get(&callee.name) else { return };
        let problem = if known.params.len() != args.len() {
            Some(argument_count(callee, known, args.len()))
        } else {
            let size = expanded_size(known, args);
            self.nodes = self.nodes.saturating_add(size);
            if self.nodes > MAX_NODES {
                Some(too_much(callee))
            } else if expanded_height(known, args) > MAX_DEPTH {
                Some(too_deep(callee))
            } else {
                None
            }
        };
        if let Some(problem) = problem {
            if !self.expansion.diagnostics.iter().any(|it| it.code == Code::ProgramTooLong) {
                self.report(problem);
            }
            return;
        }
        let span = expr.span;
        self.expansion.uses.insert(span, known.definition.clone());
        *expr = substituted(&known.body, &known.params, args, span);
    }
}

fn no_tensor(tensor: &Ident) -> Diagnostic {
    let message = format!("a function knows no tensor `{}`", tensor.name);
    Diagnostic::new(Code::UnknownName, tensor.span, message)
        .here("not known here")
        .help("a function sees its parameters alone: pass the size as an argument")
}

fn argument_count(callee: &Ident, known: &ExpandedFunction, found: usize) -> Diagnostic {
    let expected = known.params.len();
    let plural = if expected == 1 { "" } else { "s" };
    let verb = if found == 1 { "is" } else { "are" };
    let message =
        format!("`{}` takes {expected} argument{plural}, and {found} {verb} given", callee.name);
    Diagnostic::new(Code::WrongArgumentCount, callee.span, message)
        .here(format!("takes {expected} argument{plural}"))
        .note(format!("it is `{}`", known.definition))
}

fn too_much(callee: &Ident) -> Diagnostic {
    let message = format!("the functions of this text expand to more than {MAX_NODES} terms");
    Diagnostic::new(Code::ProgramTooLong, callee.span, message)
        .here("the limit is reached here")
        .help("a parameter that is used twice doubles its argument: compute the argument in a statement of its own")
}

fn too_deep(callee: &Ident) -> Diagnostic {
    let message = format!("this expression nests more than {MAX_DEPTH} levels deep");
    Diagnostic::new(Code::NestingTooDeep, callee.span, message)
        .here("after this function is expanded")
        .help("split it into stages: compute a part of it in a statement of its own")
}

fn size(expr: &Expr) -> usize {
    let mut nodes = 0usize;
    let mut open = vec![expr];
    while let Some(expr) = open.pop() {
        nodes += 1;
        open.extend(expr.operands());
    }
    nodes
}

fn height(expr: &Expr) -> usize {
    1 + expr.operands().into_iter().map(height).max().unwrap_or(0)
}

fn param_number(expr: &Expr, params: &[String]) -> Option<usize> {
    match &expr.kind {
        ExprKind::Name(name) => params.iter().position(|param| param == name),
        _ => None,
    }
}

fn expanded_size(known: &ExpandedFunction, args: &[Expr]) -> usize {
    let sizes: Vec<usize> = args.iter().map(size).collect();
    let mut nodes = 0usize;
    let mut open = vec![&known.body];
    while let Some(expr) = open.pop() {
        let arg = param_number(expr, &known.params).and_then(|number| sizes.get(number));
        nodes = nodes.saturating_add(arg.copied().unwrap_or(1));
        open.extend(expr.operands());
    }
    nodes
}

fn expanded_height(known: &ExpandedFunction, args: &[Expr]) -> usize {
    let heights: Vec<usize> = args.iter().map(height).collect();
    fn of(expr: &Expr, params: &[String], heights: &[usize]) -> usize {
        match param_number(expr, params).and_then(|number| heights.get(number)) {
            Some(height) => *height,
            None => {
                let operands = expr.operands().into_iter();
                1 + operands.map(|operand| of(operand, params, heights)).max().unwrap_or(0)
            }
        }
    }
    of(&known.body, &known.params, &heights)
}

/// Substitutes arguments for parameters. Everything except the arguments gets the span of the use.
fn substituted(body: &Expr, params: &[String], args: &[Expr], span: Span) -> Expr {
    if let Some(arg) = param_number(body, params).and_then(|number| args.get(number)) {
        return arg.clone();
    }
    let with = |operand: &Expr| substituted(operand, params, args, span);
    let boxed = |operand: &Expr| Box::new(with(operand));
    let kind = match &body.kind {
        ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Bool(_)
        | ExprKind::Name(_)
        | ExprKind::DimOf(..) => body.kind.clone(),
        ExprKind::Apply(callee, args) => {
            let callee = Ident { name: callee.name.clone(), span };
            ExprKind::Apply(callee, args.iter().map(with).collect())
        }
        ExprKind::Unary(op, a) => ExprKind::Unary(*op, boxed(a)),
        ExprKind::Arith(op, a, b) => ExprKind::Arith(*op, boxed(a), boxed(b)),
        ExprKind::Compare(op, a, b) => ExprKind::Compare(*op, boxed(a), boxed(b)),
        ExprKind::Logic(op, a, b) => ExprKind::Logic(*op, boxed(a), boxed(b)),
        ExprKind::Select(c, a, b) => ExprKind::Select(boxed(c), boxed(a), boxed(b)),
    };
    Expr { kind, span }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::{parse, print_expr, print_module};

    fn expanded(text: &str) -> (String, Vec<String>) {
        let (mut module, errors) = parse(&Source::new("f.tc", text));
        assert!(errors.is_empty(), "{errors:?}");
        let expansion = expand(&mut module);
        module.functions.clear();
        (print_module(&module), expansion.diagnostics.into_iter().map(|it| it.message).collect())
    }

    fn body(functions: &str, expr: &str) -> String {
        let (text, errors) =
            expanded(&format!("{functions}\ndef f(float(N) A) -> (B) {{ B(i) = {expr} }}"));
        assert_eq!(errors, Vec::<String>::new());
        text.lines().nth(1).unwrap_or_default().trim().to_owned()
    }

    #[test]
    fn uses_are_replaced_inside_out_and_names_do_not_clash() {
        assert_eq!(body("fn twice(x) = 2 * x", "twice(A(i) + 1)"), "B(i) = 2 * (A(i) + 1)");
        assert_eq!(body("fn f1(x, y) = x - y", "f1(f1(A(i), 1), 2)"), "B(i) = A(i) - 1 - 2");
        // `i` in the function is its parameter, `i` in the statement an index variable.
        assert_eq!(body("fn g(i) = i * i", "g(A(i))"), "B(i) = A(i) * A(i)");
        assert_eq!(body("fn g(x, i) = i - x", "g(i, A(i))"), "B(i) = A(i) - i");
        assert_eq!(body("fn a(x) = x + 1 fn b(x) = 2 * a(x)", "b(A(i))"), "B(i) = 2 * (A(i) + 1)");
        assert_eq!(body("", "relu(A(i))"), "B(i) = max(A(i), 0)");
    }

    #[test]
    fn names_of_the_text_hide_the_prelude() {
        assert_eq!(body("fn relu(x) = x", "relu(A(i))"), "B(i) = A(i)");
        let (text, errors) = expanded(
            "def f(float(N) relu) -> (B) { B(i) = relu(i) } def gelu(float(N) A) -> (B) { B(i) = gelu(A(i)) }",
        );
        assert!(
            errors.is_empty() && text.contains("relu(i)") && text.contains("gelu(A(i))"),
            "{text}"
        );
    }

    #[test]
    fn what_expands_without_end_is_refused() {
        let mut text = "fn f0(x) = x + x\n".to_owned();
        for number in 1..60 {
            text += &format!("fn f{number}(x) = f{}(f{}(x))\n", number - 1, number - 1);
        }
        let (_, errors) = expanded(&text);
        assert!(errors.iter().any(|it| it.contains("expand to more than") || it.contains("nests")));
        let wide = "fn p(x) = x * x * x * x\ndef f(float(N) A) -> (B) { B(i) = p(p(p(p(p(p(p(p(p(p(p(A(i)))))))))))) }";
        let (_, errors) = expanded(wide);
        assert_eq!(errors, ["the functions of this text expand to more than 1048576 terms"]);
    }

    #[test]
    fn the_prelude_has_no_mistakes() {
        let (module, errors) = parse(&Source::new("prelude", PRELUDE));
        assert!(errors.is_empty());
        assert_eq!(module.functions.iter().map(print_function).collect::<String>(), PRELUDE);
        for function in &module.functions {
            let mut expander = Expander::default();
            expander.names(function, &module.functions);
            assert!(expander.expansion.diagnostics.is_empty(), "{}", print_expr(&function.body));
        }
    }
}
