//! [`Nvrtc`]: NVIDIA's run-time compiler.
#![allow(unsafe_code, reason = "calls into a C library")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr;

use tensorwright_machine::GpuApi;

use super::find::Roots;
use super::resources::{self, Resources};
use crate::error::Status;
use crate::library::functions;
use crate::{BuildLog, DeviceError};

type Handle = *mut c_void;

functions! {
    /// The functions of NVRTC 11.2.
    pub(super) struct Functions {
        fn nvrtcVersion(major: *mut c_int, minor: *mut c_int) -> c_int;
        fn nvrtcGetErrorString(code: c_int) -> *const c_char;
        fn nvrtcCreateProgram(program: *mut Handle, source: *const c_char, name: *const c_char, headers: c_int, texts: *const *const c_char, names: *const *const c_char) -> c_int;
        fn nvrtcDestroyProgram(program: *mut Handle) -> c_int;
        fn nvrtcCompileProgram(program: Handle, count: c_int, options: *const *const c_char) -> c_int;
        fn nvrtcGetProgramLogSize(program: Handle, size: *mut usize) -> c_int;
        fn nvrtcGetProgramLog(program: Handle, log: *mut c_char) -> c_int;
        fn nvrtcGetPTXSize(program: Handle, size: *mut usize) -> c_int;
        fn nvrtcGetPTX(program: Handle, ptx: *mut c_char) -> c_int;
        fn nvrtcGetCUBINSize(program: Handle, size: *mut usize) -> c_int;
        fn nvrtcGetCUBIN(program: Handle, cubin: *mut c_char) -> c_int;
    }
}

const SUCCESS: c_int = 0;
const COMPILATION: c_int = 6;

/// Version 12 supports compute capabilities that version 13 dropped.
const NAMES: &[&str] = &["libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc.so"];

const INSTALL: &str = "`pip install nvidia-cuda-nvrtc-cu12`; if it is installed, name the folder `nvidia` of \
                       Python's packages, or that of a toolkit, in the variable TENSORWRIGHT_CUDA";

/// NVIDIA's run-time compiler. It needs no GPU.
///
/// ```
/// use tensorwright_device::{DeviceError, cuda::Nvrtc};
///
/// if let Ok(compiler) = Nvrtc::find() {
///     let text = "extern \"C\" __global__ void twice(float *a) { a[threadIdx.x] *= 2; }";
///     let compiled = compiler.compile(text, "sm_80")?;
///     assert_eq!(compiled.kernels[0].kernel, "twice");
///     assert!(!compiled.kernels[0].spills());
/// }
/// # Ok::<(), DeviceError>(())
/// ```
#[derive(Debug)]
pub struct Nvrtc {
    functions: Functions,
    /// The folder of headers such as `cuda_fp16.h`, if found.
    headers: Vec<PathBuf>,
}

/// The result of compiling a text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compiled {
    /// The target architecture, such as `sm_80`.
    pub architecture: String,
    /// The PTX.
    pub ptx: String,
    /// Machine code.
    pub cubin: Vec<u8>,
    /// The resources of each kernel.
    pub kernels: Vec<Resources>,
}

impl Compiled {
    /// The number of arguments of a kernel; `None` if there is no such kernel.
    #[must_use]
    pub fn arguments(&self, kernel: &str) -> Option<usize> {
        let mut entries = self.ptx.split(".entry ").skip(1);
        let entry =
            entries.find_map(|entry| entry.strip_prefix(kernel)?.trim_start().strip_prefix('('))?;
        Some(entry.split(')').next()?.matches(".param ").count())
    }
}

impl Nvrtc {
    /// The compiler of this machine: in Python's packages, in a toolkit, or in the system's library
    /// path.
    ///
    /// # Errors
    /// It is not installed; the error names the package.
    pub fn find() -> Result<Self, DeviceError> {
        let roots = Roots::of_this_machine();
        let found = roots.library(NAMES);
        let names = NAMES.iter().map(PathBuf::from);
        // Packages have some headers of `mma.h` in a separate folder.
        let mut headers: Vec<PathBuf> =
            ["cuda_fp16.h", "crt/mma.h"].iter().filter_map(|name| roots.headers(name)).collect();
        headers.dedup();
        Self::load(found.into_iter().chain(names), headers)
    }

    /// The compiler in a library file.
    ///
    /// # Errors
    /// The file is not such a library.
    pub fn open(library: &Path) -> Result<Self, DeviceError> {
        Self::load([library.to_owned()], Vec::new())
    }

    fn load(
        names: impl IntoIterator<Item = PathBuf>,
        headers: Vec<PathBuf>,
    ) -> Result<Self, DeviceError> {
        Ok(Self { functions: Functions::load(GpuApi::Cuda, names, INSTALL)?, headers })
    }

    /// Its version: major, minor.
    ///
    /// # Errors
    /// The library does not report it.
    pub fn version(&self) -> Result<(i32, i32), DeviceError> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both numbers live on our stack.
        let code = unsafe { (self.functions.nvrtcVersion)(&raw mut major, &raw mut minor) };
        self.check("nvrtcVersion", code)?;
        Ok((major, minor))
    }

    /// Compiles a text for an architecture such as `sm_80`.
    ///
    /// # Errors
    /// The compiler rejects the text or does not know the architecture.
    pub fn compile(&self, source: &str, architecture: &str) -> Result<Compiled, DeviceError> {
        let text = |text: String| {
            let zero = |_| self.failure("nvrtcCreateProgram", "a text has a zero in it");
            CString::new(text).map_err(zero)
        };
        let mut options = vec![
            text(format!("--gpu-architecture={architecture}"))?,
            text("--std=c++17".to_owned())?,
            text("--ptxas-options=-v".to_owned())?,
        ];
        for headers in &self.headers {
            options.push(text(format!("--include-path={}", headers.display()))?);
        }
        let program = Program::new(self, &text(source.to_owned())?)?;
        let code = program.compile(&options);
        let log = program.log()?;
        if code == COMPILATION {
            let device = format!("NVRTC for {architecture}");
            return Err(DeviceError::Build { device, log: BuildLog::new(log, source) });
        }
        self.check("nvrtcCompileProgram", code)?;
        let Functions { nvrtcGetPTXSize, nvrtcGetPTX, .. } = self.functions;
        let ptx = program.value("nvrtcGetPTX", nvrtcGetPTXSize, nvrtcGetPTX)?;
        let Functions { nvrtcGetCUBINSize, nvrtcGetCUBIN, .. } = self.functions;
        let cubin = program.value("nvrtcGetCUBIN", nvrtcGetCUBINSize, nvrtcGetCUBIN)?;
        Ok(Compiled {
            architecture: architecture.to_owned(),
            ptx: string(&ptx),
            cubin,
            kernels: resources::read(&log),
        })
    }

    fn check(&self, call: &'static str, code: c_int) -> Result<(), DeviceError> {
        if code == SUCCESS {
            return Ok(());
        }
        // SAFETY: the function takes any number and returns a C string that is never freed, or null.
        let name = unsafe {
            let name = (self.functions.nvrtcGetErrorString)(code);
            if name.is_null() { c"" } else { CStr::from_ptr(name) }
        };
        let name = name.to_string_lossy().into_owned();
        Err(DeviceError::Runtime {
            device: "NVRTC".to_owned(),
            status: Status { call, code, name },
        })
    }

    fn failure(&self, call: &'static str, name: &str) -> DeviceError {
        let status = Status { call, code: 0, name: name.to_owned() };
        DeviceError::Runtime { device: "NVRTC".to_owned(), status }
    }
}

/// A program in the compiler.
struct Program<'n>(&'n Nvrtc, Handle);

impl<'n> Program<'n> {
    fn new(nvrtc: &'n Nvrtc, source: &CStr) -> Result<Self, DeviceError> {
        let mut program = ptr::null_mut();
        // SAFETY: both texts are C strings, which the library copies, and there are no headers.
        let code = unsafe {
            let (source, name) = (source.as_ptr(), c"text.cu".as_ptr());
            let create = nvrtc.functions.nvrtcCreateProgram;
            create(&raw mut program, source, name, 0, ptr::null(), ptr::null())
        };
        nvrtc.check("nvrtcCreateProgram", code)?;
        Ok(Self(nvrtc, program))
    }

    fn compile(&self, options: &[CString]) -> c_int {
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let count = c_int::try_from(options.len()).unwrap_or(c_int::MAX);
        // SAFETY: the program exists, and there are as many options, all C strings, as is said.
        unsafe { (self.0.functions.nvrtcCompileProgram)(self.1, count, options.as_ptr()) }
    }

    fn log(&self) -> Result<String, DeviceError> {
        let Functions { nvrtcGetProgramLogSize, nvrtcGetProgramLog, .. } = self.0.functions;
        let log = self.value("nvrtcGetProgramLog", nvrtcGetProgramLogSize, nvrtcGetProgramLog)?;
        Ok(string(&log))
    }

    /// A value of variable size: queries the size, then the value.
    fn value(
        &self,
        call: &'static str,
        size_of: unsafe extern "C" fn(Handle, *mut usize) -> c_int,
        value_of: unsafe extern "C" fn(Handle, *mut c_char) -> c_int,
    ) -> Result<Vec<u8>, DeviceError> {
        let mut size = 0;
        // SAFETY: the program exists, and the size lives on our stack.
        self.0.check(call, unsafe { size_of(self.1, &raw mut size) })?;
        let mut bytes = vec![0; size];
        // SAFETY: there is room for as many bytes as the library has said.
        self.0.check(call, unsafe { value_of(self.1, bytes.as_mut_ptr().cast()) })?;
        Ok(bytes)
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: the program is ours, and is given back once.
        unsafe { (self.0.functions.nvrtcDestroyProgram)(&raw mut self.1) };
    }
}

/// Bytes as text, up to the first zero.
fn string(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_counted() {
        let ptx = ".visible .entry one_more(\n.param .u64 a,\n.param .u64 b\n)\n{ ld.param .u64 }\n\
                   .visible .entry one(\n.param .u64 a\n)\n.maxntid 64\n{ }\n.entry none(){ }";
        let (ptx, architecture) = (ptx.to_owned(), "sm_80".to_owned());
        let compiled = Compiled { architecture, ptx, cubin: Vec::new(), kernels: Vec::new() };
        let found = ["one", "one_more", "none", "on"].map(|name| compiled.arguments(name));
        assert_eq!(found, [Some(1), Some(2), Some(0), None]);
    }

    #[test]
    fn a_missing_compiler_is_an_error_that_names_the_package() {
        let error = Nvrtc::open(Path::new("/nowhere/libnvrtc.so.12")).unwrap_err();
        assert!(error.to_string().contains("there is no CUDA"), "{error}");
        assert!(error.help().contains("pip install nvidia-cuda-nvrtc-cu12"), "{}", error.help());
        let error = Nvrtc::open(Path::new("libc.so.6")).unwrap_err();
        assert!(error.to_string().contains("no function `nvrtcVersion`"), "{error}");
    }
}
