//! The C header of a package.

use tensorwright_codegen_c::{POOL, interface_version};

use super::{ERRORS, Signatures};
use crate::operator::Operator;
use crate::plan::Plan;

/// The header.
pub(crate) fn header(plan: &Plan) -> String {
    let name = &plan.name;
    let upper = name.to_uppercase();
    let guard = format!("TW_PACKAGE_{upper}_H");
    let mut text = format!(
        "/* {name}: kernels made by Tensorwright. README says what is inside. */\n\
         #ifndef {guard}\n#define {guard}\n\n#include <stdint.h>\n\n\
         #ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n{POOL}\n"
    );
    text += &common(plan, &upper);
    plan.operators.iter().for_each(|one| text += &operator(plan, one));
    text + "#ifdef __cplusplus\n}\n#endif\n\n#endif\n"
}

fn common(plan: &Plan, upper: &str) -> String {
    let name = &plan.name;
    let mut text = "/* What functions return if it is not 0. Positive numbers, 1 + n: a subscript that is \
                    computed\n   from data is out of bounds in read n of the kernel, and outputs hold \
                    anything. */\nenum {\n"
        .to_owned();
    for (error, number, meaning) in ERRORS {
        text += &format!("    {upper}_ERROR_{error} = {number}, /* {meaning} */\n");
    }
    let levels: Vec<String> = plan
        .levels
        .iter()
        .enumerate()
        .map(|(number, level)| format!("{number} {} ({})", level.name(), level.requirement()))
        .collect();
    text += &format!(
        "}};\n\n/* A sentence about what a function returned. */\n\
         const char *{name}_error_text(int32_t code);\n\n\
         /* The levels are {}. The best one that the processor has is found\n   \
         out at the first call, and used from then on; {name}_level says which, or an error. */\n\
         int32_t {name}_level(void);\n\n\
         /* Uses a lower level from now on, in all threads; -1 for the best one again. A level that the\n   \
         processor lacks is refused. */\n\
         int32_t {name}_set_level(int32_t level);\n\n\
         /* The name of a level; null if there is none of the number. */\n\
         const char *{name}_level_name(int32_t level);\n\n",
        levels.join(", ")
    );
    text
}

fn operator(plan: &Plan, operator: &Operator) -> String {
    let name = format!("{}_{}", plan.name, operator.name);
    let signatures = Signatures::of(operator);
    let version = interface_version(&signatures.prototypes(&name, operator));
    let mut text = format!(
        "/* The interface of {name}: a number of its parameters, whatever the sizes and the schedules. If\n   \
         {name}_interface() returns another one, the library has other parameters. */\n\
         #define {name}_INTERFACE 0x{version:08x}u\nuint32_t {name}_interface(void);\n\n/* {}\n\n",
        operator.name
    );
    for (number, parameter) in operator.parameters.iter().enumerate() {
        let direction = if parameter.is_output { "out" } else { "in" };
        let of = match parameter {
            _ if parameter.is_const => ", constant",
            _ if parameter.id.is_none() => ", with the sizes",
            _ => "",
        };
        text += &format!(
            "   {number:>2} {direction:<4} {}: {}{of}\n",
            parameter.name.c,
            operator.shape_of(parameter)
        );
    }
    text += "\n   The sizes may be\n";
    for case in &operator.cases {
        text += &format!("      {}\n", case.words(&operator.sizes));
    }
    text += &format!(
        "   {name}_elements says how many elements a parameter has for sizes, by its number above; negative\n   \
         if there is no kernel for them. Tensors are dense and row by row, and outputs overlap nothing.\n\n   \
         `workspace` is memory of {name}_workspace_bytes bytes for the workers of the pool, at a multiple of\n   \
         64 (it may be 0); if it is null, the call allocates. `pool` runs parallel loops; if it is null, they run in the\n   \
         calling thread. */\n\
         int32_t {name}({});\nint64_t {name}_elements({});\nint64_t {name}_workspace_bytes({});\n",
        signatures.run, signatures.elements, signatures.workspace
    );
    if operator.has_constants() {
        text += &format!(
            "\n/* Constants in the layout that the kernels want: `prepared` is memory of \
             {name}_prepared_bytes bytes\n   (0 if there is nothing to prepare) at a multiple of 64, for \
             all values of a size that varies. It\n   holds for the level that was in use. A call with \
             null instead prepares for itself, every time.\n   Calls take the constants with it, since \
             some kernels read them as they are. */\n\
             int64_t {name}_prepared_bytes({});\nint32_t {name}_prepare({});\n",
            signatures.sizes, signatures.prepare
        );
    }
    text + "\n"
}
