#![allow(unsafe_code, reason = "ORC is reached through LLVM's C API and calls code we generated")]
//! The JIT: links objects into this process and unlinks them.
//!
//! A [`Jit`] is one ORC session. [`Jit::load`] links an object file into its own namespace (a
//! `JITDylib`), so objects may define the same names. Undefined symbols, such as `memcpy` or
//! `expf`, come from the process. Dropping the [`LoadedCode`] frees its memory. A search that tries
//! a million candidates in one process depends on that.
//!
//! ORC cannot delete a namespace through the C API, so empty ones are reused: a session has as many
//! as were ever loaded at the same time.
//!
//! # Threads
//!
//! [`Jit`] is a handle that may be cloned and used from any thread: ORC's session and the list of
//! empty namespaces have locks. [`LoadedCode`] may be shared as well. Linking happens in the thread
//! that first requests a symbol.

use std::ffi::{CStr, CString, c_void};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use inkwell::llvm_sys::core::LLVMCreateMemoryBufferWithMemoryRangeCopy;
use inkwell::llvm_sys::error::{LLVMDisposeErrorMessage, LLVMErrorRef, LLVMGetErrorMessage};
use inkwell::llvm_sys::orc2::lljit::*;
use inkwell::llvm_sys::orc2::*;
use inkwell::module::Module;
use inkwell::targets::TargetMachine;

use crate::error::{Error, Result};
use crate::object;
use crate::processor::{self, Processor};

/// A session that links objects into this process.
#[derive(Debug, Clone)]
pub struct Jit {
    session: Arc<Session>,
}

impl Jit {
    /// A session for code of a target.
    ///
    /// # Errors
    ///
    /// If this machine cannot run code of the target, or LLVM has no JIT for it.
    pub fn new(target: &Processor) -> Result<Self> {
        target.cpu().check_runs_here()?;
        processor::initialize();
        Ok(Self { session: Arc::new(Session::new()?) })
    }

    /// Links an object file. References are resolved when a symbol is first requested.
    ///
    /// # Errors
    ///
    /// The bytes are not an object file of this machine.
    pub fn load(&self, object: &[u8]) -> Result<LoadedCode> {
        check_machine(object)?;
        let dylib = self.session.take_dylib()?;
        // From here on, dropping `code` returns the namespace after a failure.
        let code = LoadedCode { session: Arc::clone(&self.session), dylib };
        self.session.add_object(dylib, object)?;
        Ok(code)
    }

    /// Compiles a module and links the object, as for a kernel that is shipped.
    ///
    /// # Errors
    ///
    /// The module is not well-formed or does not compile or link.
    pub fn load_module(&self, module: &Module<'_>, machine: &TargetMachine) -> Result<LoadedCode> {
        self.load(&object::object(module, machine)?)
    }
}

/// An object that is linked into this process until it is dropped.
#[derive(Debug)]
pub struct LoadedCode {
    session: Arc<Session>,
    dylib: Dylib,
}

impl LoadedCode {
    /// The address of a symbol, valid while `self` lives. A name that the object does not define
    /// is looked up in the process.
    ///
    /// # Errors
    ///
    /// There is no such symbol, or the object has an undefined reference.
    pub fn symbol(&self, name: &str) -> Result<*const c_void> {
        self.session.lookup(self.dylib, name)
    }

    /// A symbol as a function pointer.
    ///
    /// # Errors
    ///
    /// There is no such symbol, or `F` does not have the size of a function pointer.
    ///
    /// # Safety
    ///
    /// `F` must be the type of an `extern "C"` function pointer that agrees with the definition
    /// of the symbol, and must not be called after `self` is dropped.
    pub unsafe fn function<F: Copy>(&self, name: &str) -> Result<F> {
        if mem::size_of::<F>() != mem::size_of::<*const c_void>() {
            return Err(Error::Link(format!("the type of `{name}` is not a function pointer")));
        }
        let address = self.symbol(name)?;
        // SAFETY: the sizes agree, the address is not null, and the caller vouches for the type.
        Ok(unsafe { mem::transmute_copy::<*const c_void, F>(&address) })
    }
}

impl Drop for LoadedCode {
    fn drop(&mut self) {
        self.session.empty(self.dylib);
    }
}

/// A namespace of a session.
#[derive(Debug, Clone, Copy)]
struct Dylib(LLVMOrcJITDylibRef);

// SAFETY: the pointer is only used in calls on its session, which locks.
unsafe impl Send for Dylib {}
// SAFETY: as above.
unsafe impl Sync for Dylib {}

/// The messages that ORC reports in addition to returned errors.
type Reports = Mutex<Vec<String>>;

#[derive(Debug)]
struct Session {
    lljit: LLVMOrcLLJITRef,
    /// Namespaces without content.
    empty: Mutex<Vec<Dylib>>,
    created: AtomicUsize,
    /// Boxed because ORC keeps its address.
    reports: Box<Reports>,
}

// SAFETY: an LLJIT and its execution session may be used from every thread; they lock.
unsafe impl Send for Session {}
// SAFETY: as above; our own state is behind a mutex and an atomic.
unsafe impl Sync for Session {}

impl Session {
    fn new() -> Result<Self> {
        let mut lljit = ptr::null_mut();
        // SAFETY: `lljit` outlives the call; a null builder asks for the defaults.
        check(unsafe { LLVMOrcCreateLLJIT(&raw mut lljit, ptr::null_mut()) })?;
        let session = Session {
            lljit,
            empty: Mutex::default(),
            created: AtomicUsize::new(0),
            reports: Box::default(),
        };
        let reports = (&raw const *session.reports).cast_mut().cast();
        // SAFETY: the reports are boxed, and dropped after the session that points to them.
        unsafe { LLVMOrcExecutionSessionSetErrorReporter(session.execution(), report, reports) };
        Ok(session)
    }

    fn execution(&self) -> LLVMOrcExecutionSessionRef {
        // SAFETY: `lljit` is alive until `self` is dropped.
        unsafe { LLVMOrcLLJITGetExecutionSession(self.lljit) }
    }

    /// An empty namespace.
    fn take_dylib(&self) -> Result<Dylib> {
        let reused = lock(&self.empty).pop();
        reused.map_or_else(|| self.create_dylib(), Ok)
    }

    /// A new namespace that falls back to the symbols of the process.
    fn create_dylib(&self) -> Result<Dylib> {
        let number = self.created.fetch_add(1, Ordering::Relaxed);
        let name = c_string(&format!("kernel{number}"))?;
        let mut process = ptr::null_mut();
        // SAFETY: the session is alive, the name is a C string that ORC copies, and the generator
        // is given to exactly one namespace, which owns it from then on.
        unsafe {
            let prefix = LLVMOrcLLJITGetGlobalPrefix(self.lljit);
            check(LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
                &raw mut process,
                prefix,
                None,
                ptr::null_mut(),
            ))?;
            let dylib = LLVMOrcExecutionSessionCreateBareJITDylib(self.execution(), name.as_ptr());
            LLVMOrcJITDylibAddGenerator(dylib, process);
            Ok(Dylib(dylib))
        }
    }

    fn add_object(&self, dylib: Dylib, object: &[u8]) -> Result<()> {
        // SAFETY: LLVM copies the bytes; the buffer then belongs to ORC, whatever is returned.
        let error = unsafe {
            let buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(
                object.as_ptr().cast(),
                object.len(),
                c"kernel.o".as_ptr(),
            );
            LLVMOrcLLJITAddObjectFile(self.lljit, dylib.0, buffer)
        };
        check(error)
    }

    fn lookup(&self, dylib: Dylib, name: &str) -> Result<*const c_void> {
        let name = c_string(name)?;
        let (sender, receiver) = mpsc::channel::<Result<*const c_void>>();
        let sender = Box::into_raw(Box::new(sender));
        let mut order = LLVMOrcCJITDylibSearchOrderElement {
            JD: dylib.0,
            JDLookupFlags:
                LLVMOrcJITDylibLookupFlags::LLVMOrcJITDylibLookupFlagsMatchExportedSymbolsOnly,
        };
        // SAFETY: the arrays have one element each and are read during the call. ORC takes over
        // our reference to the interned name, and calls `found` once, with our sender: during the
        // call or, if another thread is linking the object, when that thread is done.
        unsafe {
            let mut set = LLVMOrcCLookupSetElement {
                Name: LLVMOrcLLJITMangleAndIntern(self.lljit, name.as_ptr()),
                LookupFlags: LLVMOrcSymbolLookupFlags::LLVMOrcSymbolLookupFlagsRequiredSymbol,
            };
            LLVMOrcExecutionSessionLookup(
                self.execution(),
                LLVMOrcLookupKind::LLVMOrcLookupKindStatic,
                &raw mut order,
                1,
                &raw mut set,
                1,
                found,
                sender.cast(),
            );
        }
        let result = receiver.recv().unwrap_or_else(|_| Err(Error::Link("no answer".into())));
        // The reports name the missing symbols; the error only says that there are some. If lookups
        // fail in several threads at once, a message may be attached to the wrong error.
        let reports = mem::take(&mut *lock(&self.reports));
        result.map_err(|error| match (error, reports.is_empty()) {
            (Error::Link(_), false) => Error::Link(reports.join("; ")),
            (error, _) => error,
        })
    }

    /// Frees the code in a namespace and keeps the namespace for reuse.
    fn empty(&self, dylib: Dylib) {
        // SAFETY: the namespace belongs to this session. Pointers into its code are not used any
        // more: that is the contract of `LoadedCode`.
        if check(unsafe { LLVMOrcJITDylibClear(dylib.0) }).is_ok() {
            lock(&self.empty).push(dylib);
        }
        // SAFETY: only names that nothing refers to are forgotten.
        unsafe {
            let pool = LLVMOrcExecutionSessionGetSymbolStringPool(self.execution());
            LLVMOrcSymbolStringPoolClearDeadEntries(pool);
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: there is no other reference to the session. An error cannot be reported.
        let _ = check(unsafe { LLVMOrcDisposeLLJIT(self.lljit) });
    }
}

/// The linker would accept code of any known CPU.
fn check_machine(object: &[u8]) -> Result<()> {
    /// `e_machine` of this machine in the header of an ELF file.
    const MACHINE: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    let machine = object.get(18..20).map(|bytes| bytes == MACHINE.to_le_bytes());
    match (object.starts_with(b"\x7fELF"), machine) {
        (true, Some(true)) => Ok(()),
        (true, _) => Err(Error::Link("the object is for another processor".into())),
        (false, _) => Err(Error::Link("not an ELF object".into())),
    }
}

/// Receives the result of a lookup of one symbol.
extern "C" fn found(
    error: LLVMErrorRef,
    pairs: LLVMOrcCSymbolMapPairs,
    count: usize,
    sender: *mut c_void,
) {
    // SAFETY: `lookup` gave us the box, and we are called once.
    let sender = unsafe { Box::from_raw(sender.cast::<Sender<Result<*const c_void>>>()) };
    let result = check(error).and_then(|()| {
        if count == 0 {
            return Err(Error::Link("no such symbol".into()));
        }
        // SAFETY: there are `count` pairs.
        let address = unsafe { (*pairs).Sym.Address };
        Ok(ptr::with_exposed_provenance(address as usize))
    });
    // The receiver waits for this call, so it exists.
    let _ = sender.send(result);
}

/// Collects messages that ORC would print.
extern "C" fn report(reports: *mut c_void, error: LLVMErrorRef) {
    // SAFETY: `reports` is the box of the session that calls us.
    let reports = unsafe { &*reports.cast::<Reports>() };
    if let Err(Error::Link(message)) = check(error) {
        lock(reports).push(message);
    }
}

/// Takes ownership of an LLVM error.
fn check(error: LLVMErrorRef) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the error is ours and used once; the message is a C string that we dispose of.
    let message = unsafe {
        let text = LLVMGetErrorMessage(error);
        let message = CStr::from_ptr(text).to_string_lossy().into_owned();
        LLVMDisposeErrorMessage(text);
        message
    };
    Err(Error::Link(message))
}

fn c_string(name: &str) -> Result<CString> {
    CString::new(name).map_err(|_| Error::Link(format!("`{name:?}` holds a NUL character")))
}

/// No code under these locks can panic half-way.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
