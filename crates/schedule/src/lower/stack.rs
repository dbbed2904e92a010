//! The stack: buffers that are small one by one may together be more than a thread has.

use super::LowerError;
use crate::nest::{LoopNest, Scope};

/// The most bytes of a kernel's buffers on the stack.
const MAX_STACK: i64 = 256 << 10;

/// Moves the largest buffers from the stack to the workspace until the rest fits.
pub(super) fn run(nest: &mut LoopNest) -> Result<(), LowerError> {
    let mut on_stack: Vec<(i64, usize)> = nest
        .buffers
        .iter()
        .enumerate()
        .filter(|(_, buffer)| buffer.scope == Scope::Stack)
        .map(|(place, buffer)| (buffer.bytes(), place))
        .collect();
    on_stack.sort_unstable();
    let mut total = on_stack.iter().fold(0i64, |sum, (bytes, _)| sum.saturating_add(*bytes));
    while total > MAX_STACK
        && let Some((bytes, place)) = on_stack.pop()
    {
        nest.buffers[place].scope = Scope::Workspace;
        total -= bytes;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tensorwright_lang::Module;

    use super::*;
    use crate::{Schedule, canonical, lower};

    #[test]
    fn many_small_buffers_do_not_overflow_the_stack() {
        let stages: String = (1..=40)
            .map(|stage| format!("t{stage}(i,j) = t{}(i,j) * 2 + 1\n", stage - 1))
            .collect();
        let text = format!(
            "def f(float(N,M) in) -> (out) {{ t0(i,j) = in(i,j) + 1\n{stages}out(i,j) = t40(i,j) }}"
        );
        let module = Module::parse("f.tc", &text).unwrap();
        let program = module.bind("f", [("N", 4), ("M", 4000)]).unwrap();
        let steps: String = (0..=40)
            .rev()
            .map(|stage| {
                let reader = if stage == 40 { "out".into() } else { format!("t{}", stage + 1) };
                format!("t{stage}: compute_at {reader} i\n")
            })
            .collect();
        let nest = Schedule::parse(&steps).unwrap().apply(canonical(&program)).unwrap();
        let on_stack = |nest: &LoopNest| {
            let stack = nest.buffers.iter().filter(|buffer| buffer.scope == Scope::Stack);
            stack.map(crate::nest::Buffer::bytes).sum::<i64>()
        };
        assert!(on_stack(&nest) > 2 * MAX_STACK);
        let lowered = lower(nest).unwrap();
        assert!((1..=MAX_STACK).contains(&on_stack(&lowered)));
    }
}
