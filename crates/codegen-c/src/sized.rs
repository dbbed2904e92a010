//! Emits functions that check sizes and strides, and compute what the kernel is passed.
//!
//! ```c
//! static int f_allows(int64_t N) {
//!     return N >= 1 && N <= 4096;
//! }
//! ```
//!
//! Nothing is undefined for any arguments: sums and products that may not fit 64 bits are computed
//! by functions that note it in `tw_lost`.

use tensorwright_schedule::Interface;
use tensorwright_schedule::interface::Number;
use tensorwright_schedule::nest::{MAX_BYTES, MAX_STRIDE};

use crate::header::Signature;

/// The functions that check sizes and compute the size of the workspace.
pub(crate) fn workspace_bytes(signature: &Signature<'_>) -> String {
    let name = &signature.interface.symbol;
    let arithmetic = ARITHMETIC.replace("NAME", name);
    let (sizes, names) = (signature.sizes.parameters(), signature.sizes.names.join(", "));
    let body = signature.sizes.workspace();
    let body = declared(&body).to_owned() + &body;
    let ignored = if body.contains("workers") { "" } else { "    (void)workers;\n" };
    format!(
        "{arithmetic}{}{} {{\n{ignored}    if (!{name}_allows({names})) {{\n        return -2;\n    }}\n{body}}}\n\n",
        allows(signature, &sizes.join(", ")),
        signature.workspace_bytes()
    )
}

/// The function that checks sizes.
fn allows(signature: &Signature<'_>, sizes: &str) -> String {
    let mut all = signature.sizes.requirements();
    if all.iter().any(|one| one.contains("tw_lost")) {
        all.push("!tw_lost".to_owned());
    }
    let all = format!("    return {};\n", all.join(" && "));
    format!(
        "/* Whether the kernel is for these sizes. */\nstatic int {}_allows({sizes}) {{\n{}{all}}}\n\n",
        signature.interface.symbol,
        declared(&all)
    )
}

/// The declaration of `tw_lost`, if a text mentions it.
fn declared(text: &str) -> &'static str {
    if text.contains("tw_lost") { "    int tw_lost = 0;\n" } else { "" }
}

/// The function that checks the memory of a tensor.
pub(crate) fn distances(interface: &Interface) -> String {
    let text = DISTANCES.replace("NAME", &interface.symbol);
    text.replace("MAX_STRIDE", &MAX_STRIDE.to_string()).replace("MAX_BYTES", &MAX_BYTES.to_string())
}

/// The statements that check the memory of a call, and list the numbers that the kernel is passed.
pub(crate) fn numbers(signature: &Signature<'_>, needs_workspace: bool) -> String {
    let (interface, name) = (signature.interface, &signature.interface.symbol);
    let mut text = "    int tw_lost = 0;\n".to_owned();
    let (mut calls, mut first) = (String::new(), 0);
    for (argument, parameter) in &signature.arguments {
        let extents = signature.sizes.extents(argument);
        if extents.is_empty() {
            continue;
        }
        calls += &format!(
            "    const int64_t tw_extents_of_{parameter}[] = {{{}}};\n    \
             {name}_distances(tw_extents_of_{parameter}, {}, {}, strides, {first}, tw_strides, &tw_lost);\n",
            extents.join(", "),
            extents.len(),
            argument.dtype().bytes()
        );
        first += extents.len() - 1;
    }
    text += &format!("    int64_t tw_strides[{}] = {{0}};\n{calls}", first.max(1));
    let mut refused = "tw_lost".to_owned();
    if needs_workspace {
        let mut list = signature.sizes.names.clone();
        list.push("pool != NULL ? pool->workers : 1".to_owned());
        text +=
            &format!("    const int64_t tw_bytes = {name}_workspace_bytes({});\n", list.join(", "));
        refused += " || tw_bytes < 0";
    }
    text += &format!("    if ({refused}) {{\n        return -2;\n    }}\n");
    let passed = |(position, number): (usize, &Number)| match signature.sizes.stride(number) {
        Some(place) => format!("tw_strides[{place}]"),
        None => signature.sizes.number_text(position),
    };
    let numbers: Vec<String> = interface.passed_numbers().map(passed).collect();
    text + &format!("    const int64_t tw_numbers[] = {{{}}};\n", numbers.join(", "))
}

/// Arithmetic that notes results that do not fit.
const ARITHMETIC: &str = "\
/* a * b; `*lost` becomes 1 if it does not fit 64 bits. */
static int64_t NAME_times(int64_t a, int64_t b, int *lost) {
    const int fits = a > 0   ? b <= INT64_MAX / a && b >= INT64_MIN / a
                     : b > 0 ? a >= INT64_MIN / b
                             : a == 0 || b >= INT64_MAX / a;
    if (!fits) {
        *lost = 1;
        return 0;
    }
    return a * b;
}

/* a + b; `*lost` becomes 1 if it does not fit 64 bits. */
static int64_t NAME_plus(int64_t a, int64_t b, int *lost) {
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b) {
        *lost = 1;
        return 0;
    }
    return a + b;
}

";

const DISTANCES: &str = "\
/* The distances between neighbors of a tensor, in elements, from `strides[first]` on: those that are
   given at the same place or, if `given` is null, those of dense memory. `*lost` becomes 1 if they
   are too large. */
static void NAME_distances(const int64_t *extents, int rank, int64_t bytes,
    const int64_t *given, int first, int64_t *strides, int *lost) {
    int64_t dense = 1, reach = bytes;
    for (int d = rank - 1; d >= 0; --d) {
        int64_t stride = d == rank - 1 || given == NULL ? dense : given[first + d];
        if (extents[d] < 2) {
            /* There are no neighbors. */
            stride = 0;
        }
        if (stride < -INT64_C(MAX_STRIDE) || stride > INT64_C(MAX_STRIDE)) {
            *lost = 1;
            return;
        }
        const int64_t step = (stride < 0 ? -stride : stride) * bytes;
        reach = NAME_plus(reach, NAME_times(extents[d] - 1, step, lost), lost);
        if (d < rank - 1) {
            strides[first + d] = stride;
        }
        if (given == NULL) {
            dense = NAME_times(dense, extents[d], lost);
        }
    }
    if (reach > INT64_C(MAX_BYTES)) {
        *lost = 1;
    }
}

";
