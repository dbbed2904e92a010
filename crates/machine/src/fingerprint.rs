//! Fingerprints: texts that identify machines in records.

use std::collections::BTreeSet;

/// The fingerprint of a machine: its model and its features in alphabetical order.
///
/// ```
/// let target = tensorwright_machine::fingerprint("A Processor", ["fma", "avx2"]);
/// assert_eq!(target, "A Processor [avx2 fma]");
/// ```
#[must_use]
pub fn fingerprint<'f>(model: &str, features: impl IntoIterator<Item = &'f str>) -> String {
    let features: BTreeSet<&str> = features.into_iter().filter(|name| !name.is_empty()).collect();
    let features: Vec<&str> = features.into_iter().collect();
    format!("{} [{}]", model.trim(), features.join(" "))
}

/// The features that a [`fingerprint`] lists.
#[must_use]
pub fn fingerprint_features(target: &str) -> BTreeSet<&str> {
    fingerprint_parts(target).1
}

/// The model and the features of a fingerprint.
#[must_use]
pub fn fingerprint_parts(target: &str) -> (&str, BTreeSet<&str>) {
    let whole = (target, BTreeSet::new());
    let Some((model, features)) = target.strip_suffix(']').and_then(|text| text.rsplit_once(" ["))
    else {
        return whole;
    };
    (model, features.split_whitespace().collect())
}
