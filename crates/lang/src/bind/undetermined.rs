//! Reports undetermined index variables, and proposes a `where` clause.

use super::bounds::{Mode, Statement};
use crate::diagnostic::{Code, Diagnostic};
use crate::dtype::DType;
use crate::infer::{Access, Range, SettledRange, coefficient, index_axes, infer};
use crate::program::{AxisId, TensorId};
use crate::source::Span;

/// One error per kind of problem, for all variables that have it.
pub(super) fn explain(
    statement: &Statement<'_>,
    settled: &[Option<SettledRange>],
    given: &[Option<Range>],
    dtype: &impl Fn(TensorId) -> DType,
) -> Vec<Diagnostic> {
    let open: u64 =
        (0..settled.len()).filter(|var| settled[*var].is_none()).map(|var| 1 << var).sum();
    let (mut groups, mut limitless, mut guarded) = (Vec::new(), Vec::new(), Vec::new());
    let mut done = 0u64;
    for var in 0..settled.len() {
        if open >> var & 1 == 0 || done >> var & 1 == 1 {
            continue;
        }
        let group = connected(statement, open, var);
        done |= group;
        if group.count_ones() > 1 {
            groups.push(group);
        } else if let Some(access) = mention(statement, var) {
            guarded.push((var, access));
        } else {
            limitless.push(var);
        }
    }
    let mut errors = Vec::new();
    if !groups.is_empty() {
        errors.push(ambiguous(statement, &groups, settled, given, dtype));
    }
    if !limitless.is_empty() {
        errors.push(under_constrained(statement, &limitless));
    }
    if !guarded.is_empty() {
        errors.push(guarded_ranges(statement, &guarded));
    }
    errors
}

/// A pure index-arithmetic subscript that contains a variable.
fn mention<'a>(statement: &Statement<'a>, var: usize) -> Option<&'a Access<'a>> {
    statement
        .accesses
        .iter()
        .find(|access| index_axes(&access.index) >> var & 1 == 1 && !access.index.has_value())
}

/// The open variables that share subscripts with `var`, directly or through others.
fn connected(statement: &Statement<'_>, open: u64, var: usize) -> u64 {
    let mut group = 1u64 << var;
    loop {
        let grown = statement.accesses.iter().fold(group, |group, access| {
            let shared = index_axes(&access.index) & open;
            if access.index.has_value() || shared & group == 0 { group } else { group | shared }
        });
        if grown == group {
            return group;
        }
        group = grown;
    }
}

fn names(statement: &Statement<'_>, group: u64) -> Vec<String> {
    let vars = statement.stmt.vars.iter().enumerate();
    vars.filter(|(var, _)| group >> var & 1 == 1)
        .map(|(_, var)| format!("`{}`", var.name))
        .collect()
}

/// `a`, `a and b`, `a, b and c`
fn and(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Reports ambiguous ranges: several variables share a subscript, and enlarging one shrinks the
/// other.
fn ambiguous(
    statement: &Statement<'_>,
    groups: &[u64],
    settled: &[Option<SettledRange>],
    given: &[Option<Range>],
    dtype: &impl Fn(TensorId) -> DType,
) -> Diagnostic {
    let lists: Vec<String> = groups.iter().map(|group| and(&names(statement, *group))).collect();
    let ranges = lists.join(", and of ");
    let comma = if groups.len() > 1 { "," } else { "" };
    let message = format!("the ranges of {ranges}{comma} can be chosen in more than one way");
    let mut diagnostic = Diagnostic::without_place(Code::AmbiguousRange, message);
    for (span, text) in shared_subscripts(statement, groups) {
        diagnostic = diagnostic.label(span, text);
    }
    let all = groups.iter().fold(0, |all, group| all | group);
    let proposal = propose(statement, all, settled, given, dtype);
    let (text, fix) = clause(statement, &proposal);
    let rest: Vec<String> = names(statement, all)
        .into_iter()
        .filter(|name| !proposal.iter().any(|(var, _)| name.trim_matches('`') == var))
        .collect();
    let rest = match rest.len() {
        0 => String::new(),
        1 => format!("; then the range of {} follows", and(&rest)),
        _ => format!("; then the ranges of {} follow", and(&rest)),
    };
    diagnostic = diagnostic.help(format!("settle it, for example with `{text}`{rest}"));
    with_fix(diagnostic, fix)
}

/// Per read, a description of the subscripts that variables of a group share.
fn shared_subscripts(statement: &Statement<'_>, groups: &[u64]) -> Vec<(Span, String)> {
    let mut reads: Vec<(Span, Vec<String>)> = Vec::new();
    for group in groups {
        let shared = statement.accesses.iter().find(|access| {
            (index_axes(&access.index) & group).count_ones() > 1 && !access.index.has_value()
        });
        let span = shared.map_or(statement.stmt.span, |access| access.span);
        // Synthetic sizes must not appear in messages.
        let printable = |access: &&Access<'_>| {
            statement.mode == Mode::Bind || statement.site.is_free_of_sizes(access)
        };
        let text = match shared.filter(printable) {
            Some(access) => format!("`{}`", statement.subscript(access)),
            None => "their sum".to_owned(),
        };
        match reads.iter_mut().find(|(other, _)| *other == span) {
            Some((_, texts)) => texts.push(text),
            None => reads.push((span, vec![text])),
        }
    }
    let words = |texts: Vec<String>| match texts.as_slice() {
        [one] => format!("only {one} as a whole is limited here"),
        many => format!("only {} as a whole are limited here", and(many)),
    };
    reads.into_iter().map(|(span, texts)| (span, words(texts))).collect()
}

pub(super) fn with_fix(diagnostic: Diagnostic, fix: Option<(Span, String)>) -> Diagnostic {
    match fix {
        Some((span, replacement)) => diagnostic.fix(span, replacement),
        None => diagnostic,
    }
}

/// Proposes the fewest ranges that determine all: for reduced variables first, each as long as the
/// step of the variable that shares its subscript (a tiling window), or 3.
fn propose(
    statement: &Statement<'_>,
    group: u64,
    settled: &[Option<SettledRange>],
    given: &[Option<Range>],
    dtype: &impl Fn(TensorId) -> DType,
) -> Vec<(String, String)> {
    let vars = &statement.stmt.vars;
    let mut order: Vec<usize> = (0..vars.len()).filter(|var| group >> var & 1 == 1).collect();
    order.sort_by_key(|var| *var < statement.stmt.rank);
    let mut ranges = given.to_vec();
    let mut proposal = Vec::new();
    for var in order {
        let now = infer(&ranges, statement.accesses, dtype);
        let solved = |v: usize| group >> v & 1 == 0 || now[v].is_some();
        if (0..settled.len()).all(solved) {
            break;
        }
        if now[var].is_some() {
            continue;
        }
        let length = window(statement, group, var);
        ranges[var] = Some(Range { lo: 0, hi: length });
        proposal.push((vars[var].name.clone(), length.to_string()));
    }
    proposal
}

fn window(statement: &Statement<'_>, group: u64, var: usize) -> i64 {
    let step = |access: &Access<'_>| {
        let axes = index_axes(&access.index) & group;
        if axes >> var & 1 == 0 {
            return None;
        }
        let others = (0..64).filter(|other| *other != var && axes >> other & 1 == 1);
        others.map(|other| coefficient(&access.index, AxisId(other as u32)).abs()).max()
    };
    let widest = statement.accesses.iter().filter_map(step).max();
    widest.filter(|step| (2..=16).contains(step)).unwrap_or(3)
}

/// A `where` clause with these ranges, and the edit that inserts it.
pub(super) fn clause(
    statement: &Statement<'_>,
    ranges: &[(String, String)],
) -> (String, Option<(Span, String)>) {
    let list: Vec<String> = ranges.iter().map(|(var, hi)| format!("{var} in 0:{hi}")).collect();
    let text = format!("where {}", list.join(", "));
    let end = Span::new(statement.stmt.span.end, statement.stmt.span.end);
    let has_where = statement.stmt.vars.iter().any(|var| var.range.is_some());
    let insertion = if has_where { format!(", {}", list.join(", ")) } else { format!(" {text}") };
    (text, (!ranges.is_empty()).then_some((end, insertion)))
}

/// Reports variables in no limiting subscript.
fn under_constrained(statement: &Statement<'_>, vars: &[usize]) -> Diagnostic {
    let set = vars.iter().fold(0u64, |set, var| set | 1 << var);
    let list = and(&names(statement, set));
    let plural = if vars.len() > 1 { "ranges" } else { "range" };
    let message = format!("nothing determines the {plural} of {list}");
    let mut diagnostic = Diagnostic::without_place(Code::UnderConstrained, message);
    for var in vars {
        let info = &statement.stmt.vars[*var];
        diagnostic = diagnostic.label(info.span, format!("how far does `{}` go?", info.name));
    }
    let ranges: Vec<_> =
        vars.iter().map(|var| (statement.stmt.vars[*var].name.clone(), "...".to_owned())).collect();
    let (text, _) = clause(statement, &ranges);
    let data = statement.accesses.iter().any(|access| index_axes(&access.index) & set != 0);
    diagnostic = diagnostic.help(format!("give the {plural}: `{text}`"));
    if data {
        diagnostic
            .note("a subscript that depends on data is checked at run time and limits nothing")
    } else {
        diagnostic.note("ranges follow from the subscripts of the tensors that are read")
    }
}

/// Reports variables whose reads are all in bounds for any value.
fn guarded_ranges(statement: &Statement<'_>, vars: &[(usize, &Access<'_>)]) -> Diagnostic {
    let set = vars.iter().fold(0u64, |set, (var, _)| set | 1 << var);
    let list = and(&names(statement, set));
    let plural = if vars.len() > 1 { "ranges" } else { "range" };
    let message =
        format!("nothing limits the {plural} of {list}: the reads there never go out of bounds");
    let mut diagnostic = Diagnostic::without_place(Code::GuardedRange, message);
    for (var, _) in vars {
        let info = &statement.stmt.vars[*var];
        diagnostic = diagnostic.label(info.span, format!("how far does `{}` go?", info.name));
    }
    let mut seen: Vec<Span> = Vec::new();
    for (_, access) in vars {
        if !seen.contains(&access.span) {
            seen.push(access.span);
            diagnostic = diagnostic.label(
                access.span,
                match access.guards.is_empty() {
                    true => "always in bounds, so it does not limit the range",
                    false => "a condition keeps this in bounds, so it does not limit the range",
                },
            );
        }
    }
    let ranges: Vec<_> = vars
        .iter()
        .map(|(var, access)| {
            let extent = statement.site.extent(access);
            let extent = extent.unwrap_or_else(|| access.extent.to_string());
            (statement.stmt.vars[*var].name.clone(), extent)
        })
        .collect();
    let (text, fix) = clause(statement, &ranges);
    with_fix(diagnostic.help(format!("give the {plural}, for example `{text}`")), fix)
}
