//! Reductions of a case, most effective first.
//!
//! Many candidates are invalid: they fail differently and are discarded.

use super::case::Case;

/// Generates smaller candidates.
pub(super) type Shrink = fn(&Case) -> Vec<Case>;

/// All reductions.
pub(super) const ALL: &[Shrink] =
    &[steps, inputs, paragraphs, results, statements, sizes, numbers, expressions, parameters];

/// Drops steps: halves and quarters first, then single ones, last first.
fn steps(case: &Case) -> Vec<Case> {
    let lines: Vec<&str> = case.schedule.lines().collect();
    let mut candidates = Vec::new();
    for width in [lines.len(), lines.len() / 2, lines.len() / 4, 1] {
        if width == 0 || width > lines.len() {
            continue;
        }
        for start in (0..=lines.len() - width).rev().step_by(width) {
            let kept = lines[..start].iter().chain(&lines[start + width..]);
            let schedule: String = kept.flat_map(|line| [*line, "\n"]).collect();
            candidates.push(Case { schedule, ..case.clone() });
        }
    }
    candidates
}

/// Uses plain inputs and this processor.
fn inputs(case: &Case) -> Vec<Case> {
    let plain = Case { inputs: case.inputs.plain(), ..case.clone() };
    let native = Case { target: "native".to_owned(), ..case.clone() };
    [plain, native].into_iter().filter(|candidate| candidate != case).collect()
}

/// Shrinks sizes.
fn sizes(case: &Case) -> Vec<Case> {
    let mut candidates = Vec::new();
    for (number, (_, value)) in case.sizes.iter().enumerate() {
        for smaller in [1, 2, value / 2, value - 1] {
            if smaller >= 1 && smaller < *value {
                let mut candidate = case.clone();
                candidate.sizes[number].1 = smaller;
                candidates.push(candidate);
            }
        }
    }
    candidates
}

/// Shrinks factors in the schedule.
fn numbers(case: &Case) -> Vec<Case> {
    let words: Vec<&str> = case.schedule.split_inclusive(char::is_whitespace).collect();
    let mut candidates = Vec::new();
    for (position, word) in words.iter().enumerate() {
        let Ok(value) = word.trim().parse::<i64>() else { continue };
        for smaller in [2, value / 2, value - 1] {
            if smaller >= 2 && smaller < value {
                let mut changed: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
                changed[position] = word.replace(word.trim(), &smaller.to_string());
                candidates.push(Case { schedule: changed.concat(), ..case.clone() });
            }
        }
    }
    candidates
}

/// Drops a result of a definition.
fn results(case: &Case) -> Vec<Case> {
    each_in_list(case, "-> (", ")")
}

/// Drops a parameter of a definition.
fn parameters(case: &Case) -> Vec<Case> {
    each_in_list(case, &format!("def {}(", case.def), ") ->")
}

/// Drops an item of each list between two delimiters.
fn each_in_list(case: &Case, open: &str, close: &str) -> Vec<Case> {
    let mut candidates = Vec::new();
    for (start, _) in case.text.match_indices(open) {
        let start = start + open.len();
        let Some(length) = case.text[start..].find(close) else { continue };
        let items: Vec<&str> = case.text[start..start + length].split(", ").collect();
        for left_out in 0..items.len() {
            let kept = items.iter().enumerate().filter(|(number, _)| *number != left_out);
            let kept: Vec<&str> = kept.map(|(_, item)| *item).collect();
            candidates.push(replaced(case, start, start + length, &kept.join(", ")));
        }
    }
    candidates
}

/// Drops a paragraph: most definitions of an example are unrelated.
fn paragraphs(case: &Case) -> Vec<Case> {
    let all: Vec<&str> = case.text.split_inclusive("\n\n").collect();
    let without = |number: usize| {
        let kept = all.iter().enumerate().filter(|(other, _)| *other != number);
        Case { text: kept.map(|(_, text)| *text).collect(), ..case.clone() }
    };
    if all.len() > 1 { (0..all.len()).map(without).collect() } else { Vec::new() }
}

/// Drops a statement, and a definition without statements.
fn statements(case: &Case) -> Vec<Case> {
    let lines: Vec<&str> = case.text.split_inclusive('\n').collect();
    let statements = (0..lines.len()).rev().filter(|number| lines[*number].starts_with("  "));
    statements
        .map(|number| {
            let kept = lines.iter().enumerate().filter(|(line, _)| *line != number);
            Case { text: kept.map(|(_, line)| *line).collect(), ..case.clone() }
        })
        .collect()
}

/// Replaces an expression by a part: `x` or `y` for `(x + y)`, `(x)` for `f(x)`.
fn expressions(case: &Case) -> Vec<Case> {
    let text = &case.text;
    let mut candidates = Vec::new();
    for (open, _) in text.match_indices('(') {
        let Some(close) = closing(text, open) else { continue };
        let inside = &text[open + 1..close];
        let name = text[..open].rfind(|c: char| !c.is_alphanumeric()).map_or(0, |at| at + 1);
        if name < open {
            candidates.push(replaced(case, name, open, ""));
        }
        let parts = top_level(inside);
        if parts.len() > 1 {
            for part in parts {
                candidates.push(replaced(case, name, close + 1, part));
            }
        }
    }
    candidates
}

/// The position of the matching closing parenthesis.
fn closing(text: &str, open: usize) -> Option<usize> {
    let mut depth = 0;
    for (position, c) in text[open..].char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(open + position);
        }
    }
    None
}

/// The operands: parts separated by spaces and commas outside of parentheses.
fn top_level(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (position, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ' ' | ',' if depth == 0 => {
                parts.push(&text[start..position]);
                start = position + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| part.contains(|c: char| c.is_alphanumeric()));
    parts
}

fn replaced(case: &Case, start: usize, end: usize, by: &str) -> Case {
    let text = format!("{}{by}{}", &case.text[..start], &case.text[end..]);
    Case { text, ..case.clone() }
}
