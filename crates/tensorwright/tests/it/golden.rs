//! Example kernels and pipelines against NumPy's results.
//!
//! The reference interpreter must match NumPy; kernels with the default schedule or none, for this
//! processor or a device, must match the reference.
//!
//! `examples/golden/make.py` writes the inputs, the expected outputs, `cases.json` (of `kernels`) and
//! `pipelines.json` (of `pipelines`).
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tensorwright::{Buffer, DType, Diagnostics, Inputs, Module, Program, Schedule, Target, npy};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

#[derive(Debug)]
struct Case {
    folder: &'static str,
    file: String,
    def: String,
    sizes: BTreeMap<String, i64>,
    inputs: BTreeMap<String, String>,
    outputs: BTreeMap<String, String>,
    dtypes: BTreeMap<String, DType>,
}

/// The kernels.
fn cases() -> Vec<Case> {
    cases_of("kernels", "golden/cases.json")
}

/// The applications.
fn pipelines() -> Vec<Case> {
    cases_of("pipelines", "golden/pipelines.json")
}

fn cases_of(folder: &'static str, list: &str) -> Vec<Case> {
    let text = std::fs::read_to_string(examples().join(list)).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let strings = |value: &serde_json::Value| -> BTreeMap<String, String> {
        serde_json::from_value(value.clone()).unwrap_or_default()
    };
    let case = |value: &serde_json::Value| Case {
        folder,
        file: value["file"].as_str().unwrap().to_owned(),
        def: value["def"].as_str().unwrap().to_owned(),
        sizes: serde_json::from_value(value["sizes"].clone()).unwrap(),
        inputs: strings(&value["inputs"]),
        outputs: strings(&value["outputs"]),
        dtypes: strings(&value["dtypes"])
            .into_iter()
            .map(|(name, dtype)| (name, DType::from_name(&dtype).unwrap()))
            .collect(),
    };
    json.as_array().unwrap().iter().map(case).collect()
}

impl Case {
    fn buffer(&self, name: &str, file: &str) -> Buffer {
        let bytes = std::fs::read(examples().join("golden").join(file)).unwrap();
        let buffer = npy::decode(&bytes).unwrap();
        self.dtypes.get(name).map_or(buffer.clone(), |dtype| buffer.convert(*dtype).unwrap())
    }

    /// Compares the reference with another engine.
    fn run(&self, other: &Other) -> Result<(), String> {
        let path = examples().join(self.folder).join(&self.file);
        let module = Module::parse_bytes(&self.file, &std::fs::read(path).unwrap())
            .map_err(|error| error.to_string())?;
        if !module.warnings().is_empty() {
            return Err(module.warnings().to_string());
        }
        let program = module
            .def(&self.def)
            .and_then(|def| def.bind(self.sizes.clone()))
            .map_err(|error| error.to_string())?;
        let inputs: Inputs = self
            .inputs
            .iter()
            .map(|(name, file)| (name.clone(), self.buffer(name, file)))
            .collect();
        let run = program.run_reference(&inputs).map_err(|error| error.to_string())?;
        let others = self.others(other, &program, &inputs).map_err(|error| error.to_string())?;
        let names: BTreeSet<&str> = run.outputs.iter().map(|o| o.name.as_str()).collect();
        let expected: BTreeSet<&str> = others.keys().map(String::as_str).collect();
        if names != expected {
            return Err(format!("the outputs are {names:?}, and there are {expected:?}"));
        }
        run.outputs.iter().try_for_each(|output| match output.mismatch(&others[&output.name]) {
            Some(mismatch) => Err(format!("output {}: {mismatch}", output.name)),
            None => Ok(()),
        })
    }

    /// The engines to compare with.
    fn others(
        &self,
        other: &Other,
        program: &Program,
        inputs: &Inputs,
    ) -> Result<BTreeMap<String, Buffer>, Diagnostics> {
        let kernel = match other {
            Other::NumPy => {
                let golden =
                    |(name, file): (&String, &String)| (name.clone(), self.buffer(name, file));
                return Ok(self.outputs.iter().map(golden).collect());
            }
            Other::DefaultSchedule => program.compile().build()?,
            Other::OnDevice(target) => program.compile().target(target.clone()).build()?,
            Other::NoSchedule => program.compile().schedule(Schedule::default()).build()?,
        };
        Ok(kernel.run_guarded(inputs)?.into_iter().collect())
    }
}

/// An engine to compare with.
#[derive(Debug, Clone)]
enum Other {
    NumPy,
    DefaultSchedule,
    NoSchedule,
    OnDevice(Target),
}

/// One case in this many runs on the other devices: some take seconds to compile.
const ON_OTHERS: usize = 5;

#[test]
fn every_case_gives_what_numpy_computed() {
    all_cases(Other::NumPy);
}

#[test]
fn every_case_compiled_with_the_default_schedule_agrees() {
    all_cases(Other::DefaultSchedule);
}

#[test]
fn every_case_compiled_without_a_schedule_agrees() {
    all_cases(Other::NoSchedule);
}

/// `TENSORWRIGHT_ALL_CASES=1` runs all of them on all devices.
#[test]
fn cases_on_devices_agree() {
    let devices = (0..).map_while(|number| tensorwright::target(&format!("opencl:{number}")).ok());
    let devices: Vec<Target> = devices.collect();
    if devices.is_empty() {
        assert!(std::env::var_os("TENSORWRIGHT_NEEDS_DEVICES").is_none(), "there is no OpenCL");
        println!("skipped: there is no OpenCL here");
    }
    let all = std::env::var_os("TENSORWRIGHT_ALL_CASES").is_some();
    for (number, device) in devices.into_iter().enumerate() {
        let every = if number == 0 || all { 1 } else { ON_OTHERS };
        some_cases(&Other::OnDevice(device), every);
    }
}

fn all_cases(other: Other) {
    some_cases(&other, 1);
}

/// A subset: one case in `every`.
fn some_cases(other: &Other, every: usize) {
    let failures: Vec<String> = cases()
        .iter()
        .chain(&pipelines())
        .step_by(every)
        .filter_map(|case| {
            let error = case.run(other).err()?;
            Some(format!("{} {} {:?}, {other:?}:\n{error}", case.file, case.def, case.sizes))
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn every_definition_has_a_case() {
    let covered: BTreeSet<(String, String)> =
        cases().into_iter().map(|case| (case.file, case.def)).collect();
    let mut files = 0;
    for entry in std::fs::read_dir(examples().join("kernels")).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_str().unwrap().to_owned();
        let module = Module::parse_bytes(&file, &std::fs::read(&path).unwrap()).unwrap();
        for def in module.defs() {
            let key = (file.clone(), def.name().to_owned());
            assert!(covered.contains(&key), "no golden case for {key:?}");
        }
        files += 1;
    }
    assert!(files >= 25, "only {files} example files found");
}

/// The other definitions of a pipeline are parts of the one that its file is named after.
#[test]
fn every_pipeline_has_a_case() {
    let covered: BTreeSet<(String, String)> =
        pipelines().into_iter().map(|case| (case.file, case.def)).collect();
    let mut files = 0;
    for entry in std::fs::read_dir(examples().join("pipelines")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "tc") {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let key = (format!("{name}.tc"), name.to_owned());
            assert!(covered.contains(&key), "no golden case for {key:?}");
            files += 1;
        }
    }
    assert_eq!(files, covered.len());
}

/// FlexTensor, table 3: the number of spatial and reduce loops and of nodes of each operator.
#[test]
fn the_analysis_agrees_with_flextensor_table_3() {
    let table = [
        ("matvec.tc", "gemv", 1, 1, 1),
        ("gemm.tc", "gemm", 2, 1, 1),
        ("bilinear.tc", "bilinear", 2, 2, 1),
        ("conv1d.tc", "conv1d_two_stage", 6, 2, 2),
        ("conv_transpose.tc", "conv1d_transpose", 9, 2, 3),
        ("conv2d.tc", "conv2d_two_stage", 8, 3, 2),
        ("conv_transpose.tc", "conv2d_transpose", 12, 3, 3),
        ("conv_transpose.tc", "conv3d_transpose", 15, 4, 3),
    ];
    let cases = cases();
    for (file, def, spatial, reduce, nodes) in table {
        let case = cases.iter().find(|case| case.file == file && case.def == def).unwrap();
        let path = examples().join("kernels").join(file);
        let module = Module::parse_bytes(file, &std::fs::read(path).unwrap()).unwrap();
        let program = module.def(def).unwrap().bind(case.sizes.clone()).unwrap();
        let analysis = program.analysis();
        let found = (analysis.spatial_loops, analysis.reduce_loops, analysis.nodes);
        assert_eq!(found, (spatial, reduce, nodes), "{file} {def}");
    }
}
