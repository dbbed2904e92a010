//! [`Weights`]: trained weights as a file.

use std::fmt;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use tensorwright_learn::Mlp;

use super::super::Kind;
use super::super::features::Features;
use super::network::Network;

/// The maximum units per layer, and the maximum number of layers, in a file.
const MOST: (usize, usize) = (1024, 8);

/// The version of the format.
const FORMAT: u32 = 1;

/// The origin of weights.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Provenance {
    /// The machine that was measured.
    pub machine: String,
    /// The code-generation target.
    pub target: String,
    /// The number of measured programs.
    pub programs: usize,
    /// The number of measured schedules.
    pub samples: usize,
    /// The seed of the training.
    pub seed: u64,
}

/// Trained weights of the cost model, with their origin.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    provenance: Provenance,
    hidden: Vec<usize>,
    network: Network,
}

/// The file.
#[derive(Debug, Serialize, Deserialize)]
struct File {
    format: u32,
    provenance: Provenance,
    features: Vec<String>,
    kinds: Vec<String>,
    hidden: Vec<usize>,
    parameters: Vec<f32>,
}

/// A parse error of a weights file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightsError(String);

impl fmt::Display for WeightsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let help = "`tensorwright cost-model train` makes weights for this version";
        write!(f, "{}\n  help: {help}", self.0)
    }
}

impl std::error::Error for WeightsError {}

impl Weights {
    pub(super) fn new(provenance: Provenance, hidden: Vec<usize>, network: Network) -> Self {
        Self { provenance, hidden, network }
    }

    /// Untrained weights, which make the model the analytical one.
    #[must_use]
    pub fn unlearned() -> Self {
        Self::new(Provenance::default(), Vec::new(), Network::new(&[], 0))
    }

    /// The weights that come with this version; see their [provenance](Self::provenance).
    #[must_use]
    pub fn shipped() -> &'static Self {
        static SHIPPED: LazyLock<Weights> = LazyLock::new(|| {
            // A test reads them.
            Weights::parse(include_str!("../../../weights/cpu.json"))
                .unwrap_or_else(|_| Weights::unlearned())
        });
        &SHIPPED
    }

    /// The origin of the weights.
    #[must_use]
    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    pub(super) fn hidden(&self) -> &[usize] {
        &self.hidden
    }

    pub(super) fn network(&self) -> &Network {
        &self.network
    }

    /// Parses a file.
    ///
    /// ```
    /// use tensorwright_pipeline::Weights;
    ///
    /// let weights = Weights::unlearned();
    /// assert_eq!(Weights::parse(&weights.to_json())?, weights);
    /// assert!(Weights::parse("{}").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the text is malformed, or has another format version.
    pub fn parse(text: &str) -> Result<Self, WeightsError> {
        let wrong = |what: &str| WeightsError(format!("not a cost-model weights file: {what}"));
        let file: File = serde_json::from_str(text).map_err(|error| wrong(&error.to_string()))?;
        if file.format != FORMAT {
            return Err(wrong(&format!("format version {}, expected {FORMAT}", file.format)));
        }
        let kinds: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        if file.features != Features::names() || file.kinds != kinds {
            return Err(wrong("its features or cost kinds are those of another version"));
        }
        let sizes = Network::sizes(&file.hidden);
        let is_small = file.hidden.len() <= MOST.1
            && file.hidden.iter().all(|units| (1..=MOST.0).contains(units));
        let is_finite = file.parameters.iter().all(|weight| weight.is_finite());
        let network = if is_small && is_finite { Mlp::of(&sizes, file.parameters) } else { None };
        let Some(network) = network else {
            return Err(wrong("its parameters do not match its layer sizes"));
        };
        Ok(Self::new(file.provenance, file.hidden, Network(network)))
    }

    /// The file.
    #[must_use]
    pub fn to_json(&self) -> String {
        let file = File {
            format: FORMAT,
            provenance: self.provenance.clone(),
            features: Features::names().into_iter().map(str::to_owned).collect(),
            kinds: Kind::ALL.iter().map(|kind| kind.name().to_owned()).collect(),
            hidden: self.hidden.clone(),
            parameters: self.network.0.parameters().to_vec(),
        };
        // Numbers and names can always be written.
        serde_json::to_string(&file).unwrap_or_default()
    }
}
