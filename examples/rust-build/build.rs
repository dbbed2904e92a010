//! Compiles the kernels of `kernels.toml`.

fn main() -> Result<(), tensorwright_build::Error> {
    tensorwright_build::Package::new("kernels.toml").build()
}
