//! The known word that a mistyped one was most likely meant to be: one measure for keys, names in
//! shards.toml and words of the command line.

/// The nearest of `candidates`, where one is near enough to be a slip of the hand. The first of equals.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_ascii_lowercase();
    // One slip in a short word, one in three letters of a longer one.
    let length = word.chars().count();
    let allowed = (length / 3).max(1);
    candidates
        .into_iter()
        // Before they are compared letter by letter: the word may be a file of another kind.
        .filter(|c| length.abs_diff(c.chars().count()) <= allowed)
        .map(|c| (strsim::damerau_levenshtein(&lower, &c.to_ascii_lowercase()), c))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, c)| c)
}

/// `did you mean "gpus"?`, quoted as TOML quotes.
pub(super) fn did_you_mean<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    nearest(word, candidates).map(|c| format!("did you mean \"{c}\"?"))
}

#[cfg(test)]
mod tests {
    use super::super::keys::FAMILY;
    use super::*;

    #[test]
    fn only_near_words_are_suggested() {
        let check = |word: &str, expected: Option<&str>| {
            let got = did_you_mean(word, FAMILY.iter().copied());
            assert_eq!(got, expected.map(|w| format!("did you mean \"{w}\"?")), "{word}");
        };
        check("gpuz", Some("gpus"));
        check("gpu", Some("gpus"));
        check("GPUS", Some("gpus"));
        check("comand", Some("command"));
        check("mintier", Some("min_tier"));
        check("row-time", Some("row_time"));
        check("colour", None);
    }
}
