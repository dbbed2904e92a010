//! The builder of a generated program: inputs, sizes, tensors and statements.

mod params;

use std::collections::BTreeSet;
use std::fmt::Write as _;

pub(super) use params::ParamKind;

use super::typed::{Atom, Tensor, Type};
use super::{GeneratedProgram, Scale};
use crate::Rng;
use params::Param;

/// The most iterations of one statement.
const ITERATIONS: i64 = 15_000;

/// The same for programs with long dimensions, which are run more often.
const TILEABLE_ITERATIONS: i64 = 3_000;

/// A program under construction.
#[derive(Debug)]
pub(super) struct Builder {
    pub(super) rng: Rng,
    pub(super) scale: Scale,
    /// The text of the defs that this one calls.
    pub(super) callees: Vec<String>,
    /// Whether this def is a callee; then it has no in-out tensors.
    pub(super) is_callee: bool,
    pub(super) params: Vec<Param>,
    sizes: Vec<(String, i64)>,
    statements: Vec<String>,
    tensors: Vec<Tensor>,
    computed: Vec<String>,
    in_out: Vec<Tensor>,
    read: BTreeSet<String>,
    features: BTreeSet<&'static str>,
    names: usize,
}

impl Builder {
    pub(super) fn new(rng: Rng, scale: Scale) -> Self {
        Self {
            rng,
            scale,
            callees: Vec::new(),
            is_callee: false,
            params: Vec::new(),
            sizes: Vec::new(),
            statements: Vec::new(),
            tensors: Vec::new(),
            computed: Vec::new(),
            in_out: Vec::new(),
            read: BTreeSet::new(),
            features: BTreeSet::new(),
            names: 0,
        }
    }

    /// Records that the program uses a language feature.
    pub(super) fn uses(&mut self, feature: &'static str) {
        self.features.insert(feature);
    }

    pub(super) fn absorb(&mut self, features: Vec<&'static str>) {
        self.features.extend(features);
    }

    pub(super) fn statement_count(&self) -> usize {
        self.statements.len()
    }

    /// A fresh name with a prefix for its kind.
    pub(super) fn fresh(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    /// Random extents whose product respects the iteration limit.
    pub(super) fn extents(&mut self, count: usize) -> Vec<i64> {
        let (mut left, longest) = match self.scale {
            Scale::Small => (ITERATIONS, 9),
            Scale::Tileable => (TILEABLE_ITERATIONS, 40),
        };
        let mut extents = Vec::new();
        for remaining in (0..count).rev() {
            // Reserves a factor of two per remaining variable, so that the last ones are not all 1.
            let most = (left >> remaining).clamp(1, longest);
            let most = if longest > 9 && self.rng.percent(50) { most.min(9) } else { most };
            let extent = self.rng.range(1, most);
            left /= extent;
            extents.push(extent);
        }
        self.rng.shuffle(&mut extents);
        extents
    }

    /// A random extent of a pattern with limits of its own, stretched by a larger scale.
    pub(super) fn length(&mut self, lo: i64, hi: i64) -> i64 {
        let stretched = self.scale == Scale::Tileable && self.rng.percent(40);
        self.rng.range(lo, if stretched { 3 * hi } else { hi })
    }

    /// Fresh index variables.
    pub(super) fn variables(&mut self, count: usize) -> Vec<String> {
        const LETTERS: [&str; 10] = ["i", "j", "k", "l", "m", "n", "x", "y", "kh", "kw"];
        let mut names = LETTERS.map(str::to_owned).to_vec();
        self.rng.shuffle(&mut names);
        names.truncate(count);
        names
    }

    /// A tensor of a shape: an existing one, or a new input of a random type.
    pub(super) fn operand(&mut self, shape: &[i64]) -> Tensor {
        let fitting: Vec<Tensor> =
            self.tensors.iter().filter(|tensor| tensor.shape == shape).cloned().collect();
        if fitting.is_empty() || self.rng.percent(40) {
            let dtype = Type::random(&mut self.rng);
            return self.input(dtype, shape);
        }
        self.rng.pick(&fitting).clone()
    }

    /// Sometimes an existing tensor of a type and shape.
    pub(super) fn existing(&mut self, dtype: Type, shape: &[i64]) -> Option<Tensor> {
        let fits = |tensor: &&Tensor| tensor.dtype == dtype && tensor.shape == shape;
        let fitting = self.tensors.iter().rfind(fits).cloned();
        fitting.filter(|_| self.rng.percent(70))
    }

    /// A tensor of one of these ranks that an earlier statement computed, if there is one.
    pub(super) fn earlier(&mut self, ranks: std::ops::RangeInclusive<usize>) -> Option<Tensor> {
        let fitting: Vec<Tensor> = self
            .tensors
            .iter()
            .filter(|tensor| self.computed.contains(&tensor.name))
            .filter(|tensor| ranks.contains(&tensor.shape.len()))
            .filter(|tensor| tensor.shape.iter().product::<i64>() <= ITERATIONS)
            .cloned()
            .collect();
        (!fitting.is_empty()).then(|| self.rng.pick(&fitting).clone())
    }

    /// A read of a tensor at subscripts. A parameter without dimensions is used by its name alone.
    pub(super) fn read<S: AsRef<str>>(&mut self, tensor: &Tensor, subscripts: &[S]) -> Atom {
        if self.computed.contains(&tensor.name) {
            self.uses("chain");
        } else if subscripts.is_empty() {
            return Atom::new(&tensor.name, tensor.dtype);
        }
        self.read.insert(tensor.name.clone());
        let subscripts: Vec<&str> = subscripts.iter().map(AsRef::as_ref).collect();
        Atom::new(format!("{}({})", tensor.name, subscripts.join(",")), tensor.dtype)
    }

    /// Marks a tensor as read by something other than a statement of this def.
    pub(super) fn mark_read(&mut self, name: &str) {
        self.read.insert(name.to_owned());
    }

    /// Spells a number as a literal, a size of that value, or the extent of a dimension.
    pub(super) fn extent(&mut self, value: i64) -> String {
        let mut spellings = vec![value.to_string()];
        let sizes = self.sizes.iter().filter(|size| size.1 == value);
        spellings.extend(sizes.map(|size| size.0.clone()));
        for tensor in self.tensors.iter().filter(|tensor| tensor.name != "in") {
            let dims = tensor.shape.iter().enumerate().filter(|(_, extent)| **extent == value);
            spellings.extend(dims.map(|(dim, _)| format!("{}.{dim}", tensor.name)));
        }
        let spelling = self.rng.pick(&spellings).clone();
        if spelling.contains('.') {
            self.uses("id.num");
        }
        spelling
    }

    /// A clause that gives variables the ranges `lo:hi`.
    pub(super) fn ranges(&mut self, ranges: &[(&str, i64, i64)]) -> String {
        let mut constraints = Vec::new();
        for (variable, lo, hi) in ranges {
            let hi = self.extent(*hi);
            constraints.push(format!("{variable} in {lo}:{hi}"));
        }
        if constraints.is_empty() {
            return String::new();
        }
        self.uses("where");
        format!(" where {}", constraints.join(", "))
    }

    /// Adds a statement.
    pub(super) fn statement(&mut self, text: String) {
        self.statements.push(text);
    }

    /// Adds `target(variables) assign value` and registers the target.
    pub(super) fn define<S: AsRef<str>>(
        &mut self,
        target: &Tensor,
        variables: &[S],
        assign_and_value: &str,
    ) {
        let variables: Vec<&str> = variables.iter().map(AsRef::as_ref).collect();
        self.statement(format!("{}({}) {assign_and_value}", target.name, variables.join(",")));
        self.computes(target);
    }

    /// Registers a computed tensor.
    pub(super) fn computes(&mut self, target: &Tensor) {
        if target.dtype == Type::Bool {
            self.uses("bool tensor");
        }
        if !self.computed.contains(&target.name) {
            self.computed.push(target.name.clone());
            self.tensors.push(target.clone());
        }
    }

    /// Registers a result that later statements must not read, because the caller supplies a part.
    pub(super) fn returns(&mut self, target: &Tensor) {
        self.in_out.push(target.clone());
    }

    /// The tensors that this def would return now: all unread ones, and some others.
    fn outputs(&mut self) -> Vec<Tensor> {
        let mut outputs = Vec::new();
        for name in self.computed.clone() {
            let is_output = !self.read.contains(&name) || self.rng.percent(25);
            let tensor = self.tensors.iter().find(|tensor| tensor.name == name);
            outputs.extend(tensor.filter(|_| is_output).cloned());
        }
        outputs.extend(self.in_out.iter().cloned());
        // An update may read its own target, so that no tensor is unread: then the last one is
        // returned.
        if outputs.is_empty() {
            let is_last = |tensor: &&Tensor| self.computed.last() == Some(&tensor.name);
            outputs.extend(self.tensors.iter().find(is_last).cloned());
        }
        outputs
    }

    /// The text of the def alone, and its results.
    pub(super) fn finish_def(&mut self, name: &str) -> (String, Vec<Tensor>) {
        let outputs = self.outputs();
        if outputs.len() > 1 {
            self.uses("several results");
        }
        self.rng.shuffle(&mut self.params);
        let params: Vec<&str> = self.params.iter().map(|p| p.declaration.as_str()).collect();
        let results: Vec<&str> = outputs.iter().map(|tensor| tensor.name.as_str()).collect();
        let mut text =
            format!("def {name}({}) -> ({}) {{\n", params.join(", "), results.join(", "));
        for statement in &self.statements {
            let end = if self.rng.percent(15) { ";" } else { "" };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {statement}{end}");
        }
        text.push_str("}\n");
        (text, outputs)
    }

    /// The whole program.
    pub(super) fn finish(mut self, name: &str) -> GeneratedProgram {
        let (text, _) = self.finish_def(name);
        let mut defs = self.callees.clone();
        defs.push(text);
        self.rng.shuffle(&mut defs);
        let shaping = self.params.iter().filter_map(|param| match param.kind {
            ParamKind::Shaping(value) => Some((param.name.clone(), value)),
            _ => None,
        });
        let index = self.params.iter().filter_map(|param| match &param.kind {
            ParamKind::Index(_, bound) => Some((param.name.clone(), *bound)),
            _ => None,
        });
        GeneratedProgram {
            text: defs.join("\n"),
            def: name.to_owned(),
            sizes: self.sizes.iter().cloned().chain(shaping).collect(),
            index_inputs: index.collect(),
            features: self.features.into_iter().collect(),
        }
    }

    pub(super) fn features(&self) -> Vec<&'static str> {
        self.features.iter().copied().collect()
    }
}
