//! Buffers: contents, memory and layout.

use std::fmt;

use serde::{Deserialize, Serialize};
use tensorwright_lang::dtype::DType;
use tensorwright_lang::program::{Atom, Index, Term};

use super::{Ranges, RunTimeShape};

/// Memory that a nest reads or writes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Buffer {
    /// The name; unique in a nest.
    pub name: String,
    /// The type of the elements.
    pub dtype: DType,
    /// The extents, outermost first; empty for one element. After lowering, those of the dense,
    /// row-major memory; before, those of the tensor that [`Buffer::layout`] lays out.
    pub shape: Vec<i64>,
    /// The extents and strides where these are known at run time alone; [`Buffer::shape`] then has
    /// the largest extents, and memory may be smaller.
    pub run_time: Option<Box<RunTimeShape>>,
    /// The layout in memory, if not row-major.
    pub layout: Option<Layout>,
    /// The owner.
    pub owner: Owner,
    /// The memory space; `None` until lowering [assigns](crate::lower::StackLimits) it.
    pub memory: Option<Memory>,
    /// Whether a schedule asks for memory that the threads of a block share.
    pub is_shared: bool,
    /// The dimensions, in order, whose subscripts are thread indices: on a device, every thread
    /// holds its own elements of them. Only set by lowering for a device.
    pub by_thread: Vec<usize>,
    /// The tiles in registers of a warp, for [tensor operations](super::TensorOp). Only set by
    /// lowering for a device.
    pub fragment: Option<Fragment>,
}

/// Tiles in registers of a warp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fragment {
    /// The dimensions of the rows and columns of a tile.
    pub dimensions: [usize; 2],
    /// The type of the factors whose products are accumulated in it.
    pub factors: DType,
}

/// The owner and lifetime of a buffer, which primitives decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Owner {
    /// An input of the caller: read-only.
    Input,
    /// An output of the caller.
    Output,
    /// A prepared buffer of the caller: the preparation writes it once, later calls read it.
    Prepared,
    /// Owned by the kernel for a whole call: one stage writes it, others read it.
    Intermediate,
    /// Owned by the kernel for one iteration of its [loop](super::Loop::locals).
    Local,
}

/// The memory space of a buffer, which lowering decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Memory {
    /// Memory of the caller.
    Caller,
    /// The workspace that the caller passes; its contents are lost after the call. A buffer that is
    /// local to an iteration of a parallel loop has one copy per worker.
    Workspace,
    /// The stack of a worker or device thread: small, and in registers if all subscripts are
    /// constant.
    Stack,
    /// The shared memory of a block of device threads.
    Shared,
}

impl Owner {
    /// Whether the kernel owns it.
    #[must_use]
    pub fn is_kernel(self) -> bool {
        match self {
            Owner::Input | Owner::Output | Owner::Prepared => false,
            Owner::Intermediate | Owner::Local => true,
        }
    }
}

impl Buffer {
    /// A row-major buffer.
    #[must_use]
    pub fn new(name: String, dtype: DType, shape: Vec<i64>, owner: Owner) -> Self {
        let (run_time, layout, memory, is_shared) = (None, None, None, false);
        let (by_thread, fragment) = (Vec::new(), None);
        Self { name, dtype, shape, run_time, layout, owner, memory, is_shared, by_thread, fragment }
    }

    /// The extent of a dimension of the tensor; it may depend on run-time numbers.
    #[must_use]
    pub fn extent(&self, dimension: usize) -> Index {
        let of_shape = || Index::constant(self.shape.get(dimension).copied().unwrap_or(1));
        let shape = self.run_time.as_ref();
        let extent = shape.and_then(|shape| shape.extents.get(dimension)).cloned();
        extent.unwrap_or_else(of_shape)
    }

    /// The distance between neighbors in a dimension, in elements; it may be a run-time number.
    /// Only without a layout, so always after lowering.
    #[must_use]
    pub fn stride(&self, dimension: usize) -> Index {
        let of_shape = || Index::constant(product(self.shape.get(dimension + 1..).unwrap_or(&[])));
        let shape = self.run_time.as_ref();
        let stride = shape.and_then(|shape| shape.strides.get(dimension)).cloned();
        stride.unwrap_or_else(of_shape)
    }

    /// Whether an extent depends on run-time numbers.
    #[must_use]
    pub fn is_sized(&self) -> bool {
        let shape = self.run_time.as_ref();
        shape.is_some_and(|shape| shape.extents.iter().any(|e| e.as_constant().is_none()))
    }

    /// Whether subscripts stay inside of the memory in all iterations.
    #[must_use]
    pub fn holds(&self, subscripts: &[Index], ranges: &Ranges) -> bool {
        self.stays(subscripts, ranges, &|dimension| self.padded(dimension))
    }

    /// Whether subscripts stay inside of the tensor in all iterations.
    pub(crate) fn is_inside(&self, subscripts: &[Index], ranges: &Ranges) -> bool {
        self.stays(subscripts, ranges, &|dimension| self.shape.get(dimension).copied().unwrap_or(1))
    }

    fn stays(&self, subscripts: &[Index], ranges: &Ranges, fixed: &dyn Fn(usize) -> i64) -> bool {
        subscripts.iter().enumerate().all(|(dimension, subscript)| {
            if !self.is_sized() {
                return ranges.interval(subscript).within(0, i128::from(fixed(dimension)));
            }
            let last = self.extent(dimension).add(&Index::constant(-1));
            let left = last.and_then(|last| last.sub(subscript));
            ranges.always(subscript) && left.is_some_and(|left| ranges.always(&left))
        })
    }

    /// Gives the buffer other extents, which are known now.
    pub(crate) fn reshape(&mut self, shape: Vec<i64>) {
        self.shape = shape;
        self.run_time = None;
    }

    /// The number of elements of the memory, padding included.
    #[must_use]
    pub fn elements(&self) -> i64 {
        match &self.layout {
            Some(layout) => product(&layout.extents(&self.shape)),
            None => product(&self.shape),
        }
    }

    /// The extent of a dimension, including padding.
    #[must_use]
    pub fn padded(&self, dimension: usize) -> i64 {
        let extent = self.shape.get(dimension).copied().unwrap_or(1);
        self.layout.as_ref().map_or(extent, |layout| layout.padded(dimension, extent))
    }

    /// The number of bytes of the memory.
    #[must_use]
    pub fn bytes(&self) -> i64 {
        self.elements().saturating_mul(self.dtype.bytes() as i64)
    }

    /// The bytes that a device thread holds: the whole buffer, or its own part.
    #[must_use]
    pub fn thread_bytes(&self) -> i64 {
        let threads = self.by_thread.iter().filter_map(|dimension| self.shape.get(*dimension));
        let bytes = threads.fold(self.bytes(), |bytes, threads| bytes / (*threads).max(1));
        if self.fragment.is_some() { bytes / super::launch::WARP } else { bytes }
    }

    /// The position of an element of dense, row-major memory; `None` on overflow. Only without a
    /// layout, so always after lowering.
    #[must_use]
    pub fn offset(&self, subscripts: &[Index]) -> Option<Index> {
        if let Some(shape) = &self.run_time {
            let mut offset = Index::constant(0);
            for (subscript, stride) in subscripts.iter().zip(&shape.strides) {
                offset = offset.add(&match (stride.as_constant(), stride.as_axis()) {
                    (Some(stride), _) => subscript.scale(stride)?,
                    (None, stride) => subscript.times(stride?)?,
                })?;
            }
            return Some(offset);
        }
        let mut offset = Index::constant(0);
        for (subscript, extent) in subscripts.iter().zip(&self.shape) {
            offset = offset.scale(*extent)?.add(subscript)?;
        }
        joined(offset)
    }
}

impl Buffer {
    /// Subscripts with as few dimensions as possible, and their extents: dimensions that a fused
    /// loop traverses as one are merged. Only without a layout.
    #[must_use]
    pub fn merged(&self, subscripts: &[Index]) -> (Vec<Index>, Vec<i64>) {
        let divides = |index: &Index| {
            index.terms().iter().any(|term| matches!(term.atom, Atom::Div(..) | Atom::Mod(..)))
        };
        if self.run_time.is_some() {
            return (subscripts.to_vec(), self.shape.clone());
        }
        let (mut merged, mut shape): (Vec<Index>, Vec<i64>) = (Vec::new(), Vec::new());
        for (subscript, extent) in subscripts.iter().zip(&self.shape) {
            if let (Some(before), Some(rows)) = (merged.last_mut(), shape.last_mut())
                && divides(before)
                && let Some(one) = before.scale(*extent).and_then(|index| index.add(subscript))
                && let Some(one) = joined(one).filter(|one| !divides(one))
            {
                *before = one;
                *rows = rows.saturating_mul(*extent);
                continue;
            }
            merged.push(subscript.clone());
            shape.push(*extent);
        }
        (merged, shape)
    }
}

/// A product of extents, saturating: factors of a schedule may exceed any memory.
fn product(extents: &[i64]) -> i64 {
    extents.iter().fold(1, |product: i64, extent| product.saturating_mul(*extent))
}

/// Combines quotients with their remainders: `28 * (x / 28) + x % 28` is `x`. Fused loops then have
/// a constant stride across consecutive rows.
fn joined(index: Index) -> Option<Index> {
    let mut index = index;
    for term in index.clone().terms() {
        let Atom::Div(inner, divisor) = &term.atom else { continue };
        if term.coefficient % divisor != 0 {
            continue;
        }
        let factor = term.coefficient / divisor;
        let rest = Atom::Mod(inner.clone(), *divisor);
        let found = |other: &Term| other.atom == rest && other.coefficient == factor;
        if index.terms().iter().any(found) {
            let parts = Index::atom(term.atom.clone()).scale(term.coefficient)?;
            let parts = parts.add(&Index::atom(rest).scale(factor)?)?;
            index = index.sub(&parts)?.add(&inner.scale(factor)?)?;
        }
    }
    Some(index)
}

/// The layout of a tensor in memory: for each dimension of the memory, an index expression over the
/// dimensions of the tensor. Dimension `d` of the tensor is `AxisId(d)`.
///
/// Each expression is a dimension (`k`), a quotient (`n/16`) or a remainder (`n%16`). Every
/// dimension appears either alone or as quotient and remainder by the same number, so different
/// elements have different positions. Memory is padded if the extent is not a multiple.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole(usize),
    Quotient(usize, i64),
    Remainder(usize, i64),
}

/// The reason why a text is not a layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayoutError {
    /// A part that is not a dimension, a quotient or a remainder.
    NotAPart(usize),
    /// A dimension that does not appear, appears twice, or is divided by different numbers.
    Dimension(usize),
}

impl Layout {
    /// A layout of a tensor with `rank` dimensions.
    ///
    /// # Errors
    /// Two elements would share a position, or a part is invalid.
    pub fn new(rank: usize, parts: &[Index]) -> Result<Self, LayoutError> {
        let parse = |(number, index): (usize, &Index)| {
            let part = match index.terms() {
                [term] if term.coefficient == 1 && index.constant_term() == 0 => match &term.atom {
                    Atom::Axis(axis) => Some(Part::Whole(axis.0 as usize)),
                    Atom::Div(inner, by) => {
                        inner.as_axis().map(|axis| Part::Quotient(axis.0 as usize, *by))
                    }
                    Atom::Mod(inner, by) => {
                        inner.as_axis().map(|axis| Part::Remainder(axis.0 as usize, *by))
                    }
                    _ => None,
                },
                _ => None,
            };
            part.ok_or(LayoutError::NotAPart(number))
        };
        let parts: Vec<Part> = parts.iter().enumerate().map(parse).collect::<Result<_, _>>()?;
        for dimension in 0..rank {
            let mut found: Vec<Part> =
                parts.iter().copied().filter(|part| part.dimension() == dimension).collect();
            found.sort_by_key(|part| matches!(part, Part::Remainder(..)));
            match found.as_slice() {
                [Part::Whole(_)] => {}
                [Part::Quotient(_, a), Part::Remainder(_, b)] if a == b => {}
                _ => return Err(LayoutError::Dimension(dimension)),
            }
        }
        match parts.iter().position(|part| part.dimension() >= rank) {
            Some(number) => Err(LayoutError::NotAPart(number)),
            None => Ok(Self { parts }),
        }
    }

    /// The extents of the memory for a tensor of a shape.
    #[must_use]
    pub fn extents(&self, shape: &[i64]) -> Vec<i64> {
        let extent = |dimension: usize| shape.get(dimension).copied().unwrap_or(1);
        let one = |part: &Part| match *part {
            Part::Whole(dimension) => extent(dimension),
            Part::Quotient(dimension, by) => extent(dimension).saturating_add(by - 1) / by,
            Part::Remainder(_, by) => by,
        };
        self.parts.iter().map(one).collect()
    }

    /// The subscripts in memory of an element of the tensor; `None` on overflow.
    #[must_use]
    pub fn place(&self, subscripts: &[Index]) -> Option<Vec<Index>> {
        let one = |part: &Part| match *part {
            Part::Whole(dimension) => subscripts.get(dimension).cloned(),
            Part::Quotient(dimension, by) => subscripts.get(dimension)?.div(by),
            Part::Remainder(dimension, by) => Some(subscripts.get(dimension)?.rem(by)),
        };
        self.parts.iter().map(one).collect()
    }

    /// The extent of a dimension of the tensor, including padding.
    #[must_use]
    pub fn padded(&self, dimension: usize, extent: i64) -> i64 {
        self.parts
            .iter()
            .find_map(|part| match *part {
                Part::Quotient(found, by) if found == dimension => {
                    Some((extent + by - 1) / by * by)
                }
                _ => None,
            })
            .unwrap_or(extent)
    }

    /// The layout as text, such as `[n/16, k, n%16]`, with the given dimension names.
    #[must_use]
    pub fn text(&self, names: &[String]) -> String {
        let parts: Vec<String> = self
            .parts
            .iter()
            .map(|part| {
                let name = |d: usize| names.get(d).cloned().unwrap_or_else(|| format!("d{d}"));
                match *part {
                    Part::Whole(d) => name(d),
                    Part::Quotient(d, by) => format!("{}/{by}", name(d)),
                    Part::Remainder(d, by) => format!("{}%{by}", name(d)),
                }
            })
            .collect();
        format!("[{}]", parts.join(", "))
    }
}

impl Part {
    fn dimension(self) -> usize {
        match self {
            Part::Whole(dimension)
            | Part::Quotient(dimension, _)
            | Part::Remainder(dimension, _) => dimension,
        }
    }
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LayoutError::NotAPart(number) => write!(
                f,
                "part {} of the layout is not a dimension, `dimension/number` or \
                 `dimension%number`",
                number + 1
            ),
            LayoutError::Dimension(dimension) => write!(
                f,
                "dimension {dimension} must appear once, alone or as a quotient and a remainder by \
                 the same number"
            ),
        }
    }
}

impl std::error::Error for LayoutError {}

#[cfg(test)]
mod tests {
    use super::*;
    use tensorwright_lang::program::AxisId;

    fn dim(d: u32) -> Index {
        Index::axis(AxisId(d))
    }

    #[test]
    fn fused_loops_move_in_equal_steps() {
        let mut buffer = Buffer::new("b".into(), DType::Float, vec![4, 28, 28], Owner::Local);
        let fused = dim(0).scale(16).unwrap().add(&dim(1)).unwrap();
        let (row, column) = (fused.div(28).unwrap(), fused.rem(28));
        let offset = buffer.offset(&[dim(2), row.clone(), column.clone()]).unwrap();
        assert_eq!(offset.coefficient_of(AxisId(0)), Some(16));
        assert_eq!(offset.coefficient_of(AxisId(1)), Some(1));
        assert_eq!(offset.coefficient_of(AxisId(2)), Some(784));
        // Rows of another length are not contiguous.
        buffer.shape = vec![4, 28, 30];
        let offset = buffer.offset(&[dim(2), row, column]).unwrap();
        assert_eq!(offset.coefficient_of(AxisId(1)), None);
    }

    #[test]
    fn layouts_are_one_to_one() {
        let layout = Layout::new(2, &[dim(1).div(16).unwrap(), dim(0), dim(1).rem(16)]).unwrap();
        assert_eq!(layout.extents(&[10, 40]), [3, 10, 16]);
        assert_eq!(layout.padded(1, 40), 48);
        assert_eq!(layout.text(&["k".into(), "n".into()]), "[n/16, k, n%16]");
        assert_eq!(Layout::new(2, &[dim(0)]), Err(LayoutError::Dimension(1)));
        assert_eq!(Layout::new(1, &[dim(0), dim(0)]), Err(LayoutError::Dimension(0)));
        assert_eq!(
            Layout::new(1, &[dim(0).div(4).unwrap(), dim(0).rem(8)]),
            Err(LayoutError::Dimension(0))
        );
        assert_eq!(Layout::new(1, &[dim(0), dim(3)]), Err(LayoutError::NotAPart(1)));
    }
}
