//! Tests of bound loops: legal positions, and detection of races.

use tensorwright_lang::Module;
use tensorwright_lang::program::Program;
use tensorwright_schedule::check::{Verdict, check};
use tensorwright_schedule::nest::{Dim, LoopKind, Node, Shared};
use tensorwright_schedule::{LoopNest, Schedule, canonical};

const GEMM: &str = "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
const BLUR: &str = "def blur(float(N) A) -> (out) {
  rows(i) = A(i) + A(i+1)
  out(i) = rows(i) * rows(i+1)
}";
const MOMENTS: &str = "def moments(float(N,D) x) -> (sum, square) {
  sum(n) +=! x(n,d)
  square(n) +=! x(n,d) * x(n,d)
}";
const COUNT: &str =
    "def count(int(N) bin, int B) -> (count) { count(b) +=! 1 scatter b = bin(i) where b in 0:B }";
const SCAN: &str =
    "def filter(float(N,T) x) -> (y) { y(n,t) = 0.5 * y(n,t-1) + x(n,t) scan t from 0 }";

fn program(text: &str, sizes: &[(&str, i64)]) -> Program {
    let module = Module::parse("test.tc", text).unwrap();
    let def = module.defs().next().unwrap();
    def.bind(sizes.iter().copied()).unwrap()
}

fn scheduled(program: &Program, steps: &str) -> LoopNest {
    Schedule::parse(steps).unwrap().apply(canonical(program)).unwrap()
}

#[test]
fn refusals_say_why_and_what_to_do() {
    let gemm = program(GEMM, &[("M", 5), ("N", 21), ("K", 6)]);
    let blur = program(BLUR, &[("N", 24)]);
    let moments = program(MOMENTS, &[("N", 6), ("D", 5)]);
    let count = program(COUNT, &[("N", 9), ("B", 4)]);
    let scan = program(SCAN, &[("N", 4), ("T", 5)]);
    let cases = [
        (&gemm, "C: bind m block"),
        (&gemm, "C: bind m warp.x"),
        (&gemm, "C: bind m"),
        (&gemm, "C: bind k thread.x"),
        (&count, "count: bind i block.x"),
        (&scan, "y: bind t thread.x"),
        (&gemm, "C: bind m block.x\nC: bind m block.y"),
        (&gemm, "C: bind m block.x\nC: split m 2"),
        (&gemm, "C: bind m block.x\nC: bind n block.x"),
        (&gemm, "C: bind n block.x"),
        (&gemm, "C: bind m thread.x\nC: bind n block.x"),
        (&gemm, "C: split m 2 [peel]\nC: bind m.0 block.x"),
        (&gemm, "C: split m 2 [shift]\nC: bind m.0 block.x"),
        (&gemm, "C: split m 2 [shift]\nC: reorder m.1 m.0\nC: bind m.1 thread.x"),
        (&gemm, "C: parallel m\nC: bind n thread.x"),
        (&gemm, "C: bind m thread.x\nC: parallel n"),
        (&gemm, "C: reorder m k n\nC: bind m thread.y\nC: bind n thread.x"),
        (&gemm, "C: bind m block.y\nC: bind n block.x\nC: cache_read A at m"),
        (&gemm, "C: bind m thread.y\nC: bind n thread.x\nC: cache_write at m"),
        (&blur, "out: split i 8\nrows: slide out i.1\nout: bind i.1 thread.x"),
        (&gemm, "C: cache_read A at n in shared\nC: bind n thread.x"),
        (&gemm, "C: cache_read A at n in registers"),
        (&moments, "sum: bind n block.x\nsum: compute_with square n"),
    ];
    let mut text = String::new();
    for (program, steps) in cases {
        let result = Schedule::parse(steps).and_then(|schedule| schedule.apply(canonical(program)));
        let error = result.err().map_or("ACCEPTED".to_owned(), |error| error.to_string());
        text.push_str(&format!("{steps}\n  {error}\n"));
    }
    insta::assert_snapshot!("bound_refusals", text);
}

/// Binds all loops with this name, without checks.
fn force(nodes: &mut Shared<Node>, names: &[String], name: &str, kind: LoopKind) {
    for node in nodes {
        if let Node::Loop(l) = node {
            if names[l.var.0 as usize] == name {
                l.kind = kind;
            }
            force(&mut l.body, names, name, kind);
        }
    }
}

fn forced(program: &Program, steps: &str, name: &str, kind: LoopKind) -> LoopNest {
    let mut nest = scheduled(program, steps);
    let names: Vec<String> = nest.vars.iter().map(|name| name.to_string()).collect();
    let mut body = std::mem::take(&mut nest.body);
    force(&mut body, &names, name, kind);
    nest.body = body;
    nest
}

#[test]
fn threads_and_blocks_that_meet_are_found() {
    let gemm = program(GEMM, &[("M", 4), ("N", 6), ("K", 4)]);
    let race = |nest: &LoopNest| check(nest, 1_000_000).unwrap_err().to_string();
    let meets = "as does another iteration that runs at the same time";
    for kind in [LoopKind::Thread(Dim::X), LoopKind::Block(Dim::X)] {
        let nest = forced(&gemm, "C: reorder k m n\n", "k", kind);
        assert_eq!(race(&nest), format!("`C` accesses `C(0, 0)`, {meets}"));
    }
    // Threads of consecutive stages do not race, but blocks do.
    let blur = program(BLUR, &[("N", 18)]);
    let steps = "out: split i 8\nrows: compute_at out i.0\nout: bind i.0 block.x\nout: bind i.1 thread.x\n\
                 rows: bind i thread.x\n";
    assert_eq!(check(&scheduled(&blur, steps), 1_000_000), Ok(Verdict::Sound));
    let steps =
        "out: split i 8\nrows: compute_at out i.0\nout: bind i.1 thread.x\nrows: bind i thread.x\n";
    assert_eq!(check(&scheduled(&blur, steps), 1_000_000), Ok(Verdict::Sound));
    let mut nest = scheduled(&blur, "out: split i 8\nrows: compute_at out i.0\n");
    // A block's local data are not visible to other blocks.
    if let Node::Loop(l) = &mut nest.body[0] {
        l.kind = LoopKind::Block(Dim::X);
        l.locals.clear();
    }
    assert_eq!(race(&nest), format!("`rows` accesses `rows(0)`, {meets}"));
}
