//! The registry of diagnostic codes, one line each.
//!
//! A code has at least one example under `tests/diagnostics/`, and a test fails when one has none.

use std::fmt;

use serde::{Serialize, Serializer};

macro_rules! codes {
    ($($id:ident $name:ident $title:literal;)*) => {
        /// The subject of a diagnostic.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $(#[doc = concat!(stringify!($id), ": ", $title, ".")] $name,)*
        }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Code] = &[$(Code::$name),*];

            /// The stable identifier, such as `E0605`.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self { $(Code::$name => stringify!($id)),* }
            }

            /// A short description of the code.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Code::$name => $title),* }
            }
        }
    };
}

codes! {
    // Text and syntax.
    E0101 UnexpectedCharacter "a character that the language does not use";
    E0102 InvalidNumber "a malformed or too large number";
    E0103 UnexpectedToken "an unexpected token";
    E0104 UnclosedDelimiter "a parenthesis or brace that is never closed";
    E0105 NestingTooDeep "an expression that nests too deeply";
    E0106 NotUtf8 "a text that is not UTF-8";
    E0107 SourceTooLarge "a text that is too large";
    E0108 ReservedName "a reserved name";
    E0109 TargetNeedsParentheses "a left side without subscripts";
    E0110 AssignmentInExpression "`=` where `==` is meant";
    E0111 TargetSubscript "a subscript on the left that is not an index variable";
    E0112 UnknownType "an element type that does not exist";
    // Names.
    E0201 DuplicateDef "two definitions of one name";
    E0202 DuplicateParameter "two parameters of one name";
    E0203 UnknownName "a name that is not known here";
    E0204 UnknownFunction "a function or tensor that is not known";
    E0205 WrongRank "the wrong number of subscripts";
    E0206 WrongArgumentCount "the wrong number of arguments for a function";
    E0207 NotATensor "subscripts on something that has no dimensions";
    E0208 TensorWithoutSubscripts "a tensor without subscripts";
    E0209 NoSuchDimension "a dimension that the tensor does not have";
    E0210 OutputNeverAssigned "a result that no statement computes";
    E0211 UsedBeforeDefined "a tensor that is read before it is computed";
    E0212 AssignsInput "a statement that writes to an input";
    E0213 DuplicateOutput "a result that is listed twice";
    E0214 NotAnIndex "a left-side index variable whose name is taken";
    E0215 DuplicateConstraint "two ranges for one index variable";
    E0216 UnusedConstraint "a range for a variable that the statement does not use";
    E0217 TooManyIndices "more index variables than a statement may have";
    // Types.
    E0301 TypeMismatch "operands of different types";
    E0302 NotBoolean "a condition that is not a `bool`";
    E0303 NotNumeric "arithmetic on `bool`";
    E0304 LiteralOutOfRange "a literal that its type cannot hold";
    E0305 FloatForInteger "a fraction where an integer is needed";
    E0306 IntegerDivisionAsFloat "a division of integers used as a fraction";
    E0307 NeedsFloat "a function of floating-point numbers applied to integers";
    E0308 SubscriptNotInteger "a subscript that is not an integer";
    E0309 TargetTypeMismatch "statements that give one tensor different types";
    E0310 DivisionByZero "a division by the literal zero";
    E0311 ReductionType "a reduction that the type does not support";
    E0312 NeedsInteger "an integer operation applied to fractions";
    // Statements.
    E0401 MissingReduction "an index variable on the right only, and no reduction";
    E0402 RepeatedIndex "an index variable twice on the left";
    E0403 NotCausal "an in-place update that reads elements it may have overwritten";
    E0404 MixedReductions "different reductions into one tensor";
    E0405 UninitializedReduction "a reduction onto values that do not exist yet";
    E0406 SubscriptReadsTarget "a subscript that depends on the tensor being written";
    E0407 ConstraintNotConstant "a range that is not constant";
    E0408 RankChanged "a tensor written with different numbers of subscripts";
    E0409 ScanRead "a recurrence whose self-read is not a constant step";
    E0410 ScanVariable "a `scan` variable that is not on the left side";
    E0411 ScanWithoutRead "a `scan` of a tensor that the statement does not read";
    E0412 ScanReduces "a recurrence that reduces values as well";
    E0413 ScanStart "a start of a recurrence that depends on the recurrence";
    E0414 ScanOfPart "a recurrence over a part of a tensor";
    E0415 ScatterVariable "a `scatter` variable that is not on the left side";
    E0416 ScatterAssigns "a `scatter` without a reduction";
    E0417 ScatterPosition "a `scatter` position that depends on its own variable";
    E0418 ScatterValue "a value of a `scatter` that depends on its position";
    E0419 ScatterOfPart "a `scatter` over a part of a dimension";
    E0420 PositionVariable "an `argmax` over no or several index variables";
    // Calls.
    E0501 UnknownDef "a call of a `def` that does not exist";
    E0502 RecursiveCall "a definition that calls itself";
    E0503 CallArgumentCount "a call with the wrong number of arguments";
    E0504 CallResultCount "a call with the wrong number of results";
    E0505 CallArgumentType "an argument that does not fit its parameter";
    E0506 CallTargetAssigned "a call that would overwrite a tensor";
    E0507 ProgramTooLong "calls that expand to too many statements";
    // Ranges.
    E0601 AmbiguousRange "ranges that can be chosen in more than one way";
    E0602 UnderConstrained "an index variable whose range nothing determines";
    E0603 GuardedRange "an index variable that only guarded reads use";
    E0604 EmptyRange "an empty range";
    E0605 OutOfBounds "a read outside of a tensor";
    E0606 NegativeRange "a range that starts below zero";
    E0607 PartlyDefined "a tensor with elements that are never computed";
    E0608 SizesDisagree "sizes that must be equal but are not";
    E0609 NonPositiveDivisor "a divisor in a subscript that is not positive";
    E0610 ExtentsDisagree "subscripts that limit one index variable to different extents";
    // Binding.
    E0701 MissingSize "a size without a value";
    E0702 UnknownSize "a value for a size that does not exist";
    E0703 InvalidSize "a size that is not positive, or is given twice";
    E0704 MissingScalar "a scalar that shapes the program and has no value";
    E0705 TooLarge "a tensor, a loop nest or index arithmetic that is too large";
    E0706 NoSuchDef "a `def` that the text does not have";
    // Running.
    E0801 MissingInput "an input that was not given";
    E0802 UnknownInput "a value for an input that does not exist";
    E0803 InputShape "an input of the wrong shape";
    E0804 InputType "an input of the wrong type";
    E0805 IndexOutOfBounds "an index from data that is out of bounds";
    E0806 InvalidFile "a file that cannot be used";
    // Schedules and kernels.
    E1001 ScheduleSyntax "an invalid line of a schedule";
    E1002 ScheduleRefused "a step of a schedule that would change the result or does not fit";
    E1003 ScheduleNotLowered "a schedule that asks for too much code";
    E1004 UnknownTarget "a target that does not exist, or that this machine cannot run";
    E1005 KernelFailed "a kernel that cannot be compiled or loaded";
    E1006 OutputFileNeeded "a result that is not text and needs a file";
    E1007 ToolFailed "a missing or failing system tool";
    E1008 WrongResult "a kernel whose results differ from the reference";
    E1009 TuningFailed "a tuning run or its records that cannot be used";
    E1010 InvalidManifest "a manifest that cannot be used";
    E1011 VaryingSize "a size that must be fixed but varies";
    E1012 InvalidConfiguration "a configuration file or variable that cannot be used";
    E1013 DeadlineExceeded "a kernel that does not end in time";
    // Gradients.
    E1101 NotDifferentiable "a construct without a gradient";
    E1102 NoGradient "a gradient with respect to something that has none";
    // Warnings.
    W0901 UnusedInput "an input that no statement reads";
    W0902 UnusedResult "a tensor that is computed and never used";
    W0903 ImplicitUpdate "a result that the caller must supply first";
}

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The program is valid, but may not be what was meant.
    Warning,
    /// The program is invalid.
    Error,
}

impl Code {
    /// Whether it is an error or a warning.
    #[must_use]
    pub fn severity(self) -> Severity {
        if self.id().starts_with('W') { Severity::Warning } else { Severity::Error }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}
