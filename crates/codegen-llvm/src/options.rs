//! How code is generated: what whoever compiles may choose.

use inkwell::OptimizationLevel;

use crate::passes;

/// How code is generated.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CodegenOptions {
    /// The passes between emission and code generation, as `opt -passes=` takes them.
    pub pipeline: String,
    /// How hard the code generator tries.
    pub level: CodegenLevel,
    /// Whether the exported functions are for the library alone that they are linked into: a shared
    /// library does not export them.
    pub hidden: bool,
}

/// How hard the code generator tries. There is no level 0: it does not allocate registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CodegenLevel {
    /// O1.
    O1,
    /// O2.
    #[default]
    O2,
    /// O3.
    O3,
}

impl Default for CodegenOptions {
    fn default() -> Self {
        Self {
            pipeline: passes::DEFAULT_PIPELINE.into(),
            level: CodegenLevel::default(),
            hidden: false,
        }
    }
}

impl From<CodegenLevel> for OptimizationLevel {
    fn from(level: CodegenLevel) -> Self {
        match level {
            CodegenLevel::O1 => OptimizationLevel::Less,
            CodegenLevel::O2 => OptimizationLevel::Default,
            CodegenLevel::O3 => OptimizationLevel::Aggressive,
        }
    }
}
