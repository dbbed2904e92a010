//! Tests of limits: no schedule crashes or exhausts the process.
//!
//! Oversized schedules are refused quickly, before memory is spent, and the refusal names the step,
//! the size, the limit and a suggestion.

use std::time::{Duration, Instant};

use tensorwright_lang::Module;
use tensorwright_lang::program::Program;
use tensorwright_schedule::limits::{MAX_BYTES, MAX_DEPTH, MAX_STEPS};
use tensorwright_schedule::nest::Size;
use tensorwright_schedule::primitives::{
    CacheRead, LayoutText, Part, Phases, Primitive, SetPrefetch, Split, Winograd, loops_of, stages,
};
use tensorwright_schedule::{LoopNest, LoweredNest, Schedule, ScheduleState, canonical, lower};
use tensorwright_testkit::{Rng, generate};

const GEMM: &str = "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";

/// The most CPU time for a schedule, refused or accepted, in an unoptimized build.
const MOST_TIME: Duration = Duration::from_secs(2);

/// The most memory of the whole test process, in KiB.
const MOST_MEMORY: u64 = 1 << 20;

fn program(text: &str, sizes: &[(&str, i64)]) -> Program {
    let module = Module::parse("test.tc", text).unwrap();
    module.defs().next().unwrap().bind(sizes.iter().copied()).unwrap()
}

/// The CPU time of this thread: other processes may use the machine as well.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split_whitespace().next().and_then(|word| word.parse().ok());
    nanoseconds.map(Duration::from_nanos).unwrap_or_else(|| {
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    })
}

/// The peak memory of this process, in KiB.
fn peak_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// The result of parsing, applying and lowering a schedule, within the time limit.
fn outcome(program: &Program, text: &str) -> Result<LoweredNest, String> {
    let start = processor_time();
    let result = Schedule::parse(text)
        .and_then(|schedule| schedule.apply(canonical(program)))
        .map_err(|error| error.to_string())
        .and_then(|nest| lower(nest).map_err(|error| error.to_string()));
    let took = processor_time() - start;
    let head: String = text.chars().take(2000).collect();
    assert!(took < MOST_TIME, "{took:?} for\n{program}\n{head}");
    let memory = peak_memory();
    assert!(memory < MOST_MEMORY, "{memory} KiB for\n{program}\n{head}");
    result
}

fn refusal(program: &Program, text: &str) -> String {
    match outcome(program, text) {
        Err(refusal) => refusal,
        Ok(nest) => panic!("accepted:\n{nest}"),
    }
}

#[test]
fn a_split_into_thousands_of_loops_is_refused() {
    let gemm = program(GEMM, &[("M", 13), ("N", 17), ("K", 11)]);
    let text = format!("C: split m {}\n", "1 ".repeat(5000));
    insta::assert_snapshot!(
        refusal(&gemm, &text),
        @"the schedule splits one loop into 17 or more loops, and the limit is 16 (help: a loop that is split in three or four already serves registers and caches)"
    );
    // The same for a step that was not parsed.
    let mut schedule = Schedule::default();
    schedule.push("C", tensorwright_schedule::primitives::Split::new("m", &[1; 5000]));
    let error = schedule.apply(canonical(&gemm)).unwrap_err().to_string();
    assert!(
        error.contains("splits one loop into 5001 or more loops, and the limit is 16"),
        "{error}"
    );
}

#[test]
fn loops_nest_only_so_deeply() {
    let gemm = program(GEMM, &[("M", 13), ("N", 17), ("K", 11)]);
    let mut text = String::new();
    let mut name = "m".to_owned();
    for number in 0..MAX_DEPTH {
        text.push_str(&format!("C: split {name} 1 -> a{number} b{number}\n"));
        name = format!("b{number}");
    }
    insta::assert_snapshot!(
        refusal(&gemm, &text),
        @"`C: split b92 1 -> a93 b93`: the schedule nests 97 loops inside each other, and the limit is 96 (help: split into fewer loops, or compute fewer stages inside each other)"
    );
    // All passes handle the deepest legal nest.
    let most: String = text.lines().take(MAX_DEPTH - 3).map(|line| format!("{line}\n")).collect();
    outcome(&gemm, &most).unwrap();
}

#[test]
fn factors_far_above_the_extents_are_refused() {
    let gemm = program(GEMM, &[("M", 13), ("N", 17), ("K", 11)]);
    let text = "C: split m 2147483647 -> a b\nC: split k 2147483647 -> c d\n";
    insta::assert_snapshot!(
        refusal(&gemm, text),
        @"`C: split m 2147483647 -> a b`: the schedule makes 401579441989 iterations, and the limit is 268435456; the program has 2431 (help: use factors that are not far above the extents of their loops)"
    );
    // A factor that rounds up as much as vectors do is legal.
    outcome(&gemm, "C: split m 16 [round_up]\nC: split n 32 [round_up]\nC: split k 16\n").unwrap();
}

/// A chain of stages, each of which reads the previous one twice, optionally followed by a sum.
fn doubling(stages: usize, last: &str) -> (String, String) {
    let mut text = "def f(float(N) A) -> (out) {\n  t0(i) = A(i) + 1\n".to_owned();
    let mut steps = String::new();
    for stage in 1..=stages {
        text.push_str(&format!("  t{stage}(i) = t{0}(i) * t{0}(i)\n", stage - 1));
    }
    text.push_str(&last.replace("tN", &format!("t{stages}")));
    text.push_str("}\n");
    for stage in (0..=stages).rev() {
        steps.push_str(&format!("t{stage}: inline\n"));
    }
    (text, steps)
}

#[test]
fn inlined_values_do_not_double_without_end() {
    let (text, steps) = doubling(26, "  out(i) = tN(i)\n");
    let program = program(&text, &[("N", 8)]);
    insta::assert_snapshot!(
        refusal(&program, &steps),
        @"`t13: inline`: the schedule makes an expression of 32767 parts, and the limit is 20000 (help: inline fewer stages, or fuse and split loops fewer times)"
    );
}

#[test]
fn inlined_starting_values_do_not_double_without_end() {
    let (text, steps) = doubling(26, "  out(i) = tN(i)\n  out(i) += A(k) * A(i) where k in 0:N\n");
    let program = program(&text, &[("N", 8)]);
    insta::assert_snapshot!(
        refusal(&program, &format!("out.0: inline\n{steps}")),
        @"`t13: inline`: the schedule makes an expression of 32767 parts, and the limit is 20000 (help: inline fewer stages, or fuse and split loops fewer times)"
    );
}

#[test]
fn inlined_subscripts_do_not_double_without_end() {
    let mut text = "def f(int(N) A) -> (out) {\n  t0(i) = A(i)\n".to_owned();
    for stage in 1..=40 {
        text.push_str(&format!(
            "  t{stage}(i) = t{0}((i / 2 + i / 3 + i % 5) % N) where i in 0:N\n",
            stage - 1
        ));
    }
    text.push_str("  out(i) = t40(i)\n}\n");
    let program = program(&text, &[("N", 64)]);
    let steps: String = (0..=40).rev().map(|stage| format!("t{stage}: inline\n")).collect();
    let refusal = refusal(&program, &steps);
    assert!(refusal.contains("parts"), "{refusal}");
}

#[test]
fn operations_count_and_not_only_statements() {
    let text = "def e(float(N) A) -> (B) {
      B(i) = tgamma(lgamma(pow(A(i), erf(A(i))))) + tgamma(erfc(A(i)) * pow(A(i), 3.3))
           + atan2(sinh(A(i)), tan(A(i)))
    }";
    let program = program(text, &[("N", 4096)]);
    insta::assert_snapshot!(
        refusal(&program, "B: unroll i\n"),
        @"`B: unroll i`: the schedule writes out 2609152 operations, and the limit is 100000 (help: unroll fewer loops or loops of fewer iterations, use shorter vectors, or the tail `guard` instead of `peel`)"
    );
    outcome(&program, "B: split i 64\nB: unroll i.1\n").unwrap();
    // Calls are counted per lane.
    let lanes = "B: split i 8 64\nB: unroll i.1\nB: vectorize i.2\nB: unroll i.0\n";
    let refusal = refusal(&program, lanes);
    assert!(refusal.starts_with("`B: unroll i.0`: the schedule writes out "), "{refusal}");
}

#[test]
fn tails_that_run_apart_count_as_often_as_they_are_written() {
    let text = "def t(float(A,B,C,D,E,F,G) X) -> (Y) {
      Y(a,b,c,d,e,f,g) = exp(X(a,b,c,d,e,f,g))
    }";
    let sizes = ["A", "B", "C", "D", "E", "F", "G"].map(|name| (name, 7));
    let program = program(text, &sizes);
    let splits = ["a", "b", "c", "d", "e", "f", "g"]
        .map(|loop_| format!("Y: split {loop_} 4 [peel]\nY: unroll {loop_}.1\n"));
    insta::assert_snapshot!(
        refusal(&program, &splits.concat()),
        @"`Y: unroll d.1`: the schedule writes out 192512 operations, and the limit is 100000 (help: unroll fewer loops or loops of fewer iterations, use shorter vectors, or the tail `guard` instead of `peel`)"
    );
}

#[test]
fn memory_is_counted_before_it_is_needed() {
    let gemm = program(GEMM, &[("M", 64), ("N", 64), ("K", 64)]);
    let text = "def two(float(M,K) A, float(K,N) B) -> (D) {
      C(m,n) +=! A(m,k) * B(k,n)
      D(m,n) = C(m,n)
    }";
    let two = program(text, &[("M", 64), ("N", 64), ("K", 64)]);
    let layout = "C: layout [d0/1000000, d1/1000000, d0%1000000, d1%1000000]\n";
    insta::assert_snapshot!(
        refusal(&two, layout),
        @"`C: layout [d0/1000000, d1/1000000, d0%1000000, d1%1000000]`: the schedule needs 4000000049152 bytes of memory, and the limit is 1073741824 (help: use smaller factors, or cache and compute inside inner loops)"
    );
    outcome(&gemm, "C: cache_read B at m\n").unwrap();
}

#[test]
fn long_schedules_are_refused() {
    let gemm = program(GEMM, &[("M", 13), ("N", 17), ("K", 11)]);
    insta::assert_snapshot!(
        refusal(&gemm, &"C: reorder m n\n".repeat(MAX_STEPS + 1)),
        @"the schedule has more than 10000 steps, and the limit is 10000 (help: leave out steps without effect)"
    );
    insta::assert_snapshot!(
        refusal(&gemm, &"#".repeat(MAX_BYTES + 1)),
        @"the schedule has 8388609 bytes, and the limit is 8388608 (help: leave out comments and steps without effect)"
    );
    outcome(&gemm, &"C: reorder n m\nC: reorder m n\n".repeat(MAX_STEPS / 2)).unwrap();
}

#[test]
fn fusing_and_splitting_again_and_again_is_refused_at_some_point() {
    let gemm = program(GEMM, &[("M", 13), ("N", 17), ("K", 11)]);
    let mut text = "C: fuse m n -> f0\n".to_owned();
    for round in 0..200 {
        let (a, b, next) = (format!("a{round}"), format!("b{round}"), round + 1);
        text.push_str(&format!("C: split f{round} {} -> {a} {b}\n", 5 + round % 7));
        text.push_str(&format!("C: fuse {a} {b} -> f{next}\n"));
    }
    let _ = outcome(&gemm, &text);
}

#[test]
fn what_a_program_has_by_itself_is_no_matter_of_the_schedule() {
    // A body with more parts than a schedule may create, and more stages than users write.
    let mut sum = "exp(A(i))".to_owned();
    for _ in 0..12 {
        sum = format!("({sum} + {sum})");
    }
    let long = program(&format!("def f(float(N) A) -> (B) {{ B(i) = {sum} }}"), &[("N", 64)]);
    let own = Size::of(&canonical(&long));
    assert!(own.expression > 10_000 && own.operations > 100_000, "{own:?}");
    outcome(&long, "B: split i 8\nB: vectorize i.1\n").unwrap();
    let mut text = "def f(float(N) A) -> (B) {\n  t0(i) = A(i)\n".to_owned();
    for stage in 1..1000 {
        text.push_str(&format!("  t{stage}(i) = t{}(i) + {stage}.5\n", stage - 1));
    }
    text.push_str("  B(i) = t999(i)\n}\n");
    let many = program(&text, &[("N", 64)]);
    let steps: String =
        (0..1000).map(|stage| format!("t{stage}: split i 8\nt{stage}: vectorize i.1\n")).collect();
    let start = processor_time();
    let nest = Schedule::parse(&steps).unwrap().apply(canonical(&many)).unwrap();
    lower(nest).unwrap();
    assert!(processor_time() - start < Duration::from_secs(60));
}

/// Numbers, some of which cause overflows.
const NUMBERS: [i64; 14] =
    [1, 2, 3, 4, 7, 8, 16, 64, 100, 1000, 65_536, 20_000, 1_000_003, 2_147_483_647];

/// A random line that may or may not be legal for the current nest.
fn random_line(nest: &LoopNest, fresh: &mut usize, rng: &mut Rng) -> String {
    let stages = stages(nest);
    let stage = rng.pick(&stages).clone();
    let loops: Vec<String> =
        loops_of(nest, &stage).iter().map(|l| nest.var_name(l.var).to_owned()).collect();
    let any = |rng: &mut Rng| {
        if loops.is_empty() { "i".to_owned() } else { rng.pick(&loops).clone() }
    };
    let numbers = |rng: &mut Rng| {
        let count = if rng.percent(5) { rng.index(3000) } else { rng.index(4) } + 1;
        let small = count > 4 || rng.percent(70);
        let most = if small { 5 } else { NUMBERS.len() };
        let list: Vec<String> =
            (0..count).map(|_| rng.pick(&NUMBERS[..most]).to_string()).collect();
        list.join(" ")
    };
    let tail = ["", " [peel]", " [round_up]", " [shift]"];
    *fresh += 1;
    match rng.index(13) {
        0..=3 => {
            format!("{stage}: split {} {}{}", any(rng), numbers(rng), *rng.pick(&tail))
        }
        4 => format!("{stage}: fuse {} {} -> f{fresh}", any(rng), any(rng)),
        5 => format!("{stage}: unroll {}", any(rng)),
        6 => format!("{stage}: vectorize {}", any(rng)),
        7 => format!("{stage}: inline"),
        8 => {
            let consumer = rng.pick(&stages).clone();
            let at = loops_of(nest, &consumer);
            let at = if at.is_empty() { 0 } else { rng.index(at.len()) };
            let name = loops_of(nest, &consumer)
                .get(at)
                .map_or("i".to_owned(), |l| nest.var_name(l.var).to_owned());
            format!("{stage}: compute_at {consumer} {name}")
        }
        9 => {
            let buffers: Vec<_> = nest.buffers.iter().collect();
            let tensor = rng.pick(&buffers).name.clone();
            format!("{stage}: cache_read {tensor} at {}", any(rng))
        }
        10 => format!("{stage}: cache_write at {}", any(rng)),
        11 => {
            let by = *rng.pick(&NUMBERS);
            format!("{stage}: layout [d0/{by}, d0%{by}]")
        }
        _ => format!("{stage}: rfactor {} at {}", any(rng), any(rng)),
    }
}

#[test]
fn random_schedules_of_any_numbers_take_little_time_and_memory() {
    let seed = 20;
    let (mut accepted, mut steps) = (0, 0);
    for index in 0..3000 {
        let mut rng = Rng::of(seed, index);
        let generated = generate(rng.next_u64());
        let Ok(module) = Module::parse("random.tc", &generated.text) else { continue };
        let Some(def) = module.defs().find(|def| def.name() == generated.def) else { continue };
        let sizes = generated.sizes.iter().map(|(name, size)| (name.as_str(), *size));
        let Ok(program) = def.bind(sizes) else { continue };
        let mut nest = canonical(&program);
        let (mut text, mut fresh) = (String::new(), 0);
        for _ in 0..rng.index(40) {
            let line = random_line(&nest, &mut fresh, &mut rng) + "\n";
            let start = processor_time();
            let applied = Schedule::parse(&line)
                .and_then(|schedule| schedule.steps[0].apply(&mut nest))
                .is_ok();
            let took = processor_time() - start;
            assert!(
                took < MOST_TIME,
                "seed {seed}, index {index}: {took:?}\n{program}\n{text}{line}"
            );
            if applied {
                text.push_str(&line);
                steps += 1;
            }
        }
        accepted += usize::from(outcome(&program, &text).is_ok());
    }
    assert!(accepted > 1000 && steps > 5000, "{accepted} accepted, {steps} steps");
}

/// Steps that are not parsed may contain numbers that no text can.
#[test]
fn numbers_that_no_text_has_are_refused() {
    let program = program(GEMM, &[("M", 8), ("N", 8), ("K", 8)]);
    for number in [0, -1, i64::MIN, i64::MAX] {
        let parts = |divisor| {
            let parts =
                vec![Part::Quotient(0, divisor), Part::Whole(1), Part::Remainder(0, divisor)];
            LayoutText { parts }
        };
        let read = CacheRead { layout: Some(parts(number)), ..CacheRead::new("A", "k") };
        let steps: [Primitive; 5] = [
            Split::new("k", &[4, number]).into(),
            Phases { target: "m".into(), by: number }.into(),
            Winograd { targets: vec!["m".into()], results: number }.into(),
            read.into(),
            SetPrefetch { tensor: "A".into(), at: "k".into(), distance: number }.into(),
        ];
        for step in steps {
            let is_prefetch = matches!(step, Primitive::Prefetch(_));
            let text = step.to_string();
            let mut draft = ScheduleState::new(canonical(&program));
            let applied = draft.apply("C", step);
            // A prefetch never accesses memory out of bounds.
            assert!(applied.is_err() || is_prefetch, "{text}");
            if let Err(error) = applied {
                assert!(!error.to_string().is_empty(), "{text}");
            }
            let _lowered = lower(draft.nest);
        }
    }
}
