//! [`Plan`]: the contents of a package, from its manifest.

use std::collections::BTreeMap;

use tensorwright::{Code, Def, Diagnostic, Diagnostics, Module};
use tensorwright_codegen_c::rust_names;
use tensorwright_tuner::{Extent, Manifest};

use crate::buckets::Ranged;
use crate::level::Level;
use crate::names;
use crate::operator::{Case, Name, Operator};
use crate::sizes::Sizes;
use crate::system;

/// The most parameters of an operator: kernel requirements are bits of a word.
const MOST_PARAMETERS: usize = 64;

/// The contents of a package: all programs bound, nothing compiled.
#[derive(Debug)]
pub struct Plan {
    pub(crate) name: String,
    pub(crate) levels: Vec<Level>,
    pub(crate) operators: Vec<Operator>,
}

/// An operator of a manifest.
type Entry = tensorwright_tuner::Operator;

impl Plan {
    /// Reads the operators of a manifest. `name` is the default package name; `load` reads a source
    /// file of the manifest.
    ///
    /// # Errors
    /// All errors in the manifest or its sources, except compile errors.
    pub fn new(
        manifest: &Manifest,
        name: &str,
        load: &mut dyn FnMut(&str) -> Result<Module, Diagnostics>,
    ) -> Result<Self, Diagnostics> {
        let name = manifest.package.name.as_deref().unwrap_or(name).to_owned();
        let reader = Reader { manifest };
        let mut plan = Self { levels: reader.levels()?, operators: Vec::new(), name };
        reader.check_name(&plan.name)?;
        let mut firsts: Vec<(&Entry, String)> = Vec::new();
        for entry in &manifest.operators {
            let module = load(&entry.file)?;
            let def = module.chosen(entry.def.as_deref(), "with `def` in the manifest")?;
            let is_another =
                |(first, name): &(&Entry, String)| first.file != entry.file || *name != def.name();
            let called = entry.name.as_deref().unwrap_or(def.name());
            match plan.operators.iter().position(|operator| operator.name == called) {
                Some(place) if is_another(&firsts[place]) => {
                    return Err(manifest.problem(
                        entry,
                        format!("`{called}` is the name of another operator already"),
                        "give one of them another name: name = \"...\"",
                    ));
                }
                Some(place) => reader.extend(&mut plan.operators[place], entry, &def)?,
                None => {
                    plan.operators.push(reader.operator(called, entry, &def)?);
                    firsts.push((entry, def.name().to_owned()));
                }
            }
        }
        for (operator, (entry, _)) in plan.operators.iter_mut().zip(&firsts) {
            // A fixed size takes precedence over a range.
            operator.cases.sort_by_key(|case| case.varying.is_some());
            if operator.parameters.len() > MOST_PARAMETERS {
                let message =
                    format!("`{}` has more than {MOST_PARAMETERS} tensors", operator.name);
                return Err(manifest.problem(entry, message, "split it into several definitions"));
            }
        }
        let firsts: Vec<&Entry> = firsts.iter().map(|(entry, _)| *entry).collect();
        reader.check_symbols(&plan, &firsts)?;
        Ok(plan)
    }

    /// The name of the package.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of kernels to compile.
    #[must_use]
    pub fn kernels(&self) -> usize {
        let cases = self.operators.iter().flat_map(|operator| &operator.cases);
        cases.map(|case| case.programs.len()).sum::<usize>() * self.levels.len()
    }
}

/// A manifest reader with located errors.
struct Reader<'a> {
    manifest: &'a Manifest,
}

impl Reader<'_> {
    fn diagnostics(&self, diagnostic: Diagnostic) -> Diagnostics {
        Diagnostics::new(self.manifest.source.clone(), vec![diagnostic])
    }

    fn levels(&self) -> Result<Vec<Level>, Diagnostics> {
        let usual = || Level::USUAL.map(str::to_owned).to_vec();
        let named = self.manifest.package.levels.clone().unwrap_or_else(usual);
        let mut levels = Vec::new();
        for name in &named {
            let level = Level::named(name).ok_or_else(|| {
                let message = format!("packages have no level `{name}`");
                let help = format!("the levels are {}", Level::ALL.join(", "));
                let diagnostic = Diagnostic::without_place(Code::InvalidManifest, message);
                self.diagnostics(diagnostic.help(help))
            })?;
            levels.push(level);
        }
        levels.sort_by_key(|level| level.isa());
        levels.dedup();
        if levels.is_empty() {
            let diagnostic = Diagnostic::without_place(Code::InvalidManifest, "levels is empty");
            return Err(self.diagnostics(diagnostic.help("leave it out, or name some")));
        }
        Ok(levels)
    }

    /// A package name is a crate name, and the prefix of every symbol.
    fn check_name(&self, name: &str) -> Result<(), Diagnostics> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(plain)
            && name.len() <= 64
            && rust_names([name]) == [name];
        let (why, help) = match system::hidden_by_package(name) {
            Some(hidden) => {
                let other = system::other_name(name);
                (
                    format!(": {hidden}"),
                    format!("give it another name: [package] with name = \"{other}\""),
                )
            }
            None if is_name => return Ok(()),
            None => {
                let help = "use small letters, digits and `_`: [package] with name = \"kernels\"";
                (String::new(), help.to_owned())
            }
        };
        let message = format!("`{name}` cannot be the name of a package{why}");
        let diagnostic = Diagnostic::without_place(Code::InvalidManifest, message).help(help);
        Err(self.diagnostics(diagnostic))
    }

    fn check_symbols(&self, plan: &Plan, firsts: &[&Entry]) -> Result<(), Diagnostics> {
        let mut all = names::of_package(&plan.name);
        for (operator, entry) in plan.operators.iter().zip(firsts) {
            let valid = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if operator.name.is_empty() || !operator.name.chars().all(valid) {
                let message = format!("`{}` cannot be the name of a function", operator.name);
                return Err(self.manifest.problem(entry, message, "use letters, digits and `_`"));
            }
            // Rust names differ: they have no capital letters.
            let rust = format!("{}::{}", plan.name, operator.rust_name);
            let structure = format!("{}::{}", plan.name, operator.structure());
            let structure = operator.has_constants().then_some(structure);
            let symbols = names::of_operator(&plan.name, operator);
            for symbol in symbols.into_iter().chain([rust]).chain(structure) {
                let clash = if system::is_function(&symbol) {
                    Some(format!("`{symbol}` is a function of the C library"))
                } else {
                    let is_taken = all.contains(&symbol);
                    is_taken
                        .then(|| format!("two functions of the package would be called `{symbol}`"))
                };
                if let Some(message) = clash {
                    return Err(self.manifest.problem(
                        entry,
                        message,
                        "give it another name: name = \"...\"",
                    ));
                }
                all.push(symbol);
            }
        }
        Ok(())
    }

    /// The operator of its first entry.
    fn operator(&self, name: &str, entry: &Entry, def: &Def<'_>) -> Result<Operator, Diagnostics> {
        let least = entry.sizes.iter().map(|(name, extent)| (name.clone(), least(extent)));
        let program = def.bind(least)?;
        let mut operator = Operator::new(name, def, &program);
        self.extend(&mut operator, entry, def)?;
        Ok(operator)
    }

    /// Adds the sizes of an entry to an operator.
    fn extend(
        &self,
        operator: &mut Operator,
        entry: &Entry,
        def: &Def<'_>,
    ) -> Result<(), Diagnostics> {
        let names: Vec<&str> = operator.sizes.iter().map(|name| name.text.as_str()).collect();
        let same = entry.sizes.len() == names.len()
            && names.iter().all(|name| entry.sizes.contains_key(*name));
        if !same && !operator.cases.is_empty() {
            let message = format!("`{}` has other sizes here than before", operator.name);
            let help = format!("give {}, or another name", names.join(", "));
            return Err(self.manifest.problem(entry, message, &help));
        }
        let mut cases = self.cases(operator, entry, def)?;
        let precision = self.manifest.precision_of(entry);
        cases.iter_mut().for_each(|case| case.precision = precision);
        let is_known = |case: &Case| operator.cases.iter().any(|known| known.sizes == case.sizes);
        if cases.iter().any(is_known) {
            let message = format!("`{}` has these sizes twice", operator.name);
            return Err(self.manifest.problem(entry, message, "leave one of them out"));
        }
        operator.cases.append(&mut cases);
        Ok(())
    }

    fn cases(
        &self,
        operator: &Operator,
        entry: &Entry,
        def: &Def<'_>,
    ) -> Result<Vec<Case>, Diagnostics> {
        let sizes = Sizes::new(&entry.sizes).map_err(|message| {
            self.manifest.problem(entry, message, "write an operator for each value of one of them")
        })?;
        let listed = |sizes: &BTreeMap<String, i64>| -> Vec<i64> {
            let value = |name: &Name| sizes.get(&name.text).copied().unwrap_or_default();
            operator.sizes.iter().map(value).collect()
        };
        let exact = |sizes, program| Case::exact(operator, sizes, program, entry.threads);
        let Some((name, range)) = &sizes.varying else {
            return Ok(vec![exact(listed(&sizes.fixed), def.bind(sizes.fixed.clone())?)]);
        };
        match Ranged::of(def, &sizes.fixed, name, range)? {
            Ranged::Each(list) => {
                let one = |(value, program)| exact(listed(&sizes.at(value)), program);
                Ok(list.into_iter().map(one).collect())
            }
            Ranged::Covered(buckets) => {
                let place = operator.sizes.iter().position(|size| size.text == *name);
                let (place, fixed) = (place.unwrap_or_default(), listed(&sizes.fixed));
                Ok(vec![Case::varying(operator, fixed, place, buckets, entry.threads)])
            }
        }
    }
}

/// The minimum of an extent.
fn least(extent: &Extent) -> i64 {
    match extent {
        Extent::Exact(value) => *value,
        Extent::Range(range) => range.first,
    }
}
