//! Code-generation options.

use inkwell::OptimizationLevel;

use crate::passes;

/// Code-generation options.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CodegenOptions {
    /// The pass pipeline between emission and code generation, in the syntax of `opt -passes=`.
    pub pipeline: String,
    /// The optimization level of the code generator.
    pub level: CodegenLevel,
    /// Whether exported functions have hidden visibility: a shared library that links them does not
    /// export them.
    pub hidden: bool,
}

/// The optimization level of the code generator. O0 is missing because it does not allocate
/// registers.
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
