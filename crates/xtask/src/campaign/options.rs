//! The options of a campaign.

use std::path::{Path, PathBuf};

use crate::arguments::{self, number};

/// The options of a campaign.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CampaignOptions {
    /// The duration in hours; 0 runs nothing.
    pub(super) hours: f64,
    /// Whether to continue from the state file.
    resume: bool,
    /// The state file.
    pub(super) state: PathBuf,
    /// The seed; by default that of the state.
    pub(super) seed: Option<u64>,
    /// The output file of the page.
    pub(super) page: Option<PathBuf>,
    /// The file that a full run of CI wrote.
    pub(super) full: Option<PathBuf>,
    /// Whether to replay failures.
    pub(super) recheck: bool,
    only: Vec<String>,
}

impl CampaignOptions {
    /// Reads the arguments after the command's name.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, String> {
        let state = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/campaign.json");
        let mut options = Self {
            hours: 0.0,
            resume: false,
            state,
            seed: None,
            page: None,
            full: None,
            recheck: false,
            only: Vec::new(),
        };
        let flags = ["--resume", "--recheck"];
        arguments::read(arguments, &flags, |name, value| options.set(name, value))?;
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "--resume" => self.resume = true,
            "--recheck" => self.recheck = true,
            "--hours" => {
                self.hours = number(name, value)?;
                if !(0.0..1e5).contains(&self.hours) {
                    return Err(format!("{name} needs a number, not `{value}`"));
                }
            }
            "--seed" => self.seed = Some(number(name, value)?),
            "--state" => self.state = PathBuf::from(value),
            "--page" => self.page = Some(PathBuf::from(value)),
            "--full" => self.full = Some(PathBuf::from(value)),
            "--only" => {
                self.only = value.split(',').map(str::to_owned).collect();
                let unknown = |name: &&String| !super::KINDS.iter().any(|kind| kind.name == **name);
                if let Some(unknown) = self.only.iter().find(unknown) {
                    let names: Vec<&str> = super::KINDS.iter().map(|kind| kind.name).collect();
                    return Err(format!("no kind `{unknown}`; there are {}", names.join(", ")));
                }
            }
            _ => return Err(arguments::unknown(name)),
        }
        Ok(())
    }

    /// Whether an existing state is used: viewing it changes nothing.
    pub(super) fn goes_on(&self) -> bool {
        self.resume || self.hours == 0.0
    }

    /// Whether a kind is selected.
    pub(super) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<CampaignOptions, String> {
        let arguments: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        CampaignOptions::parse(&arguments)
    }

    #[test]
    fn options_are_read_and_mistakes_named() {
        let options = parse("--hours 0.5 --resume --only space,npy --page p.md").unwrap();
        assert!(options.wants("npy") && !options.wants("random") && options.goes_on());
        assert!(!parse("--hours 2").unwrap().goes_on());
        assert_eq!(parse("--hours x").unwrap_err(), "--hours needs a number, not `x`");
        assert_eq!(parse("--hours -1").unwrap_err(), "--hours needs a number, not `-1`");
        assert!(
            parse("--only spice").unwrap_err().starts_with("no kind `spice`; there are random,")
        );
        assert_eq!(parse("--hours").unwrap_err(), "--hours needs a value");
    }
}
