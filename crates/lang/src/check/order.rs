//! Orders definitions so that callees come before callers.

use std::collections::HashMap;

use crate::diagnostic::{Code, Diagnostic};
use crate::syntax::ast;

/// The numbers of the definitions, callees first, and an error for each call that closes a cycle.
/// Not recursive: a text may have a chain of thousands of definitions.
pub(super) fn callees_first(
    module: &ast::Module,
    by_name: &HashMap<&str, usize>,
) -> (Vec<usize>, Vec<Diagnostic>) {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let calls: Vec<Vec<(usize, &ast::Call)>> = module
        .defs
        .iter()
        .map(|def| {
            let calls = def.body.iter().filter_map(|stmt| match stmt {
                ast::Stmt::Call(call) => Some(call),
                ast::Stmt::Comprehension(_) => None,
            });
            calls
                .filter_map(|call| Some((*by_name.get(call.callee.name.as_str())?, call)))
                .collect()
        })
        .collect();
    let mut state = vec![State::New; module.defs.len()];
    let mut order = Vec::with_capacity(module.defs.len());
    let mut errors = Vec::new();
    for root in 0..module.defs.len() {
        if state[root] != State::New {
            continue;
        }
        state[root] = State::Open;
        let mut path = vec![(root, 0)];
        while let Some((def, next)) = path.last_mut() {
            let Some((callee, call)) = calls[*def].get(*next) else {
                state[*def] = State::Done;
                order.push(*def);
                path.pop();
                continue;
            };
            *next += 1;
            match state[*callee] {
                State::New => {
                    state[*callee] = State::Open;
                    path.push((*callee, 0));
                }
                State::Open => errors.push(cycle(module, &path, *callee, call)),
                State::Done => {}
            }
        }
    }
    (order, errors)
}

fn cycle(
    module: &ast::Module,
    path: &[(usize, usize)],
    callee: usize,
    call: &ast::Call,
) -> Diagnostic {
    let name = |def: usize| module.defs[def].name.name.as_str();
    let start = path.iter().position(|(def, _)| *def == callee).unwrap_or(0);
    let mut cycle: Vec<&str> = path[start..].iter().map(|(def, _)| name(*def)).collect();
    cycle.push(name(callee));
    let message = if cycle.len() == 2 {
        format!("`{}` calls itself", name(callee))
    } else {
        format!("`{}` calls itself through others: {}", name(callee), cycle.join(" -> "))
    };
    Diagnostic::new(Code::RecursiveCall, call.callee.span, message)
        .here("this call closes the cycle")
        .help("calls are replaced by the statements of the `def`, so a cycle would never end; write the steps out")
}
