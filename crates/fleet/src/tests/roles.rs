//! Refuses every request that hostile users of each role may not make.
//!
//! `TENSORWRIGHT_FLEET_REQUESTS=10000 cargo nextest run -p tensorwright-fleet roles` asks more often.
#![allow(clippy::print_stdout, reason = "a failed expectation is how a test speaks")]

use crate::tests::support;
use std::time::Duration;

use crate::tests::support::{CLASS, LIMIT, Place, item, run, url};
use crate::{Fleet, Role};
use tensorwright_random::SplitMix;
use tensorwright_records::postgres::{Client, Settings};
use tensorwright_records::{Error, Location, StoreOptions, open_at};
use tensorwright_testkit::postgres::Server;

/// The number of requests per role.
fn requests() -> u64 {
    let given = std::env::var("TENSORWRIGHT_FLEET_REQUESTS").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(300)
}

const TABLES: [&str; 21] = [
    "meta",
    "programs",
    "keys",
    "runs",
    "texts",
    "trials",
    "bests",
    "removed",
    "verified",
    "classes",
    "permits",
    "quotas",
    "fleet_runs",
    "items",
    "done",
    "workers",
    "ready",
    "leased",
    "finals",
    "benches",
    "samples",
];

/// Statements that are forbidden to all.
const FORBIDDEN: [&str; 22] = [
    "SELECT pg_read_file('/etc/passwd')",
    "COPY (SELECT 1) TO PROGRAM 'touch /tmp/owned'",
    "COPY (SELECT 1) TO '/tmp/owned'",
    "CREATE TABLE mine (a INT)",
    "CREATE TEMPORARY TABLE mine (a INT)",
    "CREATE FUNCTION mine() RETURNS INT LANGUAGE sql AS 'SELECT 1'",
    "CREATE SCHEMA mine",
    "CREATE DATABASE mine",
    "CREATE ROLE mine SUPERUSER",
    "CREATE EXTENSION file_fdw",
    "CREATE LANGUAGE plpython3u",
    "ALTER SYSTEM SET fsync = off",
    "ALTER ROLE postgres PASSWORD 'x'",
    "SET ROLE postgres",
    "SET SESSION AUTHORIZATION postgres",
    "SELECT lo_from_bytea(0, repeat('x', 1000)::bytea)",
    "SELECT lo_import('/etc/passwd')",
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'postgres'",
    "DROP SCHEMA {schema} CASCADE",
    "LOCK TABLE {schema}.texts IN SHARE ROW EXCLUSIVE MODE",
    "SELECT {schema}.add_class('mine')",
    "SELECT {schema}.quarantine('honest', 'x')",
];

/// A value that every function rejects, or a plain one.
fn value(random: &mut SplitMix) -> &'static str {
    const VALUES: [&str; 14] = [
        "NULL",
        "'NaN'",
        "'Infinity'",
        "-1",
        "0",
        "9223372036854775807",
        "1e308",
        "''",
        "'{}'",
        "'{NULL}'",
        "'nobody'",
        "ARRAY[]::TEXT[]",
        "repeat('x', 100000)",
        "'\\x00'::bytea",
    ];
    VALUES[random.below(VALUES.len() as u64) as usize]
}

/// A hostile request: about a table, forbidden to all, of another role, or malformed.
fn request(role: Role, schema: &str, random: &mut SplitMix) -> String {
    let table = TABLES[random.below(TABLES.len() as u64) as usize];
    let calls: &[(&str, usize)] = match role {
        Role::Tune => &[
            ("begin_run", 21),
            ("enqueue", 6),
            ("enqueue", 8),
            ("cancel", 1),
            ("drive", 3),
            ("hold", 4),
            ("declare_best", 6),
            ("finish", 3),
        ],
        Role::Work => &[
            ("join_class", 3),
            ("report_probe", 2),
            ("report_roof", 5),
            ("lease", 3),
            ("lease", 4),
            ("beat", 5),
            ("complete", 12),
            ("complete_finals", 5),
        ],
        Role::Read => &[("lease", 3), ("enqueue", 6)],
    };
    let others: &[&str] = match role {
        Role::Tune => &[
            "lease(1, 1, 10)",
            "join_class('x', 'y', '')",
            "beat(1, '{}', '{}', '{}', 10)",
            "curve('x')",
            "workers_now()",
        ],
        Role::Work => &[
            "cancel('x')",
            "outcomes('x', '{1}')",
            "status()",
            "drive('x', 10, true)",
            "history('x', 0, 9)",
        ],
        Role::Read => &[
            "sweep()",
            "finish('x', 'y', 'finished')",
            "history('x', 0, 9)",
            "cancel('x')",
            "lease(1, 1, 10)",
            "outcomes('x', '{1}')",
        ],
    };
    match random.below(6) {
        0 => match random.below(if role == Role::Read { 3 } else { 4 }) {
            0 => format!("DELETE FROM {schema}.{table}"),
            1 => format!("UPDATE {schema}.{table} SET ctid = ctid"),
            2 => format!("TRUNCATE {schema}.{table} CASCADE"),
            _ => format!("SELECT * FROM {schema}.{table}"),
        },
        1 => FORBIDDEN[random.below(FORBIDDEN.len() as u64) as usize].replace("{schema}", schema),
        2 => format!("SELECT {schema}.{}", others[random.below(others.len() as u64) as usize]),
        3 => {
            let inner = [
                "learn_texts('{x}')",
                "give_back(1)",
                "text_number('x')",
                "adding()",
                "quota()",
                "permit('x', 'y')",
            ];
            format!("SELECT {schema}.{}", inner[random.below(inner.len() as u64) as usize])
        }
        _ => {
            let (name, count) = calls[random.below(calls.len() as u64) as usize];
            let values: Vec<&str> = (0..count).map(|_| value(random)).collect();
            format!("SELECT {schema}.{name}({})", values.join(", "))
        }
    }
}

#[test]
fn all_requests_of_a_hostile_user_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let Some(server) = Server::start(directory.path()) else { return };
    let place = Place::of(server.url());
    let mut owner = place.fleet();
    owner.harden().unwrap();
    owner.add_class("another class").unwrap();
    let root = place.client();
    for (name, role) in
        [("ann", Role::Tune), ("bob", Role::Tune), ("rig", Role::Work), ("eye", Role::Read)]
    {
        root.batch(&format!("CREATE ROLE {name} LOGIN"), LIMIT).unwrap();
        owner.admit(name, role).unwrap();
    }
    owner.permit("rig", CLASS).unwrap();
    let of = |name: &str| place.text().replace("//postgres@", &format!("//{name}@"));

    // They can do all that they may do.
    let mut ann = Fleet::connect(&url(&of("ann"))).unwrap();
    let secret = run(64);
    ann.begin_run(&secret).unwrap();
    ann.enqueue(&secret.info.id, &[item(0), item(1)]).unwrap();
    let mut rig = Fleet::connect(&url(&of("rig"))).unwrap();
    let worker = support::join(&mut rig, "honest");
    let leased = rig.lease(worker, 1, Duration::from_secs(60)).unwrap().remove(0);
    rig.complete(worker, &[support::completion(&leased.lease, 1.0)]).unwrap();
    assert_eq!(ann.outcomes(&secret.info.id, &[0, 1]).unwrap().len(), 1);
    let Ok(eye) = of("eye").parse::<Location>();
    let store = open_at(&eye, StoreOptions::default()).unwrap();
    assert_eq!(store.best(&secret.key).unwrap().unwrap().seconds, 1.0);

    // Users cannot change runs and classes of others.
    let mut bob = Fleet::connect(&url(&of("bob"))).unwrap();
    assert!(bob.enqueue(&secret.info.id, &[item(2)]).is_err());
    assert!(bob.cancel(&secret.info.id).is_err());
    assert!(bob.begin_run(&secret).is_err());
    assert_eq!(bob.outcomes(&secret.info.id, &[0]).unwrap(), []);
    assert!(rig.join("honest", "another class", "").is_err());
    let mut refused = 0;
    let before =
        place.count("SELECT count(*) FROM trials") + place.count("SELECT count(*) FROM items");

    for (name, role) in [("bob", Role::Tune), ("rig", Role::Work), ("eye", Role::Read)] {
        let client = Client::connect(&Settings::of(&url(&of(name))).unwrap(), LIMIT).unwrap();
        let mut random = SplitMix::new(name.len() as u64);
        for _ in 0..requests() {
            let sql = request(role, place.schema(), &mut random);
            match client.batch(&sql, LIMIT) {
                Err(Error::Unreachable { reason, .. }) => unreachable!("{sql}: {reason}"),
                Err(_) => refused += 1,
                Ok(()) => unreachable!("{name} may: {sql}"),
            }
        }
    }
    println!("{refused} requests were refused");
    let after =
        place.count("SELECT count(*) FROM trials") + place.count("SELECT count(*) FROM items");
    assert_eq!(before, after);
    assert_eq!(place.count("SELECT count(*) FROM pg_largeobject_metadata"), 0);
    assert!(!std::path::Path::new("/tmp/owned").exists());
}
