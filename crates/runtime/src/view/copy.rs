//! Copies strided elements to dense memory.
//!
//! Contiguous runs of the source are copied as a whole. If the source is contiguous along another
//! axis than the target (a transpose), both are traversed in small tiles, so each cache line is
//! fully used while it is cached.

/// The rows of a tile of a transpose, contiguous in the source: a cache line of 4-byte elements.
const TILE_ROWS: usize = 16;

/// The columns of a tile of a transpose, contiguous in the target. More than the rows, because each
/// row is likely on another page of the source, and writes of whole lines are then closer together.
const TILE_COLUMNS: usize = 64;

/// Copies elements of `SIZE` bytes in row-major order. `axes` are the extents and strides of at
/// least one element; the element with all indices zero is `source[offset]`.
pub(super) fn gather<const SIZE: usize>(
    source: &[u8],
    offset: usize,
    mut axes: Vec<(usize, isize)>,
    target: &mut [u8],
) {
    let (source, _) = source.as_chunks::<SIZE>();
    let (target, _) = target.as_chunks_mut::<SIZE>();
    let (columns, column_stride) = axes.pop().unwrap_or((1, 1));
    // The innermost axis is dense in the target. If it is not dense in the source, rows go along an
    // axis that is, if there is one.
    let dense = axes.iter().position(|axis| axis.1 == 1).filter(|_| column_stride != 1);
    let row_axis = dense.unwrap_or(axes.len().saturating_sub(1));
    let mut rows = Rows { rows: 1, row_stride: 0, row_target: 0, columns, column_stride };
    let mut outer = Vec::with_capacity(axes.len());
    let mut target_stride = columns;
    for (number, &(extent, stride)) in axes.iter().enumerate().rev() {
        if number == row_axis {
            (rows.rows, rows.row_stride, rows.row_target) = (extent, stride, target_stride);
        } else {
            outer.push((extent, stride, target_stride));
        }
        target_stride *= extent;
    }
    for_each_position(&outer, offset, |from, to| rows.copy(source, from, &mut target[to..]));
}

/// Two axes of a copy: rows of elements. The columns are dense in the target.
struct Rows {
    rows: usize,
    row_stride: isize,
    row_target: usize,
    columns: usize,
    column_stride: isize,
}

impl Rows {
    /// Copies the rows whose first element is `source[from]` to the start of `target`.
    fn copy<T: Copy>(&self, source: &[T], from: usize, target: &mut [T]) {
        match (self.column_stride, self.row_stride) {
            (1, _) => self.copy_runs(source, from, target),
            (_, 1) => self.transpose(source, from, target),
            _ => self.copy_elements(source, from, target, 0..self.rows, 0..self.columns),
        }
    }

    /// Columns are contiguous.
    fn copy_runs<T: Copy>(&self, source: &[T], from: usize, target: &mut [T]) {
        for row in 0..self.rows {
            let from = step(from, row, self.row_stride);
            let to = row * self.row_target;
            target[to..to + self.columns].copy_from_slice(&source[from..from + self.columns]);
        }
    }

    /// Rows are contiguous.
    fn transpose<T: Copy>(&self, source: &[T], from: usize, target: &mut [T]) {
        for row in (0..self.rows).step_by(TILE_ROWS) {
            let rows = row..self.rows.min(row + TILE_ROWS);
            for column in (0..self.columns).step_by(TILE_COLUMNS) {
                let columns = column..self.columns.min(column + TILE_COLUMNS);
                self.copy_elements(source, from, target, rows.clone(), columns);
            }
        }
    }

    /// Copies elements one by one.
    fn copy_elements<T: Copy>(
        &self,
        source: &[T],
        from: usize,
        target: &mut [T],
        rows: std::ops::Range<usize>,
        columns: std::ops::Range<usize>,
    ) {
        for row in rows {
            let from = step(from, row, self.row_stride);
            let to = row * self.row_target;
            let target = &mut target[to + columns.start..to + columns.end];
            for (element, column) in target.iter_mut().zip(columns.clone()) {
                *element = source[step(from, column, self.column_stride)];
            }
        }
    }
}

/// The position after `count` steps. The view's constructor checked that it is inside the slice.
fn step(from: usize, count: usize, stride: isize) -> usize {
    from.wrapping_add_signed((count as isize).wrapping_mul(stride))
}

/// Calls `visit` with the source and target position of every index of `axes`, which are (extent,
/// source stride, target stride), fastest first.
fn for_each_position(
    axes: &[(usize, isize, usize)],
    mut source: usize,
    mut visit: impl FnMut(usize, usize),
) {
    let mut index = vec![0; axes.len()];
    let mut target = 0;
    'all: loop {
        visit(source, target);
        for (index, &(extent, stride, target_stride)) in index.iter_mut().zip(axes) {
            *index += 1;
            if *index < extent {
                source = step(source, 1, stride);
                target += target_stride;
                continue 'all;
            }
            *index = 0;
            source = step(source, extent - 1, stride.wrapping_neg());
            target -= (extent - 1) * target_stride;
        }
        return;
    }
}
