//! The builder: compiles schedules to objects or device programs.

use tensorwright::{
    CodegenOptions, Diagnostics, LoweredProgram, Program, Schedule, Target, target,
};
use tensorwright_codegen_llvm as codegen;
use tensorwright_schedule::ScheduleError;

use super::{Connection, Served, expected};
use crate::protocol::{BuilderReply, BuilderRequest, Description, GREETING, Setup};
use crate::system::{self, Resource};

/// The memory that LLVM may use, however little a candidate may.
const LEAST_MEMORY: u64 = 2 << 30;

struct Builder {
    program: Program,
    target: Target,
    threads: usize,
}

pub(super) fn serve(mut connection: Connection) -> Served {
    let Some((setup, program)) = connection.setup()? else { return Ok(()) };
    let target = target(&setup.target).map_err(|error| format!("{error}; {}", error.help()))?;
    let builder = Builder { program, target, threads: setup.threads };
    connection.reply(GREETING, &BuilderReply::Ready, &[])?;
    let mut is_limited = false;
    while let Some(frame) = connection.next()? {
        let request = frame.message().map_err(|error| format!("cannot read: {error}"))?;
        let (reply, object) = match request {
            BuilderRequest::Expect => (builder.expect(&setup, &connection), Vec::new()),
            BuilderRequest::Build { schedule, lower_only } => {
                // Expected results of large programs may need more memory than a candidate gets.
                if !std::mem::replace(&mut is_limited, true) {
                    limit(&setup)?;
                }
                builder.build(&schedule, lower_only)
            }
        };
        connection.reply(frame.number, &reply, &object)?;
    }
    Ok(())
}

fn limit(setup: &Setup) -> Served {
    let limit = || {
        let memory = setup.memory_bytes.max(LEAST_MEMORY);
        system::limit(
            Resource::AddressSpace,
            system::AddressSpace::open()?.bytes()?.saturating_add(memory),
        )?;
        system::limit(Resource::Core, 0)?;
        system::limit(Resource::FileSize, 0)
    };
    limit().map_err(|error| format!("cannot limit the process: {error}"))
}

impl Builder {
    fn expect(&self, setup: &Setup, connection: &Connection) -> BuilderReply {
        match expected::fill(&self.program, setup.seed, self.threads, &connection.shared) {
            Ok(()) => BuilderReply::Expected,
            Err(reason) => BuilderReply::Failed(reason),
        }
    }

    fn build(&self, text: &str, lower_only: bool) -> (BuilderReply, Vec<u8>) {
        let lowered = match self.lower(text) {
            Ok(lowered) => lowered,
            Err(refusal) => return (refusal, Vec::new()),
        };
        let (interface, error_growth) = (lowered.interface().clone(), lowered.error_growth());
        let built = BuilderReply::Built(Description { interface, error_growth });
        if lower_only {
            return (built, Vec::new());
        }
        match code(&lowered) {
            Ok(code) => (built, code),
            Err(refusal) => (refusal, Vec::new()),
        }
    }

    fn lower(&self, text: &str) -> Result<LoweredProgram, BuilderReply> {
        let schedule = Schedule::parse(text).map_err(|error| refused(&error))?;
        let builder = self.program.compile().target(self.target.clone()).threads(self.threads);
        builder.schedule(schedule).try_lower().map_err(|failed| match &failed.refusal {
            Some(error) => refused(error),
            None => illegal("lower", messages(&failed.diagnostics)),
        })
    }
}

/// The code of a lowered program: an object for a processor, a device program otherwise.
fn code(lowered: &LoweredProgram) -> Result<Vec<u8>, BuilderReply> {
    let failed = |error: &dyn std::fmt::Display| BuilderReply::Failed(error.to_string());
    let Some(processor) = lowered.processor() else {
        let program = lowered.kernels();
        let program = program.map_err(|diagnostics| failed(&messages(&diagnostics)))?;
        return serde_json::to_vec(&program).map_err(|error| failed(&error));
    };
    let compiled = codegen::compile(lowered.nest(), processor, &CodegenOptions::default());
    compiled.map(|compiled| compiled.object).map_err(|error| match error {
        // Only the emitter counts exactly; the limits on schedules are estimates.
        codegen::error::Error::TooLarge(reason) => illegal("operations", reason),
        error => failed(&error),
    })
}

fn illegal(rule: &str, reason: String) -> BuilderReply {
    BuilderReply::Illegal { rule: rule.to_owned(), reason }
}

/// The reply for a schedule that cannot be parsed or that a primitive refuses; the rule is the
/// primitive's name.
fn refused(error: &ScheduleError) -> BuilderReply {
    illegal(error.keyword().unwrap_or("syntax"), error.reason().to_owned())
}

fn messages(diagnostics: &Diagnostics) -> String {
    let messages: Vec<&str> = diagnostics.list().iter().map(|one| one.message.as_str()).collect();
    messages.join("; ")
}
