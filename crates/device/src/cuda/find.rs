//! Finds NVIDIA's libraries, programs and headers.
//!
//! A root is the folder `nvidia` of Python's packages, or that of a toolkit. The variable
//! `TENSORWRIGHT_CUDA` names one that takes precedence.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The library folders of a root.
const LIBRARIES: &[&str] = &["cuda_nvrtc/lib", "cu12/lib", "cu13/lib", "lib64", "lib", ""];

/// The program folders of a root.
const PROGRAMS: &[&str] = &["cu13/bin", "cu12/bin", "cuda_cuobjdump/bin", "cuda_nvcc/bin", "bin"];

/// The header folders of a root.
const HEADERS: &[&str] =
    &["cuda_runtime/include", "cuda_nvcc/include", "cu12/include", "cu13/include", "include"];

/// The roots of NVIDIA's files, best guess first.
#[derive(Debug, Clone)]
pub(super) struct Roots(Vec<PathBuf>);

impl Roots {
    /// The roots from the environment and from common installers.
    pub(super) fn of_this_machine() -> Self {
        let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let mut roots: Vec<PathBuf> =
            variable("TENSORWRIGHT_CUDA").map(PathBuf::from).into_iter().collect();
        if let Some(paths) = variable("PYTHONPATH") {
            roots.extend(env::split_paths(&paths).map(|path| path.join("nvidia")));
        }
        for name in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
            roots.extend(variable(name).into_iter().flat_map(|root| packages(Path::new(&root))));
        }
        roots
            .extend(["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(variable).map(PathBuf::from));
        if let Some(home) = variable("HOME") {
            roots.extend(packages(&Path::new(&home).join(".local")));
        }
        for prefix in ["/usr/local", "/usr"] {
            roots.extend(packages(Path::new(prefix)));
        }
        roots.push("/usr/local/cuda".into());
        Self(roots)
    }

    /// The given roots only.
    #[cfg(test)]
    pub(super) fn only(roots: impl IntoIterator<Item = PathBuf>) -> Self {
        Self(roots.into_iter().collect())
    }

    /// A library with one of the given names.
    pub(super) fn library(&self, names: &[&str]) -> Option<PathBuf> {
        self.file(LIBRARIES, names)
    }

    /// A program, also in the system's path.
    pub(super) fn program(&self, name: &str) -> Option<PathBuf> {
        self.file(PROGRAMS, &[name]).or_else(|| {
            let paths = env::var_os("PATH")?;
            env::split_paths(&paths).map(|path| path.join(name)).find(|path| path.is_file())
        })
    }

    /// The folder of a header.
    pub(super) fn headers(&self, name: &str) -> Option<PathBuf> {
        let mut folders =
            self.0.iter().flat_map(|root| HEADERS.iter().map(move |at| root.join(at)));
        folders.find(|folder| folder.join(name).is_file())
    }

    fn file(&self, folders: &[&str], names: &[&str]) -> Option<PathBuf> {
        let folders = self.0.iter().flat_map(|root| folders.iter().map(move |at| root.join(at)));
        let mut files = folders.flat_map(|folder| names.iter().map(move |name| folder.join(name)));
        files.find(|file| file.is_file())
    }
}

/// The folders of NVIDIA's packages in Python installations below a prefix, newest Python first.
fn packages(prefix: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(prefix.join("lib")) else { return Vec::new() };
    let folders = entries.flatten().map(|entry| entry.path());
    let is_python = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python3"))
    };
    let mut pythons: Vec<PathBuf> = folders.filter(is_python).collect();
    pythons.sort();
    let below = |python: PathBuf| {
        ["site-packages", "dist-packages"].map(|packages| python.join(packages).join("nvidia"))
    };
    pythons.into_iter().rev().flat_map(below).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_wheels_and_toolkits_are_found() {
        let root = tempfile::tempdir().unwrap();
        let make = |path: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            path
        };
        let wheel = make("lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
        let program = make("toolkit/bin/cuobjdump");
        let header = make("toolkit/include/cuda_fp16.h");
        let mut all = packages(root.path());
        all.push(root.path().join("toolkit"));
        let roots = Roots::only(all);
        assert_eq!(roots.library(&["libnvrtc.so.13", "libnvrtc.so.12"]), Some(wheel));
        assert_eq!(roots.program("cuobjdump"), Some(program));
        assert_eq!(roots.headers("cuda_fp16.h").as_deref(), header.parent());
        let inner = make("toolkit/include/crt/mma.h");
        assert_eq!(roots.headers("crt/mma.h").as_deref(), inner.parent().and_then(Path::parent));
        assert_eq!(roots.library(&["libno.so"]), None);
        assert_eq!(roots.program("no-such-program-anywhere"), None);
        assert!(packages(Path::new("/nowhere/at/all")).is_empty());
    }
}
