//! Runs a layer on batches of several sizes.

/// The functions of the package: `kernels::layer` and `kernels::LayerPrepared`.
#[allow(dead_code, reason = "the package has more than this program uses")]
mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

const INPUTS: usize = 64;
const OUTPUTS: usize = 10;

fn main() -> Result<(), kernels::Error> {
    let weights: Vec<f32> = (0..OUTPUTS * INPUTS).map(|i| (i / INPUTS) as f32).collect();
    let bias = vec![-1.0; OUTPUTS];
    let (inputs, outputs) = (INPUTS as i64, OUTPUTS as i64);
    // Constants are brought into the layout of the kernels once, for all batches.
    let prepared = kernels::LayerPrepared::new(1, inputs, outputs, &weights, &bias)?;
    for batch in [1, 3, 32] {
        let x = vec![0.5; batch * INPUTS];
        let mut y = vec![0.0; batch * OUTPUTS];
        let size = batch as i64;
        kernels::layer(size, inputs, outputs, &x, &weights, &bias, &mut y, Some(&prepared))?;
        println!("{batch}: {:?}", &y[(batch - 1) * OUTPUTS..][..4]);
    }
    Ok(())
}
