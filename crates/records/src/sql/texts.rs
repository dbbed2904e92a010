//! The table of texts, each stored once.
//!
//! It has lines of schedules, names of strategies, and messages of failed candidates.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::database::{Database, DatabaseExt};
use super::row::{Value, values};
use crate::codec;
use crate::error::Result;

/// The most cached texts.
const REMEMBERED: usize = 100_000;

/// Texts per query.
const AT_ONCE: usize = 200;

type Hash = [u8; 16];

/// A cache of the table of texts.
#[derive(Default)]
pub(crate) struct Texts {
    ids: HashMap<Hash, i64>,
    texts: RefCell<HashMap<i64, Arc<str>>>,
}

impl Texts {
    /// Clears the cache: a failed transaction, or another process that removes texts, may have
    /// freed the numbers.
    pub(crate) fn forget(&mut self) {
        self.ids.clear();
        self.texts.get_mut().clear();
    }

    /// The number of a text, which is inserted if new. Call it inside a transaction.
    pub(crate) fn number(&mut self, db: &impl Database, text: &str) -> Result<i64> {
        let hash = hash(text);
        if let Some(id) = self.ids.get(&hash) {
            return Ok(*id);
        }
        let known = "SELECT id FROM texts WHERE hash = $1";
        let add =
            "INSERT INTO texts (hash, text) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING id";
        let find = || db.one(known, values![&hash[..]], |row| row.get(0));
        let id = match find()? {
            Some(id) => id,
            // No row comes back if another writer has inserted it first.
            None => match db.one(add, values![&hash[..], text], |row| row.get(0))? {
                Some(id) => id,
                None => find()?.ok_or_else(|| db.corrupt("a text got no number"))?,
            },
        };
        if self.ids.len() >= REMEMBERED {
            self.ids.clear();
        }
        self.ids.insert(hash, id);
        Ok(id)
    }

    /// Caches the numbers of texts and inserts new ones: in sorted order, so that writers cannot
    /// deadlock, and many per query.
    pub(crate) fn learn<'t>(
        &mut self,
        db: &impl Database,
        texts: impl Iterator<Item = &'t str>,
    ) -> Result<()> {
        let mut unknown: BTreeMap<Hash, &str> = texts
            .map(|text| (hash(text), text))
            .filter(|(hash, _)| !self.ids.contains_key(hash))
            .collect();
        if self.ids.len() + unknown.len() > REMEMBERED {
            self.ids.clear();
        }
        self.find(db, &mut unknown)?;
        let new: Vec<(Hash, &str)> = unknown.iter().map(|(hash, text)| (*hash, *text)).collect();
        for some in new.chunks(AT_ONCE) {
            let places: Vec<String> =
                (0..some.len()).map(|at| format!("(${}, ${})", 2 * at + 1, 2 * at + 2)).collect();
            let sql = format!(
                "INSERT INTO texts (hash, text) VALUES {} ON CONFLICT DO NOTHING",
                places.join(", ")
            );
            let values =
                some.iter().flat_map(|(hash, text)| [Value::Bytes(hash), Value::Text(text)]);
            db.execute(&sql, &values.collect::<Vec<_>>())?;
        }
        self.find(db, &mut unknown)
    }

    /// Caches the numbers of texts that are in the table, and removes them from `unknown`.
    fn find(&mut self, db: &impl Database, unknown: &mut BTreeMap<Hash, &str>) -> Result<()> {
        let hashes: Vec<Hash> = unknown.keys().copied().collect();
        for some in hashes.chunks(AT_ONCE) {
            let places: Vec<String> = (1..=some.len()).map(|at| format!("${at}")).collect();
            let sql = format!("SELECT hash, id FROM texts WHERE hash IN ({})", places.join(", "));
            let values: Vec<Value<'_>> = some.iter().map(|hash| Value::Bytes(hash)).collect();
            let found: Vec<(Vec<u8>, i64)> =
                db.all(&sql, &values, |row| Ok((row.get(0)?, row.get(1)?)))?;
            for (found, id) in found {
                if let Ok(hash) = Hash::try_from(found) {
                    unknown.remove(&hash);
                    self.ids.insert(hash, id);
                }
            }
        }
        Ok(())
    }

    /// The numbers of the lines of a text, as bytes.
    pub(crate) fn lines(&mut self, db: &impl Database, text: &str) -> Result<Vec<u8>> {
        let numbers: Result<Vec<u64>> = text
            .split_inclusive('\n')
            .map(|line| self.number(db, line).map(i64::cast_unsigned))
            .collect();
        numbers.map(codec::encode)
    }

    /// The text of a number.
    pub(crate) fn text(&self, db: &impl Database, id: i64) -> Result<Arc<str>> {
        if let Some(text) = self.texts.borrow().get(&id) {
            return Ok(Arc::clone(text));
        }
        let sql = "SELECT text, hash FROM texts WHERE id = $1";
        let found: Option<(String, Vec<u8>)> =
            db.one(sql, values![id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let (text, known) = found.ok_or_else(|| db.corrupt(format!("there is no text {id}")))?;
        if hash(&text)[..] != known[..] {
            return Err(db.corrupt(format!("text {id} is not the one that was written")));
        }
        let text: Arc<str> = text.into();
        let mut texts = self.texts.borrow_mut();
        if texts.len() >= REMEMBERED {
            texts.clear();
        }
        texts.insert(id, Arc::clone(&text));
        Ok(text)
    }

    /// The text of encoded line numbers.
    pub(crate) fn joined(&self, db: &impl Database, lines: &[u8]) -> Result<String> {
        let lines = codec::decode(lines)
            .ok_or_else(|| db.corrupt("the lines of a schedule are not a list of numbers"))?;
        lines
            .into_iter()
            .try_fold(String::new(), |text, line| Ok(text + &*self.text(db, line.cast_signed())?))
    }
}

/// The hash of a text in letters and digits.
pub(super) fn hex(text: &str) -> String {
    hash(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Half of a SHA-256: collisions do not occur in practice.
fn hash(text: &str) -> Hash {
    let digest = Sha256::digest(text.as_bytes());
    let mut hash = Hash::default();
    hash.copy_from_slice(&digest[..16]);
    hash
}
