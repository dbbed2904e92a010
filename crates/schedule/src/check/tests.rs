use tensorwright_lang::Module;

use super::*;
use crate::nest::{LoopKind, Node, for_each_loop, for_each_store, for_each_store_mut};
use crate::{Schedule, canonical, lower, lower_traced};

const LIMIT: u64 = 1_000_000;

const LAYER: &str = "def layer(float(B,I) x, float(O,I) w, float(O) bias) -> (out) {
  out(b,o) = bias(o)
  out(b,o) += x(b,i) * w(o,i)
}";
const BLUR: &str = "def blur(float(N) A) -> (out) {
  rows(i) = A(i) + A(i+1)
  out(i) = rows(i) * rows(i+1)
}";

fn scheduled(text: &str, sizes: &[(&str, i64)], steps: &str) -> LoopNest {
    let module = Module::parse("test.tc", text).unwrap();
    let def = module.defs().next().unwrap();
    let program = def.bind(sizes.iter().copied()).unwrap();
    Schedule::parse(steps).unwrap().apply(canonical(&program)).unwrap()
}

fn flaw(nest: &LoopNest) -> String {
    check(nest, LIMIT).unwrap_err().to_string()
}

/// The body of the outermost loop of node `number`.
fn body(nest: &mut LoopNest, number: usize) -> &mut Vec<Node> {
    match &mut nest.body[number] {
        Node::Loop(l) => &mut l.body,
        _ => panic!("it is a loop"),
    }
}

#[test]
fn a_start_that_is_made_in_the_reduction_is_undefined() {
    let sizes = [("B", 2), ("I", 3), ("O", 2)];
    // The nest of `out.0: compute_at out i`, which is refused: the stage is moved by hand.
    let mut nest = scheduled(LAYER, &sizes, "out: reorder i b o\nout.0: reorder b o\n");
    assert_eq!(check(&nest, LIMIT), Ok(Verdict::Sound));
    let start = nest.body.remove(0);
    body(&mut nest, 0).insert(0, start);
    assert_eq!(flaw(&nest), "`out` reads `out.0(0, 0)`, which nothing has written");
    let lowered = lower(nest).unwrap();
    assert_eq!(flaw(lowered.as_nest()), "`out` reads `out.0(0, 0)`, which nothing has written");
}

#[test]
fn what_lives_for_an_iteration_is_lost_after_it() {
    let sizes = [("N", 9)];
    let mut nest = scheduled(BLUR, &sizes, "out: split i 4\nrows: compute_at out i.0\n");
    assert_eq!(check(&nest, LIMIT), Ok(Verdict::Sound));
    // The second iteration reads an element of the first one.
    let rows = body(&mut nest, 0).remove(0);
    body(&mut nest, 0).push(rows);
    assert_eq!(flaw(&nest), "`out` reads `rows(0)`, which nothing has written");
}

#[test]
fn undefined_padding_is_no_flaw() {
    let steps = "out: split i 4 [round_up]\nrows: layout [d0/4, d0%4]\nrows: split i 4 [round_up]\n\
                 rows: vectorize i.1\nout: vectorize i.1\n";
    let nest = scheduled(BLUR, &[("N", 8)], steps);
    assert_eq!(check(&nest, LIMIT), Ok(Verdict::Sound));
    lower_traced(nest, &mut |pass, nest| {
        assert_eq!(check(nest, LIMIT), Ok(Verdict::Sound), "after {pass}:\n{nest}");
    })
    .unwrap();
}

#[test]
fn iterations_of_a_parallel_loop_do_not_meet() {
    let sizes = [("B", 2), ("I", 3), ("O", 2)];
    let mut nest = scheduled(LAYER, &sizes, "out: reorder i b o\n");
    if let Node::Loop(l) = &mut nest.body[1] {
        l.kind = LoopKind::Parallel;
    }
    let race = "`out` accesses `out(0, 0)`, as does another iteration that runs at the same time";
    assert_eq!(flaw(&nest), race);
}

/// Workers may share a buffer that one parallel loop writes and the next one writes again.
#[test]
fn parallel_loops_that_follow_each_other_do_not_meet() {
    let text = "def f(float(N) A, float(M) B) -> (out) { out(i,j) = A(i) * B(j) }";
    let steps = "out: split i 2\nout: cache_read A at i.0\nout: parallel j\nA.pack: parallel d0\n";
    let nest = scheduled(text, &[("N", 4), ("M", 3)], steps);
    assert_eq!(check(&nest, LIMIT), Ok(Verdict::Sound), "{nest}");
    assert_eq!(check(lower(nest).unwrap().as_nest(), LIMIT), Ok(Verdict::Sound));
}

#[test]
fn accesses_stay_in_bounds_and_results_are_written() {
    let mut nest = scheduled(BLUR, &[("N", 9)], "");
    if let Node::Loop(l) = &mut nest.body[1] {
        l.extent += 1;
    }
    assert_eq!(flaw(&nest), "`out` accesses `rows(8)`, out of bounds");
    if let Node::Loop(l) = &mut nest.body[1] {
        l.extent -= 2;
    }
    assert_eq!(flaw(&nest), "nothing writes the result `out(6)`");
}

#[test]
fn what_data_decide_is_any_element_that_is_written() {
    let text = "def gather(float(N) A, int(M) at) -> (out) {
  T(i) = A(i) + 1
  out(j) = T(at(j)) where j in 0:M
}";
    let mut nest = scheduled(text, &[("N", 5), ("M", 3)], "");
    assert_eq!(check(&nest, LIMIT), Ok(Verdict::Sound));
    nest.body.swap(0, 1);
    assert_eq!(flaw(&nest), "`out` reads `T(0)`, which nothing has written");
}

/// A subscript from data stays checked even if simplification finds its value.
#[test]
fn what_a_kernel_checks_it_may_find_out_of_bounds() {
    let text = "def f(float(N) A, int(M) at) -> (out) {
  T(i) = A(i) + 1
  out(j) = T(clamp(at(j), 0, N - 2)) where j in 0:M
}";
    let nest = scheduled(text, &[("N", 1), ("M", 3)], "");
    let lowered = lower(nest).unwrap();
    assert!(lowered.as_nest().to_string().contains("T(-1)"), "{}", lowered.as_nest());
    assert_eq!(check(lowered.as_nest(), LIMIT), Ok(Verdict::Sound));
}

#[test]
fn what_runs_ahead_of_all_calls_reads_constants() {
    let text = "def f(const float(N,K) w, float(K) x) -> (y) { y(i) +=! w(i,k) * x(k) }";
    let mut nest = scheduled(text, &[("N", 3), ("K", 4)], "w: layout [d1, d0]\n");
    assert_eq!(check(&nest, LIMIT), Ok(Verdict::Sound));
    nest.constants.clear();
    assert_eq!(flaw(&nest), "`w.laid` reads `w(0, 0)`, which nothing has written");
}

#[test]
fn long_nests_are_not_run_to_the_end() {
    let nest = scheduled(BLUR, &[("N", 1 << 40)], "");
    assert_eq!(check(&nest, LIMIT), Ok(Verdict::TooLong));
    let nest = scheduled(LAYER, &[("B", 100), ("I", 100), ("O", 100)], "");
    assert_eq!(check(&nest, LIMIT), Ok(Verdict::TooLong));
}

/// One definition decides which loops belong to a reduction.
#[test]
fn a_reduction_begins_at_its_outermost_loop() {
    let nest = scheduled(LAYER, &[("B", 2), ("I", 3), ("O", 2)], "out: split i 2\n");
    let mut out = None;
    for_each_store(&nest.body, &mut |store| out = Some(store.stage()));
    let mut reducing = Vec::new();
    for_each_loop(&nest.body, &mut |l| {
        if l.reduces(out.unwrap()) {
            reducing.push(nest.var_name(l.var));
        }
    });
    assert_eq!(reducing, ["i.0", "i.1"]);
}

const SCAN: &str = "def scan(float(N,T) x) -> (y) {
  y(n,t) = 0.5 * y(n,t-1) + x(n,t) scan t from x(n,0)
}";

/// Schedules that keep the order of a recurrence, in either direction.
#[test]
fn the_order_of_a_recurrence_is_kept() {
    let back = SCAN.replace("t-1", "t+1");
    for text in [SCAN, &back] {
        for steps in [
            "",
            "y: reorder t n\n",
            "y: split t 4\n",
            "y: split t 4 [peel]\ny: unroll t.1\n",
            "y: split t 4\ny: reorder t.0 n t.1\ny: parallel n\n",
            "y: split n 4 [shift]\ny: reorder n.0 t n.1\ny: vectorize n.1\n",
            "y: split n 4 [round_up]\ny: split t 3\ny: reorder t.0 n.0 t.1 n.1\ny: vectorize n.1\n",
            "y: split t 2\ny: reorder t.0 n t.1\ny: split n 4\ny: fuse t.0 n.0\n",
            "y: split t 2 3\ny: fuse t.1 t.2\n",
            "y: split n 4\ny: reorder n.0 t n.1\ny: parallel n.0\ny: cache_read x at t\n",
        ] {
            let module = Module::parse("test.tc", text).unwrap();
            let program = module.bind("scan", [("N", 10), ("T", 11)]).unwrap();
            // An illegal step is refused, and a legal one is sound.
            let Ok(nest) = Schedule::parse(steps).unwrap().apply(canonical(&program)) else {
                assert!(steps.contains("fuse t.0 n.0"), "{steps}");
                continue;
            };
            let mut verdicts = vec![check(&nest, LIMIT)];
            lower_traced(nest, &mut |_, nest| verdicts.push(check(nest, LIMIT))).unwrap();
            assert!(verdicts.iter().all(|verdict| *verdict == Ok(Verdict::Sound)), "{steps}");
        }
    }
}

/// The lanes of a recurrence read the elements of earlier lanes.
#[test]
fn lanes_of_a_recurrence_are_in_order() {
    let running = "def f(float(N,T) x) -> (y) { y(n,t) = y(n,t-1) + x(n,t) scan t from 0 }";
    let nest = scheduled(running, &[("N", 2), ("T", 11)], "y: split t 4\ny: vectorize t.1\n");
    let lowered = lower(nest).unwrap();
    assert_eq!(check(lowered.as_nest(), LIMIT), Ok(Verdict::Sound));
    let mut nest = lowered.as_nest().clone();
    for_each_store_mut(&mut nest.body, &mut |store| {
        store.lanes.iter_mut().for_each(|lanes| lanes.in_order = false);
    });
    assert_eq!(flaw(&nest), "`y` reads `y(0, 0)`, which nothing has written");
}

#[test]
fn a_recurrence_out_of_order_is_found() {
    let mut nest = scheduled(SCAN, &[("N", 2), ("T", 4)], "y: reorder t n\n");
    let Node::Loop(outer) = &mut nest.body[0] else { panic!("it is a loop") };
    outer.kind = LoopKind::Parallel;
    assert_eq!(
        flaw(&nest),
        "`y` accesses `y(0, 0)`, as does another iteration that runs at the same time"
    );
    let mut nest = scheduled(SCAN, &[("N", 1), ("T", 4)], "y: split t 2\n");
    let (mut first, mut second) = (None, None);
    for_each_loop(&nest.body, &mut |l| match first {
        None if nest.var_name(l.var) == "t.0" => first = Some(l.var),
        _ => second = Some(l.var),
    });
    let (first, second) = (first.unwrap(), second.unwrap());
    let Node::Loop(n) = &mut nest.body[0] else { panic!("it is a loop") };
    let Node::Loop(outer) = &mut n.body[0] else { panic!("it is a loop") };
    // The two loops change places.
    outer.var = second;
    let Node::Loop(inner) = &mut outer.body[0] else { panic!("it is a loop") };
    inner.var = first;
    assert_eq!(flaw(&nest), "`y` reads `y(0, 1)`, which nothing has written");
}

/// Schedules of a scatter whose positions come from data or from loops.
#[test]
fn scatters_start_before_their_terms() {
    for at in ["p(i)", "i / 3", "clamp(p(i), 0, 3)"] {
        let text = format!(
            "def f(int32(N) p, float(N,D) x) -> (y) {{ y(b,d) +=! x(i,d) scatter b = {at} where b in 0:4 }}"
        );
        for steps in [
            "",
            "y: reorder i d\ny: split d 4 [peel]\ny: vectorize d.1\n",
            "y: split d 4\ny: reorder d.0 i d.1\ny: vectorize d.1\ny: parallel d.0\n",
            "y: split i 4\ny: unroll i.1\n",
            "y: split i 4\ny: privatize i.0\ny.part: reorder i.0 i.1 d\ny.part: parallel i.0\ny: parallel b\n",
        ] {
            let nest = scheduled(&text, &[("N", 10), ("D", 6)], steps);
            let mut verdicts = vec![check(&nest, LIMIT)];
            lower_traced(nest, &mut |_, nest| verdicts.push(check(nest, LIMIT))).unwrap();
            assert!(verdicts.iter().all(|verdict| *verdict == Ok(Verdict::Sound)), "{at} {steps}");
        }
    }
}
