//! Kernels whose sizes vary, against the reference at many sizes.

use std::collections::BTreeSet;

use tensorwright::ir::{SizeRange, SizeValue, Tensor};
use tensorwright::schedule::check::check;
use tensorwright::schedule::nest::for_each_loop;
use tensorwright::{
    Arguments, Buffer, Diagnostics, Inputs, Module, Program, SizedKernel, SizedProgram, View,
    ViewMut,
};
use tensorwright_testkit::{Rng, generate, seeds};

/// A definition, and the likely values of its sizes.
const PROGRAMS: [(&str, &[(&str, i64)]); 13] = [
    ("def f(float(N) x) -> (y) { y(i) = 2 * x(i) + N }", &[("N", 100)]),
    ("def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }", &[("M", 20), ("K", 24), ("N", 48)]),
    (
        "def f(float(B,M) I, float(N,M) W, float(N) c) -> (O) { O(b,n) = c(n)  O(b,n) += I(b,m) * W(n,m)  O(b,n) = max(O(b,n), 0) }",
        &[("B", 14), ("M", 40), ("N", 24)],
    ),
    (
        "def f(float(N,D) x) -> (y) { m(n) max=! x(n,d)  s(n) +=! exp(x(n,d) - m(n))  y(n,d) = exp(x(n,d) - m(n)) / s(n) }",
        &[("N", 40), ("D", 100)],
    ),
    ("def f(float(H,W) x) -> (y) { t(i,j) = x(i,j) + x(i,j+1) + x(i,j+2)  y(i,j) = t(i,j) + t(i+1,j) + t(i+2,j) }", &[("H", 60), ("W", 100)]),
    (
        "def f(float(H,W) x) -> (y) { t(i,j) = x(i, min(max(j - 1, 0), W - 1)) + x(i, min(j + 1, W - 1)) where i in 0:H, j in 0:W
          y(i,j) = t(min(i + 1, H - 1), j) - t(max(i - 1, 0), j) where i in 0:H, j in 0:W }",
        &[("H", 60), ("W", 100)],
    ),
    (
        "def f(float(C,H,W) x, float(K,C,3,3) w) -> (y) {
          y(k,h,q) +=! (0 <= h + r - 1 && h + r - 1 < H && 0 <= q + s - 1 && q + s - 1 < W ? x(c, h + r - 1, q + s - 1) : 0) * w(k,c,r,s)
            where h in 0:H, q in 0:W, r in 0:3, s in 0:3 }",
        &[("C", 3), ("H", 12), ("W", 20), ("K", 7)],
    ),
    ("def f(float(N) x) -> (y) { y(i) = x(N - 1 - i) where i in 0:N }", &[("N", 64)]),
    ("def f(float(T,D) x) -> (z) { z(t,d) = 0.5 * z(t-1,d) + x(t,d) scan t from 0 }", &[("T", 50), ("D", 40)]),
    ("def f(float(N) x, int32(N) at) -> (c) { c(b) +=! x(i) scatter b = at(i) where b in 0:16 }", &[("N", 100)]),
    ("def f(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }", &[("M", 12), ("K", 16), ("N", 40)]),
    ("def f(float(N,D) x, int32(N) ends) -> (y) { y(n) +=! d < ends(n) ? x(n,d) : 0 }", &[("N", 9), ("D", 40)]),
    ("def f(float(E,D) t, int32(N) x) -> (y) { y(n,d) = t(x(n), d) }", &[("E", 30), ("D", 40), ("N", 50)]),
];

/// A definition whose sizes vary around likely values.
struct Case {
    module: Module,
    def: String,
    text: String,
    /// The sizes that vary, with likely and greatest values.
    sizes: Vec<(String, i64, i64)>,
    /// The scalars that shape the program.
    scalars: Vec<(String, i64)>,
}

impl Case {
    fn written(text: &str, sizes: &[(&str, i64)]) -> Self {
        let module = Module::parse("f.tc", text).unwrap();
        let sizes = sizes.iter().map(|(name, likely)| ((*name).to_owned(), *likely, 3 * likely));
        let (def, text, scalars) = ("f".to_owned(), text.to_owned(), Vec::new());
        Self { module, def, text, sizes: sizes.collect(), scalars }
    }

    fn random(seed: u64) -> Self {
        let program = generate(seed);
        let module = Module::parse("random.tc", &program.text).unwrap();
        let def = module.def(&program.def).unwrap();
        let (order, known) = (def.sizes(), def.integer_scalars());
        let is_known = |(name, _): &(String, i64)| known.contains(&name.as_str());
        let (scalars, mut sizes): (Vec<_>, Vec<_>) = program.sizes.into_iter().partition(is_known);
        sizes.sort_by_key(|(name, _)| order.iter().position(|known| known == name));
        let sizes =
            sizes.into_iter().map(|(name, likely)| (name, likely, 2 * likely + 3)).collect();
        Self { module, def: program.def, text: program.text, sizes, scalars }
    }

    fn bind(&self) -> Result<SizedProgram, Diagnostics> {
        let varies = |(name, likely, most): &(String, i64, i64)| {
            let range = SizeRange { least: 1, most: *most, likely: *likely, multiple: 1 };
            (name.clone(), SizeValue::Varies(range))
        };
        let known =
            self.scalars.iter().map(|(name, value)| (name.clone(), SizeValue::Known(*value)));
        self.module.def(&self.def)?.bind_sized(self.sizes.iter().map(varies).chain(known))
    }

    /// Runs a kernel at sizes drawn near the edges of tiles and ranges. Returns the number of calls.
    fn agree(&self, kernel: &SizedKernel, program: &SizedProgram, seed: u64, rounds: u64) -> u64 {
        let mut rng = Rng::new(seed);
        let mut draw = |below: i64| rng.below(below.max(1) as u64) as i64;
        let mut calls = 0;
        for round in 0..rounds {
            let one = |(_, likely, most): &(String, i64, i64)| match draw(5) {
                0 => (1 + draw(4)).min(*most),
                1 => *likely,
                2 => (16 * (1 + draw(3)) + draw(3) - 1).min(*most),
                3 => *most,
                _ => 1 + draw(*most),
            };
            let values: Vec<i64> = self.sizes.iter().map(one).collect();
            let named = self.sizes.iter().map(|(name, ..)| name.clone()).zip(values.clone());
            let concrete =
                self.module.def(&self.def).unwrap().bind(named.chain(self.scalars.clone()));
            let checked = program.check(&values);
            let Ok(concrete) = concrete else {
                assert!(checked.is_err(), "{}\n{values:?} are no sizes of the program", self.text);
                continue;
            };
            if checked.is_err() {
                continue;
            }
            let what = || {
                let (text, loops) = (&self.text, kernel.lowered());
                format!(
                    "{text}\nsizes {values:?}, seed {seed}\n{}\n{}",
                    loops.schedule(),
                    loops.nest()
                )
            };
            // The loops at these sizes access nothing out of bounds, and write every result.
            let nest = kernel.lowered().nest().as_nest().at(&values).unwrap();
            let verdict = check(&nest, 20_000_000);
            assert!(verdict.is_ok(), "{verdict:?}: {}", what());
            let inputs = concrete.random_inputs(seed + round).unwrap();
            let Ok(expected) = concrete.run_reference(&inputs) else { continue };
            let outputs = match round % 2 {
                0 => kernel.run(&inputs).map(|outputs| outputs.into_iter().collect()),
                _ => run_apart(kernel, &inputs, &concrete),
            };
            let outputs: Vec<(String, Buffer)> =
                outputs.unwrap_or_else(|error| panic!("{error}: {}", what()));
            for (name, output) in &outputs {
                let wrong = expected.output(name).unwrap().mismatch(output);
                assert!(wrong.is_none(), "{name} is wrong: {wrong:?}: {}", what());
            }
            calls += 1;
        }
        calls
    }
}

/// A tensor whose rows lie apart.
struct Apart {
    memory: Words,
    shape: Vec<usize>,
    strides: Vec<isize>,
}

/// Elements of so many bytes.
enum Words {
    One(Vec<u8>),
    Two(Vec<u16>),
    Four(Vec<u32>),
    Eight(Vec<u64>),
}

/// Runs an expression with the elements, whatever their type.
macro_rules! with_words {
    ($words:expr, $elements:ident => $run:expr) => {
        match $words {
            Words::One($elements) => $run,
            Words::Two($elements) => $run,
            Words::Four($elements) => $run,
            Words::Eight($elements) => $run,
        }
    };
}

impl Apart {
    /// Every axis but the last leaves room for a few elements more.
    fn new(bytes: usize, shape: &[i64]) -> Self {
        let shape: Vec<usize> = shape.iter().map(|extent| *extent as usize).collect();
        let (mut strides, mut count) = (vec![1; shape.len()], 1);
        for (stride, extent) in strides.iter_mut().zip(&shape).rev() {
            *stride = count as isize;
            count = count * extent + 3;
        }
        let memory = match bytes {
            1 => Words::One(vec![0xA5; count]),
            2 => Words::Two(vec![0xA5A5; count]),
            4 => Words::Four(vec![0xA5A5_A5A5; count]),
            _ => Words::Eight(vec![0xA5A5_A5A5_A5A5_A5A5; count]),
        };
        Self { memory, shape, strides }
    }

    fn view(&self) -> View<'_> {
        let Self { memory, shape, strides } = self;
        with_words!(memory, elements => View::new(elements, 0, shape, strides).unwrap())
    }

    fn view_mut(&mut self) -> ViewMut<'_> {
        let Self { memory, shape, strides } = self;
        with_words!(memory, elements => ViewMut::new(elements, 0, shape, strides).unwrap())
    }

    /// Writes the bytes of a tensor.
    #[allow(clippy::useless_conversion, reason = "only for the widest elements")]
    fn fill(&mut self, bytes: &[u8]) {
        let places = self.places();
        with_words!(&mut self.memory, elements => {
            let size = size_of_val(&elements[0]);
            for (place, bytes) in places.into_iter().zip(bytes.chunks(size)) {
                let mut word = [0; 8];
                word[..size].copy_from_slice(bytes);
                elements[place] = u64::from_le_bytes(word).try_into().unwrap();
            }
        });
    }

    /// The bytes of the tensor. What lies between must be as it was.
    fn taken(&self) -> Vec<u8> {
        let places = self.places();
        with_words!(&self.memory, elements => {
            let written: BTreeSet<usize> = places.iter().copied().collect();
            let mut between = (0..elements.len()).filter(|place| !written.contains(place));
            assert!(between.all(|n| elements[n].to_le_bytes().iter().all(|b| *b == 0xA5)));
            places.iter().flat_map(|place| elements[*place].to_le_bytes()).collect()
        })
    }

    /// The positions of the elements, in row-major order.
    fn places(&self) -> Vec<usize> {
        let axes = self.shape.iter().zip(&self.strides);
        axes.fold(vec![0], |places, (extent, stride)| {
            let along = |place: usize| (0..*extent).map(move |n| place + n * *stride as usize);
            places.into_iter().flat_map(along).collect()
        })
    }
}

/// Runs a kernel on memory in which rows lie apart.
fn run_apart(
    kernel: &SizedKernel,
    inputs: &Inputs,
    concrete: &Program,
) -> Result<Vec<(String, Buffer)>, Diagnostics> {
    let place = |(name, buffer): (&String, &Buffer)| {
        let mut made = Apart::new(buffer.dtype().bytes(), buffer.shape());
        let mut bytes = Vec::new();
        buffer.visit_bytes(|element| bytes.extend_from_slice(element));
        made.fill(&bytes);
        (name.clone(), made)
    };
    let placed: Vec<(String, Apart)> = inputs.iter().map(place).collect();
    let arguments =
        placed.iter().fold(Arguments::new(), |all, (name, made)| all.view(name, made.view()));
    let outputs = concrete.outputs();
    let made = |tensor: &&Tensor| Apart::new(tensor.dtype.bytes(), &tensor.shape);
    let mut written: Vec<Apart> = outputs.iter().map(made).collect();
    let views = outputs.iter().zip(&mut written);
    kernel.run_into(arguments, views.map(|(tensor, made)| (&*tensor.name, made.view_mut())))?;
    let result = |(tensor, made): (&&Tensor, &Apart)| {
        let buffer = Buffer::from_bytes(tensor.dtype, &tensor.shape, &made.taken());
        (tensor.name.clone(), buffer.unwrap())
    };
    Ok(outputs.iter().zip(&written).map(result).collect())
}

#[test]
fn kernels_without_a_schedule_agree_with_the_reference() {
    for (number, (text, sizes)) in PROGRAMS.iter().enumerate() {
        let case = Case::written(text, sizes);
        let program = case.bind().unwrap();
        let kernel = program.compile().schedule_text("").unwrap().build().unwrap();
        assert!(case.agree(&kernel, &program, number as u64, 20) > 5, "{text}");
    }
}

#[test]
fn kernels_of_default_schedules_agree_with_the_reference() {
    for (number, (text, sizes)) in PROGRAMS.iter().enumerate() {
        let case = Case::written(text, sizes);
        let program = case.bind().unwrap();
        for threads in [1, 2] {
            let kernel = program.compile().threads(threads).build().unwrap();
            assert!(case.agree(&kernel, &program, 100 + number as u64, 20) > 5, "{text}");
        }
    }
}

/// `TENSORWRIGHT_SIZED=FIRST..END` tries programs of these seeds.
#[test]
fn kernels_of_random_programs_agree_with_the_reference() {
    let seeds = seeds("TENSORWRIGHT_SIZED", 0..40);
    let (all, mut refused, mut calls) = (seeds.end - seeds.start, 0, 0);
    for seed in seeds {
        let case = Case::random(seed);
        let Ok(program) = case.bind() else {
            refused += 1;
            continue;
        };
        let plain = program.compile().schedule_text("").unwrap().build();
        let plain = plain.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        calls += case.agree(&plain, &program, seed, 6);
        let chosen = program.compile().threads(1 + (seed % 2) as usize).build();
        let chosen = chosen.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        calls += case.agree(&chosen, &program, seed + 1, 6);
    }
    println!("{all} programs, {refused} whose sizes cannot vary, {calls} calls");
    assert!(10 * refused < all + 10 && calls > 4 * all, "{refused} refused, {calls} calls");
}

const SUM: &str = "def f(float(N,M) x, float(M) b) -> (y) { y(n,m) = x(n,m) + b(m) + x(n+1,m) }";

fn sum() -> SizedProgram {
    Case::written(SUM, &[("N", 10), ("M", 20)]).bind().unwrap()
}

#[test]
fn views_are_used_in_place() {
    let kernel = sum().compile().build().unwrap();
    let memory: Vec<f32> = (0..400).map(|n| n as f32).collect();
    let bias: Vec<f32> = (0..7).map(|n| 1000.0 * n as f32).collect();
    // A crop, rows in reverse, a row that repeats, and a transpose, which has to be copied.
    for (offset, strides) in [(23, [20, 1]), (380, [-20, 1]), (40, [0, 1]), (3, [1, 20])] {
        let x = View::new(&memory, offset, &[5, 7], &strides).unwrap();
        let b = View::dense(&bias, &[7]).unwrap();
        let outputs = kernel.run(Arguments::new().view("x", x).view("b", b)).unwrap();
        let y = outputs.get("y").unwrap();
        assert_eq!(y.shape(), [4, 7]);
        for (at, value) in y.as_f32().unwrap().iter().enumerate() {
            let element = |n: usize, m: usize| {
                memory
                    [(offset as isize + n as isize * strides[0] + m as isize * strides[1]) as usize]
            };
            let (n, m) = (at / 7, at % 7);
            assert_eq!(*value, element(n, m) + bias[m] + element(n + 1, m), "{strides:?}");
        }
    }
}

#[test]
fn outputs_are_parts_of_larger_tensors() {
    let kernel = sum().compile().build().unwrap();
    let (x, b) = (vec![1.0f32; 5 * 7], vec![10.0f32; 7]);
    let inputs = || {
        let x = View::dense(&x, &[5, 7]).unwrap();
        Arguments::new().view("x", x).view("b", View::dense(&b, &[7]).unwrap())
    };
    // Rows apart, and rows from the last to the first.
    for (offset, stride) in [(3, 20), (63, -20)] {
        let mut canvas = vec![0.0f32; 80];
        let y = ViewMut::new(&mut canvas, offset, &[4, 7], &[stride, 1]).unwrap();
        kernel.run_into(inputs(), [("y", y)]).unwrap();
        for (at, value) in canvas.iter().enumerate() {
            let is_written = (3..10).contains(&(at % 20));
            assert_eq!(*value, if is_written { 12.0 } else { 0.0 }, "{at}");
        }
    }
    let mut canvas = vec![0.0f32; 80];
    let mut message = |name: &'static str, shape: &[usize], strides: &[isize]| {
        let y = ViewMut::new(&mut canvas, 0, shape, strides).unwrap();
        kernel.run_into(inputs(), [(name, y)]).unwrap_err().to_string()
    };
    insta::assert_snapshot!(message("z", &[4, 7], &[7, 1]), @"[E0801] Error: there is no memory for the output `y`");
    insta::assert_snapshot!(message("y", &[4, 6], &[7, 1]), @"[E0803] Error: output `y` has extents [4, 7], not [4, 6]");
    insta::assert_snapshot!(message("y", &[4, 7], &[1, 4]), @"[E0803] Error: the last axis of `y` is not contiguous");
    let mut doubles = [0.0f64; 28];
    let y = ViewMut::dense(&mut doubles, &[4, 7]).unwrap();
    insta::assert_snapshot!(kernel.run_into(inputs(), [("y", y)]).unwrap_err().to_string(), @"[E0804] Error: output `y` is a `float`, and the view has elements of 8 bytes");
    let unknown = inputs().view("c", View::dense(&b, &[7]).unwrap());
    insta::assert_snapshot!(kernel.run(unknown).unwrap_err().to_string(), @"[E0802] Error: there is no input `c`");
}

#[test]
fn calls_that_do_not_fit_are_refused() {
    let kernel = sum().compile().build().unwrap();
    let buffer = |shape: &[i64]| {
        let elements = shape.iter().product::<i64>() as usize;
        Buffer::from_f32(shape, vec![0.0; elements]).unwrap()
    };
    let message = |inputs: &[(&str, Buffer)]| {
        let inputs = inputs.iter().map(|(name, buffer)| ((*name).to_owned(), buffer.clone()));
        kernel.run(&inputs.collect::<Inputs>()).unwrap_err().to_string()
    };
    insta::assert_snapshot!(message(&[("x", buffer(&[4, 5]))]), @"[E0801] Error: the input `b` is missing");
    insta::assert_snapshot!(message(&[("x", buffer(&[4, 5])), ("b", buffer(&[6]))]), @"[E0803] Error: input `b` has extents [6], not [5]");
    insta::assert_snapshot!(message(&[("x", buffer(&[1, 5])), ("b", buffer(&[5]))]), @"[E0703] Error: `N >= 2` does not hold for N = 1");
    insta::assert_snapshot!(message(&[("x", buffer(&[31, 5])), ("b", buffer(&[5]))]), @"[E0703] Error: `N` is 31, and must be 1 to 30");
    insta::assert_snapshot!(message(&[("x", buffer(&[4])), ("b", buffer(&[5]))]), @"[E0803] Error: `x` was given with 1 axes, and its extents are [4, 5]");
    let doubles = Buffer::from_f64s(tensorwright::DType::Double, &[5], &[0.0; 5]).unwrap();
    insta::assert_snapshot!(message(&[("x", buffer(&[4, 5])), ("b", doubles)]), @"[E0804] Error: input `b` is a `double`, not a `float`");
    let gather = "def f(float(E) t, int32(N) at) -> (y) { y(n) = t(at(n)) }";
    let gather = Case::written(gather, &[("E", 5), ("N", 5)]).bind().unwrap();
    let kernel = gather.compile().build().unwrap();
    let at = Buffer::from_f64s(tensorwright::DType::Int32, &[2], &[0.0, 5.0]).unwrap();
    let inputs = Inputs::from([("t".to_owned(), buffer(&[5])), ("at".to_owned(), at)]);
    insta::assert_snapshot!(kernel.run(&inputs).unwrap_err().to_string(), @"
        [E0805] Error: a subscript of `t` from data is out of bounds
           ╭─[ f.tc:1:48 ]
           │
         1 │ def f(float(E) t, int32(N) at) -> (y) { y(n) = t(at(n)) }
           │                                                ────┬───
           │                                                    ╰───── outside of its tensor in this call
        ───╯
    ");
}

#[test]
fn steps_that_need_fixed_extents_are_refused() {
    let refusal = |steps: &str| {
        let builder = sum().compile().schedule_text(steps).map(|builder| builder.lower().map(drop));
        builder.unwrap().unwrap_err().to_string()
    };
    insta::assert_snapshot!(refusal("y: vectorize m"), @"
        [E1002] Error: the iterations of loop `m` of `y` depend on sizes, and it cannot be vectorized
           ╭─[ <schedule>:1:1 ]
           │
         1 │ y: vectorize m
           │ ───────┬──────
           │        ╰──────── this step is refused
           │
           │ Help: split it: the inner loop has a fixed number of iterations
        ───╯
    ");
    insta::assert_snapshot!(refusal("y: unroll n"), @"
        [E1002] Error: the iterations of loop `n` of `y` depend on sizes, and it cannot be unrolled
           ╭─[ <schedule>:1:1 ]
           │
         1 │ y: unroll n
           │ ─────┬─────
           │      ╰─────── this step is refused
           │
           │ Help: split it: the inner loop has a fixed number of iterations
        ───╯
    ");
    insta::assert_snapshot!(refusal("y: fuse n m"), @"
        [E1002] Error: the iterations of loop `m` of `y` depend on sizes, and it cannot be fused with the loop around it
           ╭─[ <schedule>:1:1 ]
           │
         1 │ y: fuse n m
           │ ─────┬─────
           │      ╰─────── this step is refused
           │
           │ Help: split it: the inner loop has a fixed number of iterations
        ───╯
    ");
}

#[test]
fn loops_end_where_sizes_say() {
    let steps =
        "y: split n 2\ny: split m 8\ny: vectorize m.1\ny: unroll n.1\ny: reorder n.0 m.0 n.1 m.1";
    let program = sum();
    let loops = program.compile().schedule_text(steps).unwrap().lower().unwrap();
    insta::assert_snapshot!(loops.nest(), @"
        f(N in 1..=30, M in 1..=60, float x[N][M], float b[M], out float y[N - 1][M]) {
          if (2 <= (N + 1) / 2) {
            for n.0 in 0..(N + 1) / 2 - 1 {
              if (1 <= M / 8) {
                for m.0 in 0..M / 8 {
                  [m.1 = 0..8] y(2 * n.0, 8 * m.0 + m.1) = x(2 * n.0, 8 * m.0 + m.1) + b(8 * m.0 + m.1) + x(2 * n.0 + 1, 8 * m.0 + m.1);
                  [m.1 = 0..8] y(2 * n.0 + 1, 8 * m.0 + m.1) = x(2 * n.0 + 1, 8 * m.0 + m.1) + b(8 * m.0 + m.1) + x(2 * n.0 + 2, 8 * m.0 + m.1);
                }
              }
              if (M / 8 + 1 <= (M + 7) / 8) {
                for m.0 in M / 8..(M + 7) / 8 {
                  [m.1 = 0..8] if (8 * m.0 + m.1 + 1 <= M) y(2 * n.0, 8 * m.0 + m.1) = x(2 * n.0, 8 * m.0 + m.1) + b(8 * m.0 + m.1) + x(2 * n.0 + 1, 8 * m.0 + m.1);
                  [m.1 = 0..8] if (8 * m.0 + m.1 + 1 <= M) y(2 * n.0 + 1, 8 * m.0 + m.1) = x(2 * n.0 + 1, 8 * m.0 + m.1) + b(8 * m.0 + m.1) + x(2 * n.0 + 2, 8 * m.0 + m.1);
                }
              }
            }
          }
          if ((N + 1) / 2 <= N / 2) {
            for n.0 in (N + 1) / 2 - 1..N / 2 {
              if (N <= 2 * n.0 + 2) {
                if (1 <= M / 8) {
                  for m.0 in 0..M / 8 {
                    [m.1 = 0..8] y(2 * n.0, 8 * m.0 + m.1) = x(2 * n.0, 8 * m.0 + m.1) + b(8 * m.0 + m.1) + x(2 * n.0 + 1, 8 * m.0 + m.1);
                  }
                }
                if (M / 8 + 1 <= (M + 7) / 8) {
                  for m.0 in M / 8..(M + 7) / 8 {
                    [m.1 = 0..8] if (8 * m.0 + m.1 + 1 <= M) y(2 * n.0, 8 * m.0 + m.1) = x(2 * n.0, 8 * m.0 + m.1) + b(8 * m.0 + m.1) + x(2 * n.0 + 1, 8 * m.0 + m.1);
                  }
                }
              }
              if (2 * n.0 + 3 <= N) {
                if (1 <= M / 8) {
                  for m.0 in 0..M / 8 {
                    [m.1 = 0..8] y(2 * n.0, 8 * m.0 + m.1) = x(2 * n.0, 8 * m.0 + m.1) + b(8 * m.0 + m.1) + x(2 * n.0 + 1, 8 * m.0 + m.1);
                    [m.1 = 0..8] y(2 * n.0 + 1, 8 * m.0 + m.1) = x(2 * n.0 + 1, 8 * m.0 + m.1) + b(8 * m.0 + m.1) + x(2 * n.0 + 2, 8 * m.0 + m.1);
                  }
                }
                if (M / 8 + 1 <= (M + 7) / 8) {
                  for m.0 in M / 8..(M + 7) / 8 {
                    [m.1 = 0..8] if (8 * m.0 + m.1 + 1 <= M) y(2 * n.0, 8 * m.0 + m.1) = x(2 * n.0, 8 * m.0 + m.1) + b(8 * m.0 + m.1) + x(2 * n.0 + 1, 8 * m.0 + m.1);
                    [m.1 = 0..8] if (8 * m.0 + m.1 + 1 <= M) y(2 * n.0 + 1, 8 * m.0 + m.1) = x(2 * n.0 + 1, 8 * m.0 + m.1) + b(8 * m.0 + m.1) + x(2 * n.0 + 2, 8 * m.0 + m.1);
                  }
                }
              }
            }
          }
        }
    ");
}

#[test]
fn rows_that_are_left_have_bodies_of_their_own() {
    let text = "def f(float(N,K) a, float(K) x) -> (y) { y(n) +=! a(n,k) * x(k) }";
    let program = Case::written(text, &[("N", 9), ("K", 5)]).bind().unwrap();
    let steps = "y: split n 2\ny: unroll n.1\ny: reorder n.0 k n.1";
    let loops = program.compile().schedule_text(steps).unwrap().lower().unwrap();
    insta::assert_snapshot!(loops.nest(), @"
        f(N in 1..=27, K in 1..=15, float a[N][K], float x[K], out float y[N]) {
          if (1 <= N / 2) {
            for n.0 in 0..N / 2 {
              y(2 * n.0) = 0.0;
              y(2 * n.0 + 1) = 0.0;
              for k in 0..K {
                y(2 * n.0) += a(2 * n.0, k) * x(k);
                y(2 * n.0 + 1) += a(2 * n.0 + 1, k) * x(k);
              }
            }
          }
          if (N / 2 + 1 <= (N + 1) / 2) {
            for n.0 in N / 2..(N + 1) / 2 {
              if (N <= 2 * n.0 + 1) {
                y(2 * n.0) = 0.0;
                for k in 0..K {
                  y(2 * n.0) += a(2 * n.0, k) * x(k);
                }
              }
              if (2 * n.0 + 2 <= N) {
                y(2 * n.0) = 0.0;
                y(2 * n.0 + 1) = 0.0;
                for k in 0..K {
                  y(2 * n.0) += a(2 * n.0, k) * x(k);
                  y(2 * n.0 + 1) += a(2 * n.0 + 1, k) * x(k);
                }
              }
            }
          }
        }
    ");
}

#[test]
fn constants_of_known_extents_are_prepared_once() {
    let text = "def f(float(B,K) x, const float(K,N) w, const float(N) b) -> (y) {
        y(i,n) +=! x(i,k) * w(k,n)
        y(i,n) = y(i,n) + b(n)
    }";
    let module = Module::parse("f.tc", text).unwrap();
    let def = module.def("f").unwrap();
    let range = SizeRange { least: 1, most: 512, likely: 96, multiple: 1 };
    let sizes = |batch| [("B", batch), ("K", SizeValue::Known(64)), ("N", SizeValue::Known(80))];
    let program = def.bind_sized(sizes(SizeValue::Varies(range))).unwrap();
    let kernel = program.compile().build().unwrap();
    assert!(kernel.needs_constants());
    assert!(kernel.lowered().interface().has_prepare, "{}", kernel.lowered().loops());
    insta::assert_snapshot!(kernel.lowered().c_source().unwrap_err(), @"
        [E1005] Error: callers in C cannot prepare constants of kernels whose sizes vary
           Help: compile the program without constants (`with_changing_inputs`)
    ");
    assert!(program.with_changing_inputs().compile().lower().unwrap().c_source().is_ok());

    let likely = def.bind([("B", 1), ("K", 64), ("N", 80)]).unwrap();
    let mut weights = likely.random_inputs(7).unwrap();
    weights.remove("x");
    let constants = || Arguments::new().buffer("w", &weights["w"]).buffer("b", &weights["b"]);
    let frozen = kernel.freeze(constants()).unwrap();
    for batch in [1, 2, 31, 96, 512] {
        let fixed = def.bind([("B", batch), ("K", 64), ("N", 80)]).unwrap();
        let mut inputs = fixed.random_inputs(batch as u64).unwrap();
        inputs.extend(weights.clone());
        let expected = fixed.run_reference(&inputs).unwrap();
        let x = &inputs["x"];
        for arguments in [
            constants().buffer("x", x),
            // The constants of the call before.
            Arguments::new().buffer("x", x),
            Arguments::new().buffer("x", x).frozen(&frozen),
        ] {
            let found = kernel.run(arguments).unwrap();
            let wrong = expected.output("y").unwrap().mismatch(found.get("y").unwrap());
            assert!(wrong.is_none(), "{batch}: {wrong:?}");
        }
    }
}

/// However large the greatest sizes are, no loop runs to them.
#[test]
fn no_loop_runs_to_the_largest_size() {
    const MOST: i64 = 1 << 16;
    for (text, sizes) in PROGRAMS {
        for factor in [1, 4, 16] {
            let mut case = Case::written(text, sizes);
            for (_, likely, most) in &mut case.sizes {
                (*likely, *most) = (*likely * factor, MOST);
            }
            let Ok(program) = case.bind() else { continue };
            let lowered = program.compile().lower().unwrap();
            let nest = lowered.nest().as_nest();
            let mut endless = Vec::new();
            for_each_loop(&nest.body, &mut |l| {
                let end = match &l.span {
                    None => Some(l.extent),
                    Some(span) => span.end.as_constant(),
                };
                // The loops of a tile have a fixed number of iterations.
                let is_endless = end.is_some_and(|end| end > MOST / 256);
                endless.extend(is_endless.then(|| nest.var_name(l.var).to_owned()));
            });
            let (schedule, loops) = (lowered.schedule(), lowered.loops());
            assert!(endless.is_empty(), "{text}\n{schedule}\n{loops}\n{endless:?}");
        }
    }
}
