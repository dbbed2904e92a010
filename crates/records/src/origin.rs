//! [`Origin`]: the source of a candidate.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Defines the enumeration and the words of its variants: one line each.
macro_rules! origins {
    ($($(#[$meta:meta])* $name:ident = $word:literal;)*) => {
        /// The source of a candidate. In files and commands it is a word.
        ///
        /// ```
        /// use tensorwright_records::Origin;
        ///
        /// assert_eq!(Origin::Ranked.as_str(), "ranked");
        /// assert_eq!(Origin::from("opevo"), Origin::Search("opevo".to_owned()));
        /// ```
        #[derive(
            Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(from = "String", into = "String")]
        pub enum Origin {
            $($(#[$meta])* $name,)*
            /// A search strategy proposed it: that of the run, or a member of its portfolio. Its
            /// word is the strategy's name.
            Search(String),
        }

        /// The words of all origins but strategies.
        const WORDS: &[(&str, Origin)] = &[$(($word, Origin::$name)),*];
    };
}

origins! {
    /// Unknown.
    #[default]
    Unknown = "";
    /// It is the default schedule.
    Default = "default";
    /// An earlier run measured it, for the same key.
    Record = "record";
    /// An earlier run measured it for a similar key, or it is the point of one with other sizes.
    Near = "near";
    /// The cost model ranked the point first.
    Ranked = "ranked";
    /// It is the point nearest to the default schedule.
    Start = "start";
    /// A search over pipelines found it.
    Pipeline = "pipeline";
    /// The caller of the run supplied it, with code to measure.
    Planted = "planted";
}

impl Origin {
    /// The word.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Search(strategy) => strategy,
            _ => WORDS.iter().find(|(_, origin)| origin == self).map_or("", |(word, _)| word),
        }
    }
}

impl From<&str> for Origin {
    fn from(word: &str) -> Self {
        let known = WORDS.iter().find(|(known, _)| *known == word);
        known.map_or_else(|| Self::Search(word.to_owned()), |(_, origin)| origin.clone())
    }
}

impl From<String> for Origin {
    fn from(word: String) -> Self {
        Self::from(word.as_str())
    }
}

impl From<Origin> for String {
    fn from(origin: Origin) -> Self {
        origin.as_str().to_owned()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_word_and_comes_back_from_it() {
        let search = Origin::Search("opevo".to_owned());
        for origin in WORDS.iter().map(|(_, origin)| origin.clone()).chain([search]) {
            assert_eq!(Origin::from(origin.as_str()), origin);
            let text = serde_json::to_string(&origin).unwrap();
            assert_eq!(text, format!("\"{origin}\""));
            assert_eq!(serde_json::from_str::<Origin>(&text).unwrap(), origin);
        }
    }
}
