//! [`Requirement`]: required CPU features of compiled code, and run-time checks.

use std::fmt::Write;

/// The CPU that an object file requires: callers check it, because a missing instruction would kill
/// the process without a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    description: String,
    is_x86: bool,
    features: Vec<&'static Feature>,
}

/// A CPU feature that not every processor has.
#[derive(Debug, PartialEq, Eq)]
struct Feature {
    /// LLVM's name.
    name: &'static str,
    /// The name in Rust's standard library.
    rust: &'static str,
    /// The way to detect it.
    source: Source,
    bit: u32,
}

/// A source of feature bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    /// A CPUID leaf and subleaf, and a register: 0 to 3 for a, b, c, d.
    Cpuid(u32, u32, usize),
    /// The AArch64 hardware capability words of Linux.
    Capabilities(&'static str),
}

const fn x86(name: &'static str, rust: &'static str, leaf: (u32, u32, usize), bit: u32) -> Feature {
    Feature { name, rust, source: Source::Cpuid(leaf.0, leaf.1, leaf.2), bit }
}

const fn arm(name: &'static str, rust: &'static str, word: &'static str, bit: u32) -> Feature {
    Feature { name, rust, source: Source::Capabilities(word), bit }
}

const BASIC: (u32, u32, usize) = (1, 0, 2);
const EXTENDED_B: (u32, u32, usize) = (7, 0, 1);
const EXTENDED_C: (u32, u32, usize) = (7, 0, 2);

/// The features of x86-64 that a code generator uses by default.
#[rustfmt::skip]
static X86: [Feature; 28] = [
    x86("sse3", "sse3", BASIC, 0),
    x86("ssse3", "ssse3", BASIC, 9),
    x86("fma", "fma", BASIC, 12),
    x86("sse4.1", "sse4.1", BASIC, 19),
    x86("sse4.2", "sse4.2", BASIC, 20),
    x86("movbe", "movbe", BASIC, 22),
    x86("popcnt", "popcnt", BASIC, 23),
    x86("avx", "avx", BASIC, 28),
    x86("f16c", "f16c", BASIC, 29),
    x86("bmi", "bmi1", EXTENDED_B, 3),
    x86("avx2", "avx2", EXTENDED_B, 5),
    x86("bmi2", "bmi2", EXTENDED_B, 8),
    x86("avx512f", "avx512f", EXTENDED_B, 16),
    x86("avx512dq", "avx512dq", EXTENDED_B, 17),
    x86("avx512ifma", "avx512ifma", EXTENDED_B, 21),
    x86("avx512cd", "avx512cd", EXTENDED_B, 28),
    x86("avx512bw", "avx512bw", EXTENDED_B, 30),
    x86("avx512vl", "avx512vl", EXTENDED_B, 31),
    x86("avx512vbmi", "avx512vbmi", EXTENDED_C, 1),
    x86("avx512vbmi2", "avx512vbmi2", EXTENDED_C, 6),
    x86("gfni", "gfni", EXTENDED_C, 8),
    x86("avx512vnni", "avx512vnni", EXTENDED_C, 11),
    x86("avx512bitalg", "avx512bitalg", EXTENDED_C, 12),
    x86("avx512vpopcntdq", "avx512vpopcntdq", EXTENDED_C, 14),
    x86("avx512fp16", "avx512fp16", (7, 0, 3), 23),
    x86("avxvnni", "avxvnni", (7, 1, 0), 4),
    x86("avx512bf16", "avx512bf16", (7, 1, 0), 5),
    x86("lzcnt", "lzcnt", (0x8000_0001, 0, 2), 5),
];

/// The features of AArch64 beyond NEON, which is always present.
static ARM: [Feature; 10] = [
    arm("lse", "lse", "AT_HWCAP", 8),
    arm("fullfp16", "fp16", "AT_HWCAP", 10),
    arm("rdm", "rdm", "AT_HWCAP", 12),
    arm("jsconv", "jsconv", "AT_HWCAP", 13),
    arm("complxnum", "fcma", "AT_HWCAP", 14),
    arm("dotprod", "dotprod", "AT_HWCAP", 20),
    arm("sve", "sve", "AT_HWCAP", 22),
    arm("sve2", "sve2", "AT_HWCAP2", 1),
    arm("i8mm", "i8mm", "AT_HWCAP2", 13),
    arm("bf16", "bf16", "AT_HWCAP2", 14),
];

impl Requirement {
    /// A CPU given by LLVM's triple and feature names. Features that no code generator uses by
    /// default are ignored.
    #[must_use]
    pub fn new<'a>(
        description: &str,
        triple: &str,
        features: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let is_x86 = triple.starts_with("x86_64");
        let known: &'static [Feature] = if is_x86 { &X86 } else { &ARM };
        let names: Vec<&str> = features.into_iter().collect();
        let features = known.iter().filter(|feature| names.contains(&feature.name)).collect();
        // It is used in comments and strings of C.
        let description = description.replace(['"', '\\', '*', '\n'], " ");
        Self { description, is_x86, features }
    }

    /// The architecture.
    fn architecture(&self) -> &'static str {
        if self.is_x86 { "x86-64" } else { "AArch64" }
    }

    /// The CPU's name and required features.
    #[must_use]
    pub fn requirement(&self) -> String {
        let names: Vec<&str> = self.features.iter().map(|feature| feature.name).collect();
        let with =
            if names.is_empty() { String::new() } else { format!(" with {}", names.join(" ")) };
        format!("{}: {}{with}", self.description, self.architecture())
    }

    /// The C functions that report whether a kernel can run.
    pub(crate) fn c_functions(&self, name: &str) -> String {
        let (guard, include) = match (self.is_x86, self.features.is_empty()) {
            (true, true) => ("__x86_64__", ""),
            (true, false) => ("__x86_64__", "#include <cpuid.h>\n"),
            (false, true) => ("__aarch64__", ""),
            (false, false) => ("__aarch64__", "#include <sys/auxv.h>\n"),
        };
        let conditions = if self.is_x86 { self.cpuid_conditions() } else { self.word_conditions() };
        format!(
            "const char *{name}_target(void) {{\n    return \"{}\";\n}}\n\n\
             #if defined({guard})\n{include}\n\
             static int {name}_has_all(void) {{\n{conditions}}}\n\
             #else\nstatic int {name}_has_all(void) {{\n    return 0;\n}}\n#endif\n\n\
             int {name}_runs_here(void) {{\n    \
             /* To ask takes long on some machines. Threads that ask at the same time find the same. */\n    \
             static int known = 0;\n    \
             int found = __atomic_load_n(&known, __ATOMIC_RELAXED);\n    \
             if (found == 0) {{\n        found = {name}_has_all() ? 1 : -1;\n        \
             __atomic_store_n(&known, found, __ATOMIC_RELAXED);\n    }}\n    \
             return found > 0;\n}}\n\n",
            self.requirement()
        )
    }

    /// The bits of each source, with the names of their features.
    fn masks(&self) -> Vec<(Source, u32, String)> {
        let mut masks: Vec<(Source, u32, String)> = Vec::new();
        for feature in &self.features {
            match masks.iter_mut().find(|(source, ..)| *source == feature.source) {
                Some((_, mask, names)) => {
                    *mask |= 1 << feature.bit;
                    let _ = write!(names, " {}", feature.name);
                }
                None => masks.push((feature.source, 1 << feature.bit, feature.name.to_owned())),
            }
        }
        masks.sort();
        masks
    }

    fn cpuid_conditions(&self) -> String {
        let has = |start: &str| self.features.iter().any(|feature| feature.name.starts_with(start));
        let mut text = String::new();
        if !self.features.is_empty() {
            text += "    unsigned r[4];\n";
        }
        for (source, mask, names) in self.masks() {
            let Source::Cpuid(leaf, part, register) = source else { continue };
            // Without OSXSAVE, reading XCR0 is an illegal instruction.
            let mask = if leaf == 1 && has("avx") { mask | 1 << 27 } else { mask };
            let _ = write!(
                text,
                "    /* {names} */\n    \
                 if (!__get_cpuid_count({leaf:#x}u, {part}, &r[0], &r[1], &r[2], &r[3]) || (r[{register}] & {mask:#x}u) != {mask:#x}u) {{\n        \
                 return 0;\n    }}\n"
            );
        }
        if has("avx") {
            let state = if has("avx512") { "0xe6u" } else { "0x6u" };
            let _ = write!(
                text,
                "    /* The registers that the system saves: xgetbv, by its bytes for old assemblers. */\n    \
                 unsigned state, high;\n    \
                 __asm__ volatile(\".byte 0x0f, 0x01, 0xd0\" : \"=a\"(state), \"=d\"(high) : \"c\"(0));\n    \
                 return (state & {state}) == {state};\n"
            );
            return text;
        }
        text + "    return 1;\n"
    }

    fn word_conditions(&self) -> String {
        let mut text = String::new();
        for (source, mask, names) in self.masks() {
            let Source::Capabilities(word) = source else { continue };
            let _ = write!(
                text,
                "    /* {names} */\n    if ((getauxval({word}) & {mask:#x}ul) != {mask:#x}ul) {{\n        \
                 return 0;\n    }}\n"
            );
        }
        text + "    return 1;\n"
    }

    /// The Rust function that reports whether a kernel can run.
    pub(crate) fn rust_function(&self) -> String {
        let (arch, detected) = match self.is_x86 {
            true => ("x86_64", "is_x86_feature_detected"),
            false => ("aarch64", "is_aarch64_feature_detected"),
        };
        let one =
            |feature: &&Feature| format!("        std::arch::{detected}!(\"{}\"),\n", feature.rust);
        let all: String = self.features.iter().map(one).collect();
        let (requirement, count) = (self.requirement(), self.features.len());
        let list = if all.is_empty() { "[]".to_owned() } else { format!("[\n{all}    ]") };
        format!(
            "/// What the kernel needs of a processor.\npub const TARGET: &str =\n    \"{requirement}\";\n\n\
             /// Whether this processor has what the kernel needs.\n\
             #[must_use]\npub fn runs_here() -> bool {{\n    \
             #[cfg(target_arch = \"{arch}\")]\n    let has: [bool; {count}] = {list};\n    \
             #[cfg(not(target_arch = \"{arch}\"))]\n    let has = [false];\n    \
             has.iter().all(|has| *has)\n}}\n\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// A bit that no processor sets.
    static NOBODYS: Feature = x86("avx-nobodys", "sse2", (7, 1, 1), 31);

    /// The results of the check functions in a C program, built by a compiler and run with an
    /// optional emulator.
    fn say(processors: &[Requirement], compiler: &str, runner: &[&str]) -> Vec<bool> {
        let last = runner.last().unwrap_or(&"here");
        let name = format!("tw-runs-{last}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let (mut text, mut calls) = ("#include <stdio.h>\n".to_owned(), String::new());
        for (number, processor) in processors.iter().enumerate() {
            let name = format!("k{number}");
            text += &format!("const char *{name}_target(void);\nint {name}_runs_here(void);\n");
            text += &processor.c_functions(&name);
            calls += &format!("    putchar({name}_runs_here() + '0');\n");
        }
        text += &format!("int main(void) {{\n{calls}    return 0;\n}}\n");
        std::fs::write(folder.join("main.c"), &text).unwrap();
        let flags =
            ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "main.c", "-o", "main"];
        let built = Command::new(compiler).args(flags).current_dir(&folder).output().unwrap();
        assert!(built.status.success(), "{text}\n{}", String::from_utf8_lossy(&built.stderr));
        let main = folder.join("main");
        let mut command = runner.iter().map(std::ffi::OsStr::new).chain([main.as_os_str()]);
        let mut run = Command::new(command.next().unwrap());
        let said = run.args(command).output().unwrap().stdout;
        std::fs::remove_dir_all(&folder).unwrap();
        said.into_iter().map(|digit| digit == b'1').collect()
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn programs_say_whether_the_processor_has_all_that_is_needed() {
        const TRIPLE: &str = "x86_64-unknown-linux-gnu";
        let mut all = Requirement::new("native", TRIPLE, []);
        let mut expected = vec![("plain", true), ("of another kind", false)];
        let mut asked =
            vec![all.clone(), Requirement::new("neon", "aarch64-unknown-linux-gnu", [])];
        macro_rules! detected {
            ($($name:tt)*) => { [$(($name, std::arch::is_x86_feature_detected!($name))),*] };
        }
        // The features that the standard library detects, one by one and together.
        for (name, is_there) in detected!(
            "sse3" "ssse3" "fma" "sse4.1" "sse4.2" "movbe" "popcnt" "avx" "f16c" "bmi1" "avx2" "bmi2" "avx512f"
            "avx512dq" "avx512ifma" "avx512cd" "avx512bw" "avx512vl" "avx512vbmi" "avx512vbmi2" "gfni" "avx512vnni"
            "avx512bitalg" "avx512vpopcntdq" "avx512bf16" "avx512fp16" "avxvnni" "lzcnt"
        ) {
            let feature = X86.iter().find(|feature| feature.rust == name).unwrap();
            asked.push(Requirement { features: vec![feature], ..all.clone() });
            expected.push((name, is_there));
            if is_there {
                all.features.push(feature);
            }
        }
        assert_eq!(asked.len(), X86.len() + 2);
        asked.push(all.clone());
        all.features.push(&NOBODYS);
        asked.push(all);
        expected.extend([("all", true), ("one that nobody has", false)]);
        let said = expected.iter().map(|(name, _)| *name).zip(say(&asked, "cc", &[]));
        assert_eq!(said.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn processors_of_aarch64_are_asked_as_well() {
        const LIBRARIES: &str = "/usr/aarch64-linux-gnu";
        const TOOLS: [&str; 2] = ["aarch64-linux-gnu-gcc", "qemu-aarch64"];
        if TOOLS.iter().any(|tool| Command::new(tool).arg("--version").output().is_err()) {
            return;
        }
        let of = |features: &[&str]| {
            Requirement::new("test", "aarch64-unknown-linux-gnu", features.iter().copied())
        };
        let asked = [of(&["neon"]), of(&["neon", "dotprod"]), of(&["dotprod", "i8mm", "bf16"])];
        for (cpu, expected) in [
            ("cortex-a53", [true, false, false]),
            ("cortex-a76", [true, true, false]),
            ("max", [true, true, true]),
        ] {
            assert_eq!(
                say(&asked, TOOLS[0], &[TOOLS[1], "-L", LIBRARIES, "-cpu", cpu]),
                expected,
                "{cpu}"
            );
        }
    }

    #[test]
    fn requirements_are_the_instructions_that_compilers_use_by_themselves() {
        let listed = ["avx2", "sha", "fma", "64bit"];
        let processor = Requirement::new("native (\"x\", */)", "x86_64-unknown-linux-gnu", listed);
        assert_eq!(processor.requirement(), "native ( x ,  /): x86-64 with fma avx2");
        let arm = Requirement::new("a", "aarch64-unknown-linux-gnu", ["neon", "dotprod", "bf16"]);
        assert_eq!(arm.requirement(), "a: AArch64 with dotprod bf16");
        let text = arm.c_functions("k");
        assert!(text.contains("getauxval(AT_HWCAP) & 0x100000ul"), "{text}");
        assert!(text.contains("getauxval(AT_HWCAP2) & 0x4000ul"), "{text}");
    }
}
