//! Faults of servers: lost connections, certificates, privileges, foreign rows.

use std::time::{Duration, Instant};

use crate::support::server::Schema;
use crate::support::{Scratch, begin, key, measured, program, quick};
use tensorwright_records::{
    Collection, Error, Event, Journal, Kept, Location, RunFilter, RunInfo, StoreOptions, Trial,
    open_at,
};
use tensorwright_testkit::postgres::{Proxy, Server, port, shared};

fn impatient() -> StoreOptions {
    StoreOptions { busy_timeout: Duration::from_millis(400), ..quick() }
}

fn place(url: &str) -> Location {
    let Ok(place) = url.parse();
    place
}

/// A whole message: the error and its help.
fn message(error: &Error) -> String {
    format!("{error}\nhelp: {}", error.help())
}

/// A journal over a test wire, with its files in a directory of their own.
struct Remote {
    schema: Schema,
    wire: Proxy,
    place: Location,
}

impl Remote {
    fn new() -> Option<Self> {
        let url = shared()?;
        let schema = Schema::of(&url);
        let wire = Proxy::to(port(&url).unwrap()).unwrap();
        let place = place(&wire.url(&schema.location().to_string()));
        Some(Self { schema, wire, place })
    }

    /// The journal; its files in the user's data directory have a name of their own.
    fn journal(&self) -> Journal {
        Journal::new(self.place.clone(), impatient()).unwrap()
    }

    fn trials(&self, run: &RunInfo) -> Vec<Trial> {
        let store = open_at(&self.schema.location(), quick()).unwrap();
        store.trials(&run.id, None, 10_000).unwrap()
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        if let Ok(journal) = Journal::new(self.place.clone(), impatient()) {
            let _ = std::fs::remove_file(journal.pending_path());
        }
    }
}

#[test]
fn nothing_is_lost_while_the_wire_is_cut() {
    let Some(remote) = Remote::new() else { return };
    let program = program(64);
    let info = RunInfo::new("random", 1);
    let mut journal = remote.journal();
    assert_eq!(journal.begin_run(&key(&program), &program, &info), Ok(Kept::Database));
    assert_eq!(journal.insert(&info.id, &measured(0, 1.0)), Ok(Kept::Database));

    remote.wire.cut();
    for number in 1..40 {
        assert_eq!(journal.insert(&info.id, &measured(number, 1.0)), Ok(Kept::Waiting));
    }
    assert_eq!((journal.waiting(), journal.unsaved()), (39, 0));
    let error = journal.trouble().unwrap();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    // A killed process loses nothing.
    std::mem::forget(journal);

    remote.wire.mend();
    let mut next = remote.journal();
    assert_eq!(next.trouble(), None);
    assert_eq!(next.insert(&info.id, &measured(40, 1.0)), Ok(Kept::Database));
    assert_eq!(remote.trials(&info), (0..=40).map(|n| measured(n, 1.0)).collect::<Vec<_>>());
}

#[test]
fn a_server_that_says_nothing_does_not_stop_a_search() {
    let Some(remote) = Remote::new() else { return };
    let program = program(64);
    let info = RunInfo::new("random", 1);
    let mut journal = remote.journal();
    assert_eq!(journal.begin_run(&key(&program), &program, &info), Ok(Kept::Database));
    remote.wire.freeze();
    let start = Instant::now();
    for number in 0..100 {
        assert_eq!(journal.insert(&info.id, &measured(number, 1.0)), Ok(Kept::Waiting));
    }
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    let reason = journal.trouble().unwrap().to_string();
    assert!(reason.contains("cannot be reached: it did not answer for "), "{reason}");
    // Writes in progress arrive late or not at all; both are fine.
    remote.wire.mend();
    drop(journal);
    let mut next = remote.journal();
    next.flush().unwrap();
    assert_eq!(remote.trials(&info), (0..100).map(|n| measured(n, 1.0)).collect::<Vec<_>>());
}

#[test]
fn a_store_connects_anew_between_transactions() {
    let Some(remote) = Remote::new() else { return };
    let program = program(64);
    let mut store = open_at(&remote.place, quick()).unwrap();
    let run = begin(&mut *store, &key(&program), &program);
    for number in 0..5 {
        remote.wire.cut();
        std::thread::sleep(Duration::from_millis(50));
        remote.wire.mend();
        store.insert(&run, &measured(number, 1.0)).unwrap();
        remote.wire.cut();
        std::thread::sleep(Duration::from_millis(50));
        remote.wire.mend();
        assert_eq!(store.trials(&run, None, 10).unwrap().len() as u64, number + 1);
    }
}

#[test]
fn what_was_committed_outlasts_a_kill_of_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let Some(server) = Server::start(directory.path()) else { return };
    let program = program(64);
    let info = RunInfo::new("random", 1);
    let mut journal = Journal::new(place(server.url()), StoreOptions::default()).unwrap();
    let pending = journal.pending_path();
    assert_eq!(journal.begin_run(&key(&program), &program, &info), Ok(Kept::Database));
    let mut number = 0;
    for _ in 0..3 {
        for _ in 0..20 {
            journal.insert(&info.id, &measured(number, 1.0)).unwrap();
            number += 1;
        }
        server.kill();
        assert_eq!(journal.insert(&info.id, &measured(number, 1.0)), Ok(Kept::Waiting));
        number += 1;
        server.start_again().unwrap();
        journal.flush().unwrap();
    }
    let trials = journal.store().unwrap().trials(&info.id, None, 1000).unwrap();
    assert_eq!(trials, (0..number).map(|n| measured(n, 1.0)).collect::<Vec<_>>());
    drop(journal);
    let _ = std::fs::remove_file(pending);
}

/// After a failover another host of the URL accepts writes.
#[test]
fn the_host_that_accepts_writes_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let Some(server) = Server::start(directory.path()) else { return };
    let Some(shared) = shared() else { return };
    let standby = Schema::of(server.url());
    standby.execute("ALTER SYSTEM SET default_transaction_read_only = on");
    standby.execute("SELECT pg_reload_conf()");
    std::thread::sleep(Duration::from_millis(300));
    let error = open_at(&place(server.url()), impatient()).err().unwrap();
    let expected = format!(
        "{} cannot be written to\nhelp: it may be a standby: add target_session_attrs=read-write to \
         the URL, with all hosts that may be the primary",
        server.url()
    );
    assert_eq!(message(&error), expected);

    let primary = Schema::of(&shared);
    let (first, second) = (port(server.url()).unwrap(), port(&shared).unwrap());
    let hosts = format!(":{first},127.0.0.1:1,127.0.0.1:{second}/");
    let both = primary.location().to_string().replace(&format!(":{second}/"), &hosts);
    let both = place(&format!("{both}&target_session_attrs=read-write"));
    let program = program(64);
    let mut store = open_at(&both, quick()).unwrap();
    let run = begin(&mut *store, &key(&program), &program);
    store.insert(&run, &measured(0, 1.0)).unwrap();
    let there = open_at(&primary.location(), quick()).unwrap();
    assert_eq!(there.trials(&run, None, 10).unwrap(), [measured(0, 1.0)]);
}

#[test]
fn writers_that_get_in_each_others_way_begin_anew() {
    let Some(scratch) = Scratch::on_server() else { return };
    let program = program(64);
    drop(scratch.store());
    // Each writes the same new lines in another order, in one transaction: some of them deadlock.
    std::thread::scope(|scope| {
        for writer in 0..6_u64 {
            let (scratch, program) = (&scratch, &program);
            scope.spawn(move || {
                let mut store = scratch.store();
                let run = begin(&mut *store, &key(program), program);
                for round in 0..4 {
                    let event = |at: u64| {
                        let line = if writer % 2 == 0 { at } else { 49 - at };
                        let schedule = format!("C: line {round} {line}\n");
                        let trial = Trial { schedule, ..measured(round * 50 + at, 1.0) };
                        Event::Trial { run: run.clone(), trial }
                    };
                    store.apply(&(0..50).map(event).collect::<Vec<_>>()).unwrap();
                }
            });
        }
    });
    let store = scratch.store();
    let runs = store.runs(&RunFilter::default()).unwrap();
    assert_eq!(runs.iter().map(|run| run.trials).collect::<Vec<_>>(), [200; 6]);
}

/// No process uses cached numbers of removed texts, even with concurrent removal.
#[test]
fn records_are_removed_while_others_are_written() {
    let Some(scratch) = Scratch::on_server() else { return };
    let program = program(64);
    let key = key(&program);
    let mut store = scratch.store();
    let run = begin(&mut *store, &key, &program);
    std::thread::scope(|scope| {
        for writer in 0..3_u64 {
            let (scratch, run) = (&scratch, &run);
            scope.spawn(move || {
                let mut store = scratch.store();
                for number in 0..60 {
                    store
                        .insert(run, &measured(writer * 1000 + number, 1.0 + number as f64))
                        .unwrap();
                }
            });
        }
        for _ in 0..10 {
            store.collect(Collection { keep: 5, dry_run: false }).unwrap();
        }
    });
    assert!(store.trials(&run, None, 1000).unwrap().len() >= 5);
    assert_eq!(store.damage(), []);
}

#[test]
fn a_server_that_is_not_there_is_told_whole() {
    let error = open_at(&place("postgres://ann:secret@127.0.0.1:1/d"), impatient()).err().unwrap();
    let expected = "postgres://ann:***@127.0.0.1:1/d cannot be reached: error connecting to server: \
                    Connection refused (os error 111)\nhelp: check that the server runs and that its \
                    host, port and certificates are those of the URL; the same command may be repeated";
    assert_eq!(message(&error), expected);
    assert!(error.may_pass());
}

#[test]
fn a_database_that_is_not_there_is_told_whole() {
    let Some(url) = shared() else { return };
    let url = format!("{}/nowhere", url.rsplit_once('/').unwrap().0);
    let error = open_at(&place(&url), impatient()).err().unwrap();
    let expected = format!(
        "{url} cannot be used: database \"nowhere\" does not exist\nhelp: it has the form \
         postgres://USER@HOST:PORT/DATABASE?sslrootcert=FILE; docs/records.md has all options"
    );
    assert_eq!(message(&error), expected);
}

#[test]
fn tables_of_others_and_of_newer_versions_are_left_alone() {
    let Some(scratch) = Scratch::on_server() else { return };
    let at = scratch.location();
    drop(scratch.store());
    scratch.execute("UPDATE meta SET value = '99' WHERE name = 'tensorwright-schema'");
    let error = open_at(at, impatient()).err().unwrap();
    let expected = format!(
        "{at} was made by a newer version (schema 99, this one knows 3)\nhelp: use the newer \
         tensorwright, or name another file with --db or TENSORWRIGHT_DB"
    );
    assert_eq!(message(&error), expected);
    for tables in ["DROP TABLE meta CASCADE", "CREATE TABLE meta (a BIGINT)"] {
        scratch.execute(tables);
        let error = open_at(at, impatient()).err().unwrap();
        let expected = format!(
            "{at} is a database of another program\nhelp: name another schema in the URL \
             (schema=NAME); this one was left as it is"
        );
        assert_eq!(message(&error), expected);
    }
}

#[test]
fn a_user_who_may_only_read_can_look_and_no_more() {
    let Some(scratch) = Scratch::on_server() else { return };
    let program = program(64);
    let mut store = scratch.store();
    let run = begin(&mut *store, &key(&program), &program);
    store.insert(&run, &measured(0, 1.0)).unwrap();
    let text = scratch.location().to_string();
    let schema = text.split("schema=").nth(1).unwrap();
    let role = format!("reader_{schema}");
    scratch.execute(&format!(
        "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {role};
         GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}"
    ));
    let at = place(&text.replace("//postgres@", &format!("//{role}@")));
    let mut reader = open_at(&at, quick()).unwrap();
    assert_eq!(reader.best(&key(&program)).unwrap().unwrap().trial, measured(0, 1.0));
    let error = reader.insert(&run, &measured(1, 1.0)).unwrap_err();
    let expected = format!(
        "{at} refuses that: permission denied for table texts\nhelp: check the user and the password \
         (PGPASSWORD, PGPASSFILE), and ask whoever runs the server for the privilege"
    );
    drop(reader);
    scratch.execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
    assert_eq!(message(&error), expected);
}

/// Foreign rows give errors or are skipped, and never cause a panic.
#[test]
fn rows_of_a_hostile_writer_harm_nobody() {
    let Some(scratch) = Scratch::on_server() else { return };
    let program = program(64);
    let key = key(&program);
    let mut store = scratch.store();
    let run = begin(&mut *store, &key, &program);
    for number in 0..4 {
        store.insert(&run, &measured(number, 1.0 + number as f64)).unwrap();
    }
    let damage = [
        "UPDATE trials SET schedule = '\\xffffffffffffffffffffffff' WHERE number = 0",
        "UPDATE trials SET point = '\\x80' WHERE number = 1",
        "UPDATE trials SET seconds = 'NaN', runs = -1 WHERE number = 2",
        "UPDATE trials SET kind = 300, detail = NULL WHERE number = 3",
        "UPDATE trials SET run_id = 99 WHERE number = 0",
        "UPDATE programs SET sizes = '[1', flops = 'NaN'",
        "UPDATE keys SET threads = -5, precision = 'so-so'",
        "UPDATE runs SET meta = '{', seed = -1, ended = -9, status = NULL",
        "ALTER TABLE trials ALTER COLUMN origin TYPE TEXT",
        "UPDATE meta SET value = 'x' WHERE name = 'generation'",
        "ALTER TABLE trials DROP COLUMN schedule",
        "DROP TABLE texts CASCADE",
    ];
    scratch.execute("ALTER TABLE trials DROP CONSTRAINT trials_run_id_fkey");
    scratch.execute("ALTER TABLE trials DROP CONSTRAINT trials_origin_fkey");
    for sql in damage {
        scratch.execute(sql);
        let mut store = scratch.store();
        let _ = (store.best(&key), store.ranked(&key, 9), store.why_miss(&key), store.keys());
        let _ =
            (store.runs(&RunFilter::default()), store.trials(&run, None, 100), store.declared());
        let _ = store.nearest(&key, &program.sizes, 5);
        let _ = store.insert(&run, &measured(9, 1.0));
        let _ = store.collect(Collection { keep: 2, dry_run: true });
        let _ = store.damage();
    }
}
