//! JSON as text, written straight into a buffer: what a save of ten thousand shards spells is some
//! forty thousand texts, numbers and keys, in every cycle. Nothing here knows what it spells.

use std::fmt::Display;

/// A text in quotes.
pub(super) fn text(text: &str, out: &mut Vec<u8>) {
    if !is_plain(text) {
        return escaped(text, out);
    }
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// Whether it stands in quotes as it is.
pub(super) fn is_plain(text: &str) -> bool {
    // No early end: the compiler takes many bytes at once that way, and nearly every text is plain.
    text.bytes().fold(true, |plain, byte| plain & (byte >= b' ') & (byte != b'"') & (byte != b'\\'))
}

#[cold]
fn escaped(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(serde_json::Value::from(text).to_string().as_bytes());
}

/// Something whose words need no escape, in quotes.
pub(super) fn quoted(word: impl Display, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("\"{word}\"").as_bytes());
}

/// A number of any size.
pub(super) fn number(number: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// A list, or an object of `key(..)` and values: `each` spells every item with a comma behind it.
pub(super) fn list(brackets: [u8; 2], out: &mut Vec<u8>, each: impl FnOnce(&mut Vec<u8>)) {
    let [open, close] = brackets;
    out.push(open);
    each(out);
    match out.last_mut() {
        Some(last) if *last == b',' => *last = close,
        _ => out.push(close),
    }
}

/// `PendingInSlurm` as `pending_in_slurm`: the words of an enum are those of its variants.
pub(super) const fn snake<const N: usize>(name: &str) -> [u8; N] {
    let name = name.as_bytes();
    let mut word = [b'_'; N];
    let (mut from, mut to) = (0, 0);
    while from < name.len() {
        if from > 0 && name[from].is_ascii_uppercase() {
            to += 1;
        }
        word[to] = name[from].to_ascii_lowercase();
        (from, to) = (from + 1, to + 1);
    }
    word
}

pub(super) const fn snake_length(name: &str) -> usize {
    let name = name.as_bytes();
    let (mut at, mut length) = (0, name.len());
    while at < name.len() {
        if at > 0 && name[at].is_ascii_uppercase() {
            length += 1;
        }
        at += 1;
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_spelled_as_everybody_spells_them() {
        for of in
            ["", "plain", "a\"b", "back\\slash", "\n\t\u{1}\u{1f}", "ünïcode ✓", "\u{7f}", "/"]
        {
            let mut out = Vec::new();
            text(of, &mut out);
            assert_eq!(out, serde_json::to_vec(of).expect("a text"), "{of:?}");
        }
    }

    #[test]
    fn lists_end_as_they_begin() {
        let spell = |items: &[&str]| {
            let mut out = Vec::new();
            list(*b"[]", &mut out, |out| {
                for item in items {
                    text(item, out);
                    out.push(b',');
                }
            });
            String::from_utf8(out).expect("text")
        };
        assert_eq!((spell(&[]), spell(&["a", ","])), ("[]".to_owned(), r#"["a",","]"#.to_owned()));
    }

    #[test]
    fn words_are_made_of_names() {
        const NAME: &str = "PendingInSlurm";
        assert_eq!(&snake::<{ snake_length(NAME) }>(NAME), b"pending_in_slurm");
        assert_eq!(&snake::<4>("Done"), b"done");
    }
}
