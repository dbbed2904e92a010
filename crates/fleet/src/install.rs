//! Installs tables, roles and permits, for administrators.

use std::time::Duration;

use tensorwright_records::{Error, PostgresStore, Result, StoreOptions, Url};

use crate::fleet::Fleet;

/// The version of the queue's tables and functions, kept in `meta`.
pub const VERSION: i64 = 2;

const TABLES: &str = include_str!("sql/tables.sql");
const FUNCTIONS: [&str; 3] = [
    include_str!("sql/functions.sql"),
    include_str!("sql/driving.sql"),
    include_str!("sql/watching.sql"),
];
const SINCE_1: &str = include_str!("sql/since1.sql");

/// Drops the functions of an earlier version; records have none of their own.
const OLD_FUNCTIONS: &str = "DO $$
    DECLARE v_function REGPROCEDURE;
    BEGIN
      FOR v_function IN SELECT oid FROM pg_proc WHERE pronamespace = current_schema()::regnamespace LOOP
        EXECUTE format('DROP FUNCTION %s', v_function);
      END LOOP;
    END $$;";

/// The time limit of statements of users and workers.
const STATEMENT_TIMEOUT: &str = "20s";

/// The role of a database user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Begin runs, add items, and read their outcomes.
    Tune,
    /// Join permitted classes, lease and complete.
    Work,
    /// Watch the fleet, and read records.
    Read,
}

impl Role {
    const ALL: [Self; 3] = [Self::Tune, Self::Work, Self::Read];

    /// The database role that users are members of.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tune => "tensorwright_tune",
            Self::Work => "tensorwright_work",
            Self::Read => "tensorwright_read",
        }
    }

    /// The functions that its members may call.
    fn functions(self) -> &'static [&'static str] {
        match self {
            Self::Tune => &[
                "begin_run",
                "enqueue",
                "cancel",
                "outcomes",
                "drive",
                "hold",
                "history",
                "unfinished",
                "final_result",
                "declared",
                "declare_best",
                "finish",
                "status",
                "sweep",
            ],
            Self::Work => &[
                "join_class",
                "report_probe",
                "report_roof",
                "is_drained",
                "lease",
                "assignment",
                "beat",
                "complete",
                "complete_finals",
                "sweep",
            ],
            Self::Read => &["status", "workers_now", "runs_now", "curve", "samples_since"],
        }
    }
}

impl Fleet {
    /// Installs the queue beside the records, or upgrades it. Requires an owner of the schema who
    /// may create roles.
    ///
    /// # Errors
    /// If the server cannot be reached, refuses, or has a newer version.
    pub fn install(url: &Url) -> Result<Self> {
        // First, the tables of records.
        drop(PostgresStore::open(url, StoreOptions::default())?);
        let mut fleet = Self::connect(url)?;
        let tables = match fleet.version()? {
            Some(VERSION) => return Ok(fleet),
            Some(found) if found > VERSION => {
                let at = fleet.settings().location().clone();
                return Err(Error::Newer { at, found, known: VERSION });
            }
            Some(_) => format!("{OLD_FUNCTIONS} {SINCE_1}"),
            None => TABLES.to_owned(),
        };
        let schema = fleet.settings().schema().to_owned();
        for role in Role::ALL {
            fleet.batch(&make_role(role))?;
        }
        let grants: Vec<String> = Role::ALL.iter().map(|role| grants(*role, &schema)).collect();
        let sql = format!(
            "BEGIN;
             SELECT pg_advisory_xact_lock(hashtextextended('{schema}', 0));
             {tables}
             {}
             INSERT INTO meta (name, value) VALUES ('fleet-schema', '{VERSION}')
               ON CONFLICT (name) DO UPDATE SET value = excluded.value;
             REVOKE ALL ON SCHEMA {schema} FROM PUBLIC;
             REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM PUBLIC;
             REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {schema} FROM PUBLIC;
             {}
             COMMIT",
            FUNCTIONS.join("\n"),
            grants.join("\n")
        );
        let made = fleet.batch(&sql);
        if made.is_err() {
            // Another process may have been faster.
            let _ = fleet.batch("ROLLBACK");
            if fleet.version()? != Some(VERSION) {
                made?;
            }
        }
        Ok(fleet)
    }

    /// The version of the queue; `None` if there is none.
    fn version(&mut self) -> Result<Option<i64>> {
        let found = self.query("SELECT value FROM meta WHERE name = 'fleet-schema'", &[])?;
        let text = found.first().map(|row| row.get::<String>(0)).transpose()?;
        Ok(text.and_then(|text| text.parse().ok()))
    }

    /// Revokes default rights of all users that could fill a disk: temporary tables and large
    /// objects. Requires a superuser, and a database used only by the fleet.
    ///
    /// # Errors
    /// If the server refuses.
    pub fn harden(&mut self) -> Result<()> {
        self.batch(
            "DO $$
             DECLARE v_function REGPROCEDURE;
             BEGIN
               EXECUTE format('REVOKE TEMPORARY, CREATE ON DATABASE %I FROM PUBLIC', current_database());
               REVOKE CREATE ON SCHEMA public FROM PUBLIC;
               FOR v_function IN SELECT oid FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace
                 AND proname IN ('lo_creat', 'lo_create', 'lo_from_bytea', 'lo_put', 'lowrite', 'lo_import', 'lo_open', 'lo_export') LOOP
                 EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', v_function);
               END LOOP;
             END $$",
        )
    }

    /// Creates a class of machines, unless it exists.
    ///
    /// # Errors
    /// If the server refuses.
    pub fn add_class(&mut self, name: &str) -> Result<()> {
        self.query("SELECT add_class($1)", &[&name]).map(|_| ())
    }

    /// Grants a role to a database user, and limits the time of the user's statements.
    ///
    /// # Errors
    /// If the name is not made of letters, digits and `_`, or the server refuses.
    pub fn admit(&mut self, user: &str, role: Role) -> Result<()> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if user.is_empty() || user.len() > 63 || !user.bytes().all(plain) {
            let (what, reason) =
                ("the name of a user", "has to be lower-case letters, digits and `_`");
            return Err(Error::Invalid { what: what.into(), reason: reason.into() });
        }
        self.batch(&format!(
            "GRANT {} TO {user}; ALTER ROLE {user} SET statement_timeout = '{STATEMENT_TIMEOUT}'",
            role.name()
        ))
    }

    /// Permits a user to work for a class.
    ///
    /// # Errors
    /// If the server refuses.
    pub fn permit(&mut self, user: &str, class: &str) -> Result<()> {
        self.query("SELECT permit($1::text::name, $2)", &[&user, &class]).map(|_| ())
    }

    /// Quarantines a worker with a reason, or releases it without one; returns how many have this
    /// name.
    ///
    /// # Errors
    /// If the server refuses.
    pub fn quarantine(&mut self, worker: &str, reason: Option<&str>) -> Result<u32> {
        self.ask("SELECT quarantine($1, $2)", &[&worker, &reason]).map(i32::unsigned_abs)
    }

    /// Removes the queue's data of runs that began at least this long ago and are over; returns the
    /// number of items. Their trials stay.
    ///
    /// # Errors
    /// If the server refuses.
    pub fn forget(&mut self, older: Duration) -> Result<u64> {
        self.ask::<i64>("SELECT forget($1)", &[&older.as_secs_f64()]).map(i64::unsigned_abs)
    }

    /// Drains a worker: it gets no more items; returns how many have this name.
    ///
    /// # Errors
    /// If the server refuses.
    pub fn drain(&mut self, worker: &str) -> Result<u32> {
        self.ask("SELECT drain($1)", &[&worker]).map(i32::unsigned_abs)
    }
}

/// Creates a role without login. Roles belong to all databases of a server, so it may exist.
fn make_role(role: Role) -> String {
    let name = role.name();
    format!(
        "DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{name}') THEN CREATE ROLE {name} NOLOGIN; END IF;
         EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
    )
}

fn grants(role: Role, schema: &str) -> String {
    let name = role.name();
    let functions = role.functions().join(", ");
    let mut sql = format!(
        "GRANT USAGE ON SCHEMA {schema} TO {name}; GRANT EXECUTE ON FUNCTION {functions} TO {name};"
    );
    if role == Role::Read {
        sql += &format!(
            "GRANT SELECT ON meta, programs, keys, runs, texts, trials, bests, removed, verified TO {name};"
        );
    }
    sql
}
