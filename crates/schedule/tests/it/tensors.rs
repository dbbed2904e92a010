//! Tests of tensor operations: legal loops, device limits, buffers.

use tensorwright_lang::Module;
use tensorwright_lang::dtype::DType;
use tensorwright_lang::program::Program;
use tensorwright_schedule::check::{Flaw, Verdict, check};
use tensorwright_schedule::nest::{Body, Fragment, LoopKind, Memory, Node, for_each_loop};
use tensorwright_schedule::{
    DeviceLimits, LoopNest, LowerError, LowerOptions, LoweredNest, Schedule, canonical, lower,
    lower_with,
};

const HALF: &str = "def gemm(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
const WIDE: &str =
    "def gemm(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! float(A(m,k)) * float(B(k,n)) }";

/// Tiles as the innermost loops.
const TILES: &str =
    "C: split m 16\nC: split n 16\nC: split k 16\nC: reorder m.0 n.0 k.0 m.1 n.1 k.1\n";

/// One tile per warp, from operands that the threads of a block copy.
const STAGED: &str = "C: bind m.0 block.x\nC: bind n.0 thread.y\nC: reorder k.0 n.0\nC: tensorize m.1 n.1 k.1\n\
    C: cache_read A at k.0 in shared\nA.pack: bind d0 thread.y\nA.pack: bind d1 thread.x\n\
    C: cache_read B at k.0 in shared\nB.pack: bind d0 thread.y\nB.pack: bind d1 thread.x\n\
    C: cache_write at m.0\n";

fn program(text: &str, sizes: &[(&str, i64)]) -> Program {
    let module = Module::parse("test.tc", text).unwrap_or_else(|errors| panic!("{errors}"));
    let def = module.defs().next().unwrap();
    def.bind(sizes.iter().copied()).unwrap_or_else(|errors| panic!("{errors}"))
}

fn scheduled(program: &Program, steps: &str) -> LoopNest {
    let schedule = Schedule::parse(steps).unwrap_or_else(|error| panic!("{error}"));
    let mut nest = canonical(program);
    for step in &schedule.steps {
        step.apply(&mut nest).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(check(&nest, 1_000_000), Ok(Verdict::Sound), "after {step}:\n{nest}");
    }
    nest
}

fn on_device(nest: LoopNest) -> Result<LoweredNest, LowerError> {
    let options = LowerOptions::device(DeviceLimits::default());
    lower_with(nest, &options, &mut |pass, nest| {
        assert_eq!(check(nest, 1_000_000), Ok(Verdict::Sound), "after {pass}:\n{nest}");
    })
}

#[test]
fn accumulators_are_in_registers_of_a_warp() {
    let gemm = program(WIDE, &[("M", 32), ("N", 32), ("K", 32)]);
    let lowered = on_device(scheduled(&gemm, &format!("{TILES}{STAGED}"))).unwrap();
    let nest = lowered.as_nest();
    let tile = nest.buffers.iter().find(|buffer| buffer.name == "C.tile").unwrap();
    // Each of two warps holds its own tile, and each thread 8 elements of it.
    assert_eq!(
        (tile.memory, tile.fragment),
        (Some(Memory::Stack), Some(Fragment { dimensions: [1, 2], factors: DType::Half }))
    );
    assert_eq!((tile.by_thread.as_slice(), tile.thread_bytes()), ([0].as_slice(), 32));
    let launch = nest.launches.as_ref().unwrap().body[0];
    assert_eq!((launch.grid, launch.block), ([2, 1, 1], [32, 16, 1]));
    insta::assert_snapshot!("tensor_staged", nest.to_string());
}

/// CPUs have no restrictions on them.
#[test]
fn processors_take_any_operation() {
    let gemm = program(WIDE, &[("M", 32), ("N", 32), ("K", 32)]);
    let lowered = lower(scheduled(&gemm, &format!("{TILES}C: tensorize m.1 n.1 k.1\n"))).unwrap();
    let mut tensors = 0;
    for_each_loop(&lowered.as_nest().body, &mut |l| {
        tensors += usize::from(l.kind == LoopKind::Tensor);
    });
    assert_eq!(tensors, 5);
}

/// Removes a barrier.
fn without(nodes: &mut Body, number: &mut usize) {
    let mut place = 0;
    while place < nodes.len() {
        match &mut nodes[place] {
            Node::Barrier if *number == 0 => {
                nodes.remove(place);
                *number = usize::MAX;
            }
            Node::Barrier => *number -= 1,
            Node::Loop(l) => without(&mut l.body, number),
            Node::Guard(guard) => without(&mut guard.body, number),
            _ => {}
        }
        place += 1;
    }
}

/// The first thread of a warp must synchronize before it reads the warp's results.
#[test]
fn threads_of_a_warp_meet_without_a_barrier() {
    let text = "def gemm(half(M,K) A, half(K,N) B) -> (D) {\n\
        C(m,n) +=! float(A(m,k)) * float(B(k,n))\nD(m,n) = C(m,n) + 1 }";
    let gemm = program(text, &[("M", 16), ("N", 16), ("K", 32)]);
    let steps = "D: split m 16\nD: bind m.0 block.x\nC: compute_at D m.0\n\
        C: split n 16\nC: split k 16\nC: reorder n.0 k.0 m n.1 k.1\nC: bind n.0 thread.y\n\
        C: tensorize m n.1 k.1\nC: cache_write at n.0\n";
    let lowered = on_device(scheduled(&gemm, steps)).unwrap();
    assert_eq!(lowered.to_string().matches("barrier;").count(), 1, "{lowered}");
    let mut nest = lowered.as_nest().clone();
    without(&mut nest.body, &mut 0);
    let verdict = check(&nest, 1_000_000);
    assert!(matches!(verdict, Err(Flaw::Race { .. })), "{verdict:?}\n{nest}");
}

/// The reference's bounds hold for products of `half` up to 5,461 terms, but not for those of
/// `float`.
#[test]
fn long_sums_have_larger_errors() {
    let growth = |text: &str, terms: i64| {
        let gemm = program(text, &[("M", 16), ("N", 16), ("K", terms)]);
        let stage = if text == HALF { "C.sum" } else { "C" };
        let steps = "C: split k 16\nC: reorder k.0 m n k.1\nC: tensorize m n k.1\n";
        let schedule = Schedule::parse(&steps.replace("C:", &format!("{stage}:"))).unwrap();
        assert!(schedule.is_exact());
        schedule.apply(canonical(&gemm)).unwrap().error_growth
    };
    assert!(growth(HALF, 5456) <= 1.0 && growth(HALF, 5472) > 1.0);
    let long = growth(HALF, 1 << 20);
    assert!(long > 2.4 && long < 2.5, "{long}");
    assert!((growth(WIDE, 64) - 2.5).abs() < 1e-9);
}

/// Factors of type `float` are rounded to 11 bits only if the schedule requests it, which makes it
/// inexact. The bound includes the rounding of the factors, which dominates for few terms.
#[test]
fn numbers_are_rounded_where_the_schedule_says_so() {
    let text = "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
    let growth = |terms: i64| {
        let gemm = program(text, &[("M", 16), ("N", 16), ("K", terms)]);
        let steps = "C: split k 16\nC: reorder k.0 m n k.1\nC: tensorize m n k.1 in tf32\n";
        let schedule = Schedule::parse(steps).unwrap();
        assert_eq!((schedule.to_string().as_str(), schedule.is_exact()), (steps, false));
        let nest = schedule.apply(canonical(&gemm)).unwrap();
        assert_eq!(nest.error_growth, nest.rounding_growth);
        nest.rounding_growth
    };
    // Factors lose 2^-11 each; the program's own sum of 64 terms loses 64 times 2^-24.
    assert!((growth(64) - (256.0 + 2.5)).abs() < 0.5, "{}", growth(64));
    assert!((growth(1 << 20) - 2.5).abs() < 0.02, "{}", growth(1 << 20));
}

#[test]
fn loops_that_are_no_operation_are_refused() {
    let gemm = program(WIDE, &[("M", 32), ("N", 32), ("K", 40)]);
    let even = program(WIDE, &[("M", 32), ("N", 32), ("K", 32)]);
    let single = program(WIDE, &[("M", 16), ("N", 16), ("K", 16)]);
    let sizes = [("M", 32), ("N", 32), ("K", 32)];
    let of = |text: &str| program(text, &sizes);
    let float = of("def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }");
    let mixed = of(
        "def gemm(half(M,K) A, bfloat16(K,N) B) -> (C) { C(m,n) +=! float(A(m,k)) * float(B(k,n)) }",
    );
    let wider = of(
        "def gemm(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! double(A(m,k)) * double(B(k,n)) }",
    );
    let max = of(
        "def gemm(half(M,K) A, half(K,N) B) -> (C) { C(m,n) max=! float(A(m,k)) * float(B(k,n)) }",
    );
    let three = of(
        "def gemm(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! float(A(m,k)) * float(B(k,n)) * 2 }",
    );
    let square = of(
        "def gemm(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! float(A(m,k)) * float(A(m,k)) where n in 0:N }",
    );
    let biased = of(
        "def gemm(half(M,K) A, half(K,N) B, float(N) bias) -> (C) { C(m,n) = bias(n)\nC(m,n) += float(A(m,k)) * float(B(k,n)) }",
    );
    let tiles = format!("{TILES}C: tensorize m.1 n.1 k.1");
    let cases: Vec<(&Program, String)> = vec![
        (&even, "C: tensorize m n k l".into()),
        (&even, "C: tensorize m".into()),
        (&even, "C: tensorize m n k".into()),
        (&even, "C: tensorize m n".into()),
        (&even, format!("{TILES}C: tensorize n.1 m.1 k.1")),
        (&even, format!("{TILES}C: tensorize n.1 k.1")),
        (&even, format!("{TILES}C: unroll m.1\nC: tensorize m.1 n.1 k.1")),
        (&even, format!("{TILES}C: reorder k.1 n.1\nC: tensorize m.1 k.1 n.1")),
        (&even, "C: split m 16\nC: split n 16\nC: reorder m.0 n.0 m.1 n.1 k\nC: split k 16\nC: tensorize n.1 k.0 k.1".into()),
        (&even, "C: split m 16\nC: split n 16\nC: split k 16\nC: reorder m.0 n.0 m.1 n.1 k.0 k.1\nC: reorder k.0 m.1 n.1\nC: tensorize m.1 n.1 k.1\nC: reorder n.1 k.0".into()),
        (&gemm, tiles.clone()),
        (&even, "C: split m 3 16\nC: split n 16\nC: split k 16\nC: reorder m.0 m.1 n.0 k.0 m.2 n.1 k.1\nC: tensorize m.2 n.1 k.1".into()),
        (&single, "C: tensorize m n k".into()),
        (&float, tiles.clone()),
        (&even, format!("{tiles} in tf32")),
        (&float, format!("{TILES}C: tensorize m.1 n.1 in tf32")),
        (&mixed, tiles.clone()),
        (&wider, tiles.clone()),
        (&max, tiles.clone()),
        (&three, tiles.clone()),
        (&square, tiles.clone()),
        (&biased, tiles.clone()),
        (&even, format!("{tiles}\nC: split m.1 4")),
        (&even, format!("{tiles}\nC: vectorize k.1")),
        (&even, format!("{tiles}\nC: cache_read A at m.1")),
        (&even, format!("{tiles}\nC: prefetch A at k.1 1")),
        (&even, format!("{tiles}\nC: cache_write at k.0")),
        (&even, format!("{tiles}\nC: cache_write at m.1")),
    ];
    let mut text = String::new();
    for (program, steps) in cases {
        let result =
            Schedule::parse(&steps).and_then(|schedule| schedule.apply(canonical(program)));
        let error = result.err().map_or("ACCEPTED".to_owned(), |error| error.to_string());
        text.push_str(&format!("{steps}\n  {error}\n"));
    }
    insta::assert_snapshot!("tensor_refusals", text);
}

#[test]
fn what_a_warp_cannot_do_says_what_to_do() {
    let sizes = [("M", 64), ("N", 64), ("K", 64)];
    let of = |text: &str, sizes: &[(&str, i64)]| program(text, sizes);
    let gemm = of(WIDE, &sizes);
    let odd = of(WIDE, &[("M", 64), ("N", 16), ("K", 64)]);
    // A row of 68 elements is not a multiple of 8, and neither is an offset of four elements.
    let rows = of(
        "def gemm(half(M,L) A, half(K,N) B) -> (C) { C(m,n) +=! float(A(m,k)) * float(B(k,n)) where k in 0:64 }",
        &[("M", 64), ("N", 64), ("K", 64), ("L", 68)],
    );
    let start = of(
        "def gemm(half(M,L) A, half(K,N) B) -> (C) { C(m,n) +=! float(A(m,k+8)) * float(B(k,n)) where k in 0:64 }",
        &[("M", 64), ("N", 64), ("K", 64), ("L", 72)],
    );
    let strided = of(
        "def gemm(half(M,L) A, half(K,N) B) -> (C) { C(m,n) +=! float(A(m,2*k)) * float(B(k,n)) where k in 0:64 }",
        &[("M", 64), ("N", 64), ("K", 64), ("L", 128)],
    );
    let doubled = of(
        "def gemm(half(M,K) A, half(K,N) B) -> (D) { C(m,n) +=! float(A(m,k)) * float(B(k,n))\nD(m,n) = 2 * C(m,n) }",
        &sizes,
    );
    let made = of(
        "def gemm(half(M,K) A, half(K,N) B) -> (C) { H(m,k) = A(m,k) + 1\nC(m,n) +=! float(H(m,k)) * float(B(k,n)) }",
        &sizes,
    );
    let tiles = |rest: &str| format!("{TILES}C: bind m.0 block.x\n{rest}");
    let op = "C: tensorize m.1 n.1 k.1\n";
    let cases: Vec<(&Program, String)> = vec![
        (&gemm, tiles(op)),
        (&gemm, tiles(&format!("C: bind n.0 thread.x\n{op}C: cache_write at n.0"))),
        (&gemm, tiles(&format!("{op}C: cache_write at m.0\nC: cache_read B at m.0 in shared\nB.pack: bind d1 thread.x"))),
        (&gemm, format!("{TILES}{op}C: cache_write at m.0")),
        (&gemm, tiles(&format!("C: cache_write at n.0\nC.tile: {}", &op[3..]))),
        (&gemm, tiles("C: cache_write at n.0\nC: tensorize m.1 n.1")),
        (&rows, tiles(&format!("{op}C: cache_write at n.0"))),
        (&start, tiles(&format!("{op}C: cache_write at n.0"))),
        (&strided, tiles(&format!("{op}C: cache_write at n.0"))),
        (&odd, "C: split m 16\nC: split k 16\nC: reorder k.0 m.0 m.1 n k.1\nC: bind m.0 thread.y\nC: tensorize m.1 n k.1\n".into()),
        (&doubled, "D: split m 16\nD: split n 16\nD: reorder m.0 n.0 m.1 n.1\nD: bind m.0 block.x\nD: bind n.0 thread.y\nC: compute_at D n.0\n\
            C: split k 16\nC: reorder k.0 m n k.1\nC: tensorize m n k.1".into()),
        (&made, tiles(&format!("C: bind n.0 thread.y\nH: compute_at C n.0\n{op}C: cache_write at n.0"))),
    ];
    let mut text = String::new();
    for (program, steps) in cases {
        let nest = Schedule::parse(&steps).unwrap().apply(canonical(program));
        let nest = nest.unwrap_or_else(|error| panic!("{steps}: {error}"));
        let error = on_device(nest).err();
        let error = error.map_or("ACCEPTED".to_owned(), |error| error.to_string());
        text.push_str(&format!("{steps}\n  {error}\n"));
    }
    insta::assert_snapshot!("tensor_device_refusals", text);
}
