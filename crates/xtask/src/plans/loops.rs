//! Whether two schedules of a program make the same loops.
//!
//! Names of loops, the order of terms and loops of one iteration do not count.

use tensorwright_lang::program::Program;
use tensorwright_schedule::nest::for_each_loop;
use tensorwright_schedule::{Schedule, canonical};

/// The words of each line of the loops that a schedule makes; `None` if it cannot be applied.
fn loops(program: &Program, schedule: &str) -> Option<Vec<Vec<String>>> {
    let mut nest = Schedule::parse(schedule).ok()?.apply(canonical(program)).ok()?;
    let mut names = vec![String::new(); nest.vars.len()];
    let mut count = 0;
    for body in [&nest.prepare, &nest.body] {
        for_each_loop(body, &mut |l| {
            // The variable of a single iteration is zero.
            if l.extent > 1 {
                names[l.var.0 as usize] = format!("v{count}");
                count += 1;
            }
        });
    }
    nest.vars = names.into_iter().map(|name| name.as_str().into()).collect();
    let is_apart = |c: char| !c.is_alphanumeric() && !matches!(c, '.' | '_');
    let words = |line: &str| {
        let words = line.split(is_apart).filter(|word| !word.is_empty());
        let mut words: Vec<String> = words.map(str::to_owned).collect();
        words.sort_unstable();
        words
    };
    let single = ["0..1", "for", "in"];
    let lines = nest.to_string().lines().map(words).collect::<Vec<_>>();
    Some(lines.into_iter().filter(|line| !line.is_empty() && *line != single).collect())
}

/// Whether two schedules of a program make the same loops.
pub(super) fn are_same(program: &Program, a: &str, b: &str) -> bool {
    let a = loops(program, a);
    a.is_some() && a == loops(program, b)
}

#[cfg(test)]
mod tests {
    use tensorwright_lang::Module;

    use super::are_same;

    #[test]
    fn names_and_the_order_of_steps_do_not_count() {
        let text = "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
        let module = Module::parse("gemm.tc", text).unwrap();
        let program = module.bind("gemm", [("M", 64), ("N", 64), ("K", 64)]).unwrap();
        let a = "C: split m 4\nC: split n 8\nC: reorder m.0 n.0 k m.1 n.1\nC: vectorize n.1\n";
        let b = "C: split n 8 -> a b\nC: split m 4 -> c d\nC: reorder c a k d b\nC: vectorize b\n";
        assert!(are_same(&program, a, b));
        assert!(!are_same(&program, a, &b.replace("split m 4", "split m 8")));
    }
}
