//! Plans as text, one file per target and suite.
//!
//! ```text
//! == gemm_512, 1 thread: examples/kernels/gemm.tc gemm M=512,N=512,K=512
//! cycles: 6.72152e6 by tiles
//! C: split m 8
//! ...
//! == gemm_512, 2 threads: examples/kernels/gemm.tc gemm M=512,N=512,K=512
//! cycles: 3.36076e6 by tiles
//! same schedule as gemm_512, 1 thread
//! ```

use std::collections::HashMap;
use std::fmt::Write;

use super::plan::Plan;

const START: &str = "== ";
const CYCLES: &str = "cycles: ";
const LAUNCHES: &str = "launches: ";
const SAME: &str = "same schedule as ";

/// The text of a file. A schedule that an earlier plan of the file has is not repeated.
pub(super) fn print(plans: &[Plan]) -> String {
    let mut text = String::new();
    let mut known: HashMap<&str, &str> = HashMap::new();
    for plan in plans {
        let _ = writeln!(text, "{START}{}: {}", plan.name, plan.source);
        let _ = writeln!(text, "{CYCLES}{}", plan.cycles);
        if let Some(launches) = plan.launches {
            let _ = writeln!(text, "{LAUNCHES}{launches}");
        }
        match known.get(plan.text.as_str()) {
            // A reference is longer than a very short schedule.
            Some(name) if plan.text.lines().count() > 1 => {
                let _ = writeln!(text, "{SAME}{name}");
            }
            _ => {
                known.insert(&plan.text, &plan.name);
                text.push_str(&plan.text);
            }
        }
    }
    text
}

/// The plans of a file.
pub(super) fn parse(text: &str) -> Result<Vec<Plan>, String> {
    let mut plans: Vec<Plan> = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        let wrong = |what: &str| format!("line {}: {what}", number + 1);
        let head = line.strip_prefix(START).and_then(|rest| rest.split_once(": "));
        let (name, source) = head.ok_or_else(|| wrong("not the start of a plan"))?;
        let cycles = lines.next().and_then(|(_, line)| line.strip_prefix(CYCLES));
        let cycles = cycles.ok_or_else(|| wrong("a plan without predicted cycles"))?;
        let launches = lines.next_if(|(_, line)| line.starts_with(LAUNCHES));
        let launches = launches.map(|(_, line)| line[LAUNCHES.len()..].parse());
        let launches = launches.transpose().map_err(|_| wrong("launches are a number"))?;
        let mut text = String::new();
        while let Some((_, line)) = lines.next_if(|(_, line)| !line.starts_with(START)) {
            if let Some(other) = line.strip_prefix(SAME) {
                let found = plans.iter().find(|plan| plan.name == other);
                text.clone_from(&found.ok_or_else(|| wrong("no such schedule above"))?.text);
                continue;
            }
            text.push_str(line);
            text.push('\n');
        }
        let (name, source, cycles) = (name.to_owned(), source.to_owned(), cycles.to_owned());
        plans.push(Plan { name, source, cycles, launches, text });
    }
    Ok(plans)
}

#[cfg(test)]
mod tests {
    use super::{parse, print};
    use crate::plans::plan::Plan;

    fn plan(name: &str, cycles: &str, launches: Option<usize>, text: &str) -> Plan {
        let (name, source) = (name.to_owned(), "f.tc f N=1".to_owned());
        Plan { name, source, cycles: cycles.to_owned(), launches, text: text.to_owned() }
    }

    #[test]
    fn plans_are_read_as_they_were_written() {
        let long = "C: split i 8\nC: vectorize i.1\n";
        let plans = [
            plan("a, 1 thread", "1.5e3 by tiles", None, long),
            plan("a, 2 threads", "-", None, long),
            plan("b", "-", Some(2), ""),
            plan("c", "-", Some(0), "refused: no\n"),
        ];
        let text = print(&plans);
        assert_eq!(
            text,
            "== a, 1 thread: f.tc f N=1\n\
             cycles: 1.5e3 by tiles\n\
             C: split i 8\n\
             C: vectorize i.1\n\
             == a, 2 threads: f.tc f N=1\n\
             cycles: -\n\
             same schedule as a, 1 thread\n\
             == b: f.tc f N=1\n\
             cycles: -\n\
             launches: 2\n\
             == c: f.tc f N=1\n\
             cycles: -\n\
             launches: 0\n\
             refused: no\n"
        );
        assert_eq!(parse(&text), Ok(plans.to_vec()));
    }

    #[test]
    fn texts_that_are_none_are_refused_with_their_line() {
        let messages = [
            ("cycles: -\n", "line 1: not the start of a plan"),
            ("== a: f.tc\n", "line 1: a plan without predicted cycles"),
            ("== a: f.tc\ncycles: -\nlaunches: x\n", "line 1: launches are a number"),
            ("== a: f.tc\ncycles: -\nsame schedule as b\n", "line 1: no such schedule above"),
        ];
        for (text, message) in messages {
            assert_eq!(parse(text), Err(message.to_owned()), "{text}");
        }
    }
}
