//! Finds the sizes on which ranges depend nonlinearly.
//!
//! ```text
//! y(i) = ... where i in 0:(N + 3) / 4      N: in steps
//! y(i) = ... where i in 0:min(N, 1000)     N: up to a point
//! y(i) = x(i) + x(i + k)                   none: limits from subscripts are linear, except for strides
//! ```
//!
//! Shapes known for a few sizes can be extrapolated in all other sizes.

use std::collections::BTreeSet;

use crate::hir::{Comprehension, Def, Dim, Int, SizeId, Stmt};
use crate::ops::ArithOp;

/// The sizes of a definition that occur in a quotient, a remainder, a minimum or a maximum of a
/// range: all of them, if a callee has one.
pub(crate) fn nonlinear(defs: &[Option<Def>], def: &Def) -> BTreeSet<SizeId> {
    let (mut seen, mut open) = (BTreeSet::new(), callees(def));
    while let Some(number) = open.pop() {
        let Some(callee) = defs.get(number).and_then(Option::as_ref) else { continue };
        if seen.insert(number) {
            if !of_statements(callee).is_empty() {
                return all(def).collect();
            }
            open.extend(callees(callee));
        }
    }
    of_statements(def)
}

fn all(def: &Def) -> impl Iterator<Item = SizeId> + use<> {
    (0..def.sizes.len() as u32).map(SizeId)
}

fn callees(def: &Def) -> Vec<usize> {
    let call = |stmt: &Stmt| match stmt {
        Stmt::Call(call) => Some(call.callee),
        Stmt::Comprehension(_) => None,
    };
    def.body.iter().filter_map(call).collect()
}

/// The nonlinear sizes of the definition's own statements.
fn of_statements(def: &Def) -> BTreeSet<SizeId> {
    let mut found = BTreeSet::new();
    for stmt in &def.body {
        let Stmt::Comprehension(Comprehension { vars, .. }) = stmt else { continue };
        for (lo, hi, _) in vars.iter().filter_map(|var| var.range.as_ref()) {
            collect(def, lo, false, &mut found);
            collect(def, hi, false, &mut found);
        }
    }
    found
}

/// Adds the sizes inside nonlinear operations of an expression.
fn collect(def: &Def, int: &Int, is_within: bool, found: &mut BTreeSet<SizeId>) {
    match int {
        Int::Size(size) if is_within => {
            found.insert(*size);
        }
        Int::DimOf(tensor, dim) if is_within => {
            let dims = &def.tensors[tensor.0 as usize].dims;
            match dims.get(*dim as usize) {
                Some(Dim::Size(size)) => {
                    found.insert(*size);
                }
                Some(Dim::Literal(_)) => {}
                // The extent of a computed tensor may depend on any size.
                None => found.extend(all(def)),
            }
        }
        Int::Arith(op, lhs, rhs, _) => {
            let is_within = is_within || matches!(op, ArithOp::Div | ArithOp::Rem);
            collect(def, lhs, is_within, found);
            collect(def, rhs, is_within, found);
        }
        Int::Min(lhs, rhs) | Int::Max(lhs, rhs) => {
            collect(def, lhs, true, found);
            collect(def, rhs, true, found);
        }
        Int::Value(_) => found.extend(all(def)),
        Int::Literal(_) | Int::Size(_) | Int::DimOf(..) | Int::Var(_) | Int::Scalar(..) => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::Module;

    fn nonlinear(text: &str) -> String {
        let module = Module::parse("t.tc", text).unwrap();
        let def = module.defs().last().unwrap();
        def.nonlinear_sizes().join(" ")
    }

    #[test]
    fn sizes_within_quotients_and_extrema_are_found() {
        let of = |range: &str| {
            nonlinear(&format!(
                "def f(float(N,M,K) x) -> (y) {{ y(i) = x(0,0,0) where i in {range} }}"
            ))
        };
        assert_eq!(of("0:N+2*M-K"), "");
        assert_eq!(of("0:N*M"), "");
        assert_eq!(of("0:(N+3)/4*4+M"), "N");
        assert_eq!(of("0:min(N, 1000)+M"), "N");
        assert_eq!(of("0:max(N, M)"), "N M");
        assert_eq!(of("N%2:N+K"), "N");
        // Callers probe the linearity of subscripts.
        assert_eq!(nonlinear("def f(float(N) x) -> (y) { y(i) = x(2*i) }"), "");
    }

    #[test]
    fn what_is_called_counts() {
        let halve = "def halve(float(N) x) -> (y) { y(i) = x(i) where i in 0:(N+1)/2 }\n";
        let calls = "def f(float(A) x, float(B) z) -> (y) { y = halve(x) }";
        assert_eq!(nonlinear(&format!("{halve}{calls}")), "A B");
        let other = "def g(float(A) x) -> (y) { y(i) = x(i) }";
        assert_eq!(nonlinear(&format!("{halve}{other}")), "");
    }
}
