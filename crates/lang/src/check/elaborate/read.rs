//! Elaborates tensor reads, and checks that a tensor has a value.

use super::Elaborator;
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::{Expr, Int, Symbol, Tensor, Ty};
use crate::source::Span;
use crate::syntax::ast::{self, ExprKind, Ident};

impl<'a> Elaborator<'_, 'a> {
    /// Elaborates a read, and checks that the tensor has a value.
    pub(super) fn read(
        &mut self,
        symbol: Symbol,
        name_span: Span,
        span: Span,
        args: &'a [ast::Expr],
    ) -> Option<(Expr, Ty)> {
        let is_target = self.target.is_some_and(|(target, _)| target == symbol);
        let is_own = is_target && self.recurrence.is_some();
        // A self-read of a recurrence does not count as a use.
        self.scope.used[symbol.0 as usize] |= !is_own;
        let tensor = self.scope.tensor(symbol).clone();
        if args.len() != tensor.rank {
            let is_bare = args.is_empty() && self.subscript_depth > 0;
            // A name taken for an index variable is one in all its uses.
            if is_bare && !self.scope.unknown.insert(tensor.name.clone()) {
                return None;
            }
            let mut diagnostic = wrong_rank(&tensor, name_span, span, args.len());
            if is_bare {
                diagnostic = diagnostic.note(format!(
                    "if an index variable is meant, give it another name, for example `{}`",
                    self.scope.free_name(&tensor.name)
                ));
            }
            self.report(diagnostic);
            return None;
        }
        if is_own {
            self.read_of_itself(&tensor.name, span, args)?;
        } else {
            self.read_has_value(symbol, name_span)?;
            if let Some((_, indices)) = self.target.filter(|_| is_target) {
                self.read_of_target(&tensor.name, indices, span, args)?;
            }
        }
        let subscripts: Vec<Option<Int>> = args.iter().map(|arg| self.subscript(arg)).collect();
        let subscripts = subscripts.into_iter().collect::<Option<Vec<Int>>>()?;
        Some((Expr::Read(symbol, subscripts, span), Ty::Typed(tensor.dtype)))
    }

    /// A tensor without a value may be read if it is a result: the caller supplies it.
    pub(super) fn read_has_value(&mut self, symbol: Symbol, span: Span) -> Option<()> {
        if self.scope.is_assigned(symbol) {
            return Some(());
        }
        let name = self.scope.tensor(symbol).name.clone();
        let reads_itself = self.target.is_some_and(|(target, _)| target == symbol);
        if reads_itself && self.scope.is_result(&name) {
            self.scope.tensors[symbol.0 as usize].updated = true;
            return Some(());
        }
        if reads_itself {
            let message = format!("`{name}` is read before it is computed");
            self.report(
                Diagnostic::new(Code::UsedBeforeDefined, span, message)
                    .here("it has no value yet")
                    .help(format!("give `{name}` a first value in a statement before this one")),
            );
            return None;
        }
        let target = self.target.map(|(target, _)| self.scope.tensor(target).name.as_str());
        let diagnostic = self.scope.read_too_early(symbol, span, target.as_slice());
        self.report(diagnostic);
        // Its type follows from an operand that has none yet.
        self.scope.tainted.extend(self.target.map(|(target, _)| target));
        None
    }

    /// A subscript.
    pub(in crate::check) fn subscript(&mut self, expr: &'a ast::Expr) -> Option<Int> {
        self.subscript_depth += 1;
        let subscript = self.int(expr);
        self.subscript_depth -= 1;
        subscript
    }

    /// Rejects reads of the target inside subscripts.
    pub(super) fn outside_subscripts(&mut self, name: &str, span: Span) -> Option<()> {
        if self.subscript_depth == 0 {
            return Some(());
        }
        let message = format!("a subscript depends on `{name}`, which this statement writes");
        self.report(
            Diagnostic::new(Code::SubscriptReadsTarget, span, message)
                .here("read inside a subscript")
                .help("copy the indices to another tensor in a statement before this one"),
        );
        None
    }

    /// The paper's rule for in-place updates (section 3): only element by element, and never
    /// inside a subscript.
    fn read_of_target(
        &mut self,
        name: &str,
        indices: &[Ident],
        span: Span,
        args: &[ast::Expr],
    ) -> Option<()> {
        let left: Vec<&str> = indices.iter().map(|index| index.name.as_str()).collect();
        self.outside_subscripts(name, span)?;
        let same = args
            .iter()
            .zip(&left)
            .all(|(arg, index)| matches!(&arg.kind, ExprKind::Name(name) if name == index));
        if same {
            return Some(());
        }
        let message =
            format!("this update of `{name}` reads elements that it may have overwritten already");
        self.report(
            Diagnostic::new(Code::NotCausal, span, message)
                .here(format!("reads another element than `{name}({})`", left.join(", ")))
                .help(format!(
                    "an update in place may read only `{name}({})`; write the result to a new tensor",
                    left.join(", ")
                ))
                .note(
                    "a statement reads all of its right side before it writes; a recurrence, in \
                     which one element is computed from another, says so: `... scan t from 0`",
                ),
        );
        None
    }
}

fn wrong_rank(tensor: &Tensor, name: Span, span: Span, found: usize) -> Diagnostic {
    let (plural, rank) = (if tensor.rank == 1 { "" } else { "s" }, tensor.rank);
    if found == 0 && rank > 0 && name == span {
        let message = format!("`{}` is a tensor and needs subscripts here", tensor.name);
        return Diagnostic::new(Code::TensorWithoutSubscripts, span, message)
            .here(format!("it has {rank} dimension{plural}"))
            .label(tensor.span, "declared here")
            .help(format!("read one element: `{}({})`", tensor.name, sample_indices(rank)));
    }
    if rank == 0 {
        let message = format!("`{}` is a scalar and has no dimensions", tensor.name);
        return Diagnostic::new(Code::NotATensor, span, message)
            .here("subscripts on a scalar")
            .label(tensor.span, "declared here")
            .help(format!("write `{}` alone", tensor.name));
    }
    let verb = if found == 1 { "is" } else { "are" };
    let message = format!(
        "`{}` has {rank} dimension{plural}, and {found} subscript{} {verb} given",
        tensor.name,
        if found == 1 { "" } else { "s" },
    );
    Diagnostic::new(Code::WrongRank, span, message)
        .here(format!("{found} given"))
        .label(tensor.span, format!("declared with {rank} dimension{plural}"))
}

fn sample_indices(rank: usize) -> String {
    let names = ["i", "j", "k", "l"];
    let indices: Vec<String> = (0..rank)
        .map(|d| names.get(d).map_or_else(|| format!("i{d}"), |n| (*n).to_owned()))
        .collect();
    indices.join(", ")
}
