//! Records on a server, through the command line.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tensorwright_testkit::postgres::Server;

fn tensorwright(db: &str, args: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tensorwright"));
    command
        .args(args)
        .arg("--db")
        .arg(db)
        .current_dir(root)
        .env("NO_COLOR", "1")
        .env("TENSORWRIGHT_THREADS", "1")
        .env("XDG_DATA_HOME", env!("CARGO_TARGET_TMPDIR"))
        .output()
        .unwrap()
}

fn said(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn tune_run_report_and_db_take_the_url_of_a_server() {
    let directory = tempfile::tempdir().unwrap();
    let Some(server) = Server::start(directory.path()) else { return };
    let file = |name: &str| directory.path().join(name);
    let stdout = |args: &[&str]| {
        let output = tensorwright(server.url(), args);
        assert!(output.status.success(), "{args:?}: {}", said(&output.stderr));
        (said(&output.stdout), said(&output.stderr))
    };
    let gemm = ["examples/kernels/gemm.tc", "--def", "gemm", "--size", "M=32,N=32,K=32"];
    let none = tensorwright(server.url(), &["db", "ls"]);
    let says = said(&none.stderr);
    assert!(says.contains(&format!("there are no records at {}", server.url())), "{says}");

    stdout(&[&["tune"], &gemm[..], &["--trials", "4", "--seed", "1"]].concat());
    let (listed, _) = stdout(&["db", "ls"]);
    assert!(listed.contains("M=32,N=32,K=32") || listed.contains("K=32"), "{listed}");
    let (_, notes) = stdout(&[&["run"], &gemm[..]].concat());
    assert!(notes.contains("tuned:"), "{notes}");
    let page: PathBuf = file("report.html");
    stdout(&[&["report"], &gemm[..], &["-o", page.to_str().unwrap()]].concat());
    assert!(page.metadata().unwrap().len() > 10_000);

    // Exporting and importing preserves the records.
    let (one, two) = (file("one.jsonl"), file("two.jsonl"));
    let export = |db: &str, to: &Path| {
        let output = tensorwright(db, &["db", "export", "-o", to.to_str().unwrap()]);
        assert!(output.status.success(), "{}", said(&output.stderr));
        std::fs::read_to_string(to).unwrap()
    };
    let exported = export(server.url(), &one);
    let local = file("records.sqlite3");
    let local = local.to_str().unwrap();
    let imported = tensorwright(local, &["db", "import", one.to_str().unwrap()]);
    assert!(imported.status.success(), "{}", said(&imported.stderr));
    assert_eq!(export(local, &two), exported);
    stdout(&["db", "gc", "--keep", "1"]);
}

#[test]
fn a_server_that_is_away_is_told_and_does_not_stop_a_run() {
    let away = "postgres://ann:secret@127.0.0.1:1/tuning?connect_timeout=1";
    let output = tensorwright(away, &["db", "ls"]);
    assert_eq!(output.status.code(), Some(1));
    let says = said(&output.stderr);
    let place = "postgres://ann:***@127.0.0.1:1/tuning?connect_timeout=1";
    let reason = "cannot be reached: error connecting to server: Connection refused (os error 111)";
    assert!(says.contains(&format!("{place} {reason}")), "{says}");
    assert!(says.contains("check that the server runs") && !says.contains("secret"), "{says}");
    let gemm = ["examples/kernels/gemm.tc", "--def", "gemm", "--size", "M=8,N=8,K=8"];
    let output = tensorwright(away, &[&["run"], &gemm[..]].concat());
    let says = said(&output.stderr);
    assert!(output.status.success(), "{says}");
    assert!(says.contains("tuned: postgres://ann:***@127.0.0.1:1/tuning"), "{says}");
}
