//! Estimates the instructions of a nest after peeling, unrolling and vectorization.

use tensorwright_lang::builtin::Builtin;
use tensorwright_lang::dtype::DType;
use tensorwright_lang::program::{Atom, Expr, Index, Read, Term};

use super::parts::parts;
use super::{LoopKind, LoopNest, Node, Store, Var};

/// The elements of a vector register, for which one instruction is counted.
const REGISTER: u128 = 8;

/// The instructions of a call of the C library, which is made per lane.
const CALL: u128 = 8;

/// The operations of nodes.
pub(crate) fn operations(nest: &LoopNest, nodes: &[Node]) -> u128 {
    let at_once = Lanes { var: None, count: 1 };
    sum(nodes.iter().map(|node| of_node(nest, node, at_once)))
}

impl LoopNest {
    /// The approximate number of instructions of a store for one element.
    #[must_use]
    pub fn instructions(&self, store: &Store) -> u128 {
        of_store(self, store, Lanes { var: None, count: 1 })
    }
}

/// The lanes of a vectorized loop in a store.
#[derive(Clone, Copy)]
struct Lanes {
    var: Option<Var>,
    count: u128,
}

fn of_node(nest: &LoopNest, node: &Node, lanes: Lanes) -> u128 {
    match node {
        Node::Loop(l) => {
            let extent = u128::from(l.extent.max(0).unsigned_abs());
            let (copies, lanes) = match l.kind {
                LoopKind::Unrolled => (extent, lanes),
                LoopKind::Vectorized => (1, Lanes { var: Some(l.var), count: extent }),
                _ => (1, lanes),
            };
            // A peeled loop becomes a loop without its last iteration, and a copy of that
            // iteration.
            let copies = if l.peel { copies.saturating_mul(2) } else { copies };
            copies.saturating_mul(sum(l.body.iter().map(|node| of_node(nest, node, lanes))))
        }
        Node::Guard(guard) => sum(guard.body.iter().map(|node| of_node(nest, node, lanes))),
        Node::Store(store) => of_store(nest, store, lanes),
        Node::Barrier => 1,
        Node::Prefetch(prefetch) => 1 + sum(prefetch.subscripts.iter().map(of_index)),
    }
}

fn of_store(nest: &LoopNest, store: &Store, lanes: Lanes) -> u128 {
    let cost = Cost { nest, lanes };
    let place = match store.checked_element() {
        Some(element) => cost.read(&element),
        None => cost.access(&store.subscripts),
    };
    let value = cost.of(&store.value);
    let init = store.init.as_ref().map_or(0, |init| cost.of(init).saturating_add(place));
    let bounds = sum(store.domain.iter().map(|bound| 1 + of_index(&bound.index)));
    sum([place, value, init, bounds, cost.wide(1)])
}

/// The cost of expressions for a number of lanes.
struct Cost<'a> {
    nest: &'a LoopNest,
    lanes: Lanes,
}

impl Cost<'_> {
    /// The instructions for all lanes.
    fn wide(&self, instructions: u128) -> u128 {
        instructions.saturating_mul(self.lanes.count.div_ceil(REGISTER))
    }

    fn of(&self, expr: &Expr) -> u128 {
        match expr {
            Expr::Const(_) => 0,
            Expr::Index(index, _) => self.wide(1 + of_index(index)),
            Expr::Read(read) => self.read(read),
            Expr::CompareIndex(_, a, b) => self.wide(1 + of_index(a) + of_index(b)),
            Expr::Unary(_, a) | Expr::Cast(_, a) => self.wide(1).saturating_add(self.of(a)),
            Expr::Arith(_, a, b) | Expr::Compare(_, a, b) | Expr::Logic(_, a, b) => {
                sum([self.wide(1), self.of(a), self.of(b)])
            }
            Expr::Select(c, a, b) => sum([self.wide(1), self.of(c), self.of(a), self.of(b)]),
            Expr::Call(builtin, args) => {
                let dtype = expr.dtype(&|id| self.nest.dtype(id));
                let call = match instructions(*builtin, dtype) {
                    Some(instructions) => self.wide(instructions),
                    None => self.lanes.count.saturating_mul(CALL),
                };
                call.saturating_add(sum(args.iter().map(|arg| self.of(arg))))
            }
        }
    }

    fn read(&self, read: &Read) -> u128 {
        let checks = self.lanes.count.saturating_mul(4 * read.checked.len() as u128);
        self.access(&read.subscripts).saturating_add(checks)
    }

    /// An access: one instruction per vector if the lanes are contiguous or equal, otherwise one
    /// per lane.
    fn access(&self, subscripts: &[Index]) -> u128 {
        let apart = self.lanes.var.is_some_and(|lane| {
            let (last, outer) = match subscripts.split_last() {
                Some((last, outer)) => (last.coefficient_of(lane).is_none_or(|by| by > 1), outer),
                None => (false, subscripts),
            };
            let mentions = |index: &Index| index.mentions(&|var| var == lane);
            outer.iter().any(mentions) || (last && subscripts.iter().any(mentions))
        });
        let access = if apart { self.lanes.count } else { self.wide(1) };
        access.saturating_add(sum(subscripts.iter().map(of_index)))
    }
}

/// The instructions of index arithmetic; sums of variables are shared or part of an address.
fn of_index(index: &Index) -> u128 {
    let term = |term: &Term| match &term.atom {
        Atom::Axis(_) => 0,
        Atom::Product(inner, _) => 1 + of_index(inner),
        Atom::Div(inner, _) | Atom::Mod(inner, _) => 4 + of_index(inner),
        Atom::Min(a, b) | Atom::Max(a, b) => 2 + of_index(a) + of_index(b),
        Atom::Value(value) => parts(value) as u128,
    };
    sum(index.terms().iter().map(term))
}

/// The instructions of a builtin that is vectorized, from the size of its code; `None` for calls of
/// the C library.
fn instructions(builtin: Builtin, dtype: DType) -> Option<u128> {
    let double = dtype == DType::Double;
    Some(match builtin {
        Builtin::Exp | Builtin::Exp2 | Builtin::Expm1 | Builtin::Tanh => 40,
        Builtin::Sigmoid => 60,
        Builtin::Log | Builtin::Log2 | Builtin::Log10 => 70,
        Builtin::Log1p => 90,
        Builtin::Erf => {
            if double {
                250
            } else {
                70
            }
        }
        Builtin::Pow if !double => 250,
        Builtin::Abs
        | Builtin::Min
        | Builtin::Max
        | Builtin::Fmin
        | Builtin::Fmax
        | Builtin::Clamp
        | Builtin::Sqrt
        | Builtin::Rsqrt
        | Builtin::Floor
        | Builtin::Ceil
        | Builtin::Round
        | Builtin::Rint
        | Builtin::Trunc
        | Builtin::Copysign
        | Builtin::Fma
        | Builtin::BitAnd
        | Builtin::BitOr
        | Builtin::BitXor
        | Builtin::BitNot
        | Builtin::ShiftLeft
        | Builtin::ShiftRight
        | Builtin::IsNan
        | Builtin::IsInf
        | Builtin::IsFinite => 4,
        _ => return None,
    })
}

fn sum(all: impl IntoIterator<Item = u128>) -> u128 {
    all.into_iter().fold(0, u128::saturating_add)
}
