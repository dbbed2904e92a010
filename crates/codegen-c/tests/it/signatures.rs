//! Tests that exported signatures do not depend on sizes or schedules.

use std::collections::BTreeMap;
use std::path::Path;

use tensorwright_codegen_c::{Requirement, header, rust_module};
use tensorwright_lang::program::Program;
use tensorwright_lang::{Def, Module};
use tensorwright_machine::{Goal, Target};
use tensorwright_policy::{Preset, ScheduleSpace, default_schedule};
use tensorwright_schedule::{Interface, Schedule, canonical, lower};

const SIZES: [i64; 8] = [1, 2, 3, 5, 8, 16, 31, 64];

/// Larger programs are only tested with simple schedules: finding others takes long.
const MANY_STAGES: usize = 12;

/// A header without comments.
fn declarations(header: &str) -> String {
    let mut text = String::new();
    let mut rest = header;
    while let Some((before, comment)) = rest.split_once("/*") {
        text += before;
        rest = comment.split_once("*/").unwrap().1;
    }
    text + rest
}

/// The public interface of a Rust module.
fn public(module: &str) -> String {
    let lines = module.lines().map(str::trim).filter(|line| line.starts_with("pub fn"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The signatures of a program with a schedule in C and in Rust; `None` if the schedule is illegal.
fn signatures(program: &Program, schedule: &Schedule) -> Option<(String, String)> {
    let nest = lower(schedule.apply(canonical(program)).ok()?).ok()?;
    let interface = Interface::of(&nest);
    let processor = Requirement::new("plain", "x86_64-unknown-linux-gnu", []);
    let c = declarations(&header(&interface, Some(&processor)));
    assert_eq!(c, declarations(&header(&interface, None)));
    Some((c, public(&rust_module(&interface, &processor))))
}

/// Schedules of a program: the empty one, the default ones of several targets, good and bad points
/// of its spaces, and constants in other layouts.
fn schedules(program: &Program) -> Vec<Schedule> {
    let goal = |name| Goal::new(Target::named(name).unwrap());
    let mut schedules = vec![Schedule::default()];
    for (input, id) in program.tensors[..program.inputs].iter().zip(program.input_ids()) {
        if program.tensor(id).is_const && input.shape.len() > 1 {
            let dimensions: Vec<String> =
                (0..input.shape.len()).rev().map(|number| format!("d{number}")).collect();
            let step = format!("{}: layout [{}]", input.name, dimensions.join(", "));
            schedules.push(Schedule::parse(&step).unwrap());
        }
    }
    if program.stages.len() > MANY_STAGES {
        return schedules;
    }
    schedules.extend(["avx2", "neon"].map(|name| default_schedule(program, &goal(name)).unwrap()));
    let options = Preset::Full.options();
    for space in ScheduleSpace::alternatives(program, &goal("avx512"), &options).unwrap() {
        let points = space.ranked(2).into_iter().chain([space.start()]);
        schedules.extend(points.filter_map(|point| space.decode(&point).ok()));
    }
    schedules
}

/// The programs of a definition with all sizes equal, with and without values for integer scalars.
fn programs(def: Def<'_>) -> Vec<Program> {
    let (sizes, scalars) = (def.sizes(), def.integer_scalars());
    let mut programs = Vec::new();
    for size in SIZES {
        let values: BTreeMap<&str, i64> = sizes.iter().map(|name| (*name, size)).collect();
        programs.extend(def.bind(values.clone()).ok());
        for scalar in [1, 2].into_iter().filter(|_| !scalars.is_empty()) {
            let mut values = values.clone();
            values.extend(scalars.iter().map(|name| (*name, scalar)));
            programs.extend(def.bind(values).ok());
        }
    }
    programs
}

/// Compares the signatures of every definition of a text; returns their number.
fn compare(name: &str, text: &str) -> usize {
    let module = Module::parse(name, text).unwrap_or_else(|errors| panic!("{errors}"));
    let mut compared = 0;
    for def in module.defs() {
        let mut known: Option<(String, String)> = None;
        for program in programs(def) {
            for schedule in schedules(&program) {
                let Some(found) = signatures(&program, &schedule) else { continue };
                let known = known.get_or_insert_with(|| found.clone());
                assert_eq!(found, *known, "{name}, {}:\n{program}\n{schedule}", def.name());
                compared += 1;
            }
        }
    }
    compared
}

/// Compares the signatures of all examples of a folder; returns their number.
fn compare_folder(folder: &str) -> usize {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(folder);
    let mut compared = 0;
    for entry in std::fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "tc") {
            let text = std::fs::read_to_string(&path).unwrap();
            compared += compare(path.file_name().unwrap().to_str().unwrap(), &text);
        }
    }
    compared
}

#[test]
fn kernels_keep_their_signatures() {
    let compared = compare_folder("kernels");
    assert!(compared > 1000, "{compared}");
}

#[test]
fn pipelines_keep_their_signatures() {
    let compared = compare_folder("pipelines");
    assert!(compared > 50, "{compared}");
}

#[test]
fn parameters_that_no_loop_reads_stay() {
    let text = "def nb(float(N,3) p, float(N) m, float eps) -> (a) {
        r2(i,j) +=! (p(j,k)-p(i,k))*(p(j,k)-p(i,k))
        w(i,j) = i!=j ? m(j)*rsqrt(r2(i,j)+eps)*(1/(r2(i,j)+eps)) : 0
        a(i,k) +=! w(i,j)*(p(j,k)-p(i,k))
    }
    def axpy(float a, float(N) x, float(N) y, int k) -> (z) { z(i) = x(i) + (i >= k ? a*y(i) : 0) }
    def q(float(M,K) a, const float(N,K) b) -> (c) { c(m,n) +=! a(m,k)*b(n,k) }";
    assert!(compare("findings.tc", text) > 60);
    let module = Module::parse("findings.tc", text).unwrap();
    let of = |def: &str, sizes: &[(&str, i64)]| {
        let program = module.bind(def, sizes.iter().copied()).unwrap();
        signatures(&program, &Schedule::default()).unwrap()
    };
    // A scalar is a parameter whether or not its value was given.
    let open = of("axpy", &[("N", 4)]);
    assert_eq!(open, of("axpy", &[("N", 1), ("k", 0)]));
    assert!(
        open.0.contains(
            "int axpy_call(float a, const float *x, const float *y, int32_t k, float *z);"
        )
    );
    let nb = of("nb", &[("N", 1)]).0;
    assert!(nb.contains("int nb_call(const float *p, const float *m, float eps, float *a);"));
    let q = of("q", &[("M", 1), ("N", 1), ("K", 1)]);
    assert!(q.0.contains("int q_call(const float *a, const float *b, float *c);"));
    assert!(
        q.1.contains("pub fn q_prepared(a: &[f32], b: &[f32], c: &mut [f32], prepared: &Prepared)")
    );
}
