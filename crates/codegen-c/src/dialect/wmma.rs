//! Tensor operations in CUDA C++: the functions of `mma.h`.

use tensorwright_lang::dtype::DType;

use super::{TensorSyntax, Tile};

/// The functions of `mma.h`.
#[derive(Debug)]
pub(super) struct Wmma;

impl TensorSyntax for Wmma {
    fn fragment(&self, name: &str, count: i64) -> String {
        format!(
            "nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> {name}[{count}];"
        )
    }

    fn shared(&self) -> &'static str {
        "__shared__ __align__(32) "
    }

    fn fill(&self, fragment: &str, value: &str) -> Vec<String> {
        vec![format!("nvcuda::wmma::fill_fragment({fragment}, {value});")]
    }

    fn multiply_add(&self, fragment: &str, dtype: DType, a: &Tile, b: &Tile) -> Vec<String> {
        let ctype = if dtype == DType::BFloat16 { "__nv_bfloat16" } else { "__half" };
        let order = |tile: &Tile| if tile.is_row_major { "row_major" } else { "col_major" };
        let declare = |which: &str, tile: &Tile| {
            format!(
                "nvcuda::wmma::fragment<nvcuda::wmma::matrix_{which}, 16, 16, 16, {ctype}, nvcuda::wmma::{}> tw_{which};",
                order(tile)
            )
        };
        let load = |which: &str, Tile { start, leading, .. }: &Tile| {
            format!(
                "nvcuda::wmma::load_matrix_sync(tw_{which}, (const {ctype} *)({start}), {leading});"
            )
        };
        vec![
            declare("a", a),
            declare("b", b),
            load("a", a),
            load("b", b),
            format!("nvcuda::wmma::mma_sync({fragment}, tw_a, tw_b, {fragment});"),
        ]
    }

    fn write(&self, fragment: &str, tile: &Tile) -> Vec<String> {
        let order = if tile.is_row_major { "mem_row_major" } else { "mem_col_major" };
        let Tile { start, leading, .. } = tile;
        vec![
            format!(
                "nvcuda::wmma::store_matrix_sync({start}, {fragment}, {leading}, nvcuda::wmma::{order});"
            ),
            // What the warp does next may read it.
            "__syncwarp();".to_owned(),
        ]
    }
}
