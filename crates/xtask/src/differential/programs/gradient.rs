//! Gradients of other programs: reads become writes, and ranges become guards.

use tensorwright_lang::Module;
use tensorwright_testkit::Rng;

use super::Example;
use super::examples::is_quick;

/// The name of this source.
pub(super) const NAME: &str = "gradients";

/// The gradient of a program with respect to all or one of its parameters; `None` if there is none,
/// or it is slow.
pub(super) fn of(example: &Example, rng: &mut Rng) -> Option<Example> {
    let module = Module::parse("forward.tc", &example.text).ok()?;
    let gradient = tensorwright_grad::grad(&module, &example.def, &[]).ok()?;
    let outputs: Vec<&str> = gradient.outputs().iter().map(|output| output.of.as_str()).collect();
    let gradient = if outputs.len() > 1 && rng.percent(50) {
        tensorwright_grad::grad(&module, &example.def, &[*rng.pick(&outputs)]).ok()?
    } else {
        gradient
    };
    let (text, def) = (gradient.source().to_owned(), gradient.name().to_owned());
    let backward = Module::parse("backward.tc", &text).ok()?;
    let names = backward.def(&def).ok()?;
    let names: Vec<&str> = names.sizes().into_iter().chain(names.integer_scalars()).collect();
    let sizes = example.sizes.iter().filter(|(name, _)| names.contains(&name.as_str()));
    let gradient = Example { text, def, sizes: sizes.cloned().collect() };
    is_quick(&gradient).then_some(gradient)
}
