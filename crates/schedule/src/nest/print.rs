//! Prints a nest as pseudo-C.

use std::fmt::{self, Write as _};

use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::ReductionOp;
use tensorwright_lang::program::{Expr, Index, SizeRange, expr_text, index_text};

use super::{
    Buffer, BufferId, LoopKind, LoopNest, Node, NumberSource, Owner, Prefetch, Span, Store, Var,
};

/// Prints declarations, then loops.
impl fmt::Display for LoopNest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let printer = Printer { nest: self };
        let buffers = self.parameters.iter().map(|id| printer.parameter(self.buffer(*id)));
        let parameters: Vec<String> = printer.sizes().chain(buffers).collect();
        let mut text = format!("{}({}) {{\n", self.name, parameters.join(", "));
        if !self.prepare.is_empty() {
            text.push_str("  prepare {\n");
            printer.nodes(&mut text, &self.prepare, 2);
            text.push_str("  }\n");
        }
        for buffer in printer.shared() {
            let _ = writeln!(text, "  {};", printer.declaration(buffer));
        }
        printer.nodes(&mut text, &self.body, 1);
        text.push_str("}\n");
        f.write_str(&text)
    }
}

impl LoopNest {
    /// The preparation as text: the constants that it reads, the buffers that it fills, and its
    /// loops; empty if there is none. Equal texts compute equal bytes from equal constants.
    #[must_use]
    pub fn preparation(&self) -> String {
        if self.prepare.is_empty() {
            return String::new();
        }
        let involved = |id: &&BufferId| {
            self.constants.contains(id) || self.buffer(**id).owner == Owner::Prepared
        };
        let printer = Printer { nest: self };
        let buffers = self.parameters.iter().filter(involved);
        let mut text: String =
            buffers.map(|id| format!("{};\n", printer.parameter(self.buffer(*id)))).collect();
        printer.nodes(&mut text, &self.prepare, 0);
        text
    }
}

struct Printer<'a> {
    nest: &'a LoopNest,
}

impl Printer<'_> {
    /// The sizes that vary, with their values.
    fn sizes(&self) -> impl Iterator<Item = String> {
        self.nest.numbers.iter().filter_map(|number| match &number.source {
            NumberSource::Size(size) => {
                let SizeRange { least, most, .. } = size.range;
                Some(format!("{} in {least}..={most}", size.name))
            }
            _ => None,
        })
    }

    fn parameter(&self, buffer: &Buffer) -> String {
        let kind = match buffer.owner {
            Owner::Output => "out ",
            Owner::Prepared => "prepared ",
            _ => "",
        };
        format!("{kind}{}", self.declaration(buffer))
    }

    fn declaration(&self, buffer: &Buffer) -> String {
        let mut text = format!("{} {}", buffer.dtype, buffer.name);
        for dimension in 0..buffer.shape.len() {
            let _ = write!(text, "[{}]", self.index(&buffer.extent(dimension)));
        }
        if let Some(layout) = &buffer.layout {
            let names: Vec<String> = (0..buffer.shape.len()).map(|d| format!("d{d}")).collect();
            let _ = write!(text, " as {}", layout.text(&names));
        }
        text
    }

    /// The buffers that live for the whole call and are not parameters.
    fn shared(&self) -> Vec<&Buffer> {
        let mut local = vec![false; self.nest.buffers.len()];
        super::walk::for_each_loop(&self.nest.body, &mut |l| {
            l.locals.iter().for_each(|id| local[id.0 as usize] = true);
        });
        let owned = |buffer: &Buffer| buffer.owner.is_kernel();
        let buffers = self.nest.buffers.iter().zip(local);
        let mut used = vec![false; self.nest.buffers.len()];
        super::for_each_store(&self.nest.body, &mut |store| used[store.buffer.0 as usize] = true);
        buffers
            .zip(used)
            .filter_map(|((buffer, local), used)| {
                (owned(buffer) && !local && used).then_some(buffer)
            })
            .collect()
    }

    fn nodes(&self, text: &mut String, nodes: &[Node], depth: usize) {
        for node in nodes {
            let pad = "  ".repeat(depth);
            match node {
                Node::Loop(l) => {
                    let kind = match l.kind {
                        LoopKind::Serial => String::new(),
                        kind => format!("{kind} "),
                    };
                    let peel = if l.peel { " peeled" } else { "" };
                    let name = self.nest.var_name(l.var);
                    let (begin, end) = match l.span.as_deref() {
                        Some(Span { begin, end }) => (self.index(begin), self.index(end)),
                        None => ("0".to_owned(), l.extent.to_string()),
                    };
                    let _ = writeln!(text, "{pad}{kind}for {name} in {begin}..{end}{peel} {{");
                    for id in &l.locals {
                        let _ =
                            writeln!(text, "{pad}  {};", self.declaration(self.nest.buffer(*id)));
                    }
                    self.nodes(text, &l.body, depth + 1);
                    let _ = writeln!(text, "{pad}}}");
                }
                Node::Guard(guard) => {
                    let _ = writeln!(text, "{pad}if ({}) {{", self.conditions(&guard.conditions));
                    self.nodes(text, &guard.body, depth + 1);
                    let _ = writeln!(text, "{pad}}}");
                }
                Node::Store(store) => {
                    let _ = writeln!(text, "{pad}{}", self.store(store));
                }
                Node::Barrier => {
                    let _ = writeln!(text, "{pad}barrier;");
                }
                Node::Prefetch(Prefetch { buffer, subscripts }) => {
                    let _ = writeln!(text, "{pad}prefetch {};", self.element(*buffer, subscripts));
                }
            }
        }
    }

    fn store(&self, store: &Store) -> String {
        let mut text = String::new();
        if let Some(lanes) = store.lanes {
            let order = if lanes.in_order { " in order" } else { "" };
            let name = self.nest.var_name(lanes.var);
            let _ = write!(text, "[{name} = 0..{}{order}] ", lanes.count);
        }
        let mut conditions: Vec<Index> =
            store.domain.iter().map(|bound| bound.index.clone()).collect();
        conditions.extend(store.mask.iter().cloned());
        if !conditions.is_empty() {
            let _ = write!(text, "if ({}) ", self.conditions(&conditions));
        }
        let op = match store.combine {
            None => "=",
            Some(op) => ReductionOp::symbol(op),
        };
        let element = self.element(store.buffer, &store.subscripts);
        let _ = write!(text, "{element} {op} {};", self.expr(&store.value));
        if let Some(init) = &store.init {
            let _ = write!(text, "  // from {}", self.expr(init));
        }
        text
    }

    fn conditions(&self, conditions: &[Index]) -> String {
        let one = |index: &Index| {
            // `a - b >= 0` is printed as `b <= a`.
            let (mut small, mut large) = (Index::constant(0), Index::constant(0));
            for term in index.terms() {
                let part = Index::atom(term.atom.clone());
                let side = if term.coefficient < 0 { &mut small } else { &mut large };
                let magnitude = term.coefficient.checked_abs().and_then(|c| part.scale(c));
                if let Some(sum) = magnitude.and_then(|part| side.add(&part)) {
                    *side = sum;
                }
            }
            let constant = index.constant_term();
            let side = if constant < 0 { &mut small } else { &mut large };
            if let Some(sum) = side.add(&Index::constant(constant.saturating_abs())) {
                *side = sum;
            }
            format!("{} <= {}", self.index(&small), self.index(&large))
        };
        conditions.iter().map(one).collect::<Vec<_>>().join(" && ")
    }

    fn element(&self, buffer: BufferId, subscripts: &[Index]) -> String {
        let name = &self.nest.buffer(buffer).name;
        if subscripts.is_empty() {
            return name.clone();
        }
        let subscripts: Vec<String> = subscripts.iter().map(|index| self.index(index)).collect();
        format!("{name}({})", subscripts.join(", "))
    }

    fn index(&self, index: &Index) -> String {
        index_text(index, &|var| self.var(var), &|id| self.buffer(id))
    }

    fn expr(&self, expr: &Expr) -> String {
        let dtype = |id: BufferId| -> DType { self.nest.dtype(id) };
        expr_text(expr, &|var| self.var(var), &|id| self.buffer(id), &dtype)
    }

    fn var(&self, var: Var) -> String {
        self.nest.var_name(var).to_owned()
    }

    fn buffer(&self, id: BufferId) -> String {
        self.nest.buffer(id).name.clone()
    }
}
