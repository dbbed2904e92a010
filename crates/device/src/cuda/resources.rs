//! [`Resources`]: registers, memory and barriers of a compiled kernel.

/// The resources of a kernel, as the compiler reports them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Resources {
    /// The kernel.
    pub kernel: String,
    /// The registers of a thread.
    pub registers: u64,
    /// The bytes of spill stores of a thread.
    pub spill_stores: u64,
    /// The bytes of spill loads.
    pub spill_loads: u64,
    /// The bytes of its stack.
    pub stack: u64,
    /// The bytes of shared memory of a block.
    pub shared_bytes: u64,
    /// The barriers that it uses.
    pub barriers: u64,
}

impl Resources {
    /// Whether registers spill.
    #[must_use]
    pub fn spills(&self) -> bool {
        self.spill_stores + self.spill_loads > 0
    }

    /// The warps of a multiprocessor that can be resident at the same time, for a block size; zero
    /// if not even one block fits.
    #[must_use]
    pub fn warps_per_unit(&self, gpu: &tensorwright_machine::Gpu, threads_per_block: u64) -> u64 {
        /// The most warps and blocks of a multiprocessor, on all GPUs with tensor cores except the
        /// small ones of a generation.
        const MOST_WARPS: u64 = 64;
        const MOST_BLOCKS: u64 = 32;
        /// The granularity of register allocation for a warp.
        const REGISTERS_AT_ONCE: u64 = 256;
        let warp = gpu.warp.unsigned_abs().max(1);
        let warps = threads_per_block.div_ceil(warp).max(1);
        let registers = (self.registers * warp).next_multiple_of(REGISTERS_AT_ONCE).max(1) * warps;
        let by_registers = gpu.registers_per_unit.unsigned_abs() / registers;
        let shared = gpu.shared_per_unit.unsigned_abs();
        let by_shared = shared.checked_div(self.shared_bytes).unwrap_or(MOST_BLOCKS);
        let blocks = by_registers.min(by_shared).min(MOST_BLOCKS).min(MOST_WARPS / warps);
        blocks * warps
    }
}

/// The resources in the verbose output of `ptxas`.
pub(super) fn read(log: &str) -> Vec<Resources> {
    let mut kernels: Vec<Resources> = Vec::new();
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let kernel = rest.split('\'').next().unwrap_or_default().to_owned();
            kernels.push(Resources { kernel, ..Resources::default() });
        }
        // Reports of called functions do not belong to a kernel.
        let Some(kernel) = kernels.last_mut() else { continue };
        let fields: [(&str, &mut u64); 6] = [
            (" bytes stack frame", &mut kernel.stack),
            (" bytes spill stores", &mut kernel.spill_stores),
            (" bytes spill loads", &mut kernel.spill_loads),
            (" registers", &mut kernel.registers),
            (" barriers", &mut kernel.barriers),
            (" bytes smem", &mut kernel.shared_bytes),
        ];
        for (words, field) in fields {
            if let Some(number) = before(line, words) {
                *field = number;
            }
        }
    }
    kernels
}

/// The number before some words.
fn before(line: &str, words: &str) -> Option<u64> {
    let (start, _) = line.split_once(words)?;
    start.rsplit(|character: char| !character.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensorwright_machine::Target;

    const LOG: &str = "ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'one' for 'sm_80'
ptxas info    : Function properties for one
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 512 bytes smem, 392 bytes cmem[0]
ptxas info    : Compile time = 23.095 ms
ptxas info    : Compiling entry function 'two' for 'sm_80'
ptxas         .     16 bytes stack frame, 1540 bytes spill stores, 2000 bytes spill loads
ptxas info    : Used 64 registers, 16 bytes cumulative stack size, 392 bytes cmem[0]
";

    #[test]
    fn what_the_compiler_says_is_read() {
        let found = read(LOG);
        let kernel = |name: &str| Resources { kernel: name.to_owned(), ..Resources::default() };
        let one = Resources { registers: 32, barriers: 1, shared_bytes: 512, ..kernel("one") };
        let (spill_stores, spill_loads, stack) = (1540, 2000, 16);
        let two = Resources { registers: 64, spill_stores, spill_loads, stack, ..kernel("two") };
        assert!(!one.spills() && two.spills());
        assert_eq!(found, [one, two]);
        for text in ["", "Used registers", "Compiling entry function '", "\u{0} bytes smem"] {
            assert!(read(text).iter().all(|kernel| kernel.registers == 0), "{text}");
        }
    }

    #[test]
    fn occupancy_follows_what_is_scarce() {
        let Ok(Target::Gpu(gpu)) = Target::named("cuda:sm_80") else { panic!("sm_80") };
        let kernel =
            |registers, shared_bytes| Resources { registers, shared_bytes, ..Resources::default() };
        assert_eq!(kernel(32, 0).warps_per_unit(&gpu, 256), 64);
        assert_eq!(kernel(128, 0).warps_per_unit(&gpu, 256), 16);
        assert_eq!(kernel(32, 48 << 10).warps_per_unit(&gpu, 256), 24);
        assert_eq!(kernel(32, 200 << 10).warps_per_unit(&gpu, 256), 0);
        assert_eq!(kernel(0, 0).warps_per_unit(&gpu, 0), 32);
    }
}
