//! Chains of image stencils, for sliding windows and blocked stages.
//!
//! With or without borders, some of them masked.

use tensorwright_testkit::Rng;

use super::Example;
use super::examples::until_quick;

/// A random one, drawn until it is small.
pub(super) fn draw(rng: &mut Rng) -> Example {
    until_quick(|| attempt(rng))
}

fn attempt(rng: &mut Rng) -> Example {
    let is_clamped = rng.percent(50);
    let stages = 2 + rng.index(4);
    let mut text = String::from("def pipeline(float(H,W) in) -> (out) {\n");
    for number in 0..stages {
        let name = if number + 1 == stages { "out".to_owned() } else { format!("s{number}") };
        text.push_str(&stage(rng, &name, number, is_clamped));
    }
    text.push('}');
    // Without borders, every stage is smaller than its producer.
    let sizes = [("H", 16 + rng.index(24)), ("W", 16 + rng.index(24))];
    let sizes = sizes.map(|(name, size)| (name.to_owned(), size as i64)).to_vec();
    Example { text, def: "pipeline".into(), sizes }
}

/// A statement that reads the previous stage, and perhaps an earlier one.
fn stage(rng: &mut Rng, name: &str, number: usize, is_clamped: bool) -> String {
    let whole = if is_clamped { " where y in 0:H, x in 0:W" } else { "" };
    let earlier = |back: usize| match number.checked_sub(back) {
        Some(number) => format!("s{number}"),
        None => "in".to_owned(),
    };
    if rng.percent(20) {
        let rows = 2 + rng.index(2);
        let row = subscript("y", "H", "r", is_clamped);
        let ranges = match is_clamped {
            true => format!("{whole}, r in 0:{rows}"),
            false => format!(" where r in 0:{rows}"),
        };
        let op = rng.pick(&["+=!", "max=!"]);
        return format!("  {name}(y,x) {op} {}({row},x) * 0.5{ranges}\n", earlier(1));
    }
    let mut terms = Vec::new();
    // A stage that does not read the previous one can share loops with it.
    let is_fork = rng.percent(25);
    for _ in 0..1 + rng.index(4) {
        let back = if rng.percent(75) && !is_fork { 1 } else { 2 };
        let (down, right) = (rng.index(3).to_string(), rng.index(3).to_string());
        let row = subscript("y", "H", &down, is_clamped);
        let column =
            if rng.percent(50) { subscript("x", "W", &right, is_clamped) } else { "x".into() };
        terms.push(format!("{}({row},{column})", earlier(back)));
    }
    let value = terms.join(*rng.pick(&[" + ", " * 0.5 - "]));
    match is_clamped && rng.percent(25) {
        true => {
            let condition = rng.pick(&["x <= y", "y < x", "x >= y - 5 && x < y + 4"]);
            format!("  {name}(y,x) = ({condition}) ? {value} : 0.25{whole}\n")
        }
        false => format!("  {name}(y,x) = {value}{whole}\n"),
    }
}

/// `y + 2`, clamped to the image if there are borders.
fn subscript(variable: &str, size: &str, offset: &str, is_clamped: bool) -> String {
    match is_clamped {
        true => format!("clamp({variable} + {offset} - 1, 0, {size} - 1)"),
        false => format!("{variable} + {offset}"),
    }
}
