//! Float-to-integer conversions: truncation and saturation for all vector widths, against the
//! reference.

use tensorwright::{Buffer, DType, Inputs, Module, Schedule};

const INTEGERS: [DType; 8] = [
    DType::Int8,
    DType::UInt8,
    DType::Int16,
    DType::UInt16,
    DType::Int32,
    DType::UInt32,
    DType::Int64,
    DType::UInt64,
];

/// Both sides of every type's limits, and numbers beyond all of them.
fn numbers() -> Vec<f64> {
    let mut found = vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 0.0, -0.0];
    for bits in [7, 8, 15, 16, 31, 32, 63, 64] {
        let limit = 2f64.powi(bits);
        for near in [limit - 1.0, limit - 0.5, limit, limit + 0.5, limit + 1.0, limit * 1.5] {
            found.extend([near, -near]);
        }
        let below = f64::from_bits(limit.to_bits() - 1);
        found.extend([below, -below, f64::from(f32::from_bits((limit as f32).to_bits() - 1))]);
    }
    found.extend([0.5, -0.5, 0.999, -0.999, 1.5, -1.5, 1e-40, -1e-300]);
    found.resize(found.len().next_multiple_of(16), 2.5);
    found
}

#[test]
fn are_truncated_and_saturated_in_all_lanes() {
    let numbers = numbers();
    let count = numbers.len() as i64;
    for from in [DType::Float, DType::Double] {
        let data = Buffer::from_f64s(from, &[count], &numbers).unwrap();
        let inputs = Inputs::from([("x".to_owned(), data)]);
        for to in INTEGERS {
            let text = format!("def cast({from}(N) x) -> (y) {{ y(i) = {to}(x(i)) }}");
            let module = Module::parse("cast.tc", &text).unwrap();
            let program = module.def("cast").unwrap().bind([("N", count)]).unwrap();
            for lanes in [1, 2, 3, 4, 8, 16] {
                let text = format!("y: split i {lanes}\ny: vectorize i.1");
                let schedule = Schedule::parse(&text).unwrap();
                let kernel = program.compile().schedule(schedule).build().unwrap();
                let outputs = kernel.run(&inputs).unwrap();
                let wrong = kernel.verify(&inputs, &outputs).unwrap().mismatches;
                assert!(wrong.is_empty(), "{from} to {to}, {lanes} lanes: {wrong:?}");
            }
        }
    }
}

/// Every number of a storage-only type, and its double, which overflows, or is no longer subnormal.
#[test]
fn storage_only_types_are_widened_and_rounded_in_all_lanes() {
    for dtype in DType::ALL.into_iter().filter(|dtype| dtype.is_storage_only()) {
        let count = 1_i64 << (8 * dtype.bytes());
        let all = (0..count).flat_map(|bits| bits.to_le_bytes()[..dtype.bytes()].to_vec());
        let data = Buffer::from_bytes(dtype, &[count], &all.collect::<Vec<u8>>()).unwrap();
        let inputs = Inputs::from([("x".to_owned(), data)]);
        let text = format!("def f({dtype}(N) x) -> (y) {{ y(i) = x(i) * 2.0 }}");
        let module = Module::parse("f.tc", &text).unwrap();
        let program = module.def("f").unwrap().bind([("N", count)]).unwrap();
        for lanes in [1, 2, 4, 8, 16] {
            let text = format!("y: split i {lanes}\ny: vectorize i.1");
            let schedule = Schedule::parse(&text).unwrap();
            let kernel = program.compile().schedule(schedule).build().unwrap();
            let outputs = kernel.run(&inputs).unwrap();
            let wrong = kernel.verify(&inputs, &outputs).unwrap().mismatches;
            assert!(wrong.is_empty(), "{dtype}, {lanes} lanes: {wrong:?}");
        }
    }
}
