//! A queue for each test.

use std::time::Duration;

use crate::{Completion, Fleet, Item, Lease, Run, WorkerId};
use tensorwright_outcome::{Outcome, Timing};
use tensorwright_records::postgres::{Client, Settings};
use tensorwright_records::{
    AnyStore, Key, Location, Origin, ProgramInfo, RunId, RunInfo, StoreOptions, Url, open_at,
};
use tensorwright_testkit::postgres::shared;

pub(crate) const CLASS: &str = "a processor [avx2 fma] x1";

pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// A schema of a server with a queue, dropped at the end.
pub(crate) struct Place {
    name: String,
    url: String,
}

impl Place {
    /// A queue on the shared test server; `None` if there is none.
    pub(crate) fn new() -> Option<Self> {
        Some(Self::of(&shared()?))
    }

    /// A queue on a server, with a class that its owner may work for.
    pub(crate) fn of(server: &str) -> Self {
        let name = format!("f{}", RunId::fresh());
        let place = Self { url: format!("{server}?schema={name}"), name };
        let mut fleet = Fleet::install(&place.url()).unwrap();
        fleet.add_class(CLASS).unwrap();
        fleet.permit("postgres", CLASS).unwrap();
        place
    }

    pub(crate) fn schema(&self) -> &str {
        &self.name
    }

    pub(crate) fn text(&self) -> &str {
        &self.url
    }

    pub(crate) fn url(&self) -> Url {
        url(&self.url)
    }

    /// A connection as the owner.
    pub(crate) fn fleet(&self) -> Fleet {
        Fleet::connect(&self.url()).unwrap()
    }

    pub(crate) fn store(&self) -> AnyStore {
        open_at(&Location::Server(self.url()), StoreOptions::default()).unwrap()
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(&Settings::of(&self.url()).unwrap(), LIMIT).unwrap()
    }

    /// The single number of a query.
    pub(crate) fn count(&self, sql: &str) -> i64 {
        self.client().query(sql, &[], LIMIT).unwrap()[0].get(0)
    }

    /// A run with items that are not leased.
    pub(crate) fn run_with(&self, numbers: std::ops::Range<u64>) -> Run {
        let run = run(64);
        let mut fleet = self.fleet();
        fleet.begin_run(&run).unwrap();
        let items: Vec<Item> = numbers.map(item).collect();
        assert_eq!(fleet.enqueue(&run.info.id, &items).unwrap(), items.len() as u64);
        run
    }

    /// Whether every item has exactly one outcome and nothing waits.
    pub(crate) fn is_settled(&self, items: u64) -> bool {
        let sql = "SELECT (SELECT count(*) FROM ready) + (SELECT count(*) FROM leased)";
        self.count(sql) == 0 && self.count("SELECT count(*) FROM done") == items.cast_signed()
    }

    /// Asserts that each of `items` items has exactly one outcome, also in the records.
    pub(crate) fn assert_settled(&self, items: u64) {
        let counts =
            "SELECT (SELECT count(*) FROM items) * 1000000000 + (SELECT count(*) FROM done)";
        assert_eq!(self.count(counts), items.cast_signed() * 1_000_000_001);
        assert_eq!(self.count("SELECT count(*) FROM trials"), items.cast_signed());
        assert_eq!(self.count("SELECT count(*) FROM ready"), 0);
        assert_eq!(self.count("SELECT count(*) FROM leased"), 0);
        let without = "SELECT count(*) FROM items i LEFT JOIN trials t USING (run_id, number)
                       LEFT JOIN done d USING (run_id, number) WHERE t.id IS NULL OR d.lease IS NULL";
        assert_eq!(self.count(without), 0);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Ok(settings) = Settings::of(&self.url())
            && let Ok(client) = Client::connect(&settings, LIMIT)
        {
            let _ = client.batch(&format!("DROP SCHEMA {} CASCADE", self.name), LIMIT);
        }
    }
}

pub(crate) fn url(text: &str) -> Url {
    let Ok(Location::Server(url)) = text.parse() else { unreachable!("{text}") };
    url
}

pub(crate) fn program(m: i64) -> ProgramInfo {
    ProgramInfo {
        hash: format!("gemm-{m}"),
        family: "gemm".into(),
        def: "gemm".into(),
        sizes: [("M".to_owned(), m)].into(),
        text: format!("def gemm(float({m},64) A) -> (C) {{ C(m,n) = A(m,n) }}\n"),
        flops: 128.0,
        bytes: 8.0,
    }
}

pub(crate) fn run(m: i64) -> Run {
    let program = program(m);
    let key = Key::new(&program, "a processor [avx2 fma]", 1, "0.1.0 llvm-19");
    Run::new(key, program, RunInfo::new("random", 7), CLASS)
}

pub(crate) fn item(number: u64) -> Item {
    Item {
        number,
        origin: Origin::from("random"),
        algorithm: if number.is_multiple_of(2) { String::new() } else { "as written".into() },
        point: vec![number as u32, 300, u32::MAX],
        schedule: format!("C: split m {} -> m.0 m.1\n\nC: vectorize n\nlast, no end", number % 7),
    }
}

pub(crate) fn measured(seconds: f64) -> Outcome {
    let raw_seconds = seconds * 1.1;
    Outcome::Measured(Timing { seconds, raw_seconds, spread: 0.02, runs: 9, ..Timing::default() })
}

pub(crate) fn completion(lease: &Lease, seconds: f64) -> Completion {
    Completion { lease: lease.clone(), outcome: measured(seconds) }
}

/// A worker of the class.
pub(crate) fn join(fleet: &mut Fleet, name: &str) -> WorkerId {
    fleet.join(name, CLASS, "a test").unwrap()
}
