//! Call inlining, generic over statements.
//!
//! The checker's definitions, which programs are bound from, and the syntax tree, which gradients
//! are built from, share it.
//!
//! The walk and the meaning of calls are here; the caller renames names in statements.

use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;

/// The most statements after inlining.
pub const MAX_STATEMENTS: usize = 20_000;

/// A definition being inlined.
#[derive(Debug)]
pub struct Frame<'d, D, N> {
    /// The definition.
    pub def: &'d D,
    /// The substitution for its names; `None` for the outermost definition.
    pub names: Option<N>,
    next: usize,
}

impl<'d, D, N> Frame<'d, D, N> {
    /// A frame for a callee.
    pub fn called(def: &'d D, names: N) -> Self {
        Self { def, names: Some(names), next: 0 }
    }
}

/// Walks over the statements of a definition and its callees in execution order, without recursion:
/// a text may have calls thousands deep. `visit` copies a statement or returns the frame of a
/// callee.
///
/// # Errors
/// The statement of the outermost definition that exceeded [`MAX_STATEMENTS`].
pub fn walk<'d, D, S, N>(
    root: &'d D,
    body: impl Fn(&'d D) -> &'d [S],
    mut visit: impl FnMut(&Frame<'d, D, N>, &'d S) -> Option<Frame<'d, D, N>>,
) -> Result<(), &'d S> {
    let mut frames = vec![Frame { def: root, names: None, next: 0 }];
    let mut outermost = None;
    let mut copied = 0;
    while let Some(frame) = frames.last_mut() {
        let Some(stmt) = body(frame.def).get(frame.next) else {
            frames.pop();
            continue;
        };
        frame.next += 1;
        let called = visit(frame, stmt);
        if frames.len() == 1 {
            outermost = Some(stmt);
        }
        match called {
            Some(callee) => frames.push(callee),
            None => copied += 1,
        }
        if copied.max(frames.len()) > MAX_STATEMENTS {
            return outermost.map_or(Ok(()), Err);
        }
    }
    Ok(())
}

/// The error for a definition that expands to too many statements.
#[must_use]
pub fn too_long(def: &str, span: Span) -> Diagnostic {
    let message = format!("calls in `{def}` expand to more than {MAX_STATEMENTS} statements");
    Diagnostic::new(Code::ProgramTooLong, span, message)
        .here("too many from here on")
        .help("split it into programs that are run one after the other")
}

/// The argument of a callee's parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Binding<T, N> {
    /// A tensor of the outermost definition, or of another callee.
    Tensor(T),
    /// A number for a scalar.
    Number(N),
}

/// The meaning of a callee's tensor.
#[derive(Debug, Clone, PartialEq)]
pub enum CalleeTensor<T, N> {
    /// The argument, or the target of the call.
    Given(Binding<T, N>),
    /// The target of the call, initialized from another tensor: the callee updates its argument.
    Updated {
        /// The target.
        target: T,
        /// The argument.
        source: T,
    },
    /// A local tensor of the callee.
    Own,
}

/// The meaning of a callee's tensor, from the argument if it is a parameter and the target if it is
/// a result.
#[must_use]
pub fn meaning<T: PartialEq, N>(
    argument: Option<Binding<T, N>>,
    target: Option<T>,
) -> CalleeTensor<T, N> {
    match (argument, target) {
        (Some(Binding::Tensor(source)), Some(target)) if source != target => {
            CalleeTensor::Updated { target, source }
        }
        (Some(argument), _) => CalleeTensor::Given(argument),
        (None, Some(target)) => CalleeTensor::Given(Binding::Tensor(target)),
        (None, None) => CalleeTensor::Own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Statements: a number is copied, and a name is called.
    enum Stmt {
        Copy(u32),
        Call(usize),
    }

    fn copied(defs: &[Vec<Stmt>], root: usize) -> Result<Vec<u32>, usize> {
        let mut copies = Vec::new();
        let walked = walk(
            &defs[root],
            |def| def.as_slice(),
            |frame, stmt| match stmt {
                Stmt::Copy(number) => {
                    copies.push(number + frame.names.unwrap_or(0));
                    None
                }
                Stmt::Call(callee) => {
                    Some(Frame::called(&defs[*callee], frame.names.unwrap_or(0) + 100))
                }
            },
        );
        match walked {
            Ok(()) => Ok(copies),
            Err(at) => Err(defs[root].iter().position(|stmt| std::ptr::eq(stmt, at)).unwrap()),
        }
    }

    #[test]
    fn callees_stand_where_they_are_called() {
        let inner = vec![Stmt::Copy(1)];
        let middle = vec![Stmt::Copy(2), Stmt::Call(0), Stmt::Copy(3)];
        let outer = vec![Stmt::Call(1), Stmt::Copy(4), Stmt::Call(0)];
        assert_eq!(copied(&[inner, middle, outer], 2).unwrap(), [102, 201, 103, 4, 101]);
    }

    #[test]
    fn what_expands_to_too_much_is_refused_where_the_outermost_definition_calls_it() {
        let mut defs = vec![vec![Stmt::Copy(1)]];
        defs.extend((0..20).map(|callee| vec![Stmt::Call(callee), Stmt::Call(callee)]));
        defs.push(vec![Stmt::Copy(0), Stmt::Call(20)]);
        assert_eq!(copied(&defs, 21), Err(1));
        assert_eq!(copied(&defs, 10).unwrap().len(), 1 << 10);
        let deep: Vec<Vec<Stmt>> =
            (0..=MAX_STATEMENTS).map(|def| vec![Stmt::Call(def + 1)]).collect();
        assert_eq!(copied(&deep, 0), Err(0));
    }

    #[test]
    fn arguments_and_targets_decide_what_a_tensor_stands_for() {
        let tensor = |name| Some(Binding::<_, f64>::Tensor(name));
        let updated = CalleeTensor::Updated { target: "C", source: "A" };
        assert_eq!(meaning(tensor("A"), Some("C")), updated);
        assert_eq!(meaning(tensor("C"), Some("C")), CalleeTensor::Given(Binding::Tensor("C")));
        assert_eq!(meaning(tensor("A"), None), CalleeTensor::Given(Binding::Tensor("A")));
        let two = Binding::Number(2.0);
        assert_eq!(meaning(Some(two.clone()), Some("C")), CalleeTensor::Given(two));
        assert_eq!(meaning::<_, f64>(None, Some("C")), CalleeTensor::Given(Binding::Tensor("C")));
        assert_eq!(meaning::<&str, f64>(None, None), CalleeTensor::Own);
    }
}
