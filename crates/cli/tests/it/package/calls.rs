//! Calls of packaged functions from C, Rust and Python, compared with the reference.

use std::collections::{BTreeMap, BTreeSet};

use tensorwright::ir::Tensor;
use tensorwright::schedule::interface::in_order;
use tensorwright::{Buffer, Inputs, Module, Program, Run};

use super::scratch::Scratch;

/// A call of a packaged function whose inputs and outputs are tensors of `float`, or scalars.
pub(crate) struct Call {
    number: usize,
    operator: &'static str,
    sizes: Vec<i64>,
    program: Program,
    inputs: Inputs,
    expected: Run,
}

impl Call {
    /// A call with random inputs, which are written to files.
    pub(crate) fn new(
        scratch: &Scratch,
        number: usize,
        operator: &'static str,
        text: &str,
        sizes: &[(&str, i64)],
    ) -> Self {
        let module = Module::parse("call.tc", text).unwrap();
        let def = module.chosen(None, "").unwrap();
        let map: BTreeMap<String, i64> = sizes.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
        let program = def.bind(map.clone()).unwrap();
        let sizes = def.sizes();
        let sizes = sizes.iter().filter_map(|name| map.get(*name).copied()).collect();
        let inputs = program.random_inputs(number as u64).unwrap();
        let expected = program.run_reference(&inputs).unwrap();
        for (name, buffer) in &inputs {
            scratch.write(&format!("{number}.{name}"), buffer.to_bytes());
        }
        Self { number, operator, sizes, program, inputs, expected }
    }

    /// The arguments for the inputs of the definition: data from files, and scalars.
    fn inputs<'c>(
        &'c self,
        load: impl Fn(&'c Tensor) -> String,
        number: impl Fn(i64) -> String,
    ) -> Vec<String> {
        let loaded = self.program.inputs().iter().map(load);
        in_order(loaded, &self.program.ir().fixed, |scalar| number(scalar.value))
    }

    fn file(&self, name: &str) -> String {
        format!("{}.{name}", self.number)
    }

    /// The outputs with the names of their files, by level.
    fn outputs(&self, level: &str) -> Vec<(String, String, usize)> {
        let one = |output: &tensorwright::Output| {
            let name = output.name.clone();
            let file = format!("{level}.{}.{name}", self.number);
            (name, file, output.buffer.len())
        };
        self.expected.outputs.iter().map(one).collect()
    }

    fn sizes(&self) -> Vec<String> {
        self.sizes.iter().map(i64::to_string).collect()
    }

    fn is_scalar(&self, output: &str) -> bool {
        let found = self.expected.output(output);
        found.is_some_and(|output| output.buffer.shape().is_empty())
    }

    fn is_const(&self) -> bool {
        self.program.inputs().iter().any(|input| input.is_const)
    }

    /// Reads and compares the results of a program.
    pub(crate) fn check(&self, scratch: &Scratch, level: &str) {
        for (output, (name, file, _)) in self.expected.outputs.iter().zip(self.outputs(level)) {
            let bytes = std::fs::read(scratch.path(&file)).unwrap();
            let (dtype, shape) = (output.buffer.dtype(), output.buffer.shape());
            let actual = Buffer::from_bytes(dtype, shape, &bytes).unwrap();
            let mismatch = output.mismatch(&actual);
            let (operator, sizes) = (self.operator, &self.sizes);
            assert_eq!(
                mismatch, None,
                "{name} of {operator} {sizes:?}, {level}, seed {}",
                self.number
            );
        }
    }

    /// The call in C. Every other call prepares constants first.
    pub(crate) fn c(&self, package: &str, level: &str) -> String {
        let load = |input: &Tensor| {
            let load = format!("load(\"{}\")", self.file(&input.name));
            if input.shape.is_empty() { format!("*{load}") } else { load }
        };
        let pointers = self.inputs(load, |value| value.to_string());
        let function = format!("{package}_{}", self.operator);
        let mut text = "    {\n".to_owned();
        let outputs = self.outputs(level);
        for (name, _, elements) in &outputs {
            text += &format!("        float *{name} = calloc({elements}, sizeof(float));\n");
        }
        let sizes = self.sizes().join(", ");
        let names: Vec<String> = outputs.iter().map(|(name, ..)| name.clone()).collect();
        let mut arguments = [self.sizes(), pointers.clone(), names].concat();
        if self.is_const() {
            text += "        void *prepared = NULL;\n";
            if self.number.is_multiple_of(2) {
                let inputs = self.program.inputs().iter();
                let constants: Vec<String> =
                    inputs.filter(|input| input.is_const).map(load).collect();
                text += &format!(
                    "        prepared = aligned_alloc(64, (size_t){function}_prepared_bytes({sizes}) + 64 & \
                     ~63ul);\n        check({function}_prepare({sizes}, {}, prepared, NULL));\n",
                    constants.join(", ")
                );
            }
            arguments.push("prepared".to_owned());
        }
        text += &format!("        check({function}({}, NULL, NULL));\n", arguments.join(", "));
        for (name, file, elements) in &outputs {
            text += &format!("        save(\"{file}\", {name}, {elements});\n");
        }
        text + "    }\n"
    }

    /// The call in Rust.
    pub(crate) fn rust(&self, package: &str, level: &str) -> String {
        let load = |input: &Tensor| match input.shape.is_empty() {
            true => format!("load(\"{}\")[0]", self.file(&input.name)),
            false => format!("&load(\"{}\")", self.file(&input.name)),
        };
        let mut arguments = self.sizes();
        arguments.extend(self.inputs(load, |value| value.to_string()));
        let mut constants = self.sizes();
        constants.extend(self.program.inputs().iter().filter(|input| input.is_const).map(load));
        let mut text = "    {\n".to_owned();
        for (name, _, elements) in self.outputs(level) {
            let name = name.to_lowercase();
            text += &format!("        let mut {name} = vec![0.0f32; {elements}];\n");
            // A result without dimensions is one number.
            let number = if self.is_scalar(&name) { "[0]" } else { "" };
            arguments.push(format!("&mut {name}{number}"));
        }
        if self.is_const() {
            let mut structure = self.operator.to_owned();
            structure[..1].make_ascii_uppercase();
            text += &format!(
                "        let prepared = {package}::{structure}Prepared::new({}).unwrap();\n",
                constants.join(", ")
            );
            arguments.push("Some(&prepared)".to_owned());
        }
        text +=
            &format!("        {package}::{}({}).unwrap();\n", self.operator, arguments.join(", "));
        for (name, file, _) in self.outputs(level) {
            text += &format!("        save(\"{file}\", &{});\n", name.to_lowercase());
        }
        text + "    }\n"
    }

    /// The call in Python.
    pub(crate) fn python(&self, package: &str, level: &str) -> String {
        let mut arguments: Vec<String> =
            self.sizes.iter().map(|size| format!("c_int64({size})")).collect();
        let load = |input: &Tensor| {
            let load = format!("load('{}')", self.file(&input.name));
            if input.shape.is_empty() { format!("c_float({load}[0])") } else { load }
        };
        arguments.extend(self.inputs(load, |value| format!("c_int32({value})")));
        let outputs = self.outputs(level);
        let mut text = String::new();
        for (name, _, elements) in &outputs {
            text += &format!("{name} = (c_float * {elements})()\n");
            arguments.push(name.clone());
        }
        arguments.extend(self.is_const().then(|| "None".to_owned()));
        let arguments = arguments.join(", ");
        text += &format!("check(library.{package}_{}({arguments}, None, None))\n", self.operator);
        for (name, file, _) in &outputs {
            text += &format!("open('{file}', 'wb').write(bytes({name}))\n");
        }
        text
    }

    /// Whether random inputs could be made; otherwise the test would compare nothing.
    pub(crate) fn is_real(&self) -> bool {
        !self.inputs.is_empty() && !self.expected.outputs.is_empty()
    }
}

/// A C program that makes calls at a level of a package.
pub(crate) fn c_program(package: &str, level: &str, calls: &[Call]) -> String {
    let body: String = calls.iter().map(|call| call.c(package, level)).collect();
    let operators: BTreeSet<&str> = calls.iter().map(|call| call.operator).collect();
    let one = |name: &&str| {
        format!("    if ({package}_{name}_interface() != {package}_{name}_INTERFACE) return 6;\n")
    };
    let interfaces: String = operators.iter().map(one).collect();
    format!(
        r#"#include "{package}.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float *load(const char *name) {{
    FILE *file = fopen(name, "rb");
    float *data = aligned_alloc(64, 1 << 20);
    if (file == NULL || fread(data, 1, 1 << 20, file) == 0) exit(9);
    fclose(file);
    return data;
}}

static void save(const char *name, const float *data, size_t count) {{
    FILE *file = fopen(name, "wb");
    fwrite(data, sizeof(float), count, file);
    fclose(file);
}}

static void check(int32_t code) {{
    if (code != 0) {{
        fprintf(stderr, "%s\n", {package}_error_text(code));
        exit(8);
    }}
}}

int main(void) {{
{interfaces}    for (int32_t level = 0; {package}_level_name(level) != NULL; level++) {{
        if (strcmp({package}_level_name(level), "{level}") == 0) check({package}_set_level(level));
    }}
    if (strcmp({package}_level_name({package}_level()), "{level}") != 0) return 7;
{body}    return 0;
}}
"#
    )
}

/// A Rust program that makes calls at a level of a package.
pub(crate) fn rust_program(package: &str, level: &str, calls: &[Call]) -> String {
    let body: String = calls.iter().map(|call| call.rust(package, level)).collect();
    format!(
        r#"fn load(name: &str) -> Vec<f32> {{
    let bytes = std::fs::read(name).unwrap();
    bytes.chunks_exact(4).map(|b| f32::from_ne_bytes([b[0], b[1], b[2], b[3]])).collect()
}}

fn save(name: &str, data: &[f32]) {{
    let bytes: Vec<u8> = data.iter().flat_map(|value| value.to_ne_bytes()).collect();
    std::fs::write(name, bytes).unwrap();
}}

fn main() {{
    {package}::set_level("{level}").unwrap();
    assert_eq!({package}::level(), Ok("{level}"));
{body}}}
"#
    )
}

/// A Python script that makes calls at the best level of a package.
pub(crate) fn python_program(package: &str, level: &str, calls: &[Call]) -> String {
    let body: String = calls.iter().map(|call| call.python(package, level)).collect();
    format!(
        r#"from ctypes import CDLL, c_char_p, c_float, c_int32, c_int64

library = CDLL('./out/lib{package}.so')
library.{package}_error_text.restype = c_char_p


def check(code):
    if code != 0:
        raise RuntimeError(library.{package}_error_text(c_int32(code)))


def load(name):
    data = open(name, 'rb').read()
    return (c_float * (len(data) // 4)).from_buffer_copy(data)


{body}"#
    )
}
