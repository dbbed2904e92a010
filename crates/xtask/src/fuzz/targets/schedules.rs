//! Mutated schedules: parsed, applied and lowered.
//!
//! An input is a case of the differential fuzzer, of which only the schedule is mutated.

use tensorwright_schedule::{Schedule, canonical, lower};
use tensorwright_testkit::{Rng, mutate};

use super::{Input, Reached, Target};
use crate::differential::case::{Case, SCHEDULE};
use crate::differential::random_cases;

pub(super) const TARGET: Target = Target {
    name: "schedules",
    reads: "schedules, up to lowered nests",
    extension: "case",
    seconds: 5.0,
    corpus,
    mutate: mutate_schedule,
    run,
};

/// The number of programs with schedules.
const CASES: u64 = 160;

fn corpus() -> Vec<Vec<u8>> {
    let cases = random_cases(CASES).into_iter();
    cases.map(|case| case.to_string().into_bytes()).collect()
}

/// Mutates the schedule with parts of others.
fn mutate_schedule(bytes: &[u8], others: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let Some((program, schedule)) = text.split_once(SCHEDULE) else { return bytes.to_vec() };
    let other = rng.pick(others);
    let other = String::from_utf8_lossy(other);
    let other = other.split_once(SCHEDULE).map_or("", |(_, schedule)| schedule);
    let mutated = if rng.percent(60) {
        mutate_steps(schedule, other, rng).into_bytes()
    } else {
        mutate(schedule.as_bytes(), &[other.as_bytes().to_vec()], rng)
    };
    [program.as_bytes(), SCHEDULE.as_bytes(), &mutated].concat()
}

/// Unusual numbers for schedules.
const NUMBERS: [&str; 9] =
    ["0", "1", "2", "3", "7", "64", "4096", "2147483647", "9223372036854775807"];

/// Mutates whole steps, so that most stay valid: drops, doubles, moves or replaces them, or changes
/// numbers.
fn mutate_steps(schedule: &str, other: &str, rng: &mut Rng) -> String {
    let mut steps: Vec<String> = schedule.lines().map(str::to_owned).collect();
    let others: Vec<&str> = other.lines().collect();
    for _ in 0..=rng.index(3) {
        let (one, two) = (rng.index(steps.len()), rng.index(steps.len()));
        match rng.index(6) {
            0 if one < steps.len() => drop(steps.remove(one)),
            1 if one < steps.len() => steps.insert(two, steps[one].clone()),
            2 if one < steps.len() => steps.swap(one, two),
            3 if !others.is_empty() => steps.insert(one, (*rng.pick(&others)).to_owned()),
            _ if one < steps.len() => {
                let words: Vec<String> = steps[one].split(' ').map(str::to_owned).collect();
                let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
                let new = |word: String| {
                    if is_number(&word) && rng.percent(60) {
                        (*rng.pick(&NUMBERS)).to_owned()
                    } else {
                        word
                    }
                };
                steps[one] = words.into_iter().map(new).collect::<Vec<_>>().join(" ");
            }
            _ => {}
        }
    }
    steps.join("\n")
}

fn run(input: &mut Input) -> Reached {
    let text = String::from_utf8_lossy(&input.bytes);
    let Ok(case) = Case::parse(&text) else { return Reached::Refused };
    let Ok(program) = case.bind() else { return Reached::Refused };
    let schedule = match Schedule::parse(&case.schedule) {
        Ok(schedule) => schedule,
        Err(error) => {
            std::hint::black_box(error.to_string());
            return Reached::Refused;
        }
    };
    match schedule.apply(canonical(&program)) {
        Ok(nest) => match lower(nest) {
            Ok(nest) => {
                std::hint::black_box(nest);
                Reached::Used
            }
            Err(error) => {
                std::hint::black_box(error.to_string());
                Reached::Read
            }
        },
        Err(error) => {
            std::hint::black_box(error.to_string());
            Reached::Read
        }
    }
}
