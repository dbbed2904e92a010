//! Converts server errors to [`Error`], with help.

use std::error::Error as _;
use std::time::Duration;

use tensorwright_lang::text::printable;
use tokio_postgres::error::SqlState;

use crate::error::Error;
use crate::location::Location;

/// Converts an error of the server.
pub(super) fn failure(at: &Location, waited: Duration, error: &tokio_postgres::Error) -> Error {
    let at = at.clone();
    let Some(said) = error.as_db_error() else {
        return Error::Unreachable { at, reason: chain(error) };
    };
    let detail = printable(said.message()).to_string();
    match said.code() {
        code if *code == SqlState::DISK_FULL => Error::Full { at },
        code if *code == SqlState::T_R_SERIALIZATION_FAILURE
            || *code == SqlState::T_R_DEADLOCK_DETECTED =>
        {
            Error::Conflict { at }
        }
        code if *code == SqlState::LOCK_NOT_AVAILABLE => {
            Error::Busy { at, waited, holders: Vec::new() }
        }
        code if *code == SqlState::READ_ONLY_SQL_TRANSACTION => Error::ReadOnly { at },
        code if *code == SqlState::INSUFFICIENT_PRIVILEGE => Error::Denied { at, reason: detail },
        code if *code == SqlState::UNDEFINED_DATABASE => Error::Url { at, reason: detail },
        code if *code == SqlState::TOO_MANY_CONNECTIONS => {
            Error::Unreachable { at, reason: detail }
        }
        code => match code.code().get(..2) {
            Some("28") => Error::Denied { at, reason: detail },
            Some("08" | "57") if *code != SqlState::QUERY_CANCELED => {
                Error::Unreachable { at, reason: detail }
            }
            Some("XX") if *code != SqlState::INTERNAL_ERROR => Error::Corrupt { at, detail },
            _ => Error::Database { at, detail },
        },
    }
}

/// The text of an error and its causes, each once.
fn chain(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    printable(&text).to_string()
}
