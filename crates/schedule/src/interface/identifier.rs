//! C identifiers: legal names for exported functions.

use tensorwright_lang::builtin::Builtin;

/// Reserved names: keywords of C and C++ (headers are for both), macros of the included headers and
/// of compilers, functions that the code calls, and names that it uses itself.
const RESERVED: &str = "\
    auto break case char const continue default do double else enum extern float for goto if \
    inline int long register restrict return short signed sizeof static struct switch typedef \
    union unsigned void volatile while \
    alignas alignof and and_eq asm atomic bitand bitor bool catch class compl concept consteval \
    constexpr constinit const_cast co_await co_return co_yield decltype delete dynamic_cast \
    explicit export false friend mutable namespace new noexcept not not_eq nullptr operator or \
    or_eq private protected public reinterpret_cast requires static_assert static_cast template \
    this thread_local throw true try typeid typename typeof using virtual wchar_t xor xor_eq \
    errno far i386 linux main math_errhandling near signgam stderr stdin stdout unix \
    abort abs calloc div exit free labs malloc memcpy memset rand realloc size_t ssize_t \
    fabs fmin fmax fpclassify isnormal isgreater isless isunordered nearbyint signbit \
    rsqrt sigmoid clamp \
    EOF I INFINITY HUGE_VAL HUGE_VALF NAN NULL RAND_MAX MB_CUR_MAX \
    begin buffers code context end error memory parameter pool prepared status task worker workers workspace";

/// Prefixes of uppercase macros of the included headers.
const MACROS: &str = "\
    BIG_ENDIAN BYTE_ORDER EXIT_ FD_SETSIZE FP_ HUGE_VAL INT LITTLE_ENDIAN MATH_ MAXFLOAT NFDBITS \
    PDP_ENDIAN PTRDIFF_ SIG_ SIZE_ SNAN UINT WCHAR_ WCONTINUED WEXITED WINT_ WNOHANG WNOWAIT WSTOPPED WUNTRACED";

/// Turns a name into an identifier that the C standard leaves to programs.
#[must_use]
pub fn identifier(name: &str) -> String {
    let mut text = alphanumeric(name);
    if is_kept_beginning(&text) || text.ends_with("_t") {
        text.insert(0, 'k');
    }
    if is_reserved(&text) { text + "_" } else { text }
}

/// Turns a name into a prefix of function names, as in `NAME_call`. The suffix keeps it apart from
/// keywords of C, so the prefix itself may be one.
#[must_use]
pub fn stem(name: &str) -> String {
    let mut text = alphanumeric(name);
    if is_kept_beginning(&text) {
        text.insert(0, 'k');
    }
    text
}

/// Whether compilers or the generated code reserve names with this prefix.
fn is_kept_beginning(name: &str) -> bool {
    name.starts_with("tw_") || name.starts_with('_')
}

/// A name of letters, digits and underscores that does not start with a digit.
#[must_use]
pub fn alphanumeric(name: &str) -> String {
    let one = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let text: String = name.chars().map(one).collect();
    if text.starts_with(|c: char| c.is_ascii_digit()) || text.is_empty() {
        format!("k{text}")
    } else {
        text
    }
}

fn is_reserved(name: &str) -> bool {
    let function = |builtin: &Builtin| {
        name.strip_prefix(builtin.name()).is_some_and(|rest| matches!(rest, "" | "f" | "l"))
    };
    RESERVED.split_whitespace().any(|word| word == name)
        || Builtin::ALL.iter().any(function)
        || MACROS.split_whitespace().any(|prefix| {
            name.starts_with(prefix) && !name.contains(|c: char| c.is_ascii_lowercase())
        })
        || ["M_", "bit_", "signature_"].iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_avoid_what_c_keeps_for_itself() {
        let table = [
            ("gemm", "gemm"),
            ("k.0", "k_0"),
            ("2d", "k2d"),
            ("", "k"),
            ("float", "float_"),
            ("new", "new_"),
            ("expf", "expf_"),
            ("tw_check", "ktw_check"),
            ("_Bool", "k_Bool"),
            ("int_t", "kint_t"),
            ("INT8_MAX", "INT8_MAX_"),
            ("Input", "Input"),
            ("gewicht\u{e4}", "gewicht_"),
            ("register", "register_"),
            ("class", "class_"),
            ("errno", "errno_"),
            ("NULL", "NULL_"),
            ("I", "I_"),
            ("M_PIf", "M_PIf_"),
            ("bit_AVX", "bit_AVX_"),
        ];
        for (name, expected) in table {
            assert_eq!(identifier(name), expected);
        }
    }

    #[test]
    fn functions_may_begin_with_words_of_c() {
        let table =
            [("exp", "exp"), ("int", "int"), ("tw_f", "ktw_f"), ("_f", "k_f"), ("f_t", "f_t")];
        for (name, expected) in table {
            assert_eq!(stem(name), expected);
            assert_eq!(stem(expected), expected);
        }
    }
}
