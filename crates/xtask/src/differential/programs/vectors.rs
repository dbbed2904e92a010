//! Programs that exercise vector code.
//!
//! Conversions between all types, selections, comparisons, masks known at compile time, values of
//! mixed widths, and reductions across lanes. Code generators combine these differently for every
//! number of lanes.

use tensorwright_lang::dtype::DType;
use tensorwright_testkit::Rng;

use super::Example;
use super::examples::until_quick;

/// The largest extent of a loop: a few vectors of the widest registers, and less than one of most.
const MAX_EXTENT: i64 = 23;

/// A random program. Some expressions have no type (a constant in place of a tensor), so it draws
/// until the program is valid.
pub(super) fn draw(rng: &mut Rng) -> Example {
    until_quick(|| attempt(rng))
}

fn attempt(rng: &mut Rng) -> Example {
    let types: Vec<&'static str> = (0..3).map(|_| rng.pick(&DType::ALL).name()).collect();
    let (rows, columns) = (rng.range(1, MAX_EXTENT), rng.range(1, MAX_EXTENT));
    let result = rng.pick(&DType::ALL).name();
    let depth = 2 + rng.index(3);
    let value = Values { rng, types: &types, rows, columns }.of(result, depth);
    let reduces = result != "bool" && rng.percent(50);
    let operator = if reduces { *rng.pick(&["+=!", "+=!", "max=!", "min=!", "*=!"]) } else { "=" };
    let indices = match (reduces, rng.percent(30)) {
        (false, _) => "(i,j)",
        (true, false) => "(i)",
        (true, true) => "(j)",
    };
    let parameters = types.iter().zip(["A", "B", "C"]);
    let parameters: Vec<String> =
        parameters.map(|(dtype, name)| format!("{dtype}(N,M) {name}")).collect();
    let text = format!(
        "def kernel({}) -> (O) {{\n  O{indices} {operator} {value} where i in 0:{rows}, j in 0:{columns}\n}}\n",
        parameters.join(", ")
    );
    let sizes = vec![("N".to_owned(), rows), ("M".to_owned(), columns)];
    Example { text, def: "kernel".to_owned(), sizes }
}

/// Random expressions over three inputs and two loops of known extents.
struct Values<'a> {
    rng: &'a mut Rng,
    types: &'a [&'static str],
    rows: i64,
    columns: i64,
}

impl Values<'_> {
    /// A value of a type.
    fn of(&mut self, dtype: &str, depth: usize) -> String {
        if depth == 0 {
            return self.leaf(dtype);
        }
        let next = depth - 1;
        match self.rng.index(10) {
            0 | 1 => {
                let other = self.rng.pick(&DType::ALL).name();
                format!("{dtype}({})", self.of(other, next))
            }
            2..=4 => {
                let condition = self.condition(next);
                let (yes, no) = (self.of(dtype, next), self.of_or_zero(dtype, next));
                if self.rng.percent(50) {
                    format!("({condition} ? {yes} : {no})")
                } else {
                    format!("({condition} ? {no} : {yes})")
                }
            }
            5 => self.leaf(dtype),
            _ => self.operation(dtype, next),
        }
    }

    fn operation(&mut self, dtype: &str, depth: usize) -> String {
        let x = self.of(dtype, depth);
        if dtype == "bool" {
            return match self.rng.index(3) {
                0 => format!("(!{x})"),
                1 => format!("({x} && {})", self.condition(depth)),
                _ => format!("({x} || {})", self.condition(depth)),
            };
        }
        let is_float = is_float(dtype);
        match self.rng.index(9) {
            0 => format!("abs({x})"),
            1 => format!("(-{x})"),
            2 if !is_float => format!("({x} / {})", self.of(dtype, depth)),
            3 if !is_float => format!("({x} % {})", self.of(dtype, depth)),
            2 => format!("floor({x})"),
            3 => format!("rint({x})"),
            4 => format!("min({x}, {})", self.of(dtype, depth)),
            5 => format!("max({x}, {})", self.of_or_zero(dtype, depth)),
            6 => format!("({x} - {})", self.of(dtype, depth)),
            7 => format!("({x} * {})", self.of(dtype, depth)),
            _ => format!("({x} + {})", self.of(dtype, depth)),
        }
    }

    fn of_or_zero(&mut self, dtype: &str, depth: usize) -> String {
        if self.rng.percent(50) { zero(dtype).to_owned() } else { self.of(dtype, depth) }
    }

    /// A comparison of loop variables, which vector masks know at compile time, or of values.
    fn condition(&mut self, depth: usize) -> String {
        let compare = *self.rng.pick(&["<", "<=", ">", ">=", "==", "!="]);
        if self.rng.percent(50) {
            let most = self.rows.max(self.columns);
            let left = *self.rng.pick(&["i", "j", "i+j", "i-j", "2*j-i", "j%2", "j%3", "i%4"]);
            let bound = if left.contains('%') { 2 } else { most };
            return format!("({left} {compare} {})", self.rng.range(0, bound));
        }
        let [_bool, numbers @ ..] = DType::ALL;
        let dtype = self.rng.pick(&numbers).name();
        let (x, y) = (self.of(dtype, depth), self.of_or_zero(dtype, depth));
        format!("({x} {compare} {y})")
    }

    fn leaf(&mut self, dtype: &str) -> String {
        let subscripts = if self.rng.percent(70) { "(i,j)" } else { "(i,0)" };
        match self.rng.index(10) {
            0..=5 => {
                let number = self.rng.index(self.types.len());
                let read = format!("{}{subscripts}", ["A", "B", "C"][number]);
                if self.types[number] == dtype { read } else { format!("{dtype}({read})") }
            }
            6 | 7 => {
                let index = *self.rng.pick(&["i", "j", "max(j-i, 0)", "i*j", "j-7", "min(i, 3)-j"]);
                format!("{dtype}({index})")
            }
            _ if dtype == "bool" => (*self.rng.pick(&["true", "false"])).to_owned(),
            _ if is_float(dtype) => (*self.rng.pick(&["0.5", "2.0", "3", "0.25"])).to_owned(),
            _ => (*self.rng.pick(&["1", "2", "3", "7", "100"])).to_owned(),
        }
    }
}

fn is_float(dtype: &str) -> bool {
    DType::from_name(dtype).is_some_and(DType::is_float)
}

fn zero(dtype: &str) -> &'static str {
    if dtype == "bool" { "false" } else { "0" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::differential::programs::examples::is_quick;

    #[test]
    fn most_of_them_are_programs() {
        let good = (0..500).filter(|seed| is_quick(&attempt(&mut Rng::new(*seed)))).count();
        assert!(good > 450, "{good} of 500");
    }
}
