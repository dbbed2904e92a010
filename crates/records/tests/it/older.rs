//! Opens and migrates files of earlier versions.
//!
//! The code of 0.1.0 wrote `older/schema1.sqlite3`, with schema version 1. Versions 2 and 3 are
//! made from it by their original migration statements.

use std::path::{Path, PathBuf};

use tensorwright_lang::precision::Precision;
use tensorwright_outcome::Outcome;
use tensorwright_records::{
    Key, Origin, RunFilter, RunId, SqliteStore, Store, StoreOptions, open_existing, schema,
};

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/older/schema1.sqlite3")
}

/// A copy of the file, migrated to a version of the schema.
fn copy(folder: &Path, version: i64) -> PathBuf {
    let path = folder.join(format!("schema{version}.sqlite3"));
    std::fs::copy(file(), &path).unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
    let later = schema::migration(version).len();
    let all = schema::migration(1);
    for statement in &all[..all.len() - later] {
        connection.execute_batch(statement).unwrap();
    }
    let said = "UPDATE meta SET value = ?1 WHERE name = 'tensorwright-schema'";
    connection.execute(said, [version.to_string()]).unwrap();
    path
}

fn version_of(path: &Path) -> String {
    let connection = rusqlite::Connection::open(path).unwrap();
    let asked = "SELECT value FROM meta WHERE name = 'tensorwright-schema'";
    connection.query_row(asked, [], |row| row.get(0)).unwrap()
}

/// Checks the records, whatever the version of the file.
fn check(store: &dyn Store) {
    let keys = store.keys().unwrap();
    let mut precisions: Vec<Precision> = keys.iter().map(|summary| summary.key.precision).collect();
    precisions.sort_by_key(|precision| precision.name());
    // Records without a precision could have used any algorithm.
    assert_eq!(precisions, [Precision::Exact, Precision::Fast]);
    let key = |precision| -> Key {
        keys.iter()
            .map(|summary| summary.key.clone())
            .find(|key| key.precision == precision)
            .unwrap()
    };
    let (fast, exact) = (key(Precision::Fast), key(Precision::Exact));
    assert_eq!(fast.compiler, "0.1.0 llvm-19");
    assert_eq!(exact.compiler, "0.1.0 llvm-19");
    // The declared winner, and the fastest trial timed to the end.
    let best = store.best(&fast).unwrap().unwrap();
    assert_eq!((best.seconds, best.id.number), (0.001, 1));
    assert_eq!(best.trial.schedule, "C: split m 8\nC: vectorize n\n");
    assert_eq!(store.best(&exact).unwrap().unwrap().seconds, 0.002);
    let runs = store.runs(&RunFilter::default()).unwrap();
    assert_eq!(runs.len(), 2);
    let run = RunId::named("old-run-1");
    let trials = store.trials(&run, None, 100).unwrap();
    let kinds: Vec<&str> = trials
        .iter()
        .map(|trial| {
            let number = trial.number;
            assert_eq!(trial.point, [3, 1, 200]);
            assert_eq!(trial.algorithm, "");
            let strategy = Origin::Search("opevo".to_owned());
            assert_eq!(trial.origin, if number == 0 { Origin::Default } else { strategy });
            trial.outcome.kind()
        })
        .collect();
    let measured = "measured";
    let others = ["illegal", "wrong-result", "crashed", "device-lost"];
    assert_eq!(kinds, [&[measured; 3][..], &others[..]].concat());
    assert!(matches!(&trials[2].outcome, Outcome::Measured(timing) if timing.cut));
}

#[test]
fn files_of_all_earlier_versions_are_brought_up_to_date() {
    let scratch = tempfile::tempdir().unwrap();
    for version in 1..=schema::VERSION {
        let path = copy(scratch.path(), version);
        assert_eq!(version_of(&path), version.to_string());
        let store = SqliteStore::open(&path, StoreOptions::default()).unwrap();
        check(&store);
        drop(store);
        assert_eq!(version_of(&path), schema::VERSION.to_string());
        // And again as an up-to-date file.
        check(&*open_existing(Some(&path.as_path().into())).unwrap().unwrap());
    }
}

#[test]
fn files_of_all_earlier_versions_are_read_as_they_are_where_they_cannot_be_written() {
    let scratch = tempfile::tempdir().unwrap();
    for version in 1..=schema::VERSION {
        let path = copy(scratch.path(), version);
        let before = std::fs::read(&path).unwrap();
        check(&SqliteStore::open_read_only(&path, &StoreOptions::default()).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), before, "version {version}");
    }
}

#[test]
fn a_file_of_a_later_version_is_refused_and_left_alone() {
    let scratch = tempfile::tempdir().unwrap();
    let path = copy(scratch.path(), schema::VERSION);
    let later = (schema::VERSION + 1).to_string();
    let connection = rusqlite::Connection::open(&path).unwrap();
    let said = "UPDATE meta SET value = ?1 WHERE name = 'tensorwright-schema'";
    connection.execute(said, [&later]).unwrap();
    drop(connection);
    let error = SqliteStore::open(&path, StoreOptions::default()).err().unwrap();
    let name = path.display();
    assert!(
        error.to_string().starts_with(&format!("{name} was made by a newer version")),
        "{error}"
    );
    assert_eq!(version_of(&path), later);
}
