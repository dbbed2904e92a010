//! The tables, in SQLite's SQL.
//!
//! A trial is one narrow row. Its point is a few bytes; its schedule is a list of line numbers,
//! because schedules differ while their lines mostly repeat; the message of a failed candidate is
//! the number of a text. Texts are stored once each and found by their hash.

/// The version of the schema, kept in `meta`.
pub const VERSION: i64 = 3;

/// The statements that create the tables.
#[must_use]
pub fn statements() -> &'static [&'static str] {
    TABLES
}

/// The statements that migrate tables of an earlier version.
#[must_use]
pub fn migration(from: i64) -> Vec<String> {
    let mut statements = Vec::new();
    if from < 2 {
        statements
            .extend([VERIFIED.to_owned(), "ALTER TABLE bests ADD COLUMN replaces TEXT".to_owned()]);
    }
    if from < 3 {
        statements.extend([
            "ALTER TABLE trials ADD COLUMN algorithm BIGINT REFERENCES texts (id)".to_owned(),
            // SQLite cannot change uniqueness constraints of a table.
            KEYS.replace("TABLE keys", "TABLE newer_keys"),
            format!("INSERT INTO newer_keys SELECT {SPLIT_KEY} FROM keys"),
            "DROP TABLE keys".to_owned(),
            "ALTER TABLE newer_keys RENAME TO keys".to_owned(),
        ]);
    }
    statements
}

/// The statements that make an unwritable older version look like this one.
#[must_use]
pub fn views(from: i64) -> Vec<String> {
    let mut views = Vec::new();
    if from < 2 {
        views.push(
            "CREATE TEMPORARY VIEW bests AS SELECT *, NULL AS replaces FROM main.bests".to_owned(),
        );
        views.push(VERIFIED.replace("TABLE", "TEMPORARY TABLE"));
    }
    if from < 3 {
        views.push(
            "CREATE TEMPORARY VIEW trials AS SELECT *, NULL AS algorithm FROM main.trials"
                .to_owned(),
        );
        views.push(format!("CREATE TEMPORARY VIEW keys AS SELECT {SPLIT_KEY} FROM main.keys"));
    }
    views
}

/// The columns of a key whose compiler ends with its precision; without one, it is fast.
const SPLIT_KEY: &str = "id, program_id, target, threads,
       CASE WHEN compiler LIKE '% exact' THEN substr(compiler, 1, length(compiler) - 6)
            ELSE compiler END AS compiler,
       CASE WHEN compiler LIKE '% exact' THEN 'exact' ELSE 'fast' END AS precision";

/// The condition on rows that may become the best, exactly as in their index.
pub(crate) const ELIGIBLE: &str = "kind = 0 AND cut = 0";

/// The verdicts of installations on schedules. They do not belong to trials: a verdict is about the
/// text of a schedule for a program, whichever records contain it.
const VERIFIED: &str = "CREATE TABLE verified (
       program TEXT NOT NULL,
       schedule TEXT NOT NULL,
       target TEXT NOT NULL,
       threads BIGINT NOT NULL,
       compiler TEXT NOT NULL,
       installation TEXT NOT NULL,
       passed SMALLINT NOT NULL,
       verified BIGINT NOT NULL,
       PRIMARY KEY (program, schedule, target, threads, compiler, installation))";

const KEYS: &str = "CREATE TABLE keys (
       id INTEGER PRIMARY KEY,
       program_id BIGINT NOT NULL REFERENCES programs (id),
       target TEXT NOT NULL,
       threads BIGINT NOT NULL,
       compiler TEXT NOT NULL,
       precision TEXT NOT NULL,
       UNIQUE (program_id, target, threads, compiler, precision))";

const TABLES: &[&str] = &[
    // The version of the schema, and a number that changes when rows are removed.
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE programs (
       id INTEGER PRIMARY KEY,
       hash TEXT NOT NULL UNIQUE,
       family TEXT NOT NULL,
       def TEXT NOT NULL,
       sizes TEXT NOT NULL,
       text TEXT NOT NULL,
       flops DOUBLE PRECISION NOT NULL,
       bytes DOUBLE PRECISION NOT NULL)",
    "CREATE INDEX programs_family ON programs (family)",
    KEYS,
    "CREATE TABLE runs (
       id INTEGER PRIMARY KEY,
       uid TEXT NOT NULL UNIQUE,
       key_id BIGINT NOT NULL REFERENCES keys (id),
       strategy TEXT NOT NULL,
       seed BIGINT NOT NULL,
       space TEXT NOT NULL,
       meta TEXT NOT NULL,
       started BIGINT NOT NULL,
       ended BIGINT,
       status TEXT)",
    "CREATE INDEX runs_key ON runs (key_id)",
    "CREATE TABLE texts (
       id INTEGER PRIMARY KEY,
       hash BLOB NOT NULL UNIQUE,
       text TEXT NOT NULL)",
    "CREATE TABLE trials (
       id INTEGER PRIMARY KEY,
       run_id BIGINT NOT NULL REFERENCES runs (id),
       number BIGINT NOT NULL,
       key_id BIGINT NOT NULL REFERENCES keys (id),
       origin BIGINT NOT NULL REFERENCES texts (id),
       point BLOB NOT NULL,
       schedule BLOB NOT NULL,
       kind SMALLINT NOT NULL,
       cut SMALLINT NOT NULL,
       seconds DOUBLE PRECISION,
       raw_seconds DOUBLE PRECISION,
       spread DOUBLE PRECISION,
       runs BIGINT,
       roofline DOUBLE PRECISION,
       detail BIGINT REFERENCES texts (id),
       elapsed DOUBLE PRECISION NOT NULL,
       algorithm BIGINT REFERENCES texts (id),
       UNIQUE (run_id, number))",
    "CREATE INDEX trials_best ON trials (key_id, seconds) WHERE kind = 0 AND cut = 0",
    "CREATE TABLE bests (
       key_id BIGINT PRIMARY KEY REFERENCES keys (id),
       run_id BIGINT NOT NULL REFERENCES runs (id),
       number BIGINT NOT NULL,
       seconds DOUBLE PRECISION NOT NULL,
       against TEXT NOT NULL,
       declared BIGINT NOT NULL,
       replaces TEXT)",
    "CREATE TABLE removed (
       key_id BIGINT NOT NULL REFERENCES keys (id),
       kind SMALLINT NOT NULL,
       count BIGINT NOT NULL,
       PRIMARY KEY (key_id, kind))",
    VERIFIED,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_has_the_condition_that_queries_use() {
        assert!(TABLES.iter().any(|table| table.ends_with(&format!("WHERE {ELIGIBLE}"))));
    }
}
