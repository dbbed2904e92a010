//! Small matrix products in safe, portable Rust.
//!
//! Both factors are packed into panels as wide as a register tile. The inner loop has a fixed shape
//! that compilers vectorize on every target, and each element is summed in the order of `k`, so the
//! result has the same bits on all targets. Libraries choose fused kernels per CPU, which is faster
//! and not reproducible; at these sizes it would save a fraction of a millisecond per training
//! step.

/// The columns of a tile: two vectors of the narrowest common SIMD width.
const LANES: usize = 8;

/// The rows of a tile.
const ROWS: usize = 4;

/// A matrix view; strides express transposition.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matrix<'a> {
    data: &'a [f32],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a> Matrix<'a> {
    /// A row-major matrix.
    pub(crate) fn new(data: &'a [f32], rows: usize, columns: usize) -> Self {
        Self { data, rows, columns, row_stride: columns, column_stride: 1 }
    }

    pub(crate) fn transposed(self) -> Self {
        Self {
            data: self.data,
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
        }
    }

    fn at(&self, row: usize, column: usize) -> f32 {
        self.data[row * self.row_stride + column * self.column_stride]
    }
}

/// Buffers for packed factors, reused between products.
#[derive(Debug, Clone, Default)]
pub(crate) struct Packs {
    /// `ROWS` rows of the left factor.
    band: Vec<[f32; ROWS]>,
    /// The right factor, in panels of `LANES` columns.
    panels: Vec<[f32; LANES]>,
}

/// Adds the product of `left` and `right` to the row-major matrix `sum`.
pub(crate) fn multiply_add(
    left: Matrix<'_>,
    right: Matrix<'_>,
    sum: &mut [f32],
    packs: &mut Packs,
) {
    let (depth, width) = (left.columns, right.columns);
    if depth == 0 || width == 0 {
        return;
    }
    if left.rows == 1 && right.column_stride == 1 {
        return row_times_matrix(left, right, sum);
    }
    pack_right(right, &mut packs.panels);
    for row in (0..left.rows).step_by(ROWS) {
        let rows = ROWS.min(left.rows - row);
        packs.band.clear();
        packs
            .band
            .extend((0..depth).map(|k| {
                std::array::from_fn(|r| if r < rows { left.at(row + r, k) } else { 0.0 })
            }));
        let sum = &mut sum[row * width..(row + rows) * width];
        for (panel, column) in packs.panels.chunks_exact(depth).zip((0..width).step_by(LANES)) {
            add_tile(&packs.band, panel, width, column, sum);
        }
    }
}

/// A single row: the right factor is read once, in order, and skipped where the row is zero, as
/// half of the activations after a ReLU are.
fn row_times_matrix(left: Matrix<'_>, right: Matrix<'_>, sum: &mut [f32]) {
    for (k, line) in right.data.chunks_exact(right.columns).enumerate() {
        let factor = left.at(0, k);
        if factor != 0.0 {
            for (sum, value) in sum.iter_mut().zip(line) {
                *sum += factor * value;
            }
        }
    }
}

/// Packs a factor into panels, padded with zero columns.
fn pack_right(right: Matrix<'_>, panels: &mut Vec<[f32; LANES]>) {
    panels.clear();
    for column in (0..right.columns).step_by(LANES) {
        let lanes = LANES.min(right.columns - column);
        panels.extend((0..right.rows).map(|k| {
            std::array::from_fn(|l| if l < lanes { right.at(k, column + l) } else { 0.0 })
        }));
    }
}

/// Adds the product of a band and a panel to the tile at `column`, as far as `sum` has rows.
fn add_tile(
    band: &[[f32; ROWS]],
    panel: &[[f32; LANES]],
    width: usize,
    column: usize,
    sum: &mut [f32],
) {
    let lanes = LANES.min(width - column);
    let mut tile = [[0.0; LANES]; ROWS];
    for (tile, line) in tile.iter_mut().zip(sum.chunks_exact(width)) {
        tile[..lanes].copy_from_slice(&line[column..column + lanes]);
    }
    let tile = accumulate(tile, band, panel);
    for (tile, line) in tile.iter().zip(sum.chunks_exact_mut(width)) {
        line[column..column + lanes].copy_from_slice(&tile[..lanes]);
    }
}

/// The inner loop. By value, so that the tile stays in registers.
fn accumulate(
    mut tile: [[f32; LANES]; ROWS],
    band: &[[f32; ROWS]],
    panel: &[[f32; LANES]],
) -> [[f32; LANES]; ROWS] {
    for (factors, values) in band.iter().zip(panel) {
        for row in 0..ROWS {
            for lane in 0..LANES {
                tile[row][lane] += factors[row] * values[lane];
            }
        }
    }
    tile
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensorwright_random::SplitMix;

    fn numbers(random: &mut SplitMix, elements: usize) -> Vec<f32> {
        (0..elements).map(|_| random.unit() as f32 - 0.5).collect()
    }

    fn transpose(matrix: &[f32], rows: usize, columns: usize) -> Vec<f32> {
        let element = |place: usize| matrix[place % rows * columns + place / rows];
        (0..rows * columns).map(element).collect()
    }

    #[test]
    fn products_are_those_of_the_definition_to_the_bit() {
        let mut random = SplitMix::new(1);
        let mut packs = Packs::default();
        for (rows, depth, width) in [(1, 5, 9), (2, 3, 8), (4, 1, 17), (7, 13, 5), (9, 16, 33)] {
            let a = numbers(&mut random, rows * depth);
            let b = numbers(&mut random, depth * width);
            let c = numbers(&mut random, rows * width);
            let mut expected = c.clone();
            for (row, line) in expected.chunks_exact_mut(width).enumerate() {
                for (column, sum) in line.iter_mut().enumerate() {
                    for k in 0..depth {
                        *sum += a[row * depth + k] * b[k * width + column];
                    }
                }
            }
            let (at, bt) = (transpose(&a, rows, depth), transpose(&b, depth, width));
            let lefts = [Matrix::new(&a, rows, depth), Matrix::new(&at, depth, rows).transposed()];
            let rights =
                [Matrix::new(&b, depth, width), Matrix::new(&bt, width, depth).transposed()];
            for (left, right) in
                lefts.into_iter().flat_map(|left| rights.map(|right| (left, right)))
            {
                let mut sum = c.clone();
                multiply_add(left, right, &mut sum, &mut packs);
                assert_eq!(sum, expected, "{rows} x {depth} x {width}");
            }
        }
    }
}
