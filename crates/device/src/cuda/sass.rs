//! [`Sass`]: disassembled machine code and issue cycles of inner loops.
//!
//! Every instruction carries a stall count that the compiler has computed: the cycles until the
//! next instruction of the same warp can be issued. Its position (bits 41 to 44 of the upper word)
//! is undocumented. The sum over the inner loop ignores memory latencies and other warps, but it
//! ranks kernels with equal work as expected, which the fraction of multiply-adds alone does not.

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use super::find::Roots;
use crate::DeviceError;

const TOOL: &str = "cuobjdump";

/// Disassembled machine code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sass {
    text: String,
}

/// The inner loop of a kernel: the innermost loop with the most arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct InnerLoop {
    /// Its instructions.
    pub instructions: u64,
    /// The multiply-add instructions.
    pub multiply_adds: u64,
    /// The matrix instructions.
    pub matrix_multiply_adds: u64,
    /// The issue cycles of a warp for all of them, without latencies.
    pub issue_cycles: u64,
}

impl InnerLoop {
    /// The fraction of multiply-add instructions.
    #[must_use]
    pub fn share(&self) -> f64 {
        let useful = self.multiply_adds + self.matrix_multiply_adds;
        useful as f64 / self.instructions.max(1) as f64
    }

    /// The cycles per multiply-add, which compares kernels with equal work.
    #[must_use]
    pub fn cycles_per_multiply_add(&self) -> Option<f64> {
        let useful = self.multiply_adds + self.matrix_multiply_adds;
        (useful > 0).then(|| self.issue_cycles as f64 / useful as f64)
    }
}

impl Sass {
    /// Disassembles a [`cubin`](super::Compiled::cubin) with NVIDIA's `cuobjdump`.
    ///
    /// # Errors
    /// The tool is not installed, or does not know the architecture.
    pub fn of(cubin: &[u8]) -> Result<Self, DeviceError> {
        let failed = |reason: String| DeviceError::Tool { tool: TOOL.to_owned(), reason };
        let roots = Roots::of_this_machine();
        let install =
            "it is not installed: `pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm`";
        let program: PathBuf = roots.program(TOOL).ok_or_else(|| failed(install.to_owned()))?;
        let run = || {
            let mut file = tempfile::Builder::new().suffix(".cubin").tempfile()?;
            file.write_all(cubin)?;
            file.flush()?;
            Command::new(&program).arg("-sass").arg(file.path()).output()
        };
        let output = run().map_err(|error| failed(error.to_string()))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() || !text.contains("Function : ") {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(failed(format!("{}: {}", output.status, said.trim())));
        }
        Ok(Self { text })
    }

    /// The whole text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The inner loop of a kernel; `None` if there is no such kernel, or it has no loop.
    #[must_use]
    pub fn inner_loop(&self, kernel: &str) -> Option<InnerLoop> {
        let code = instructions(self.function(kernel)?);
        let loops: Vec<(u64, u64)> = code.iter().filter_map(Instruction::repeats).collect();
        let is_innermost = |(start, end): &&(u64, u64)| {
            !loops.iter().any(|(s, e)| (s, e) != (start, end) && s >= start && e <= end)
        };
        let inner = loops.iter().filter(is_innermost).map(|(start, end)| {
            let inside = code.iter().filter(|one| (*start..=*end).contains(&one.address));
            inside.fold(
                InnerLoop {
                    instructions: 0,
                    multiply_adds: 0,
                    matrix_multiply_adds: 0,
                    issue_cycles: 0,
                },
                |sum, one| InnerLoop {
                    instructions: sum.instructions + 1,
                    multiply_adds: sum.multiply_adds + u64::from(one.multiplies_and_adds()),
                    matrix_multiply_adds: sum.matrix_multiply_adds
                        + u64::from(one.is_of_matrices()),
                    issue_cycles: sum.issue_cycles + one.stall,
                },
            )
        });
        inner.max_by_key(|inner| {
            (inner.matrix_multiply_adds, inner.multiply_adds, inner.instructions)
        })
    }

    /// The lines of a function.
    fn function(&self, name: &str) -> Option<&str> {
        let mut functions = self.text.split("Function : ").skip(1);
        functions.find(|text| text.lines().next().is_some_and(|line| line.trim() == name))
    }
}

/// An instruction.
#[derive(Debug, PartialEq, Eq)]
struct Instruction<'t> {
    address: u64,
    /// The text without its predicate.
    text: &'t str,
    /// The stall count.
    stall: u64,
}

impl Instruction<'_> {
    /// The opcode without modifiers: `FFMA` of `FFMA.FTZ`.
    fn name(&self) -> &str {
        let end = self.text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(self.text.len());
        &self.text[..end]
    }

    fn multiplies_and_adds(&self) -> bool {
        // `HFMA2` with `RZ` only moves a constant.
        match self.name() {
            "FFMA" | "FFMA2" | "DFMA" => true,
            "HFMA2" => !self.text.contains("-RZ, RZ"),
            _ => false,
        }
    }

    fn is_of_matrices(&self) -> bool {
        matches!(self.name(), "HMMA" | "IMMA" | "DMMA" | "HGMMA" | "IGMMA" | "QGMMA")
    }

    /// The start and end of a loop, if this is a backward branch.
    fn repeats(&self) -> Option<(u64, u64)> {
        if self.name() != "BRA" {
            return None;
        }
        let (_, target) = self.text.rsplit_once("0x")?;
        let digits = target.split(|c: char| !c.is_ascii_hexdigit()).next()?;
        let target = u64::from_str_radix(digits, 16).ok()?;
        // The branch after the end of a kernel targets itself.
        (target < self.address).then_some((target, self.address))
    }
}

/// The instructions of a function: a line with address, text and lower word, and a line with the
/// upper word.
fn instructions(function: &str) -> Vec<Instruction<'_>> {
    let mut found = Vec::new();
    let mut lines = function.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((address, text)) = instruction(line) else { continue };
        let Some(upper) = lines.peek().and_then(|line| word(line)) else { continue };
        found.push(Instruction { address, text, stall: upper >> 41 & 0xf });
    }
    found
}

/// The address and the text of a line such as `/*0080*/ @P0 BRA 0x40 ; /* 0x... */`.
fn instruction(line: &str) -> Option<(u64, &str)> {
    let (address, rest) = line.trim_start().strip_prefix("/*")?.split_once("*/")?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let text = rest.split("/*").next()?.trim();
    let text = match text.strip_prefix('@') {
        Some(predicated) => predicated.split_once(' ')?.1.trim_start(),
        None => text,
    };
    Some((address, text))
}

/// The word of a line such as `/* 0x000fe40000000f00 */`.
fn word(line: &str) -> Option<u64> {
    let digits = line.trim().strip_prefix("/* 0x")?.strip_suffix(" */")?;
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
	code for sm_80
		Function : other
        /*0000*/                   EXIT ;                                             /* 0x000000000000794d */
                                                                                      /* 0x000fea0003800000 */
		Function : loops
        /*0000*/                   MOV R1, c[0x0][0x28] ;                             /* 0x00000a0000017a02 */
                                                                                      /* 0x000fe40000000f00 */
        /*0010*/                   LDS R4, [R3] ;                                     /* 0x0000000000037919 */
                                                                                      /* 0x000e220000002100 */
        /*0020*/                   FFMA R0, R4, R4, R0 ;                              /* 0x00000004ff007435 */
                                                                                      /* 0x000fe200000001ff */
        /*0030*/                   HFMA2.MMA R5, -RZ, RZ, 0, 1 ;                      /* 0x00000004ff007435 */
                                                                                      /* 0x000fe200000001ff */
        /*0040*/              @!P0 BRA 0x10 ;                                         /* 0xfffffff000007947 */
                                                                                      /* 0x000fc0000383ffff */
        /*0050*/              @P1  BRA 0x0 ;                                          /* 0xfffffff000007947 */
                                                                                      /* 0x000fc0000383ffff */
        /*0060*/                   BRA 0x60;                                          /* 0xfffffff000007947 */
                                                                                      /* 0x000fc0000383ffff */
		..........
";

    #[test]
    fn the_inner_loop_is_found_and_counted() {
        let sass = Sass { text: TEXT.to_owned() };
        let inner = sass.inner_loop("loops").unwrap();
        assert_eq!((inner.instructions, inner.multiply_adds), (4, 1));
        // 0x000e2200..., 0x000fe200... twice, 0x000fc000...: one, one, one, and zero cycles.
        let stall = |word: u64| word >> 41 & 0xf;
        let words =
            [0x000e_2200_0000_2100, 0x000f_e200_0000_01ff, 0x000f_c000_0383_ffff].map(stall);
        assert_eq!(words, [1, 1, 0]);
        assert_eq!(inner.issue_cycles, 3);
        assert_eq!(inner.cycles_per_multiply_add(), Some(3.0));
        assert!((inner.share() - 0.25).abs() < 1e-12);
        assert_eq!(sass.inner_loop("other"), None);
        assert_eq!(sass.inner_loop("loop"), None);
    }

    #[test]
    fn texts_that_are_no_code_have_no_loops() {
        for text in [
            "",
            "Function : f\n",
            "Function : f\n/*zz*/ BRA 0x0 ;\n/* 0xqq */",
            "Function : f\n/*0010*/ @P0",
        ] {
            assert_eq!(Sass { text: text.to_owned() }.inner_loop("f"), None, "{text}");
        }
    }
}
