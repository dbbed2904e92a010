//! Scatters: reductions whose terms choose their output element.

use super::{AxisId, Expr, Index, Location, Read, Scalar, Stage, TensorId};
use crate::ops::{CompareOp, LogicOp};

/// The position of a scatter's term, in one dimension of the output.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Scatter {
    /// The spatial axis of the dimension, which covers all of it. Neither positions nor values
    /// depend on such axes.
    pub axis: AxisId,
    /// The position.
    pub at: Index,
    /// Whether it may be out of range at run time, so that it must be checked.
    pub checked: bool,
    /// Its place in the source text.
    pub place: Location,
}

impl Scatter {
    /// The contribution of a term to an element: the value if its position matches, and nothing
    /// otherwise.
    #[must_use]
    pub fn body(scatter: &[Scatter], value: Expr, nothing: Scalar) -> Expr {
        let here =
            |it: &Scatter| Expr::CompareIndex(CompareOp::Eq, it.at.clone(), Index::axis(it.axis));
        let both = |a, b| Expr::Logic(LogicOp::And, Box::new(a), Box::new(b));
        match scatter.iter().map(here).reduce(both) {
            None => value,
            Some(condition) => {
                let nothing = Box::new(Expr::Const(nothing));
                Expr::Select(Box::new(condition), Box::new(value), nothing)
            }
        }
    }

    /// The element that a term goes to.
    #[must_use]
    pub fn element(scatter: &[Scatter], output: TensorId, rank: usize) -> Read {
        let mut subscripts: Vec<Index> =
            (0..rank as u32).map(|dimension| Index::axis(AxisId(dimension))).collect();
        for it in scatter {
            if let Some(subscript) = subscripts.get_mut(it.axis.0 as usize) {
                *subscript = it.at.clone();
            }
        }
        let checked = scatter.iter().filter(|it| it.checked).map(|it| it.axis.0).collect();
        let place = scatter.first().map_or_else(Location::default, |it| it.place);
        Read { tensor: output, subscripts, checked, place }
    }
}

impl Stage {
    /// The value of a term, wherever it goes.
    #[must_use]
    pub fn term(&self) -> &Expr {
        match &self.body {
            Expr::Select(_, value, _) if !self.scatter.is_empty() => value,
            body => body,
        }
    }

    /// The element that a term goes to.
    #[must_use]
    pub fn element(&self) -> Read {
        Scatter::element(&self.scatter, self.output, self.spatial())
    }

    /// Whether the terms decide the value of an axis.
    #[must_use]
    pub fn is_scattered(&self, axis: AxisId) -> bool {
        self.scatter.iter().any(|scatter| scatter.axis == axis)
    }

    /// The number of computed values: the terms of all elements, each term of a scatter once.
    #[must_use]
    pub fn iterations(&self) -> u128 {
        let axes = (0..).map(AxisId).zip(&self.axes);
        let counted = axes.filter(|(id, _)| !self.is_scattered(*id));
        counted.fold(1, |product, (_, axis)| product.saturating_mul(axis.extent() as u128))
    }
}
