//! Tensor operations in CUDA C++ with `mma.h` (WMMA).

use tensorwright_lang::dtype::DType;
use tensorwright_schedule::nest::TILE;

use super::{TensorSyntax, Tile};

/// The functions of `mma.h`.
#[derive(Debug)]
pub(super) struct Wmma;

/// The types and shape of a matrix multiplication.
struct Kind {
    /// The element type in memory.
    memory: &'static str,
    /// The element type in fragments.
    fragment: &'static str,
    /// The terms of one instruction; a tile may need several.
    terms: i64,
}

impl Kind {
    fn of(factors: DType) -> Self {
        let memory = factors.row().cuda;
        match factors {
            DType::Float => Self { memory, fragment: "nvcuda::wmma::precision::tf32", terms: 8 },
            _ => Self { memory, fragment: memory, terms: TILE },
        }
    }

    /// The statements for the terms from `first` on.
    fn step(&self, fragment: &str, first: i64, a: &Tile, b: &Tile) -> Vec<String> {
        let Self { memory, fragment: element, terms } = self;
        let declare = |which: &str, tile: &Tile| {
            let order = if tile.is_row_major { "row_major" } else { "col_major" };
            format!(
                "nvcuda::wmma::fragment<nvcuda::wmma::matrix_{which}, 16, 16, {terms}, {element}, nvcuda::wmma::{order}> tw_{which};"
            )
        };
        let load = |which: &str, tile: &Tile, step: i64| {
            let Tile { start, leading, .. } = tile;
            let start = match first * step {
                0 => start.clone(),
                offset => format!("{start} + {offset}"),
            };
            format!(
                "nvcuda::wmma::load_matrix_sync(tw_{which}, (const {memory} *)({start}), {leading});"
            )
        };
        // Terms are columns of `a` and rows of `b`.
        let [of_a, of_b] = [
            if a.is_row_major { 1 } else { a.leading },
            if b.is_row_major { b.leading } else { 1 },
        ];
        let mut lines =
            vec![declare("a", a), declare("b", b), load("a", a, of_a), load("b", b, of_b)];
        if *memory != *element {
            let round = |which: &str| {
                format!(
                    "for (int i = 0; i < tw_{which}.num_elements; ++i) tw_{which}.x[i] = nvcuda::wmma::__float_to_tf32(tw_{which}.x[i]);"
                )
            };
            lines.extend(["a", "b"].map(round));
        }
        lines.push(format!("nvcuda::wmma::mma_sync({fragment}, tw_a, tw_b, {fragment});"));
        lines
    }
}

impl TensorSyntax for Wmma {
    fn fragment(&self, name: &str, count: i64, factors: DType) -> String {
        let terms = Kind::of(factors).terms;
        format!(
            "nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, {terms}, float> {name}[{count}];"
        )
    }

    fn shared(&self) -> &'static str {
        "__shared__ __align__(32) "
    }

    fn fill(&self, fragment: &str, value: &str) -> Vec<String> {
        vec![format!("nvcuda::wmma::fill_fragment({fragment}, {value});")]
    }

    fn multiply_add(&self, fragment: &str, dtype: DType, a: &Tile, b: &Tile) -> Vec<String> {
        let kind = Kind::of(dtype);
        if kind.terms == TILE {
            return kind.step(fragment, 0, a, b);
        }
        let steps = (0..TILE).step_by(usize::try_from(kind.terms).unwrap_or(1));
        let steps = steps.map(|first| kind.step(fragment, first, a, b));
        let scoped =
            |step: Vec<String>| ["{".to_owned()].into_iter().chain(step).chain(["}".to_owned()]);
        steps.flat_map(scoped).collect()
    }

    fn write(&self, fragment: &str, tile: &Tile) -> Vec<String> {
        let order = if tile.is_row_major { "mem_row_major" } else { "mem_col_major" };
        let Tile { start, leading, .. } = tile;
        vec![
            format!(
                "nvcuda::wmma::store_matrix_sync({start}, {fragment}, {leading}, nvcuda::wmma::{order});"
            ),
            // The next operation of the warp may read it.
            "__syncwarp();".to_owned(),
        ]
    }
}
