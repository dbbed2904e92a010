//! Loads libraries at run time.
#![allow(unsafe_code, reason = "loads libraries and finds their functions")]

use std::ffi::{CStr, OsStr};

/// A library that is never unloaded: drivers start threads and keep state that does not survive
/// unloading.
#[derive(Debug)]
pub(crate) struct Library(libloading::Library);

impl Library {
    /// Opens the first loadable library, or returns the system's message for each. A name without
    /// `/` is searched in the system's library path.
    pub(crate) fn open<N: AsRef<OsStr>>(
        names: impl IntoIterator<Item = N>,
    ) -> Result<&'static Self, Vec<String>> {
        let mut tried = Vec::new();
        for name in names {
            // SAFETY: loading runs the library's own initialisation. It is the runtime of a vendor that
            // the user has installed, or one that the user has named.
            match unsafe { libloading::Library::new(name.as_ref()) } {
                Ok(library) => return Ok(Box::leak(Box::new(Self(library)))),
                Err(error) => tried.push(error.to_string()),
            }
        }
        Err(tried)
    }

    /// A function of the library, if it exists.
    ///
    /// # Safety
    /// `F` must be a type of function pointers that the function can be called as.
    pub(crate) unsafe fn function<F: Copy>(&'static self, name: &CStr) -> Option<F> {
        // SAFETY: the caller vouches for the type, and the library is never unloaded.
        unsafe { self.0.get::<F>(name.to_bytes_with_nul()) }.ok().map(|symbol| *symbol)
    }
}

/// Declares a table of library functions, and how to load it.
///
/// ```text
/// functions! {
///     /// The functions of a library.
///     pub(super) struct Functions {
///         fn puts(text: *const c_char) -> c_int;
///     }
/// }
/// ```
macro_rules! functions {
    (
        $(#[$doc:meta])*
        pub(super) struct $table:ident {
            $(fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty;)*
        }
    ) => {
        $(#[$doc])*
        #[allow(non_snake_case, reason = "names of the library")]
        #[derive(Debug)]
        pub(super) struct $table {
            $(pub(super) $name: unsafe extern "C" fn($($argument: $type),*) -> $result,)*
        }

        impl $table {
            /// Loads all functions from the first loadable library of an API.
            pub(super) fn load<N: AsRef<std::ffi::OsStr>>(
                api: tensorwright_machine::GpuApi,
                names: impl IntoIterator<Item = N>,
                install: &'static str,
            ) -> Result<Self, $crate::DeviceError> {
                let library = $crate::library::Library::open(names)
                    .map_err(|tried| $crate::DeviceError::NoRuntime { api, tried, install })?;
                Self::find(library).map_err(|missing| {
                    $crate::DeviceError::OldRuntime { api, missing: missing.to_owned() }
                })
            }

            /// Loads all functions, or returns the name of a missing one.
            fn find(
                library: &'static $crate::library::Library,
            ) -> Result<Self, &'static str> {
                Ok(Self {
                    $($name: {
                        let name = concat!(stringify!($name), "\0");
                        let name = std::ffi::CStr::from_bytes_with_nul(name.as_bytes());
                        // SAFETY: the type is the function's in the header of the library.
                        name.ok().and_then(|name| unsafe { library.function(name) })
                            .ok_or(stringify!($name))?
                    },)*
                })
            }
        }
    };
}

pub(crate) use functions;

#[cfg(test)]
mod tests {
    use std::ffi::{c_char, c_int};

    use tensorwright_machine::GpuApi;

    use super::*;
    use crate::DeviceError;

    functions! {
        /// Functions of the C library.
        pub(super) struct Strings {
            fn strlen(text: *const c_char) -> usize;
            fn toupper(character: c_int) -> c_int;
        }
    }

    functions! {
        /// Functions of no library.
        #[expect(dead_code, reason = "they cannot all be found")]
        pub(super) struct Nothing {
            fn toupper(character: c_int) -> c_int;
            fn no_such_function_anywhere() -> c_int;
        }
    }

    #[test]
    fn functions_are_found_or_named() {
        let (api, names) = (GpuApi::OpenCl, ["libno-such-library.so", "libc.so.6"]);
        let strings = Strings::load(api, names, "").unwrap();
        // SAFETY: a C string, and a number.
        let (length, upper) =
            unsafe { ((strings.strlen)(c"four".as_ptr()), (strings.toupper)(97)) };
        assert_eq!((length, upper), (4, 65));
        let missing = "no_such_function_anywhere".to_owned();
        let old = DeviceError::OldRuntime { api, missing };
        assert_eq!(Nothing::load(api, names, "").unwrap_err(), old);
    }

    #[test]
    fn what_is_not_there_is_an_error_that_names_it() {
        let tried = Library::open(["libno-such-library.so", "/nowhere/at/all.so"]).unwrap_err();
        assert_eq!(tried.len(), 2);
        assert!(tried[0].contains("libno-such-library.so"), "{tried:?}");
        assert!(Library::open::<&str>([]).is_err());
    }
}
