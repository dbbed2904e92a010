//! [`Package`]: the files of a package.

use std::path::Path;

use tensorwright::{Code, Diagnostic, Diagnostics, Source};

use crate::archive::archive;
use crate::cc::Compiler;
use crate::compile::{Built, Kernels, compile};
use crate::options::BuildOptions;
use crate::plan::Plan;
use crate::text::{crate_files, dispatch, header, readme, rust};

/// The compiler flags of the dispatcher.
const C_FLAGS: [&str; 6] = ["-c", "-std=gnu99", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall"];

/// A package: a library, its header and a crate. Builds are reproducible: the same plan, records
/// and tools give the same bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    name: String,
    files: Vec<(String, Vec<u8>)>,
    module: String,
    library: Vec<u8>,
}

impl Plan {
    /// The C header, which does not depend on compilation.
    #[must_use]
    pub fn header(&self) -> String {
        header::header(self)
    }

    /// Rust source of safe functions over the library.
    #[must_use]
    pub fn rust_module(&self) -> String {
        rust::module(self)
    }

    /// Compiles everything.
    ///
    /// # Errors
    /// Compile errors, and a missing or failing C compiler.
    pub fn build(&self, options: &BuildOptions<'_>) -> Result<Package, Diagnostics> {
        // Reports a missing compiler before any work.
        let cc = Compiler::new(options.cc)?;
        cc.file("probe.c", b"")?;
        cc.run(&["-c", "probe.c"], "probe.o")?;
        let kernels = compile(self, options)?;
        let objects = Objects::new(self, &kernels, &cc)?;
        let library = objects.archive()?;
        let name = &self.name;
        let module = self.rust_module();
        let mut files = vec![
            ("README".to_owned(), readme::readme(self, &kernels).into_bytes()),
            (format!("{name}.h"), self.header().into_bytes()),
            (format!("lib{name}.a"), library.clone()),
            (format!("{name}/Cargo.toml"), crate_files::cargo_toml(name).into_bytes()),
            (format!("{name}/build.rs"), crate_files::build_script(name).into_bytes()),
            (format!("{name}/lib{name}.a"), library.clone()),
            (
                format!("{name}/src/lib.rs"),
                (crate_files::crate_documentation(name) + &module).into_bytes(),
            ),
        ];
        if options.shared {
            files.push((format!("lib{name}.so"), objects.shared(name, &cc)?));
        }
        Ok(Package { name: name.clone(), files, module, library })
    }
}

impl Package {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The files, with their paths in the package directory.
    #[must_use]
    pub fn files(&self) -> &[(String, Vec<u8>)] {
        &self.files
    }

    /// Rust source of safe functions over [`Package::library`].
    #[must_use]
    pub fn rust_module(&self) -> &str {
        &self.module
    }

    /// The static library.
    #[must_use]
    pub fn library(&self) -> &[u8] {
        &self.library
    }

    /// Writes the files to a directory, created if missing.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&self, directory: &Path) -> Result<(), Diagnostics> {
        for (name, content) in &self.files {
            let path = directory.join(name);
            let folder = path.parent().unwrap_or(directory);
            let written =
                std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, content));
            written.map_err(|error| {
                let message = format!("{} cannot be written: {error}", path.display());
                let diagnostic = Diagnostic::without_place(Code::InvalidFile, message)
                    .help("check that the directory may be written to, or name another one");
                Diagnostics::new(Source::new(&path.display().to_string(), ""), vec![diagnostic])
            })?;
        }
        Ok(())
    }
}

/// The named objects of a library.
struct Objects<'k> {
    kernels: Vec<&'k Built>,
    dispatch: (String, Vec<u8>),
}

impl<'k> Objects<'k> {
    fn new(plan: &Plan, kernels: &'k [Vec<Kernels>], cc: &Compiler) -> Result<Self, Diagnostics> {
        let (source, object) = (format!("{}.c", plan.name), format!("{}.o", plan.name));
        cc.file(&source, dispatch::dispatch(plan, kernels).as_bytes())?;
        let compiled = cc.run(&[&C_FLAGS[..], &[&source]].concat(), &object)?;
        let kernels = kernels.iter().flatten().flatten().flatten().collect();
        Ok(Self { kernels, dispatch: (object, compiled) })
    }

    fn archive(&self) -> Result<Vec<u8>, Diagnostics> {
        let kernel = |kernel: &&'k Built| {
            (format!("{}.o", kernel.interface.symbol), kernel.object.as_slice())
        };
        let mut members: Vec<(String, &[u8])> = self.kernels.iter().map(kernel).collect();
        members.insert(0, (self.dispatch.0.clone(), &self.dispatch.1));
        archive(&members).map_err(|error| {
            let message = format!("the static library cannot be made: {error}");
            let diagnostic = Diagnostic::without_place(Code::KernelFailed, message);
            Diagnostics::new(Source::new("archive", ""), vec![diagnostic])
        })
    }

    fn shared(&self, name: &str, cc: &Compiler) -> Result<Vec<u8>, Diagnostics> {
        let mut files = vec![self.dispatch.0.clone()];
        for kernel in &self.kernels {
            let file = format!("{}.o", kernel.interface.symbol);
            cc.file(&file, &kernel.object)?;
            files.push(file);
        }
        let soname = format!("-Wl,-soname,lib{name}.so");
        // Keeps the build independent of the linker; not every linker supports build ids.
        let mut args = vec!["-shared", "-Wl,--build-id=none", &soname];
        args.extend(files.iter().map(String::as_str));
        args.push("-lm");
        cc.run(&args, &format!("lib{name}.so"))
    }
}
