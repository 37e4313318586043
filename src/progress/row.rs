//! One line of a JSONL file: is it a row, which one, and what did it cost?
//!
//! Only the values that are asked for are looked at; the rest of the line is checked to be JSON
//! and skipped, whatever its size.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::hash::Hash;
use crate::model::units::Money;

/// Names of the values wanted: `a`, or `a.b` for a value within a value (or a name with a dot).
#[derive(Clone, Copy, Default)]
pub(super) struct Want<'w> {
    pub key: Option<&'w str>,
    pub field: Option<&'w str>,
}

/// What a line that is a JSON object holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    /// Hash of the key's value; `None` where it has none that can be told from others.
    pub key: Option<u64>,
    /// `None` where it is no readable amount.
    pub amount: Option<Money>,
}

/// `None`: the line is no JSON object.
pub(super) fn read(line: &[u8], want: Want<'_>) -> Option<Row> {
    let mut found = Found::default();
    if parse(line, want, &mut found).is_err() {
        // Python writes NaN and Infinity bare, which JSON does not have.
        let spelled = without_nan(line)?;
        found = Found::default();
        parse(&spelled, want, &mut found).ok()?;
    }
    found.object.then(|| Row { key: found.key.hash(), amount: found.field.amount() })
}

fn parse(line: &[u8], want: Want<'_>, found: &mut Found) -> Result<(), serde_json::Error> {
    let mut json = serde_json::Deserializer::from_slice(line);
    let steps = Steps {
        key: want.key.map_or(Step::No, Step::Within),
        field: want.field.map_or(Step::No, Step::Within),
    };
    Value { steps, found, top: true }.deserialize(&mut json)?;
    json.end()
}

/// The line with bare `NaN` and `Infinity` as `null`; `None` where it has none.
fn without_nan(line: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(line.len());
    let (mut quoted, mut replaced, mut rest) = (false, false, line);
    while let Some((&byte, after)) = rest.split_first() {
        if quoted {
            out.push(byte);
            rest = after;
            match (byte, after.split_first()) {
                (b'"', _) => quoted = false,
                (b'\\', Some((&escaped, after))) => {
                    out.push(escaped);
                    rest = after;
                }
                _ => {}
            }
            continue;
        }
        let word =
            [&b"-Infinity"[..], b"Infinity", b"NaN"].into_iter().find(|w| rest.starts_with(w));
        if let Some(word) = word {
            out.extend_from_slice(b"null");
            rest = &rest[word.len()..];
            replaced = true;
        } else {
            quoted = byte == b'"';
            out.push(byte);
            rest = after;
        }
    }
    replaced.then_some(out)
}

#[derive(Default)]
struct Found {
    /// The line as a whole is an object.
    object: bool,
    key: Scalar,
    field: Scalar,
}

#[derive(Clone, Copy, Default)]
enum Scalar {
    #[default]
    Absent,
    Text(u64),
    Number {
        value: f64,
        hash: u64,
    },
    Bool(bool),
    /// null, a list or an object: no key, no amount.
    Other,
}

impl Scalar {
    fn hash(self) -> Option<u64> {
        match self {
            Scalar::Text(hash) | Scalar::Number { hash, .. } => Some(hash),
            Scalar::Bool(truth) => Some(Hash::new().add(&[b'b', u8::from(truth)]).get()),
            Scalar::Absent | Scalar::Other => None,
        }
    }

    fn amount(self) -> Option<Money> {
        match self {
            Scalar::Number { value, .. } => Money::from_dollars(value),
            Scalar::Absent | Scalar::Text(_) | Scalar::Bool(_) | Scalar::Other => None,
        }
    }

    fn whole(number: i128) -> Scalar {
        let hash = Hash::new().add(b"n").add(&number.to_le_bytes()).get();
        Scalar::Number { value: number as f64, hash }
    }

    /// 7 and 7.0 are one key: programs that read and write their rows mix them up.
    fn real(number: f64) -> Scalar {
        if number.fract() == 0.0 && number.abs() < 9e15 {
            return Scalar::whole(number as i128);
        }
        let hash = Hash::new().add(b"f").add(&number.to_bits().to_le_bytes()).get();
        Scalar::Number { value: number, hash }
    }
}

/// How a wanted value lies to the value at hand.
#[derive(Clone, Copy)]
enum Step<'w> {
    No,
    Here,
    /// Further in, under this name.
    Within(&'w str),
}

impl<'w> Step<'w> {
    fn into_name(self, name: &str) -> Step<'w> {
        let Step::Within(path) = self else { return Step::No };
        if path == name {
            return Step::Here;
        }
        match path.strip_prefix(name).and_then(|rest| rest.strip_prefix('.')) {
            Some(rest) => Step::Within(rest),
            None => Step::No,
        }
    }

    fn is_no(self) -> bool {
        matches!(self, Step::No)
    }
}

#[derive(Clone, Copy)]
struct Steps<'w> {
    key: Step<'w>,
    field: Step<'w>,
}

/// Reads a name of an object and says where that leads.
struct Name<'w>(Steps<'w>);

impl<'de, 'w> DeserializeSeed<'de> for Name<'w> {
    type Value = Steps<'w>;
    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Steps<'w>, D::Error> {
        json.deserialize_str(self)
    }
}

impl<'w> Visitor<'_> for Name<'w> {
    type Value = Steps<'w>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }
    fn visit_str<E: Error>(self, name: &str) -> Result<Steps<'w>, E> {
        let Steps { key, field } = self.0;
        Ok(Steps { key: key.into_name(name), field: field.into_name(name) })
    }
}

/// Reads a value that something wanted is, or is in.
struct Value<'w, 'f> {
    steps: Steps<'w>,
    found: &'f mut Found,
    top: bool,
}

impl Value<'_, '_> {
    fn is(self, scalar: Scalar) {
        if matches!(self.steps.key, Step::Here) {
            self.found.key = scalar;
        }
        if matches!(self.steps.field, Step::Here) {
            self.found.field = scalar;
        }
    }
}

impl<'de> DeserializeSeed<'de> for Value<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.found.object |= self.top;
        while let Some(steps) = map.next_key_seed(Name(self.steps))? {
            if steps.key.is_no() && steps.field.is_no() {
                map.next_value::<IgnoredAny>()?;
            } else {
                map.next_value_seed(Value { steps, found: &mut *self.found, top: false })?;
            }
        }
        self.is(Scalar::Other);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        self.is(Scalar::Other);
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.is(Scalar::Text(Hash::new().add(b"s").add(text.as_bytes()).get()));
        Ok(())
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<(), E> {
        self.is(Scalar::Bool(truth));
        Ok(())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.is(Scalar::whole(number.into()));
        Ok(())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.is(Scalar::whole(number.into()));
        Ok(())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        self.is(Scalar::real(number));
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.is(Scalar::Other);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANT: Want<'static> = Want { key: Some("id"), field: Some("cost.usd") };

    #[track_caller]
    fn check(line: &str, has_key: bool, amount: Option<f64>) {
        let row = read(line.as_bytes(), WANT).unwrap_or_else(|| panic!("{line} is no row"));
        assert_eq!(row.key.is_some(), has_key, "{line}");
        assert_eq!(row.amount, amount.and_then(Money::from_dollars), "{line}");
    }

    #[test]
    fn keys_and_amounts_are_found_wherever_they_are() {
        check(r#"{"id": 7, "cost": {"usd": 0.08}}"#, true, Some(0.08));
        check(r#"{"cost": {"eur": 1, "usd": 2}, "x": [{"id": 1}], "id": "a"}"#, true, Some(2.0));
        check(r#"{"id": false, "cost.usd": 0.5}"#, true, Some(0.5));
        check(r#"{"id": 1, "cost": {"usd": 1}, "cost": {"usd": 3}}"#, true, Some(3.0));
        check(r#"{"cost": {"usd": 1e-9}} "#, false, Some(1e-9));
        check(r#"{"id": null, "cost": 3}"#, false, None);
        check(r#"{"id": [1], "cost": {"usd": {"usd": 1}}}"#, false, None);
        check(r#"{"id": {"id": 1}}"#, false, None);
        check("{}", false, None);
    }

    #[test]
    fn what_is_no_amount_leaves_the_row_a_row() {
        for amount in
            ["NaN", "null", "\"0.08\"", "-0.08", "Infinity", "-Infinity", "true", "[1]", "1e300"]
        {
            check(&format!("{{\"id\": 1, \"cost\": {{\"usd\": {amount}}}}}"), true, None);
        }
        check(r#"{"id": "NaN \" NaN", "x": NaN, "cost": {"usd": 1}}"#, true, Some(1.0));
        let key = |line: &str| read(line.as_bytes(), WANT).and_then(|row| row.key);
        assert_eq!(key(r#"{"id": "a\"NaN", "x": NaN}"#), key(r#"{"id": "a\"NaN"}"#));
    }

    #[test]
    fn what_is_no_object_is_no_row() {
        for line in [
            "",
            "7",
            "[]",
            "\"id\"",
            "null",
            "NaN",
            "{",
            r#"{"id": 1"#,
            r#"{"id": 1}}"#,
            r#"{"id": 1} {"id": 2}"#,
            "{\"id\": \"a\nb\"}",
            "{'id': 1}",
            "\0\0\0",
        ] {
            assert_eq!(read(line.as_bytes(), WANT), None, "{line:?}");
        }
        assert_eq!(read(b"{\"id\": \"\xff\"}", WANT), None, "no UTF-8");
        assert_eq!(read("[".repeat(100_000).as_bytes(), WANT), None);
        assert_eq!(read(format!("{{\"id\":{}", "{\"id\":".repeat(9999)).as_bytes(), WANT), None);
    }

    #[test]
    fn keys_are_told_apart_by_value_and_kind() {
        let key = |value: &str| {
            let line = format!("{{\"id\": {value}}}");
            read(line.as_bytes(), WANT).and_then(|row| row.key)
        };
        assert_eq!(key("7"), key("7.0"));
        assert_eq!(key("\"a\""), key("\"\\u0061\""));
        let all = ["7", "\"7\"", "-7", "7.5", "true", "false", "1", "\"\"", "18446744073709551615"];
        let distinct: std::collections::HashSet<_> = all.iter().map(|v| key(v)).collect();
        assert_eq!(distinct.len(), all.len());
    }
}
