//! The Rust module of a package: safe functions over the C ones.

use tensorwright_codegen_c::element_type;

use crate::operator::{Operator, Parameter};
use crate::plan::Plan;

/// The common part of every module.
const COMMON: &str = include_str!("rust_common.rs.txt");

/// The common part of modules with constants.
const LINE: &str = r#"/// Memory at a multiple of 64 bytes.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line(#[allow(dead_code, reason = "only the library looks inside")] [u8; 64]);

"#;

/// Clippy warns from this number of parameters on.
const MANY: usize = 7;

/// The module, for editions 2021 and 2024, without dependencies. 16-bit floats are `u16`.
pub(crate) fn module(plan: &Plan) -> String {
    let mut text = "use std::ffi::c_void;\nuse std::fmt;\n\n".to_owned();
    text += &declarations(plan);
    text += COMMON;
    if plan.operators.iter().any(Operator::has_constants) {
        text += LINE;
    }
    text += &levels(plan);
    for operator in &plan.operators {
        let functions = Functions { operator, symbol: format!("{}_{}", plan.name, operator.name) };
        if operator.has_constants() {
            text += &functions.prepared();
        }
        text += &functions.run();
    }
    text
}

fn declarations(plan: &Plan) -> String {
    let name = &plan.name;
    let mut text = format!(
        "#[allow(dead_code, reason = \"not every operator needs all\")]\nunsafe extern \"C\" {{\n    fn {name}_level() -> i32;\n    \
         fn {name}_set_level(level: i32) -> i32;\n"
    );
    for operator in &plan.operators {
        let symbol = format!("{name}_{}", operator.name);
        let sizes: String =
            operator.extents().iter().map(|size| format!("{}: i64, ", size.rust)).collect();
        let one = |parameter: &Parameter| {
            let element = element_type(parameter.dtype);
            let ctype = match parameter.is_output {
                _ if parameter.is_scalar_input() => element.to_owned(),
                true => format!("*mut {element}"),
                false => format!("*const {element}"),
            };
            format!("{}: {ctype}, ", parameter.name.rust)
        };
        let parameters: String = operator.parameters.iter().map(one).collect();
        let prepares: String = operator.prepares().map(one).collect();
        let selectors: String = operator.selectors().map(one).collect();
        let has_constants = operator.has_constants();
        let prepared = if has_constants { "prepared: *const c_void, " } else { "" };
        let snake = "#[allow(non_snake_case, reason = \"the name of the definition\")]\n    ";
        text += &format!(
            "    {snake}fn {symbol}({sizes}{parameters}{prepared}workspace: *mut c_void, pool: *mut c_void) \
             -> i32;\n    {snake}fn {symbol}_elements({sizes}{selectors}parameter: i32) -> i64;\n"
        );
        if has_constants {
            text += &format!(
                "    {snake}fn {symbol}_prepared_bytes({}) -> i64;\n    {snake}fn {symbol}_prepare({sizes}\
                 {prepares}prepared: *mut c_void, pool: *mut c_void) -> i32;\n",
                (sizes.clone() + &selectors).trim_end_matches(", ")
            );
        }
    }
    text + "}\n\n"
}

fn levels(plan: &Plan) -> String {
    let names: Vec<String> = plan.levels.iter().map(|l| format!("\"{}\"", l.name())).collect();
    let (count, name) = (names.len(), &plan.name);
    format!(
        "/// The levels that there are kernels for, the lowest first.\n\
         pub const LEVELS: [&str; {count}] = [{}];\n\n\
         /// The level in use: the best that the processor has, unless another was set.\n///\n\
         /// # Errors\n/// If the processor has none of them.\n\
         pub fn level() -> Result<&'static str, Error> {{\n    \
         // SAFETY: it takes nothing.\n    let level = unsafe {{ {name}_level() }};\n    \
         let name = usize::try_from(level).ok().and_then(|level| LEVELS.get(level));\n    \
         name.copied().ok_or(Error::of(level))\n}}\n\n\
         /// Uses a level from now on, in all threads.\n///\n/// # Errors\n\
         /// If there is no such level, or the processor lacks it.\n\
         pub fn set_level(name: &str) -> Result<(), Error> {{\n    \
         let level = LEVELS.iter().position(|known| *known == name).ok_or(Error::Level)?;\n    \
         // SAFETY: any number may be given.\n    \
         finish(unsafe {{ {name}_set_level(level as i32) }})\n}}\n\n",
        names.join(", ")
    )
}

/// The functions of an operator.
struct Functions<'a> {
    operator: &'a Operator,
    symbol: String,
}

impl Functions<'_> {
    fn sizes(&self) -> Vec<String> {
        self.operator.extents().iter().map(|size| format!("{}: i64", size.rust)).collect()
    }

    /// The sizes as arguments, each followed by a comma.
    fn size_arguments(&self) -> String {
        self.operator.extents().iter().map(|size| format!("{}, ", size.rust)).collect()
    }

    /// The selecting arguments, each followed by a comma.
    fn selecting_arguments(&self) -> String {
        let selectors = self.operator.selectors().map(|p| format!("{}, ", p.name.rust));
        self.size_arguments() + &selectors.collect::<String>()
    }

    fn lint(&self, count: usize) -> &'static str {
        match count > MANY {
            true => "#[allow(clippy::too_many_arguments, reason = \"one per size and tensor\")]\n",
            false => "",
        }
    }

    /// The lines that list the supported sizes.
    fn legend(&self) -> String {
        let operator = self.operator;
        let cases = operator.cases.iter().map(|case| case.words(&operator.sizes));
        cases.map(|words| format!("/// - {words}\n")).collect()
    }

    /// Checks of the lengths of slices.
    fn checks(&self, is_checked: impl Fn(&Parameter) -> bool) -> String {
        let (symbol, sizes) = (&self.symbol, self.selecting_arguments());
        let parameters = self.operator.parameters.iter().enumerate();
        let one = |(number, parameter): (usize, &Parameter)| {
            let name = &parameter.name.rust;
            format!(
                "    // SAFETY: any numbers may be given.\n    \
                 check(\"{name}\", {name}.len(), unsafe {{ {symbol}_elements({sizes}{number}) }})?;\n"
            )
        };
        parameters.filter(|(_, p)| p.rank > 0 && is_checked(p)).map(one).collect()
    }

    /// The structure of prepared constants.
    fn prepared(&self) -> String {
        let (structure, symbol) = (self.operator.structure(), &self.symbol);
        let list = [self.sizes(), self.operator.prepares().map(argument).collect()].concat();
        let sizes = self.size_arguments();
        let selecting = self.selecting_arguments();
        let bytes = selecting.trim_end_matches(", ");
        let passed: String =
            self.operator.prepares().map(|p| format!("{}, ", pointer(p))).collect();
        format!(
            "/// The constants of [`{name}`], in the layout that its kernels want.\n\
             #[derive(Debug, Clone)]\npub struct {structure} {{\n    lines: Vec<Line>,\n}}\n\n\
             impl {structure} {{\n    /// Brings constants into the layout of the kernels, at the level in \
             use.\n    ///\n    /// # Errors\n    /// If there is no kernel for these sizes, or a slice has \
             another length than they say.\n{}    pub fn new({}) -> Result<Self, Error> {{\n{}        \
             // SAFETY: any numbers may be given.\n        \
             let bytes = unsafe {{ {symbol}_prepared_bytes({bytes}) }};\n        \
             let bytes = usize::try_from(bytes).map_err(|_| Error::of(bytes as i32))?;\n        \
             let mut lines = vec![Line([0; 64]); bytes.div_ceil(64)];\n        \
             let pointer = lines.as_mut_ptr().cast();\n        \
             // SAFETY: slices are as long as the sizes say, and the memory as the library asks.\n        \
             finish(unsafe {{ {symbol}_prepare({sizes}{passed}pointer, std::ptr::null_mut()) }})?;\n        \
             Ok(Self {{ lines }})\n    }}\n}}\n\n",
            indent(self.lint(list.len())),
            list.join(", "),
            indent(&self.checks(|parameter| parameter.is_const)),
            name = self.operator.rust_name,
        )
    }

    /// The function that computes.
    fn run(&self) -> String {
        let parameters = &self.operator.parameters;
        let mut list = [self.sizes(), parameters.iter().map(argument).collect()].concat();
        let passed: String = parameters.iter().map(|p| format!("{}, ", pointer(p))).collect();
        let (mut note, mut start, mut prepared) = (String::new(), String::new(), "");
        if self.operator.has_constants() {
            let structure = self.operator.structure();
            list.push(format!("prepared: Option<&{structure}>"));
            note = format!(
                "/// Without [`{structure}`] constants are prepared in every call that needs it.\n///\n"
            );
            start = "    let prepared = prepared.map_or(std::ptr::null(), |p| p.lines.as_ptr().cast());\n"
                .to_owned();
            prepared = "prepared, ";
        }
        format!(
            "/// Runs `{name}` in the calling thread. The sizes may be\n///\n{}///\n{note}/// # Errors\n\
             /// If there is no kernel for these sizes, a slice has another length than they say, or what\n\
             /// [`Error`] lists.\n{}pub fn {rust}({}) -> Result<(), Error> {{\n{}{start}    \
             // SAFETY: slices are as long as the sizes say; the library allocates its workspace.\n    \
             finish(unsafe {{ {symbol}({sizes}{passed}{prepared}std::ptr::null_mut(), \
             std::ptr::null_mut()) }})\n}}\n\n",
            self.legend(),
            self.lint(list.len()),
            list.join(", "),
            self.checks(|_| true),
            name = self.operator.name,
            rust = self.operator.rust_name,
            symbol = self.symbol,
            sizes = self.size_arguments(),
        )
    }
}

/// A parameter of a safe function.
fn argument(parameter: &Parameter) -> String {
    let (name, element) = (&parameter.name.rust, element_type(parameter.dtype));
    match (parameter.is_output, parameter.rank) {
        (false, 0) => format!("{name}: {element}"),
        (false, _) => format!("{name}: &[{element}]"),
        (true, 0) => format!("{name}: &mut {element}"),
        (true, _) => format!("{name}: &mut [{element}]"),
    }
}

/// The argument passed to the library for a parameter.
fn pointer(parameter: &Parameter) -> String {
    let name = &parameter.name.rust;
    match (parameter.is_output, parameter.rank) {
        (false, 0) => name.clone(),
        (false, _) => format!("{name}.as_ptr()"),
        (true, 0) => format!("std::ptr::from_mut({name})"),
        (true, _) => format!("{name}.as_mut_ptr()"),
    }
}

/// Indents lines by one level.
fn indent(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}
