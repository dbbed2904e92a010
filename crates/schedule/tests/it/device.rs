//! Tests of lowering for devices: memory, barriers, launches and limits.

use tensorwright_lang::Module;
use tensorwright_lang::program::Program;
use tensorwright_schedule::check::{Flaw, Verdict, check};
use tensorwright_schedule::nest::{Body, Dim, Guard, Loop, LoopKind, Memory, Node};
use tensorwright_schedule::{
    DeviceLimits, LoopNest, LowerError, LowerOptions, LoweredNest, Schedule, canonical, lower_with,
};

const GEMM: &str = "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
const SOFTMAX: &str = "def softmax(float(N,D) x) -> (y) {
  top(n) max=! x(n,d)
  e(n,d) = exp(x(n,d) - top(n))
  total(n) +=! e(n,d)
  y(n,d) = e(n,d) / total(n)
}";
const MV: &str = "def mv(float(M,K) A, float(K) x) -> (y) { y(i) +=! A(i,k) * x(k) }";
const BLUR: &str = "def blur(float(H,W) in) -> (out) {
  bx(y,x) = in(y,max(x-1,0)) + in(y,x) + in(y,min(x+1,W-1)) where x in 0:W
  out(y,x) = bx(max(y-1,0),x) + bx(y,x) + bx(min(y+1,H-1),x) where y in 0:H
}";
const COUNT: &str =
    "def count(int(N) bin, int B) -> (count) { count(b) +=! 1 scatter b = bin(i) where b in 0:B }";

/// Tiles of 8 by 8 threads that compute 2 by 2 elements each, from staged operands.
const TILED: &str = "C: split m 8 2\nC: split n 8 2\nC: split k 4\nC: reorder m.0 n.0 k.0 m.1 n.1 k.1 m.2 n.2\n\
    C: bind m.0 block.y\nC: bind n.0 block.x\nC: bind m.1 thread.y\nC: bind n.1 thread.x\n\
    C: cache_read A at k.0 in shared\nC: cache_read B at k.0 in shared\n\
    A.pack: fuse d0 d1 -> t\nA.pack: split t 8 8\nA.pack: bind t.1 thread.y\nA.pack: bind t.2 thread.x\n\
    B.pack: fuse d0 d1 -> t\nB.pack: split t 8 8\nB.pack: bind t.1 thread.y\nB.pack: bind t.2 thread.x\n\
    C: cache_write at n.0\nC.tile: unroll m.2\nC.tile: unroll n.2\n";
/// A stage in the blocks of its reader.
const FUSED: &str = "out: split y 4\nout: split x 8\nout: reorder y.0 x.0 y.1 x.1\nbx: compute_at out x.0\n\
    out: bind y.0 block.y\nout: bind x.0 block.x\nout: bind y.1 thread.y\nout: bind x.1 thread.x\n\
    bx: bind y thread.y\nbx: bind x thread.x\n";
const ROWS: &str = "total: compute_at y n\ne: compute_at y n\ntop: compute_at y n\ny: bind n block.x\n\
    y: split d 8\ny: bind d.1 thread.x\ne: split d 8\ne: bind d.1 thread.x\n\
    total: split d 8\ntotal: rfactor d.1 at n\ntotal.rf: reorder d.1 d.0\ntotal.rf: bind d.1 thread.x\n";

fn program(text: &str, sizes: &[(&str, i64)]) -> Program {
    let module = Module::parse("test.tc", text).unwrap();
    let def = module.defs().next().unwrap();
    def.bind(sizes.iter().copied()).unwrap()
}

fn scheduled(program: &Program, steps: &str) -> LoopNest {
    Schedule::parse(steps)
        .unwrap_or_else(|e| panic!("{e}"))
        .apply(canonical(program))
        .unwrap_or_else(|e| panic!("{e}"))
}

fn lowered(nest: LoopNest) -> LoweredNest {
    let options = LowerOptions::device(DeviceLimits::default());
    let look = &mut |pass: &str, nest: &LoopNest| {
        assert_eq!(check(nest, 1_000_000), Ok(Verdict::Sound), "after {pass}:\n{nest}");
    };
    lower_with(nest, &options, look).unwrap()
}

/// The launches and their nest.
fn show(lowered: &LoweredNest) -> String {
    let nest = lowered.as_nest();
    let launches = nest.launches.as_ref().unwrap();
    let mut text = String::new();
    for launch in launches.prepare.iter().chain(&launches.body) {
        text += &format!(
            "grid {:?} block {:?} shared {} bytes\n",
            launch.grid, launch.block, launch.shared_bytes
        );
    }
    for buffer in nest.buffers.iter().filter(|buffer| buffer.owner.is_kernel()) {
        let (name, memory) = (&buffer.name, buffer.memory.unwrap());
        text += &format!("{name}: {memory:?}, {} bytes of a thread\n", buffer.thread_bytes());
    }
    format!("{text}{nest}")
}

macro_rules! shows {
    ($($name:ident: $text:expr, $sizes:expr, $steps:expr;)*) => {
        $(#[test]
        fn $name() {
            let nest = scheduled(&program($text, &$sizes), $steps);
            insta::assert_snapshot!(stringify!($name), show(&lowered(nest)));
        })*
    };
}

shows! {
    gemm_in_tiles: GEMM, [("M", 33), ("N", 40), ("K", 10)], TILED;
    softmax_by_rows: SOFTMAX, [("N", 3), ("D", 20)], ROWS;
    partial_sums: MV, [("M", 3), ("K", 20)],
        "y: split k 8\ny: rfactor k.1 at i\ny: bind i block.x\ny.rf: reorder k.1 k.0\ny.rf: bind k.1 thread.x\n";
    threads_add_to_their_own: GEMM, [("M", 6), ("N", 8), ("K", 5)],
        "C: reorder k m n\nC: bind m thread.y\nC: bind n thread.x\n";
    stencil: BLUR, [("H", 9), ("W", 20)], FUSED;
    stencil_with_an_interior: BLUR, [("H", 42), ("W", 83)], FUSED;
    lives_outside_of_launches: MV, [("M", 3), ("K", 6)],
        "y: split k 3\ny: split i 4\ny: rfactor k.1 at i.0\ny.rf: reorder k.1 i.1 k.0\ny.rf: bind k.1 thread.x\n";
    one_thread: COUNT, [("N", 9), ("B", 4)], "count.start: bind b thread.x\n";
}

/// Removes barrier `number`; returns whether it exists.
fn without(nodes: &mut Body, number: &mut i64) -> bool {
    let is_it = |node: &Node, number: &mut i64| {
        *number -= i64::from(matches!(node, Node::Barrier));
        *number < 0
    };
    let mut place = 0;
    while place < nodes.len() {
        if is_it(&nodes[place], number) {
            nodes.remove(place);
            return true;
        }
        let found = match &mut nodes[place] {
            Node::Loop(l) => without(&mut l.body, number),
            Node::Guard(guard) => without(&mut guard.body, number),
            _ => false,
        };
        if found {
            return true;
        }
        place += 1;
    }
    false
}

/// Every barrier is needed: without it, two threads race.
#[test]
fn threads_meet_without_a_barrier() {
    let gemm = scheduled(&program(GEMM, &[("M", 33), ("N", 40), ("K", 10)]), TILED);
    let softmax = scheduled(&program(SOFTMAX, &[("N", 3), ("D", 20)]), ROWS);
    for (nest, barriers) in [(gemm, 2), (softmax, 3)] {
        let lowered = lowered(nest);
        for barrier in 0..=barriers {
            let mut nest = lowered.as_nest().clone();
            let found = without(&mut nest.body, &mut barrier.clone());
            assert_eq!(found, barrier < barriers, "barrier {barrier} of\n{nest}");
            let verdict = check(&nest, 1_000_000);
            assert_eq!(
                matches!(verdict, Err(Flaw::Race { .. })),
                found,
                "{barrier}: {verdict:?}\n{nest}"
            );
        }
    }
}

/// The contents of block memory do not survive a launch.
#[test]
fn launches_share_the_workspace_alone() {
    let steps = "y: split k 3\ny: split i 4\ny: rfactor k.1 at i.0\ny.rf: bind k.1 thread.x\n";
    let mut nest = lowered(scheduled(&program(MV, &[("M", 3), ("K", 6)]), steps)).as_nest().clone();
    let partial = nest.buffers.iter_mut().find(|buffer| buffer.name == "y.rf").unwrap();
    assert_eq!(partial.memory, Some(Memory::Workspace));
    partial.memory = Some(Memory::Shared);
    let flaw = check(&nest, 1_000_000).unwrap_err().to_string();
    assert_eq!(flaw, "`y` reads `y.rf(0, 0)`, which nothing has written");
}

#[test]
fn what_does_not_fit_says_what_to_do() {
    let gemm = program(GEMM, &[("M", 2000), ("N", 70_000), ("K", 4000)]);
    let cases = [
        "C: bind m thread.x\n",
        "C: bind m block.x\nC: cache_read B at m in shared\n",
        "C: bind m block.x\nC: split n 100\nC: bind n.0 thread.x\nC: cache_read A at n.0\nC: cache_write at n.0\n",
        "C: reorder n m k\nC: bind n block.y\n",
    ];
    let mut text = String::new();
    for steps in cases {
        let options = LowerOptions::device(DeviceLimits::default());
        let nest = scheduled(&gemm, steps);
        let error = lower_with(nest, &options, &mut |_, _| {}).err();
        assert!(matches!(error, Some(LowerError::Device(_))), "{steps}{error:?}");
        text += &format!("{steps}  {}\n", error.unwrap());
    }
    insta::assert_snapshot!("device_limits", text);
}

/// Puts a barrier at the start of the first matching node; returns whether there is one.
fn barrier_in(nodes: &mut Body, is_it: &dyn Fn(&Node) -> bool) -> bool {
    nodes.iter_mut().any(|node| {
        let found = is_it(node);
        let (Node::Loop(Loop { body, .. }) | Node::Guard(Guard { body, .. })) = node else {
            return false;
        };
        if found {
            body.insert(0, Node::Barrier);
        }
        found || barrier_in(body, is_it)
    })
}

/// Some runtimes compile conditions with barriers wrongly, even if all threads of a block agree on
/// them.
#[test]
fn barriers_stand_in_no_condition_and_no_thread() {
    let stencil = scheduled(&program(BLUR, &[("H", 42), ("W", 83)]), FUSED);
    let softmax = scheduled(&program(SOFTMAX, &[("N", 3), ("D", 20)]), ROWS);
    let is_guard = |node: &Node| matches!(node, Node::Guard(_));
    let is_thread =
        |node: &Node| matches!(node, Node::Loop(l) if l.kind == LoopKind::Thread(Dim::X));
    let flaw = |nest, is_it: &dyn Fn(&Node) -> bool| {
        let mut nest = lowered(nest).as_nest().clone();
        assert!(barrier_in(&mut nest.body, is_it));
        check(&nest, 1_000_000).unwrap_err().to_string()
    };
    let rest = ", and not all threads may come to it";
    assert_eq!(flaw(stencil, &is_guard), format!("a barrier stands within a condition{rest}"));
    let around = "loop `d.1` over threads";
    assert_eq!(flaw(softmax, &is_thread), format!("a barrier stands within {around}{rest}"));
}
