//! Encrypted connections, certificates and passwords.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::support::{begin, key, measured, program, quick};
use tensorwright_records::postgres::{Client, Settings};
use tensorwright_records::{Error, Location, StoreOptions, open_at};
use tensorwright_testkit::postgres::{Server, port};

const LIMIT: Duration = Duration::from_secs(20);

/// Certificates of an authority, a server and a client, and of another authority.
struct Certificates(PathBuf);

impl Certificates {
    fn new(directory: &Path) -> Self {
        let made = Self(directory.to_owned());
        for authority in ["ca", "other"] {
            let (key, file) = (format!("{authority}.key"), format!("{authority}.crt"));
            made.openssl(&[
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-days",
                "2",
                "-subj",
                &format!("/CN={authority}"),
                "-keyout",
                &key,
                "-out",
                &file,
            ]);
        }
        made.sign("server", "localhost");
        made.sign("ann", "ann");
        made.sign("eve", "eve");
        made
    }

    /// A certificate signed by the first authority.
    fn sign(&self, file: &str, name: &str) {
        let (key, request) = (format!("{file}.key"), format!("{file}.csr"));
        let (signed, names) = (format!("{file}.crt"), format!("{file}.names"));
        self.openssl(&[
            "req",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-subj",
            &format!("/CN={name}"),
            "-keyout",
            &key,
            "-out",
            &request,
        ]);
        fs::write(self.0.join(&names), format!("subjectAltName=DNS:{name}")).unwrap();
        self.openssl(&[
            "x509",
            "-req",
            "-days",
            "2",
            "-in",
            &request,
            "-CA",
            "ca.crt",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-extfile",
            &names,
            "-out",
            &signed,
        ]);
        fs::set_permissions(self.0.join(&key), Permissions::from_mode(0o600)).unwrap();
    }

    fn openssl(&self, arguments: &[&str]) {
        let output = Command::new("openssl").args(arguments).current_dir(&self.0).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Files for the server, which may run as another user.
    fn install(&self, server: &Server) {
        let owner = fs::metadata(server.data()).unwrap();
        for (from, to) in
            [("server.crt", "server.crt"), ("server.key", "server.key"), ("ca.crt", "root.crt")]
        {
            let to = server.data().join(to);
            fs::copy(self.0.join(from), &to).unwrap();
            fs::set_permissions(&to, Permissions::from_mode(0o600)).unwrap();
            std::os::unix::fs::chown(&to, Some(owner.uid()), Some(owner.gid())).unwrap();
        }
    }
}

fn open(url: &str) -> Result<(), Error> {
    let Ok(place) = url.parse();
    let options = StoreOptions { busy_timeout: Duration::from_secs(3), ..quick() };
    open_at(&place, options).map(|_| ())
}

#[test]
fn a_connection_is_encrypted_checked_and_signed_in() {
    let directory = tempfile::tempdir().unwrap();
    let Some(server) = Server::start(directory.path()) else { return };
    let files = Certificates::new(directory.path());
    files.install(&server);
    let Ok(Location::Server(url)) = server.url().parse() else { unreachable!() };
    let root = Client::connect(&Settings::of(&url).unwrap(), LIMIT).unwrap();
    let sql = "CREATE ROLE ann LOGIN SUPERUSER PASSWORD 'open sesame'; ALTER SYSTEM SET ssl = on";
    root.batch(sql, LIMIT).unwrap_or_else(|error| {
        // `ALTER SYSTEM` must be a statement of its own.
        root.batch("CREATE ROLE ann LOGIN SUPERUSER PASSWORD 'open sesame'", LIMIT).unwrap();
        root.batch("ALTER SYSTEM SET ssl = on", LIMIT).unwrap_or_else(|_| unreachable!("{error}"));
    });
    root.batch("ALTER SYSTEM SET ssl_ca_file = 'root.crt'", LIMIT).unwrap();
    let access = "local all all trust\nhost all postgres 127.0.0.1/32 trust\n\
                  hostssl all all 127.0.0.1/32 scram-sha-256 clientcert=verify-full\n";
    fs::write(server.data().join("pg_hba.conf"), access).unwrap();
    root.batch("SELECT pg_reload_conf()", LIMIT).unwrap();
    std::thread::sleep(Duration::from_millis(500));

    let passwords = directory.path().join("passwords");
    fs::write(&passwords, "*:*:*:ann:open sesame\n").unwrap();
    fs::set_permissions(&passwords, Permissions::from_mode(0o600)).unwrap();
    let port = port(server.url()).unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let url = |host: &str, more: &str| {
        format!("postgres://ann@{host}:{port}/postgres?passfile={}{more}", at("passwords"))
    };
    let roots = format!("&sslrootcert={}", at("ca.crt"));
    let ann = format!("&sslcert={}&sslkey={}", at("ann.crt"), at("ann.key"));

    // Everything: encryption, checks, a client certificate, a password, and channel binding.
    let good = url("localhost", &format!("{roots}{ann}&channel_binding=require"));
    let Ok(place) = good.parse::<Location>();
    let mut store = open_at(&place, quick()).unwrap();
    let program = program(64);
    let run = begin(&mut *store, &key(&program), &program);
    store.insert(&run, &measured(0, 1.0)).unwrap();

    let refused = |url: &str, words: &str| {
        let error = open(url).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert!(!error.to_string().contains("sesame"), "{error}");
    };
    refused(&url("127.0.0.1", &format!("{roots}{ann}")), "certificate not valid for name");
    let other = format!("&sslrootcert={}{ann}", at("other.crt"));
    refused(&url("localhost", &other), "UnknownIssuer");
    refused(&url("localhost", "&sslmode=disable"), "no encryption");
    refused(&url("localhost", &roots), "client certificate");
    let eve = format!("{roots}&sslcert={}&sslkey={}", at("eve.crt"), at("eve.key"));
    refused(&url("localhost", &eve), "authentication failed");
    let wrong = "postgres://ann:wrong@localhost";
    let wrong =
        format!("{wrong}:{port}/postgres?x=y").replace("x=y", &format!("{}{ann}", &roots[1..]));
    let error = open(&wrong).unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    assert!(
        error.to_string().ends_with("password authentication failed for user \"ann\""),
        "{error}"
    );
    assert!(!error.to_string().contains("wrong@"), "{error}");
    fs::set_permissions(directory.path().join("ann.key"), Permissions::from_mode(0o644)).unwrap();
    refused(&good, "others may read the key");
    let no_roots = format!("&sslrootcert={}", at("passwords"));
    refused(&url("localhost", &no_roots), "holds no certificate");
}
