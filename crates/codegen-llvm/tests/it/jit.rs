//! Tests of the JIT: linking, calling, unloading, and errors.
#![allow(unsafe_code, reason = "tests call the code they generate")]

use std::thread;

use inkwell::context::Context;
use tensorwright_codegen_llvm::Processor;
use tensorwright_codegen_llvm::error::Error;
use tensorwright_codegen_llvm::jit::Jit;
use tensorwright_codegen_llvm::object;

type Unary = unsafe extern "C" fn(f32) -> f32;

/// An object with `f(x) = callee(x) + addend`.
fn object_calling(target: &Processor, callee: &str, addend: f64) -> Vec<u8> {
    let machine = target.machine().unwrap();
    let context = Context::create();
    let module = context.create_module("m");
    target.prepare(&module, &machine);
    let float = context.f32_type();
    let signature = float.fn_type(&[float.into()], false);
    let callee = module.add_function(callee, signature, None);
    let function = module.add_function("f", signature, None);
    target.annotate(function);
    let builder = context.create_builder();
    builder.position_at_end(context.append_basic_block(function, ""));
    let x = function.get_nth_param(0).unwrap();
    let y = builder.build_call(callee, &[x.into()], "").unwrap();
    let y = y.try_as_basic_value().unwrap_basic().into_float_value();
    let sum = builder.build_float_add(y, float.const_float(addend), "").unwrap();
    builder.build_return(Some(&sum)).unwrap();
    object::object(&module, &machine).unwrap()
}

fn native() -> (Processor, Jit) {
    let target = Processor::native().unwrap();
    let jit = Jit::new(&target).unwrap();
    (target, jit)
}

/// Resident memory in bytes.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
fn objects_with_the_same_names_live_side_by_side() {
    let (target, jit) = native();
    let one = jit.load(&object_calling(&target, "expf", 1.0)).unwrap();
    let two = jit.load(&object_calling(&target, "erff", 2.0)).unwrap();
    // SAFETY: `f` has this type, and the code outlives the calls.
    unsafe {
        let f: Unary = one.function("f").unwrap();
        let g: Unary = two.function("f").unwrap();
        assert_eq!(f(0.0), 2.0);
        assert_eq!(g(0.0), 2.0);
        drop(one);
        assert_eq!(g(9.0), 3.0);
    }
}

#[test]
fn failures_are_values_and_leave_the_session_usable() {
    let (target, jit) = native();
    assert!(matches!(jit.load(b"not an object"), Err(Error::Link(_))));
    assert!(matches!(jit.load(b""), Err(Error::Link(_))));
    let mut truncated = object_calling(&target, "expf", 1.0);
    truncated.truncate(truncated.len() / 2);
    assert!(jit.load(&truncated).and_then(|code| code.symbol("f").map(|_| ())).is_err());
    let code = jit.load(&object_calling(&target, "no_such_function", 1.0)).unwrap();
    let error = code.symbol("f").unwrap_err().to_string();
    assert!(error.contains("no_such_function"), "{error}");
    drop(code);
    let code = jit.load(&object_calling(&target, "expf", 1.0)).unwrap();
    assert!(code.symbol("g").is_err());
    assert!(code.symbol("f\0").is_err());
    // SAFETY: the pointer is not called.
    assert!(unsafe { code.function::<u8>("f") }.is_err());
    assert!(code.symbol("f").is_ok());
}

#[test]
fn foreign_code_is_refused() {
    let foreign = if cfg!(target_arch = "aarch64") { "avx2" } else { "neon" };
    let target = Processor::named(foreign).unwrap();
    assert!(matches!(Jit::new(&target), Err(Error::Target(_))));
    let (_, jit) = native();
    let object = object_calling(&target, "expf", 0.0);
    assert!(jit.load(&object).and_then(|code| code.symbol("f").map(|_| ())).is_err());
}

#[test]
fn a_session_serves_many_threads() {
    let (target, jit) = native();
    let shared = jit.load(&object_calling(&target, "expf", 0.5)).unwrap();
    thread::scope(|scope| {
        for number in 0..4_u8 {
            let (target, jit, shared) = (&target, jit.clone(), &shared);
            scope.spawn(move || {
                for _ in 0..20 {
                    let addend = f32::from(number);
                    let code = jit.load(&object_calling(target, "expf", addend.into())).unwrap();
                    // SAFETY: `f` has this type, and the code outlives the calls.
                    let (f, g): (Unary, Unary) =
                        unsafe { (code.function("f").unwrap(), shared.function("f").unwrap()) };
                    // SAFETY: as above.
                    assert_eq!(unsafe { (f(0.0), g(0.0)) }, (1.0 + addend, 1.5));
                }
            });
        }
    });
}

#[test]
fn code_is_unloaded() {
    let (target, jit) = native();
    let cycle = |number: f32| {
        let code = jit.load(&object_calling(&target, "expf", number.into())).unwrap();
        // SAFETY: `f` has this type, and the code outlives the call.
        let f: Unary = unsafe { code.function("f").unwrap() };
        // SAFETY: as above.
        assert_eq!(unsafe { f(0.0) }, 1.0 + number);
    };
    (0..100_u16).for_each(|number| cycle(number.into()));
    let before = resident();
    (0..500_u16).for_each(|number| cycle(number.into()));
    let growth = resident().saturating_sub(before);
    // Leaked code would take at least two pages per cycle.
    assert!(growth < 4 << 20, "{growth} bytes more after 500 cycles");
}
