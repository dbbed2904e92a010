//! A softmax between products in blocks of its terms: what `--precision fast` makes of attention computes what the text
//! says, on one and two threads, with masks of positions and of data.

use tensorwright::{Buffer, DType, Inputs, Kernel, Module, Precision, Program, Value};

const PLAIN: &str = "def attention(float(H,L,D) Q, float(H,S,D) K, float(H,S,E) V) -> (O) {
  scores(h,l,s) +=! Q(h,l,d) * K(h,s,d)
  scaled(h,l,s) = scores(h,l,s) / sqrt(float(D))
  top(h,l) max=! scaled(h,l,s)
  weight(h,l,s) = exp(scaled(h,l,s) - top(h,l))
  total(h,l) +=! weight(h,l,s)
  p(h,l,s) = weight(h,l,s) / total(h,l)
  O(h,l,e) +=! p(h,l,s) * V(h,s,e)
}";

const CAUSAL: &str = "def attention(float(T,D) Q, float(T,D) K, float(T,E) V) -> (O) {
  scores(l,s) +=! s <= l ? Q(l,d) * K(s,d) : 0 where l in 0:T, s in 0:T
  scaled(l,s) = scores(l,s) / sqrt(float(D))
  top(l) max=! s <= l ? scaled(l,s) : -INFINITY where l in 0:T, s in 0:T
  weight(l,s) = s <= l ? exp(scaled(l,s) - top(l)) : 0 where l in 0:T, s in 0:T
  total(l) +=! s <= l ? weight(l,s) : 0 where l in 0:T, s in 0:T
  p(l,s) = s <= l ? weight(l,s) / total(l) : 0 where l in 0:T, s in 0:T
  O(l,e) +=! s <= l ? p(l,s) * V(s,e) : 0 where l in 0:T, s in 0:T
}";

const ALIBI: &str =
    "def attention(float(H,L,D) Q, float(H,S,D) K, float(H,S,E) V, float(H) slope) -> (O) {
  scores(h,l,s) +=! Q(h,l,d) * K(h,s,d)
  biased(h,l,s) = scores(h,l,s) / sqrt(float(D)) - slope(h) * fabs(float(l - s))
  top(h,l) max=! biased(h,l,s)
  weight(h,l,s) = exp(biased(h,l,s) - top(h,l))
  total(h,l) +=! weight(h,l,s)
  O(h,l,e) +=! weight(h,l,s) / total(h,l) * V(h,s,e)
}";

/// A mask of data that is added to the scores.
const ADDED: &str =
    "def attention(float(L,D) Q, float(S,D) K, float(S,E) V, float(L,S) mask) -> (O) {
  scores(l,s) +=! Q(l,d) * K(s,d)
  seen(l,s) = scores(l,s) + mask(l,s)
  top(l) max=! seen(l,s)
  weight(l,s) = exp(seen(l,s) - top(l))
  total(l) +=! weight(l,s)
  p(l,s) = weight(l,s) / total(l)
  O(l,e) +=! p(l,s) * V(s,e)
}";

/// Rows that the data leave nothing of are zero.
const MASKED: &str = "def attention(float(L,S) x, int(L,S) seen, float(S,E) V) -> (O) {
  top(l) max=! seen(l,s) > 0 ? x(l,s) : -INFINITY
  weight(l,s) = seen(l,s) > 0 ? exp(x(l,s) - top(l)) : 0
  total(l) +=! weight(l,s)
  p(l,s) = seen(l,s) > 0 ? weight(l,s) / total(l) : 0
  O(l,e) +=! p(l,s) * V(s,e)
}";

fn program(text: &str, sizes: &[(&str, i64)]) -> Program {
    let module = Module::parse("attention.tc", text).unwrap();
    module.def("attention").unwrap().bind(sizes.iter().copied()).unwrap()
}

fn fast(program: &Program, threads: usize) -> Kernel {
    let kernel = program.compile().precision(Precision::Fast).threads(threads).build().unwrap();
    let schedule = kernel.schedule().to_string();
    assert!(schedule.contains(": rebase s ") && schedule.contains("compute_with"), "{schedule}");
    assert_eq!(kernel.lowered().precision(), Precision::Fast);
    kernel
}

/// Within the bounds that the data justify and, because these say nothing where numbers are infinite, about what an exact
/// kernel computes.
fn check(program: &Program, inputs: &Inputs) {
    let exact = program.compile().build().unwrap().run(inputs).unwrap();
    for threads in [1, 2] {
        let kernel = fast(program, threads);
        let outputs = kernel.run(inputs).unwrap();
        for (exact, fast) in
            exact.get("O").unwrap().values().zip(outputs.get("O").unwrap().values())
        {
            let (exact, fast) = (exact.as_f64(), fast.as_f64());
            let is_near = exact.is_nan() && fast.is_nan() || (exact - fast).abs() < 1e-2;
            assert!(is_near, "{exact} {fast}\n{program}\n{}", kernel.schedule());
        }
        let verification = kernel.verify(inputs, &outputs).unwrap();
        let (text, wrong) = (kernel.schedule(), verification.mismatches);
        assert!(wrong.is_empty(), "{program}\n{text}\n{wrong:?}");
    }
}

/// An input with other values.
fn changed(inputs: &mut Inputs, name: &str, value: impl Fn(f64, &[i64]) -> f64) {
    let old = &inputs[name];
    let values = old.values().map(Value::as_f64).enumerate();
    let values: Vec<f64> = values.map(|(at, x)| value(x, &old.index(at))).collect();
    let new = Buffer::from_f64s(old.dtype(), old.shape(), &values).unwrap();
    inputs.insert(name.to_owned(), new);
}

#[test]
fn attention_as_it_is_written_runs_in_blocks() {
    for (rows, terms) in [(64, 128), (70, 128), (33, 640)] {
        let sizes = [("H", 2), ("L", rows), ("S", terms), ("D", 3), ("E", 20)];
        let program = program(PLAIN, &sizes);
        check(&program, &program.random_inputs(1).unwrap());
    }
    for positions in [64, 320] {
        let program = program(CAUSAL, &[("T", positions), ("D", 3), ("E", 20)]);
        check(&program, &program.random_inputs(2).unwrap());
    }
    let program = program(ALIBI, &[("H", 3), ("L", 40), ("S", 256), ("D", 8), ("E", 16)]);
    check(&program, &program.random_inputs(3).unwrap());
}

/// Gradients are exact: what is added up over rows is added up a block of rows at a time.
#[test]
fn gradients_run_in_blocks_of_rows() {
    let sizes: &[(&str, i64)] = &[("H", 4), ("L", 70), ("S", 85), ("D", 12), ("E", 20)];
    let quotient = "O(h,l,e) +=! weight(h,l,s) / total(h,l) * V(h,s,e)";
    let apart = "p(h,l,s) = weight(h,l,s) / total(h,l)\nO(h,l,e) +=! p(h,l,s) * V(h,s,e)";
    let alibi = ALIBI.replace(quotient, apart);
    for (text, sizes) in [(PLAIN, sizes), (alibi.as_str(), sizes), (ADDED, &sizes[1..])] {
        let module = Module::parse("attention.tc", text).unwrap();
        let gradient = module.grad("attention", &["Q", "K", "V"]).unwrap();
        let module = Module::parse("gradient.tc", gradient.source()).unwrap();
        let program = module.def(gradient.name()).unwrap().bind(sizes.iter().copied()).unwrap();
        let inputs = program.random_inputs(6).unwrap();
        for threads in [1, 2] {
            let kernel = program.compile().threads(threads).build().unwrap();
            let schedule = kernel.schedule().to_string();
            let is_shared = schedule.contains("d_K: compute_with d_Q l.block");
            assert_eq!(is_shared, threads == 1 || text != ADDED, "{schedule}");
            let outputs = kernel.run(&inputs).unwrap();
            let wrong = kernel.verify(&inputs, &outputs).unwrap().mismatches;
            assert!(wrong.is_empty(), "{program}\n{schedule}\n{wrong:?}");
        }
    }
}

/// A block may have nothing but negative infinities, and scores may be as large as they come.
#[test]
fn masks_of_data_and_large_scores_are_no_problem() {
    let program = program(ADDED, &[("L", 32), ("S", 1024), ("D", 4), ("E", 8)]);
    let mut inputs = program.random_inputs(4).unwrap();
    changed(&mut inputs, "mask", |_, at| {
        let is_seen = (at[1] / 8) % 32 == at[0] % 32;
        if is_seen { 0.0 } else { f64::NEG_INFINITY }
    });
    check(&program, &inputs);
    changed(&mut inputs, "mask", |x, at| 1e4 * x + 1e3 * (at[1] / 512) as f64);
    check(&program, &inputs);
    changed(&mut inputs, "mask", |_, at| if at[1] < 512 { -3e38 } else { -2e38 });
    check(&program, &inputs);
}

/// A row of which nothing is seen is NaN without a condition, in blocks as well.
#[test]
fn rows_of_negative_infinities_are_what_they_were() {
    let program = program(ADDED, &[("L", 32), ("S", 1024), ("D", 4), ("E", 8)]);
    let mut inputs = program.random_inputs(5).unwrap();
    changed(&mut inputs, "mask", |_, at| if at[0] == 3 { f64::NEG_INFINITY } else { 0.0 });
    check(&program, &inputs);
}

/// Where data may leave a row empty, its quotient is not taken out of the sum, and the row is zero.
#[test]
fn rows_that_data_leave_empty_stay_zero() {
    let program = program(MASKED, &[("L", 16), ("S", 128), ("E", 8)]);
    let mut inputs = program.random_inputs(6).unwrap();
    let seen: Vec<f64> = (0..16 * 128).map(|at| f64::from(u8::from(at / 128 != 5))).collect();
    let seen = Buffer::from_f64s(DType::Int32, &[16, 128], &seen).unwrap();
    inputs.insert("seen".to_owned(), seen);
    let kernel = program.compile().precision(Precision::Fast).build().unwrap();
    let outputs = kernel.run(&inputs).unwrap();
    assert!(kernel.verify(&inputs, &outputs).unwrap().passed());
    let row: Vec<f64> =
        outputs.get("O").unwrap().values().skip(5 * 8).take(8).map(Value::as_f64).collect();
    assert_eq!(row, [0.0; 8]);
}

#[test]
fn exact_kernels_keep_the_numbers_of_the_text() {
    let program = program(PLAIN, &[("H", 2), ("L", 64), ("S", 128), ("D", 8), ("E", 24)]);
    let lowered = program.compile().lower().unwrap();
    assert!(!lowered.schedule().to_string().contains("rebase"));
    assert_eq!((lowered.precision(), lowered.error_growth()), (Precision::Exact, 1.0));
}
