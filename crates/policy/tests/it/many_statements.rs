//! Tests that piecewise scheduling of large programs changes nothing.

use std::fmt::Write as _;

use tensorwright_lang::Module;
use tensorwright_lang::program::Program;
use tensorwright_machine::{Cpu, Goal};
use tensorwright_policy::default_schedule;
use tensorwright_schedule::{Schedule, Window, canonical, lower};

/// A chain of element-wise statements.
fn chain(count: usize) -> Program {
    let mut text = format!("def f(float(N) T0) -> (T{count}) {{\n");
    (1..=count).for_each(|n| writeln!(text, "  T{n}(i) = T{}(i) + 1.0", n - 1).unwrap());
    bind(&(text + "}\n"))
}

/// Sums of one input, a statement that reads them all after each 100, and updates of one of them.
fn sums(count: usize) -> Program {
    let mut text = String::from("def f(float(N) A) -> (out) {\n  out(i) = A(i)\n");
    for n in 0..count {
        writeln!(text, "  S{n}(i) +=! A(j) * A(i) * {n}.0 where i in 0:N, j in 0:N").unwrap();
        if n % 100 == 99 {
            let read: Vec<String> = (n - 99..=n).map(|n| format!("S{n}(i)")).collect();
            writeln!(text, "  out(i) = out(i) + {}", read.join(" + ")).unwrap();
        }
    }
    bind(&(text + "}\n"))
}

/// All read statements first, then all their readers.
fn apart(count: usize) -> Program {
    let names: Vec<String> = (0..count).map(|n| format!("O{n}")).collect();
    let mut text = format!("def f(float(N) A) -> ({}) {{\n", names.join(", "));
    (0..count).for_each(|n| writeln!(text, "  T{n}(i) = A(i) * {n}.0").unwrap());
    (0..count).for_each(|n| writeln!(text, "  O{n}(i) = T{n}(i) + A(i)").unwrap());
    bind(&(text + "}\n"))
}

fn bind(text: &str) -> Program {
    Module::parse("f.tc", text).unwrap().bind("f", [("N", 20)]).unwrap()
}

fn schedule_of(program: &Program) -> Schedule {
    default_schedule(program, &Goal::new(Cpu::avx2()).into()).unwrap()
}

#[test]
fn a_schedule_in_pieces_is_that_of_the_whole_nest() {
    for program in [chain(700), sums(560), apart(320)] {
        let nest = canonical(&program);
        assert!(Window::suits(&nest), "{} trees", nest.body.len());
        let schedule = schedule_of(&program);
        assert!(!schedule.steps.is_empty());
        let mut whole = nest.clone();
        for step in &schedule.steps {
            step.apply(&mut whole).unwrap();
        }
        let in_pieces = schedule.apply(nest).unwrap();
        assert_eq!(in_pieces.to_string(), whole.to_string());
        lower(in_pieces).unwrap();
    }
}

#[test]
fn what_other_pieces_read_stays_where_it_is() {
    let text = schedule_of(&apart(320)).to_string();
    assert!(!text.contains(": inline") && !text.contains(": compute_at"), "{text}");
    let text = schedule_of(&chain(700)).to_string();
    assert!(text.matches(": inline").count() > 600, "{text}");
}

/// Manual steps, without knowledge of pieces.
#[test]
fn steps_may_reach_over_the_whole_nest() {
    let program = apart(320);
    let steps = "O3: split i 4\nT3: compute_at O3 i.0\nT300: inline\nO300: vectorize i\nT0: layout [d0]\nT1: inline\nO319: unroll i\n";
    let schedule = Schedule::parse(steps).unwrap();
    let mut whole = canonical(&program);
    for step in &schedule.steps {
        step.apply(&mut whole).unwrap();
    }
    let nest = schedule.apply(canonical(&program)).unwrap();
    assert_eq!(nest.to_string(), whole.to_string());
    let refused = Schedule::parse("T5: compute_at O6 i").unwrap().apply(canonical(&program));
    let unknown = Schedule::parse("T999: inline").unwrap().apply(canonical(&program));
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("`T5` is also read by `O5`"), "{refused}");
    assert!(unknown.unwrap_err().to_string().contains("there is no stage `T999`"));
}
