//! Programs with index arithmetic, and data that reach the ends of their types.

use std::collections::BTreeMap;

use tensorwright_lang::Module;
use tensorwright_lang::program::{Program, wrap_integer};
use tensorwright_machine::{Cpu, Goal};
use tensorwright_policy::cpu::rules::schedule_by_rules;
use tensorwright_reference::{Buffer, Value};
use tensorwright_schedule::{LoweredNest, Schedule, canonical, lower};

/// The definitions whose data may be anything, or those whose reads are checked, with `m` elements.
pub(crate) fn programs(checked: bool, m: i64) -> Vec<Program> {
    let module = Module::parse("kernels.tc", include_str!("kernels.tc"));
    let module = module.unwrap_or_else(|errors| panic!("{errors}"));
    let bind = |def: tensorwright_lang::Def<'_>| {
        let text = def.name().to_owned();
        let sizes: Vec<(&str, i64)> = [("N", 10), ("M", m)]
            .into_iter()
            .filter(|(name, _)| def.sizes().contains(name))
            .collect();
        def.bind(sizes).unwrap_or_else(|errors| panic!("{text}: {errors}"))
    };
    module.defs().filter(|def| def.name().starts_with("checked") == checked).map(bind).collect()
}

/// The nest as it stands, in vectors, and by rules.
pub(crate) fn nests(program: &Program) -> Vec<(String, LoweredNest)> {
    let lowered = |schedule: Schedule| {
        let text = schedule.to_string();
        let nest = schedule.apply(canonical(program)).unwrap_or_else(|error| panic!("{error:?}"));
        (text, lower(nest).unwrap_or_else(|error| panic!("{}: {error}", program.name)))
    };
    let axis = program.stages[0].axes[0].name.clone();
    let vectors = format!("Z: split {axis} 8\nZ: vectorize {axis}.1\n");
    let mut schedules =
        vec![Schedule::default(), schedule_by_rules(program, &Goal::new(Cpu::avx2()))];
    // Rows are vectors already; a reduction stands inside.
    if program.stages[0].axes.len() == 1 {
        schedules.push(Schedule::parse(&vectors).unwrap_or_else(|error| panic!("{error:?}")));
    }
    schedules.into_iter().map(lowered).collect()
}

/// Whole numbers near the ends of types, near zero, and near what wraps around when it is multiplied.
pub(crate) fn extremes() -> Vec<i128> {
    let mut values = Vec::new();
    for near in -2..=2_i128 {
        values.extend(
            [0, 4, i64::MIN.into(), i64::MAX.into(), u64::MAX.into(), 1 << 32]
                .map(|at: i128| at + near),
        );
        for by in [2, 3, 5, 7] {
            values.extend([(1 << 63) / by + near, (1 << 64) / by + near, -(1 << 63) / by + near]);
        }
    }
    values
}

/// Inputs of extremes: `turn` says where the list starts.
pub(crate) fn inputs(program: &Program, turn: usize) -> BTreeMap<String, Buffer> {
    let (values, mut state) = (extremes(), turn as u64);
    let mut next = |position: usize| {
        // Each pairing of values comes up in some turn.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if turn == 0 {
            values[position % values.len()]
        } else {
            values[(state >> 33) as usize % values.len()]
        }
    };
    let floats =
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e30, -1e30, 9.3e18, 3.5, 7.0, 8.0, -0.5, 0.0];
    let mut buffers = BTreeMap::new();
    for tensor in program.tensors.iter().take(program.inputs) {
        let mut buffer =
            Buffer::zeros(tensor.dtype, &tensor.shape).unwrap_or_else(|e| panic!("{e}"));
        for position in 0..buffer.len() {
            let number = next(position);
            let value = match (tensor.name.as_str(), tensor.dtype.is_float()) {
                ("X", _) => Value::Integer(position as i128 % 100 + 1),
                (_, true) => Value::Float(floats[(number.unsigned_abs() % 11) as usize]),
                _ => Value::Integer(wrap_integer(tensor.dtype, number)),
            };
            buffer.set(position, value.convert(tensor.dtype));
        }
        buffers.insert(tensor.name.clone(), buffer);
    }
    buffers
}
