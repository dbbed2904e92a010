//! TLS: trusted authorities and client certificates.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::settings::Certificates;

/// Paths of the system's list of trusted authorities.
const SYSTEM: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
];

/// A connector that encrypts connections and checks certificates and host names.
pub(super) fn connector(files: &Certificates) -> Result<MakeRustlsConnect, String> {
    let roots =
        match &files.roots {
            Some(path) => path.clone(),
            None => SYSTEM.map(PathBuf::from).into_iter().find(|path| path.exists()).ok_or(
                "this system has no list of certificates to trust: name one with sslrootcert",
            )?,
        };
    let mut trusted = RootCertStore::empty();
    // The system's list may hold unsupported certificates; a user's file must not.
    let (added, ignored) = trusted.add_parsable_certificates(certificates(&roots)?);
    if added == 0 || (ignored > 0 && files.roots.is_some()) {
        return Err(format!("{} holds no certificate that can be used", roots.display()));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(trusted);
    let config = match &files.own {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            only_ours(key)?;
            let failed = |error| format!("{} holds no private key: {error}", key.display());
            let secret = PrivateKeyDer::from_pem_file(key).map_err(failed)?;
            let failed = |error| format!("{} and its key: {error}", certificate.display());
            builder.with_client_auth_cert(certificates(certificate)?, secret).map_err(failed)?
        }
    };
    Ok(MakeRustlsConnect::new(config))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let failed = |error| format!("{} holds no certificates: {error}", path.display());
    CertificateDer::pem_file_iter(path).map_err(failed)?.collect::<Result<_, _>>().map_err(failed)
}

/// Rejects a key that other users may read.
fn only_ours(key: &Path) -> Result<(), String> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let metadata =
            std::fs::metadata(key).map_err(|error| format!("{}: {error}", key.display()))?;
        if metadata.permissions().mode() & 0o077 != 0 {
            let key = key.display();
            return Err(format!("others may read the key {key}: chmod 600 {key}"));
        }
    }
    Ok(())
}
