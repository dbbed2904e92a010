//! [`Settings`]: the connection settings of a URL.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::password;
use crate::error::{Error, Result};
use crate::location::{Location, Url};

/// The default schema of records.
const SCHEMA: &str = "tensorwright";

/// URL options passed to the client; all others are ours.
const PASSED_ON: [&str; 12] = [
    "user",
    "password",
    "dbname",
    "host",
    "hostaddr",
    "port",
    "connect_timeout",
    "application_name",
    "options",
    "target_session_attrs",
    "channel_binding",
    "load_balance_hosts",
];

/// The connection settings of a URL.
#[derive(Clone)]
pub struct Settings {
    pub(super) config: Config,
    pub(super) tls: Option<Certificates>,
    pub(super) location: Location,
    schema: String,
}

/// Certificate files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Certificates {
    /// The trusted authorities for the server's certificate; by default the system's list.
    pub(super) roots: Option<PathBuf>,
    /// The certificate and key of this client.
    pub(super) own: Option<(PathBuf, PathBuf)>,
}

/// The options of a URL that the client does not know.
#[derive(Default)]
struct UrlOptions {
    mode: Option<String>,
    roots: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    password: Option<PathBuf>,
    schema: Option<String>,
}

impl Settings {
    /// Parses a URL, and finds the password.
    ///
    /// # Errors
    /// If the URL or a file that it names cannot be used.
    pub fn of(url: &Url) -> Result<Self> {
        let location = Location::Server(url.clone());
        let wrong = |reason: String| Error::Url { at: location.clone(), reason };
        let (rest, own) = split(url.secret_text()).map_err(wrong)?;
        let mut config: Config = rest.parse().map_err(|error| wrong(reason(&error)))?;
        let is_local = config.get_hosts().iter().all(is_local);
        let tls = encryption(&own, is_local).map_err(wrong)?;
        config.ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable });
        // Set it before finding the password, which belongs to a user.
        if config.get_user().is_none()
            && let Ok(user) = env::var("PGUSER").or_else(|_| env::var("USER"))
        {
            config.user(user);
        }
        if config.get_password().is_none()
            && let Some(found) = password::find(&config, own.password.as_deref()).map_err(wrong)?
        {
            config.password(found);
        }
        if config.get_application_name().is_none() {
            config.application_name("tensorwright");
        }
        // Keepalives detect a server that disappeared.
        config.keepalives_idle(Duration::from_secs(15));
        config.keepalives_interval(Duration::from_secs(5));
        config.keepalives_retries(3);
        config.tcp_user_timeout(Duration::from_secs(20));
        let schema = own.schema.unwrap_or_else(|| SCHEMA.to_owned());
        check_schema(&schema).map_err(wrong)?;
        Ok(Self { config, tls, location, schema })
    }

    /// The schema of the tables.
    #[must_use]
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// The location of the server.
    #[must_use]
    pub fn location(&self) -> &Location {
        &self.location
    }
}

/// The error of the client's parser; it names options and never shows their values.
fn reason(error: &tokio_postgres::Error) -> String {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    cause.unwrap_or_else(|| "it is not a server URL".to_owned())
}

/// Requires a schema name without quotes.
fn check_schema(name: &str) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    if begins && name.len() <= 48 && name.bytes().all(plain) && !name.starts_with("pg_") {
        return Ok(());
    }
    Err("schema has to be 1 to 48 lower-case letters, digits and `_`, the first a letter"
        .to_owned())
}

/// Splits our own options from a URL.
fn split(url: &str) -> Result<(String, UrlOptions), String> {
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let mut own = UrlOptions::default();
    let mut passed_on = Vec::new();
    for option in query.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').ok_or("an option has no value")?;
        let text = || decoded(value).ok_or_else(|| format!("{name} is not a text"));
        match name {
            "sslmode" => own.mode = Some(text()?),
            "sslrootcert" => own.roots = Some(text()?.into()),
            "sslcert" => own.certificate = Some(text()?.into()),
            "sslkey" => own.key = Some(text()?.into()),
            "passfile" => own.password = Some(text()?.into()),
            "schema" => own.schema = Some(text()?),
            name if PASSED_ON.contains(&name) => passed_on.push(option),
            name if name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') => {
                return Err(format!("there is no option `{name}`"));
            }
            _ => return Err("an option has no name".to_owned()),
        }
    }
    let query = passed_on.join("&");
    Ok((if query.is_empty() { base.to_owned() } else { format!("{base}?{query}") }, own))
}

/// Decodes percent encoding.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let [high, low, after @ ..] = after else { return None };
        let digit = |byte: u8| char::from(byte).to_digit(16);
        bytes.push(u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

/// Whether no other machine can read the traffic to a host.
fn is_local(host: &Host) -> bool {
    match host {
        #[cfg(unix)]
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            let address = name.parse::<std::net::IpAddr>();
            name == "localhost" || address.is_ok_and(|address| address.is_loopback())
        }
    }
}

/// The encryption; `None` for none. Certificates are always checked: an eavesdropper could also
/// impersonate the server.
fn encryption(own: &UrlOptions, is_local: bool) -> Result<Option<Certificates>, String> {
    let wanted = match own.mode.as_deref() {
        None => !is_local || own.roots.is_some(),
        Some("disable") => false,
        Some("require" | "verify-full") => true,
        Some("allow" | "prefer" | "verify-ca") => {
            return Err("sslmode has to be `disable` or `verify-full`: a connection is either \
                        checked or not encrypted"
                .to_owned());
        }
        Some(_) => return Err("sslmode has to be `disable` or `verify-full`".to_owned()),
    };
    let pair = match (&own.certificate, &own.key) {
        (Some(certificate), Some(key)) => Some((certificate.clone(), key.clone())),
        (None, None) => None,
        _ => return Err("sslcert and sslkey belong together".to_owned()),
    };
    if !wanted && (pair.is_some() || own.roots.is_some()) {
        return Err("certificates are of no use with sslmode=disable".to_owned());
    }
    Ok(wanted.then(|| Certificates { roots: own.roots.clone(), own: pair }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Result<Settings> {
        let Ok(place) = text.parse::<Location>();
        let Location::Server(url) = place else { unreachable!("{text}") };
        Settings::of(&url)
    }

    fn says(text: &str) -> String {
        let error = settings(text).err().unwrap();
        format!("{error}\nhelp: {}", error.help())
    }

    #[test]
    fn connections_to_other_machines_are_encrypted_and_checked() {
        let encrypted = |text: &str| settings(text).unwrap().tls;
        assert_eq!(encrypted("postgres://a:p@localhost/d"), None);
        assert_eq!(encrypted("postgres://a:p@127.0.0.1,[::1]/d"), None);
        assert_eq!(encrypted("postgres://a:p@/d?host=/run/postgresql"), None);
        assert_eq!(encrypted("postgres://a:p@db.example/d"), Some(Certificates::default()));
        assert_eq!(encrypted("postgres://a:p@db.example/d?sslmode=disable"), None);
        let all = "postgres://a:p@localhost/d?sslrootcert=/a%20b.pem&sslcert=c&sslkey=k";
        let own = Some(("c".into(), "k".into()));
        assert_eq!(encrypted(all), Some(Certificates { roots: Some("/a b.pem".into()), own }));
    }

    #[test]
    fn what_cannot_be_used_is_told_whole_and_without_the_password() {
        let help = "\nhelp: it has the form postgres://USER@HOST:PORT/DATABASE?sslrootcert=FILE; \
                    docs/records.md has all options";
        let cases = [
            (
                "sslmode=prefer",
                "sslmode has to be `disable` or `verify-full`: a connection is either \
              checked or not encrypted",
            ),
            ("sslmode=x", "sslmode has to be `disable` or `verify-full`"),
            ("sslcert=c", "sslcert and sslkey belong together"),
            ("sslmode=disable&sslrootcert=c", "certificates are of no use with sslmode=disable"),
            ("surprise=1", "there is no option `surprise`"),
            ("x", "an option has no value"),
            ("a%20b=1", "an option has no name"),
            ("sslkey=%ff", "sslkey is not a text"),
            ("sslkey=%f", "sslkey is not a text"),
            (
                "schema=A",
                "schema has to be 1 to 48 lower-case letters, digits and `_`, the first a letter",
            ),
            (
                "schema=pg_x",
                "schema has to be 1 to 48 lower-case letters, digits and `_`, the first a letter",
            ),
            ("connect_timeout=soon", "invalid value for option `connect_timeout`"),
        ];
        for (option, expected) in cases {
            let says = says(&format!("postgres://ann:secret@h/d?{option}"));
            let at = format!("postgres://ann:***@h/d?{option}");
            assert_eq!(says, format!("{at} cannot be used: {expected}{help}"));
        }
        assert!(says("postgres://ann:secret@h:port/d").contains("invalid value for option `port`"));
    }

    /// Every text gives an error or settings, and no message reveals a secret.
    #[test]
    fn no_text_panics() {
        let parts = [
            "postgres://",
            "u",
            ":",
            "sesame",
            "@",
            "h",
            "/",
            "?",
            "=",
            "&",
            "%",
            "%4",
            "[",
            "]",
            ",",
            "host",
            "port",
            "sslmode",
            "é",
            "\u{0}",
            "#",
        ];
        let mut random = tensorwright_random::SplitMix::new(3);
        for _ in 0..20_000 {
            let length = random.below(12);
            let more: String =
                (0..length).map(|_| parts[random.below(parts.len() as u64) as usize]).collect();
            let text = format!("postgres://u:sesame@{more}");
            if let Err(error) = settings(&text) {
                assert!(!error.to_string().contains("sesame") || more.contains("sesame"), "{text}");
            }
        }
    }
}
