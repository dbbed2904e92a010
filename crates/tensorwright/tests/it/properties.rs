//! Properties of all programs, tried on random ones. Every failure prints its seed and program;
//! `cargo run -p tensorwright-testkit --example generate -- SEED` prints the program again.

use std::cell::Cell;

use tensorwright::{Code, Diagnostics, Module, Program};
use tensorwright_lang::builtin::{Builtin, CONSTANTS};
use tensorwright_lang::dtype::DType;
use tensorwright_lang::program::{AxisKind, Expr, RangeReason, Stage};
use tensorwright_testkit::token::tokens;
use tensorwright_testkit::transform::is_of_the_language;
use tensorwright_testkit::{GeneratedProgram, Rng, generate, reformat, rename, rename_within};

/// How many programs each property is tried on.
const PROGRAMS: u64 = 10_000;

fn bind(generated: &GeneratedProgram) -> Result<Program, Diagnostics> {
    let module = Module::parse("generated.tc", &generated.text)?;
    module.def(&generated.def)?.bind(generated.sizes.clone())
}

/// How often properties that apply to some programs alone could be tried.
#[derive(Default)]
struct Tried {
    changes: Cell<u32>,
    grown: Cell<u32>,
}

type Property = fn(u64, &GeneratedProgram, &Program, &Tried) -> Result<(), String>;

const PROPERTIES: [(&str, Property); 6] = [
    ("printing and parsing is the identity and keeps the hash", printing_and_parsing),
    ("the hash ignores names, comments and layout", hash_ignores_names),
    ("what is printed captures no names", no_captures),
    ("any change of size, type, operator or subscript changes the hash", changes_change_the_hash),
    ("inferred ranges never read out of bounds", ranges_stay_inside),
    ("growing any inferred range by one reads out of bounds", ranges_are_largest),
];

/// Tries all properties on many programs and reports the first few failures.
fn try_all(seeds: std::ops::Range<u64>) {
    let (tried, mut failures) = (Tried::default(), Vec::new());
    for seed in seeds {
        let generated = generate(seed);
        let failed = match bind(&generated) {
            Ok(program) => PROPERTIES.iter().find_map(|(name, property)| {
                let error = property(seed, &generated, &program, &tried).err()?;
                Some(format!("{name}: {error}"))
            }),
            Err(diagnostics) => Some(diagnostics.to_string()),
        };
        if let Some(error) = failed {
            let GeneratedProgram { text, sizes, .. } = &generated;
            failures.push(format!("seed {seed}\n{text}\nsizes {sizes:?}\n{error}"));
        }
        if failures.len() == 3 {
            break;
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n----\n"));
    let (changes, grown) = (tried.changes.get(), tried.grown.get());
    assert!(changes > 1_000, "only {changes} changes could be compared");
    assert!(grown > 5_000, "only {grown} ranges were grown");
}

// Two halves, for two processors. A program is drawn and bound once for all properties.
#[test]
fn properties_of_the_first_programs() {
    try_all(0..PROGRAMS / 2);
}

#[test]
fn properties_of_the_other_programs() {
    try_all(PROGRAMS / 2..PROGRAMS);
}

fn rebind(text: &str, def: &str) -> Result<Program, String> {
    let none: [(&str, i64); 0] = [];
    Module::parse("printed.tc", text)
        .and_then(|module| module.def(def)?.bind(none))
        .map_err(|error| format!("the printed program does not bind:\n{text}\n{error}"))
}

/// The generator knows no crate of the language, so that a mistake there does not hide one here: it
/// has lists of its own, which have to be complete.
#[test]
fn random_programs_have_every_type_and_no_name_of_the_language() {
    let types = DType::ALL.map(DType::name);
    let aliases = DType::ALIASES.map(|(alias, _)| alias);
    let functions = Builtin::ALL.iter().map(|builtin| builtin.name());
    let constants = CONSTANTS.map(|(name, _)| name);
    for word in types.into_iter().chain(aliases).chain(functions).chain(constants) {
        assert!(is_of_the_language(word), "`transform.rs` may take `{word}` for a name");
    }
    let texts: String = (0..1000).map(|seed| generate(seed).text).collect();
    for word in types {
        assert!(texts.contains(&format!("{word}(")), "`generate/typed.rs` never makes a `{word}`");
    }
}

fn printing_and_parsing(
    _: u64,
    _: &GeneratedProgram,
    program: &Program,
    _: &Tried,
) -> Result<(), String> {
    let text = program.to_string();
    let again = rebind(&text, program.name())?;
    if again.to_string() != text {
        return Err(format!("printed:\n{text}\nprinted again:\n{again}"));
    }
    if again.hash() != program.hash() {
        return Err(format!("the hash changed:\n{text}"));
    }
    Ok(())
}

fn hash_ignores_names(
    seed: u64,
    generated: &GeneratedProgram,
    program: &Program,
    _: &Tried,
) -> Result<(), String> {
    let renamed = rename(&generated.text, seed);
    let changed = GeneratedProgram {
        text: reformat(&renamed.text, seed ^ 1),
        def: renamed.name(&generated.def).to_owned(),
        sizes: generated
            .sizes
            .iter()
            .map(|(name, value)| (renamed.name(name).to_owned(), *value))
            .collect(),
        ..generated.clone()
    };
    let other = bind(&changed).map_err(|e| format!("{}\n{e}", changed.text))?;
    if other.hash() != program.hash() {
        return Err(format!("the hash differs for\n{}", changed.text));
    }
    Ok(())
}

/// Calls are inlined: names of callees meet those of callers, in a text of one scope.
fn no_captures(
    seed: u64,
    generated: &GeneratedProgram,
    program: &Program,
    _: &Tried,
) -> Result<(), String> {
    let renamed = rename_within(&generated.text, &generated.def, seed);
    let sizes = generated.sizes.iter();
    let sizes = sizes.map(|(name, value)| (renamed.name(name).to_owned(), *value)).collect();
    let changed = GeneratedProgram { text: renamed.text.clone(), sizes, ..generated.clone() };
    let other = bind(&changed).map_err(|e| format!("{}\n{e}", changed.text))?;
    let canonical = other.canonically_named();
    for text in [other.to_string(), canonical.to_string()] {
        if rebind(&text, program.name())?.hash() != program.hash() {
            return Err(format!("of\n{}\nis printed\n{text}", changed.text));
        }
    }
    if canonical.to_string() != program.canonically_named().to_string() {
        return Err(format!("names by position depend on names:\n{canonical}"));
    }
    Ok(())
}

/// A token of the same kind that means something else.
fn other_token(token: &str) -> Option<String> {
    let swaps = [
        ("+", "-"),
        ("-", "+"),
        ("*", "+"),
        ("/", "%"),
        ("%", "/"),
        ("<", "<="),
        ("<=", "<"),
        (">", ">="),
        (">=", ">"),
        ("==", "!="),
        ("!=", "=="),
        ("&&", "||"),
        ("||", "&&"),
        ("+=!", "max=!"),
        ("max=!", "min=!"),
        ("min=!", "max=!"),
        ("*=!", "+=!"),
        ("+=", "*="),
        ("*=", "+="),
        ("max=", "min="),
        ("min=", "max="),
        ("float", "double"),
        ("double", "float"),
        ("half", "bfloat16"),
        ("int32", "int64"),
        ("int64", "int32"),
        ("uint8", "int8"),
        ("int8", "uint8"),
        ("min", "max"),
        ("max", "min"),
        ("exp", "sin"),
        ("true", "false"),
        ("false", "true"),
    ];
    if let Ok(number) = token.parse::<u64>() {
        return Some((number + 1).to_string());
    }
    swaps.iter().find(|(from, _)| *from == token).map(|(_, to)| (*to).to_owned())
}

fn changes_change_the_hash(
    seed: u64,
    _: &GeneratedProgram,
    program: &Program,
    tried: &Tried,
) -> Result<(), String> {
    let text = program.to_string();
    let mut rng = Rng::new(seed);
    let tokens = tokens(&text);
    for _ in 0..6 {
        let token = rng.pick(&tokens);
        let Some(other) = other_token(token.text) else { continue };
        let start = token.text.as_ptr() as usize - text.as_ptr() as usize;
        let end = start + token.text.len();
        let altered = format!("{}{other}{}", &text[..start], &text[end..]);
        // Many changes make the program invalid, which is as good.
        let Ok(other) = rebind(&altered, program.name()) else { continue };
        // So does what means the same: `(i + 4) % 8` and `(i - 4) % 8` have one normal form.
        if other.to_string() == text {
            continue;
        }
        tried.changes.set(tried.changes.get() + 1);
        if other.hash() == program.hash() {
            return Err(format!("the same hash:\n{text}\n{altered}"));
        }
    }
    Ok(())
}

fn ranges_stay_inside(
    seed: u64,
    generated: &GeneratedProgram,
    program: &Program,
    _: &Tried,
) -> Result<(), String> {
    let inputs = program.random_inputs(seed).map_err(|error| error.to_string())?;
    for (name, bound) in &generated.index_inputs {
        let values = inputs[name].values().map(|value| value.as_f64());
        let inside = values.into_iter().all(|value| value >= 0.0 && value < *bound as f64);
        if !inside {
            return Err(format!("the random input {name} is not in 0..{bound}"));
        }
    }
    program.run_reference(&inputs).map(|_| ()).map_err(|error| error.to_string())
}

/// Whether a condition of the stage depends on data: then a read that could go out of bounds may
/// not happen for the data at hand.
fn chooses_by_data(stage: &Stage) -> bool {
    let mut found = false;
    stage.body.walk(&mut |expr| {
        found |= matches!(expr, Expr::Compare(..) | Expr::Call(..))
            || matches!(expr, Expr::CompareIndex(_, a, b) if a.has_value() || b.has_value())
            || matches!(expr, Expr::Select(condition, ..) if matches!(**condition, Expr::Read(_) | Expr::Cast(..)))
            || matches!(expr, Expr::Logic(_, a, b) if matches!(**a, Expr::Read(_)) || matches!(**b, Expr::Read(_)));
    });
    found
}

fn ranges_are_largest(
    seed: u64,
    _: &GeneratedProgram,
    program: &Program,
    tried: &Tried,
) -> Result<(), String> {
    let inputs = program.random_inputs(seed).map_err(|error| error.to_string())?;
    for (number, stage) in program.ir().stages.iter().enumerate() {
        for (position, axis) in stage.axes.iter().enumerate() {
            let RangeReason::Access { limits, .. } = &axis.reason else { continue };
            // One step more would write outside of the tensor.
            if limits.iter().any(|limit| limit.is_target) || chooses_by_data(stage) {
                continue;
            }
            let mut larger = program.ir().clone();
            larger.stages.truncate(number + 1);
            larger.tensors.truncate(larger.inputs + number + 1);
            larger.outputs = vec![stage.output];
            larger.stages[number].axes[position].hi += 1;
            if axis.kind == AxisKind::Spatial {
                let shape = &mut larger.tensors[stage.output.0 as usize].shape;
                shape[position] = shape[position].max(axis.hi + 1);
                if stage.base.is_some() && shape[position] == axis.hi + 1 {
                    continue;
                }
            }
            tried.grown.set(tried.grown.get() + 1);
            match tensorwright_reference::run(&larger, &inputs) {
                Err(error) if matches!(error.code, Code::OutOfBounds | Code::IndexOutOfBounds) => {}
                Err(error) => return Err(format!("another error: {}", error.message)),
                Ok(_) => {
                    return Err(format!(
                        "`{}` of `{}` may grow beyond {}",
                        axis.name,
                        program.ir().tensor(stage.output).name,
                        axis.hi
                    ));
                }
            }
        }
    }
    Ok(())
}
