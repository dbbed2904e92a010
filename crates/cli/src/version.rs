//! The output of `--version`, with what a bug report needs.

use std::sync::OnceLock;

use tensorwright::Target;

/// Version, commit if known at build time, LLVM version, and target names.
pub(crate) fn text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let version = env!("CARGO_PKG_VERSION");
        let commit = option_env!("TENSORWRIGHT_COMMIT")
            .map_or_else(String::new, |commit| format!(" ({commit})"));
        let (major, minor, patch) = tensorwright::llvm_version();
        let targets = Target::names().join(", ");
        format!("{version}{commit}\nLLVM {major}.{minor}.{patch}\ntargets: {targets}")
    })
}
