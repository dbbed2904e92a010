//! [`Member`]: a stage of a fusion, and [`fuse`]: stages that are computed together.

use tensorwright_machine::{Cpu, Goal};
use tensorwright_plan::{
    AxisId, Emitter, Levels, LoopRef, Open, Placement, Plan, PlannedLoop, StageId, Stages, Tiling,
};
use tensorwright_schedule::access::Accesses;
use tensorwright_schedule::nest::LoopNest;
use tensorwright_schedule::{ScheduleError, ScheduleState};

use crate::cpu::loops::product::Product;
use crate::cpu::loops::row::Row;
use crate::cpu::loops::stencil;

/// A stage that is computed together with others.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) stage: StageId,
    pub(crate) placement: Placement,
    /// The loops in which others are computed.
    pub(crate) outer: Vec<PlannedLoop>,
    pub(crate) body: Body,
}

/// The kind of the loops inside of those.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Body {
    /// As they are.
    Plain,
    /// Row by row.
    Row(Row),
    /// A product in register tiles. A reduction that it reads in place is computed inside of them,
    /// and strided operands are packed in a loop.
    Product { reduction: Option<StageId>, pack: LoopRef },
    /// Tiles of `rows` rows of an axis, with `sums` reductions in each.
    Stencil { row: AxisId, rows: i64, sums: i64 },
    /// All loops are unrolled inside of a tile of the host. If the stage is too large for that, it
    /// is computed row by row in the loop of the row.
    Registers { otherwise: Option<Row> },
}

/// Computes stages together; hosts come before their guests. Returns the plan.
///
/// # Errors
/// If a step is refused.
pub(crate) fn fuse(
    draft: &mut ScheduleState,
    stages: &Stages,
    members: Vec<Member>,
    goal: &Goal<Cpu>,
) -> Result<Plan, ScheduleError> {
    let emitter = Emitter::new(draft, stages, Levels::CPU);
    let is_tiled = vec![false; members.len()];
    let mut fusion = Fusion { emitter, stages, members, goal, is_tiled };
    for at in 0..fusion.members.len() {
        fusion.place(at)?;
    }
    for at in 0..fusion.members.len() {
        fusion.tile(at)?;
    }
    fusion.emitter.finish()
}

struct Fusion<'a> {
    emitter: Emitter<'a>,
    stages: &'a Stages,
    members: Vec<Member>,
    goal: &'a Goal<Cpu>,
    is_tiled: Vec<bool>,
}

impl Fusion<'_> {
    fn place(&mut self, at: usize) -> Result<(), ScheduleError> {
        let Member { stage, placement, outer, body } = self.members[at].clone();
        if let Some(host) = placement.host()
            && self.emitter.size_of(host).is_none()
        {
            // The loop is inside of the tiles of the host.
            let of_host = self.members.iter().position(|member| member.stage == host.stage);
            of_host.map_or(Ok(()), |host| self.tile(host))?;
        }
        if let (Body::Registers { otherwise: Some(row) }, Some(host)) = (body, placement.host()) {
            let (width, goal) = (self.emitter.size_of(host), self.goal);
            let fits = |nest: &LoopNest, open: &Open| stencil::is_small(nest, open, width, goal);
            if self.emitter.place_if(stage, placement, fits) {
                return Ok(());
            }
            self.members[at].body = Body::Row(row);
            return self.emitter.place(stage, Placement::At(row.at), outer);
        }
        self.emitter.place(stage, placement, outer)?;
        // Its operands are computed outside of its tiles.
        if matches!(body, Body::Product { .. }) { self.tile(at) } else { Ok(()) }
    }

    /// Cuts the inner loops of a placed member.
    fn tile(&mut self, at: usize) -> Result<(), ScheduleError> {
        let Member { stage, body, .. } = self.members[at];
        let Some(open) = self.emitter.open(stage).filter(|_| !self.is_tiled[at]) else {
            return Ok(());
        };
        self.is_tiled[at] = true;
        let (nest, goal) = (&self.emitter.draft().nest, self.goal);
        let tiling = match body {
            Body::Plain => return Ok(()),
            Body::Row(row) => row.tiling(nest, &open, goal),
            Body::Stencil { row, rows, sums } => {
                stencil::tiling(nest, &open, (row, rows), sums, goal).unwrap_or_default()
            }
            Body::Registers { .. } => stencil::in_registers(nest, &open, goal),
            Body::Product { reduction, pack } => {
                return self.product(stage, &open, reduction, pack);
            }
        };
        self.emitter.tile(stage, tiling)
    }

    /// Cuts a product into register tiles, and computes it inside those of its epilogue if it has
    /// one.
    fn product(
        &mut self,
        root: StageId,
        open: &Open,
        reduction: Option<StageId>,
        pack: LoopRef,
    ) -> Result<(), ScheduleError> {
        let nest = &self.emitter.draft().nest;
        let inner = reduction.and_then(|stage| Accesses::of(nest, self.stages.name(stage)));
        let about = (nest, open, self.stages.get(root));
        let Some((product, mut tiling)) = Product::root(about, inner.as_ref(), self.goal) else {
            return Ok(());
        };
        let packs = product.packs((nest, open), inner.as_ref(), pack);
        let Some(reduction) = reduction else {
            tiling.packs = packs;
            return self.emitter.tile(root, tiling);
        };
        self.emitter.tile(root, tiling)?;
        let host = LoopRef { stage: root, level: product.host() };
        self.emitter.place(reduction, Placement::At(host), Vec::new())?;
        let stage = self.stages.get(reduction);
        self.emitter.tile_by(reduction, |_, open| Tiling { packs, ..product.inside(open, stage) })
    }
}

#[cfg(test)]
mod tests {
    use tensorwright_lang::Module;
    use tensorwright_lang::precision::Precision;
    use tensorwright_machine::{Cpu, Goal};
    use tensorwright_plan::{Levels, Plan, Stages, emit};
    use tensorwright_schedule::nest::for_each_loop;
    use tensorwright_schedule::{LoopNest, ScheduleState, canonical};

    use crate::alternatives;
    use crate::cpu::blocks;
    use crate::cpu::rows::{self, Chain, RowTiling};

    const SOFTMAX: &str = "def f(float(N,D) x) -> (y) {
      top(n) max=! x(n,d)
      e(n,d) = exp(x(n,d) - top(n))
      total(n) +=! e(n,d)
      y(n,d) = e(n,d) / total(n)
    }";
    const BLUR: &str = "def f(float(N,D) in) -> (out) {
      bx(y,x) = (in(y,x) + in(y,x+1) + in(y,x+2)) / 4
      out(y,x) = (bx(y,x) + bx(y+1,x) + bx(y+2,x)) / 4
    }";
    const ATTENTION: &str = "def f(float(N,D) q, float(N,D) k, float(N,D) v) -> (o) {
      s(i,j) +=! q(i,d) * k(j,d)
      top(i) max=! s(i,j)
      e(i,j) = exp(s(i,j) - top(i))
      total(i) +=! e(i,j)
      p(i,j) = e(i,j) / total(i)
      o(i,d) +=! p(i,j) * v(j,d)
    }";

    /// The plans of the chains and blocks of a program, each with a draft before and after it.
    fn plans(
        text: &str,
        precision: Precision,
    ) -> Vec<(ScheduleState, Stages, Plan, ScheduleState)> {
        let module = Module::parse("f.tc", text).unwrap();
        let program = module.bind("f", [("N", 1024), ("D", 768)]).unwrap();
        let goal = Goal::new(Cpu::avx2()).with_workers(2).with_precision(precision);
        let mut found = Vec::new();
        let plain = ScheduleState::new(canonical(&program));
        for draft in alternatives(&program, goal.precision).into_iter().chain([plain]) {
            let chains = rows::find(&draft, &goal);
            let tiling = |chain: &Chain| {
                let vectors = chain.stages.iter().map(|stage| stage.vectors.min(4)).collect();
                RowTiling { is_fused: true, vectors, is_parallel: true }
            };
            for chain in &chains {
                let mut after = draft.clone();
                let made = rows::compute(&mut after, chain, &tiling(chain), &goal);
                found.extend(made.ok().map(|(stages, plan)| (draft.clone(), stages, plan, after)));
            }
            for block in blocks::find(&draft, &chains, &goal) {
                for shape in &block.shapes {
                    let mut after = draft.clone();
                    let chains = (chains.as_slice(), &tiling as blocks::RowTilings<'_>);
                    let made = blocks::compute(&mut after, &block, *shape, chains, &goal);
                    let (stages, plan) = made.unwrap();
                    found.push((draft.clone(), stages, plan, after));
                }
            }
        }
        found
    }

    /// The words of each line of a nest, sorted. The rest of an axis is called `y.in`, and its only
    /// loop may stay so; buffers and terms are in the order of placement.
    fn loops(mut nest: LoopNest) -> Vec<String> {
        let mut names = vec![String::new(); nest.vars.len()];
        let mut count = 0;
        for_each_loop(&nest.body, &mut |l| {
            names[l.var.0 as usize] = format!("v{count}");
            count += 1;
        });
        nest.vars = names.into_iter().map(|name| name.as_str().into()).collect();
        let words = |line: &str| {
            let apart = |c: char| c.is_whitespace() || "(),".contains(c);
            let mut words: Vec<&str> = line.split(apart).filter(|word| !word.is_empty()).collect();
            words.sort_unstable();
            words.join(" ")
        };
        let mut lines: Vec<String> = nest.to_string().lines().map(words).collect();
        lines.sort_unstable();
        lines
    }

    /// A plan says all that its schedule does.
    #[test]
    fn plans_emit_what_they_were_made_of() {
        let mut count = 0;
        let programs = [SOFTMAX, BLUR, ATTENTION].map(|text| (text, Precision::Exact));
        for (text, precision) in programs.into_iter().chain([(ATTENTION, Precision::Fast)]) {
            for (mut draft, stages, plan, after) in plans(text, precision) {
                let again = emit(&plan, &stages, Levels::CPU, &mut draft).unwrap();
                assert_eq!(again, plan, "{}\n{}", after.schedule, draft.schedule);
                assert_eq!(loops(draft.nest), loops(after.nest));
                count += 1;
            }
        }
        assert!(count >= 8, "{count} plans");
    }
}
