//! Emits the safe Rust functions of a kernel whose sizes vary.
//!
//! ```text
//! pub fn f(n: usize, x: &[f32], y: &mut [f32]) -> Result<(), Error>
//! pub fn f_strided(n: usize, x: &[f32], y: &mut [f32], strides: [usize; 2]) -> Result<(), Error>
//! ```

use tensorwright_schedule::interface::{Argument, Number};

use crate::sizes::Sizes;

/// The functions of a kernel, whose parameters are printed.
pub(crate) struct SizedFunctions<'a> {
    pub(crate) sizes: Sizes<'a>,
    /// The parameters of the definition with their names.
    pub(crate) arguments: &'a [(Argument<'a>, String)],
    /// The name of the function.
    pub(crate) name: &'a str,
    /// The name of the function that also takes strides, and of its parameter.
    pub(crate) strided: [String; 2],
    /// The parameters, with their types.
    pub(crate) list: Vec<String>,
    /// A description of the parameters.
    pub(crate) legend: String,
    /// Attributes of functions with many parameters.
    pub(crate) lint: &'a str,
    /// Checks of compiled-in scalars.
    pub(crate) checks: String,
    /// The pointers to the parameters.
    pub(crate) pointers: String,
}

impl SizedFunctions<'_> {
    /// All functions.
    pub(crate) fn text(&self) -> String {
        [ARITHMETIC, &self.sized(), &self.workspace(), &self.dense(), &self.strided()].concat()
    }

    fn names(&self) -> String {
        self.sizes.names.join(", ")
    }

    /// The function that checks sizes.
    fn sized(&self) -> String {
        let (names, count) = (self.names(), self.sizes.names.len());
        format!(
            "/// The sizes, if the kernel is for them.\n\
             fn sized([{names}]: [usize; {count}]) -> Result<[i64; {count}], Error> {{\n    \
             let [{names}] = [{}];\n    \
             if !({}) {{\n        return Err(Error::Size);\n    }}\n    Ok([{names}])\n}}\n\n",
            self.sizes
                .names
                .iter()
                .map(|name| format!("number({name})?"))
                .collect::<Vec<_>>()
                .join(", "),
            self.sizes.requirements().join(" && ")
        )
    }

    fn workspace(&self) -> String {
        let text = self.sizes.workspace();
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        // A workspace of fixed size does not depend on them.
        let is_used = |name: &str| words.clone().any(|word| word == name);
        let names = self.sizes.names.iter();
        let pattern: Vec<&str> =
            names.map(|name| if is_used(name) { name.as_str() } else { "_" }).collect();
        let (pattern, count) = (pattern.join(", "), self.sizes.names.len());
        format!(
            "/// The size of the workspace in bytes.\n\
             fn workspace_bytes([{pattern}]: [i64; {count}]) -> Result<i64, Error> {{\n{text}}}\n\n"
        )
    }

    fn parameters(&self) -> String {
        let sizes = self.sizes.names.iter().map(|name| format!("{name}: usize"));
        sizes.chain(self.list.iter().cloned()).collect::<Vec<_>>().join(", ")
    }

    /// The function on dense memory.
    fn dense(&self) -> String {
        let names = self.names();
        let (mut checks, mut strides) = (String::new(), Vec::new());
        for (argument, name) in self.arguments {
            let extents = self.sizes.extents(argument);
            if extents.is_empty() {
                continue;
            }
            checks += &format!(
                "    check(\"{name}\", {name}.len(), elements(&[{}])?)?;\n",
                extents.join(", ")
            );
            for dimension in 1..extents.len() {
                let inner = extents.get(dimension..).unwrap_or_default().join(", ");
                strides.push(format!("elements(&[{inner}])?"));
            }
        }
        let all = self.arguments.iter().map(|(_, name)| name.as_str());
        let all: Vec<&str> = self.sizes.names.iter().map(String::as_str).chain(all).collect();
        let [strided, parameter] = &self.strided;
        format!(
            "/// Runs the kernel in the calling thread, on dense tensors.\n///\n{}///\n/// # Errors\n\
             /// If the kernel is not for these sizes, a slice has another length than its type says, a\n\
             /// subscript that is computed from data is out of bounds, there is no memory, or the\n\
             /// processor is not one that the kernel is for.\n{}\
             pub fn {}({}) -> Result<(), Error> {{\n    \
             let {parameter} = {{\n        let [{names}] = sized([{names}])?;\n{}        \
             [{}]\n    }};\n    {strided}({}, {parameter})\n}}\n\n",
            self.legend,
            self.lint,
            self.name,
            self.parameters(),
            checks.lines().map(|line| format!("    {line}\n")).collect::<String>(),
            strides.join(", "),
            all.join(", ")
        )
    }

    /// The function on parts of larger tensors.
    fn strided(&self) -> String {
        let (names, [name, strides]) = (self.names(), &self.strided);
        let (mut placed, mut legend, mut first) = (String::new(), Vec::new(), 0);
        let mut outer: Vec<String> = Vec::new();
        for (argument, parameter) in self.arguments {
            let extents = self.sizes.extents(argument);
            if extents.is_empty() {
                continue;
            }
            let end = first + extents.len() - 1;
            placed += &format!(
                "    placed(\"{parameter}\", &[{}], &{strides}[{first}..{end}], {parameter}.len(), {})?;\n",
                extents.join(", "),
                argument.is_output()
            );
            outer.extend(extents.into_iter().take(end - first));
            legend
                .extend((first..end).map(|at| format!("`{parameter}`, dimension {}", at - first)));
            first = end;
        }
        let passed = |(position, number): (usize, &Number)| match self.sizes.stride(number) {
            Some(place) => {
                let extent = outer.get(place).map_or("1", String::as_str);
                format!("stride({extent}, {strides}[{place}])?")
            }
            None => self.sizes.number_text(position),
        };
        let numbers: Vec<String> = self.sizes.interface.passed_numbers().map(passed).collect();
        let (visibility, count) = (if first > 0 { "pub " } else { "" }, first);
        format!(
            "/// Runs the kernel in the calling thread, on tensors whose rows may lie apart.\n///\n{}\
             /// - `{strides}`: distances between neighbors in elements, in all dimensions but the last: {}\n\
             ///\n/// # Errors\n/// As [`{}`], and if rows lie outside of a slice, or those of an output overlap.\n{}\
             {visibility}fn {name}({}, {strides}: [usize; {count}]) -> Result<(), Error> {{\n    \
             if !runs_here() {{\n        return Err(Error::Processor);\n    }}\n{}    \
             let numbers: [i64; {}];\n    let bytes = {{\n        let sizes = sized([{names}])?;\n        \
             let [{names}] = sizes;\n{}        numbers = [{}];\n        \
             workspace_bytes(sizes)?\n    }};\n    \
             let lines = usize::try_from(bytes / 64).map_err(|_| Error::Memory)?;\n    \
             let mut workspace: Vec<Line> = Vec::new();\n    \
             workspace.try_reserve_exact(lines).map_err(|_| Error::Memory)?;\n    \
             let buffers: [*mut c_void; {}] = [\n{}        numbers.as_ptr().cast_mut().cast(),\n    ];\n    \
             // SAFETY: the kernel is for these sizes, all elements lie inside of slices, the workspace is\n    \
             // as large and as aligned as the kernel expects, and a null pool means the calling thread.\n    \
             let status = unsafe {{\n        kernel(\n            buffers.as_ptr(),\n            \
             workspace.as_mut_ptr().cast(),\n            std::ptr::null_mut(),\n        )\n    }};\n    \
             finish(status)\n}}\n",
            self.legend,
            if legend.is_empty() { "none".to_owned() } else { legend.join("; ") },
            self.name,
            self.lint,
            self.parameters(),
            self.checks,
            numbers.len(),
            placed.lines().map(|line| format!("    {line}\n")).collect::<String>(),
            numbers.join(", "),
            self.sizes.interface.parameters.len() + 1,
            self.pointers
        )
    }
}

/// Names that the functions use themselves.
pub(crate) const NAMES: [&str; 11] = [
    "strides",
    "stride",
    "numbers",
    "sizes",
    "number",
    "times",
    "plus",
    "elements",
    "placed",
    "sized",
    "workspace_bytes",
];

/// Variants of the error that only these functions return, with their messages.
pub(crate) const ERRORS: [&str; 2] = [
    "    /// The kernel is not for these sizes.\n    Size,\n    \
     /// Rows of an output overlap.\n    Overlap {\n        \
     /// The name of the parameter.\n        parameter: &'static str,\n    },\n    \
     /// There is no memory.\n    Memory,\n",
    "            Error::Size => write!(f, \"the kernel is not for these sizes\"),\n            \
     Error::Overlap { parameter } => write!(f, \"rows of `{parameter}` overlap\"),\n            \
     Error::Memory => write!(f, \"there is no memory\"),\n",
];

/// Arithmetic that fails where a result does not fit.
const ARITHMETIC: &str = "\
fn number(number: usize) -> Result<i64, Error> {
    i64::try_from(number).map_err(|_| Error::Size)
}

fn times(a: i64, b: i64) -> Result<i64, Error> {
    a.checked_mul(b).ok_or(Error::Size)
}

fn plus(a: i64, b: i64) -> Result<i64, Error> {
    a.checked_add(b).ok_or(Error::Size)
}

/// The distance between neighbors, of which there may be none.
fn stride(extent: i64, stride: usize) -> Result<i64, Error> {
    if extent > 1 { number(stride) } else { Ok(0) }
}

/// The number of elements of a tensor.
fn elements(extents: &[i64]) -> Result<usize, Error> {
    let all = extents.iter().try_fold(1, |all, extent| times(all, *extent))?;
    usize::try_from(all).map_err(|_| Error::Size)
}

/// Checks that a tensor lies inside of a slice and that rows of an output are disjoint.
fn placed(
    parameter: &'static str,
    extents: &[i64],
    strides: &[usize],
    actual: usize,
    is_output: bool,
) -> Result<(), Error> {
    let mut reach = extents.last().copied().unwrap_or(1);
    for (extent, stride) in extents.iter().zip(strides).rev() {
        let stride = number(*stride)?;
        if is_output && *extent > 1 && stride < reach {
            return Err(Error::Overlap { parameter });
        }
        reach = plus(reach, times(*extent - 1, stride)?)?;
    }
    let expected = usize::try_from(reach).map_err(|_| Error::Size)?;
    if actual >= expected { Ok(()) } else { Err(Error::Length { parameter, expected, actual }) }
}

";
