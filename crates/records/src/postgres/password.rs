//! Passwords from `PGPASSWORD` or a private password file.

use std::env;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// The longest password file.
const MAX_FILE: u64 = 1 << 20;

/// The password of a connection: `PGPASSWORD`, or the first matching line of the file named by the
/// URL, by `PGPASSFILE`, or of `~/.pgpass`.
pub(super) fn find(config: &Config, named: Option<&Path>) -> Result<Option<String>, String> {
    if let Some(password) = env::var_os("PGPASSWORD").filter(|value| !value.is_empty()) {
        return password
            .into_string()
            .map(Some)
            .map_err(|_| "PGPASSWORD is not valid text".to_owned());
    }
    let variable =
        || env::var_os("PGPASSFILE").filter(|value| !value.is_empty()).map(PathBuf::from);
    let asked = named.map(Path::to_owned).or_else(variable);
    let path = match &asked {
        Some(path) => path.clone(),
        None => match env::var_os("HOME") {
            Some(home) => Path::new(&home).join(".pgpass"),
            None => return Ok(None),
        },
    };
    match File::open(&path) {
        Ok(file) => {
            let text = read(&file, &path)?;
            Ok(lines(&text).find(|line| fits(line, config)).map(|line| line[4].clone()))
        }
        // The default file is optional.
        Err(_) if asked.is_none() => Ok(None),
        Err(error) => Err(format!("the password file {}: {error}", path.display())),
    }
}

fn read(file: &File, path: &Path) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("the password file {}: {error}", path.display());
    let metadata = file.metadata().map_err(failed)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        if metadata.permissions().mode() & 0o077 != 0 {
            let path = path.display();
            return Err(format!("other users may read the password file {path}: chmod 600 {path}"));
        }
    }
    if !metadata.is_file() || metadata.len() > MAX_FILE {
        return Err(format!("the password file {} is too long or not a file", path.display()));
    }
    let mut text = String::new();
    file.take(MAX_FILE).read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

/// The lines with five fields: host, port, database, user, password.
fn lines(text: &str) -> impl Iterator<Item = [String; 5]> {
    text.lines().filter(|line| !line.starts_with('#')).filter_map(fields)
}

/// The fields of a line. A backslash escapes the next character.
fn fields(line: &str) -> Option<[String; 5]> {
    let mut fields: [String; 5] = Default::default();
    let (mut at, mut escaped) = (0, false);
    for character in line.chars() {
        match character {
            '\\' if !escaped => escaped = true,
            ':' if !escaped && at < 4 => at += 1,
            other => {
                fields[at].push(other);
                escaped = false;
            }
        }
    }
    (at == 4).then_some(fields)
}

fn fits([host, port, database, user, _]: &[String; 5], config: &Config) -> bool {
    let is = |wanted: &str, field: &str| field == "*" || field == wanted;
    let user_wanted = config.get_user().unwrap_or_default();
    let hosts: Vec<&str> = config
        .get_hosts()
        .iter()
        .map(|host| match host {
            Host::Tcp(name) => name.as_str(),
            #[cfg(unix)]
            Host::Unix(_) => "localhost",
        })
        .collect();
    let ports: Vec<String> = config.get_ports().iter().map(u16::to_string).collect();
    let is_port =
        ports.is_empty() && is("5432", port) || ports.iter().any(|wanted| is(wanted, port));
    hosts.iter().any(|wanted| is(wanted, host))
        && is_port
        && is(config.get_dbname().unwrap_or(user_wanted), database)
        && is(user_wanted, user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_counts() {
        let text =
            "# comment\nshort:line\nother:*:*:*:no\nh:5432:d:ann:a\\:b\\\\c:d\n*:*:*:*:any\n";
        let password = |url: &str| {
            let config: Config = url.parse().unwrap();
            lines(text).find(|line| fits(line, &config)).map(|line| line[4].clone())
        };
        assert_eq!(password("postgres://ann@h/d").as_deref(), Some("a:b\\c:d"));
        assert_eq!(password("postgres://ann@h:1/d").as_deref(), Some("any"));
        assert_eq!(password("postgres://bob@h/d").as_deref(), Some("any"));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_may_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pass");
        std::fs::write(&path, "*:*:*:*:secret\n").unwrap();
        let config: Config = "postgres://ann@h/d".parse().unwrap();
        let set = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode));
        set(0o644).unwrap();
        let says = find(&config, Some(&path)).unwrap_err();
        let shown = path.display();
        assert_eq!(
            says,
            format!("other users may read the password file {shown}: chmod 600 {shown}")
        );
        set(0o600).unwrap();
        assert_eq!(find(&config, Some(&path)), Ok(Some("secret".to_owned())));
        let says = find(&config, Some(&directory.path().join("none"))).unwrap_err();
        assert!(says.contains("No such file"), "{says}");
    }
}
