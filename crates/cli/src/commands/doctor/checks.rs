//! The checks, one function each.
//! They read system files below a root folder, which tests replace.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use tensorwright::runtime::Machine;
use tensorwright_device::DeviceError;
use tensorwright_records::{Location, open_existing};

use super::Finding;
use crate::config;

/// All checks in the order in which they are shown.
pub(super) fn all(root: &Path) -> Vec<Finding> {
    let machine = Machine::detect();
    let mut findings = vec![
        processor(&machine, root),
        frequency(root),
        turbo(root),
        threads(&machine, root),
        quota(root),
        load(&machine, root),
        steadiness(),
        memory(root),
        huge_pages(root),
        sandbox(root),
        compiler(),
        configuration(),
        records(),
    ];
    findings.extend(devices());
    findings
}

/// The text of a file, or nothing.
fn read(root: &Path, path: &str) -> Option<String> {
    let text = fs::read_to_string(root.join(path)).ok()?;
    Some(text.trim().to_owned())
}

fn processor(machine: &Machine, root: &Path) -> Finding {
    let check = "processor";
    let flags = read(root, "proc/cpuinfo").unwrap_or_default();
    let is_guest = flags.lines().any(|line| {
        line.starts_with("flags") && line.split_whitespace().any(|flag| flag == "hypervisor")
    });
    let features = machine.features.join(" ");
    let found = format!("{}, {} cores [{features}]", machine.model, machine.physical_cores);
    if is_guest {
        let advice = "a virtual machine shares its processor with others: compare times within one run, and expect spread";
        return Finding::note(check, found, advice);
    }
    Finding::good(check, found)
}

fn frequency(root: &Path) -> Finding {
    let check = "frequency";
    match read(root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").as_deref() {
        None => Finding::good(check, "the system does not scale it, or does not say"),
        Some("performance") => Finding::good(check, "the governor is performance"),
        Some(other) => Finding::note(
            check,
            format!("the governor is {other}: short runs start at a low frequency"),
            "sudo cpupower frequency-set --governor performance",
        ),
    }
}

fn turbo(root: &Path) -> Finding {
    let check = "turbo";
    let boost = read(root, "sys/devices/system/cpu/cpufreq/boost").map(|text| text == "1");
    let intel = read(root, "sys/devices/system/cpu/intel_pstate/no_turbo").map(|text| text == "0");
    match boost.or(intel) {
        None => Finding::good(check, "the system does not say"),
        Some(false) => Finding::good(check, "off: times are steady"),
        Some(true) => Finding::note(
            check,
            "on: the first seconds are faster than the rest",
            "nothing for tuning, which compares in turns; for absolute times switch it off in \
             /sys/devices/system/cpu (cpufreq/boost, intel_pstate/no_turbo)",
        ),
    }
}

fn threads(machine: &Machine, root: &Path) -> Finding {
    let check = "threads";
    let (cores, processors) = (machine.physical_cores, machine.logical_processors);
    let allowed = machine.allowed_processors.len();
    if allowed > 0 && allowed < processors {
        return Finding::note(
            check,
            format!("this process may use {allowed} of {processors} processors"),
            "start it without taskset or cpusets, or tune with as many threads as it will have",
        );
    }
    if read(root, "sys/devices/system/cpu/smt/active").as_deref() == Some("1") {
        return Finding::note(
            check,
            format!("{processors} processors on {cores} cores (SMT is on)"),
            format!("use --threads {cores} or fewer: two threads of a core share its vector units"),
        );
    }
    Finding::good(check, format!("{processors} processors on {cores} cores, one thread each"))
}

fn quota(root: &Path) -> Finding {
    let check = "quota";
    let said = read(root, "sys/fs/cgroup/cpu.max").unwrap_or_default();
    let mut words = said.split_whitespace().map(|word| word.parse::<f64>().ok());
    match (words.next().flatten(), words.next().flatten()) {
        (Some(quota), Some(period)) if period > 0.0 => Finding::note(
            check,
            format!("a control group grants {:.1} processors", quota / period),
            "ask for whole processors (a cpuset): a quota stops all threads in the middle of a measurement",
        ),
        _ => Finding::good(check, "processor time is not limited"),
    }
}

fn load(machine: &Machine, root: &Path) -> Finding {
    let check = "load";
    let text = read(root, "proc/loadavg").unwrap_or_default();
    let Some(load) = text.split_whitespace().next().and_then(|word| word.parse::<f64>().ok())
    else {
        return Finding::good(check, "the system does not say");
    };
    let processors = machine.logical_processors.max(1);
    let found = format!("{load:.1} processes compete for {processors} processors");
    if load > 0.5 {
        return Finding::note(check, found, "end what else runs (`top`), or expect spread");
    }
    Finding::good(check, found)
}

/// Repeats the same work, so that all variation comes from the machine.
fn steadiness() -> Finding {
    let check = "steadiness";
    let work = || {
        let clock = Instant::now();
        let mut state = black_box(1_u64);
        for _ in 0..400_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        }
        black_box(state);
        clock.elapsed().as_secs_f64()
    };
    let mut seconds: Vec<f64> = (0..200).map(|_| work()).collect();
    seconds.sort_by(f64::total_cmp);
    let spread = 100.0 * (seconds[180] / seconds[20] - 1.0);
    let found = format!("the same work varies by {spread:.0} % (10th to 90th percentile)");
    if spread > 5.0 {
        return Finding::note(check, found, "see load, frequency and processor above");
    }
    Finding::good(check, found)
}

fn memory(root: &Path) -> Finding {
    let check = "memory";
    let text = read(root, "proc/meminfo").unwrap_or_default();
    let kilobytes = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = kilobytes.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    let Some(kilobytes) = kilobytes else {
        return Finding::good(check, "the system does not say");
    };
    let found = format!("{} MiB are available", kilobytes / 1024);
    if kilobytes < 2 << 20 {
        return Finding::note(check, found, "free some: compilers and references want 2 GiB");
    }
    Finding::good(check, found)
}

fn huge_pages(root: &Path) -> Finding {
    let check = "huge pages";
    let said = read(root, "sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let chosen = said.split(['[', ']']).nth(1).unwrap_or_default();
    match chosen {
        "always" | "madvise" => Finding::good(check, format!("on request ({chosen})")),
        "never" => Finding::note(
            check,
            "off: large tensors cost more in address translation",
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        _ => Finding::good(check, "the system does not say"),
    }
}

fn sandbox(root: &Path) -> Finding {
    let check = "sandbox";
    let seccomp = read(root, "proc/sys/kernel/seccomp/actions_avail").is_some();
    let modules = read(root, "sys/kernel/security/lsm").unwrap_or_default();
    let landlock = modules.split(',').any(|module| module == "landlock");
    match (seccomp, landlock) {
        (false, _) => Finding::bad(
            check,
            "no seccomp: candidates cannot be confined",
            "use a kernel with CONFIG_SECCOMP_FILTER, or a container that allows it",
        ),
        (true, true) => Finding::good(check, "candidates are confined by seccomp and Landlock"),
        (true, false) => Finding::good(check, "candidates are confined by seccomp"),
    }
}

fn compiler() -> Finding {
    let check = "C compiler";
    let asked = Command::new("cc").arg("--version").stderr(Stdio::null()).output();
    match asked {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            Finding::good(check, text.lines().next().unwrap_or("cc").to_owned())
        }
        _ => Finding::note(
            check,
            "there is no `cc`, which links shared libraries and packages",
            "sudo apt-get install gcc; the rest needs none",
        ),
    }
}

fn configuration() -> Finding {
    let check = "settings";
    match config::load() {
        Ok(settings) => {
            config::apply(&settings);
            let read = settings.places.iter().filter(|place| place.found).count();
            Finding::good(check, format!("{read} configuration files are read"))
        }
        Err(problem) => {
            let text = problem.to_string();
            let first = text.lines().next().unwrap_or_default().to_owned();
            Finding::bad(check, first, "tensorwright config shows where")
        }
    }
}

fn records() -> Finding {
    let check = "records";
    let place = match Location::given(None) {
        Ok(place) => place,
        Err(error) => return Finding::bad(check, error.to_string(), error.help()),
    };
    match open_existing(None) {
        Ok(None) => {
            let found = format!("nothing is recorded yet at {place}");
            Finding::none(check, found, "`tensorwright tune` records what it tries")
        }
        Ok(Some(_)) => Finding::good(check, place.to_string()),
        Err(error) => Finding::bad(check, error.to_string(), error.help()),
    }
}

/// Device runtimes: most machines lack some, which is fine.
fn devices() -> Vec<Finding> {
    let finding = |listing: tensorwright_device::Listing| {
        let api = listing.api.to_string();
        let check = if api == "OpenCL" { "OpenCL" } else { "CUDA" };
        match listing.devices {
            Ok(devices) => {
                let names: Vec<String> = devices.iter().map(|device| device.to_string()).collect();
                Finding::good(check, names.join("; "))
            }
            Err(error @ DeviceError::NoRuntime { .. }) => Finding::none(
                check,
                "not installed, and needed for its devices alone",
                error.help(),
            ),
            Err(error) => Finding::note(check, error.to_string(), error.help()),
        }
    };
    tensorwright_device::devices().into_iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    /// A root folder with these files.
    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn verdicts(files: &[(&str, &str)]) -> Vec<(&'static str, Verdict)> {
        let root = root(files);
        let machine = Machine::detect();
        let found = [
            frequency(root.path()),
            turbo(root.path()),
            quota(root.path()),
            load(&machine, root.path()),
            memory(root.path()),
            huge_pages(root.path()),
            sandbox(root.path()),
        ];
        found.into_iter().map(|finding| (finding.check, finding.verdict)).collect()
    }

    #[test]
    fn a_machine_that_is_set_up_for_measuring_is_good() {
        let files = [
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
            ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
            ("sys/fs/cgroup/cpu.max", "max 100000\n"),
            ("proc/loadavg", "0.03 0.10 0.10 1/200 4242\n"),
            ("proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable:   12000000 kB\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
            ("proc/sys/kernel/seccomp/actions_avail", "kill_process errno allow\n"),
            ("sys/kernel/security/lsm", "capability,landlock,yama\n"),
        ];
        assert!(verdicts(&files).iter().all(|(_, verdict)| *verdict == Verdict::Good));
    }

    #[test]
    fn what_disturbs_measuring_is_noted() {
        let files = [
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
            ("sys/devices/system/cpu/cpufreq/boost", "1\n"),
            ("sys/fs/cgroup/cpu.max", "150000 100000\n"),
            ("proc/loadavg", "7.50 0.10 0.10 1/200 4242\n"),
            ("proc/meminfo", "MemAvailable:   1000000 kB\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n"),
        ];
        let found = verdicts(&files);
        let (sandbox, others) = found.split_last().unwrap();
        assert_eq!(*sandbox, ("sandbox", Verdict::Bad));
        assert!(others.iter().all(|(_, verdict)| *verdict == Verdict::Note), "{others:?}");
        let root = root(&files);
        assert_eq!(
            quota(root.path()),
            Finding::note(
                "quota",
                "a control group grants 1.5 processors",
                "ask for whole processors (a cpuset): a quota stops all threads in the middle of a measurement",
            )
        );
    }
}
