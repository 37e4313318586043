//! One value of the file at a time: its type, its range, its spelling. Nothing here knows of
//! other keys.

use toml::de::DeValue;

use crate::model::id::is_name;
use crate::model::policy::{Kin, OwnShare};
use crate::model::units::{Money, Secs, Tflops};

/// What is wrong with a value, and the next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    pub text: String,
    pub hint: Option<String>,
}

/// A value can be wrong in more than one way.
pub(super) type Parsed<T> = Result<T, Vec<Wrong>>;

pub(super) fn wrong<T>(text: impl Into<String>, hint: impl Into<String>) -> Parsed<T> {
    Err(vec![Wrong { text: text.into(), hint: Some(hint.into()) }])
}

/// Type and value as the user wrote them.
fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(s) => format!("the text {:?}", s.as_ref()),
        DeValue::Integer(n) => format!("the whole number {n}"),
        DeValue::Float(n) => format!("the number {n}"),
        DeValue::Boolean(b) => format!("{b}"),
        DeValue::Datetime(d) => format!("the date {d}"),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

pub(super) fn wrong_type<T>(value: &DeValue<'_>, wanted: &str, example: &str) -> Parsed<T> {
    wrong(format!("is {}, not {wanted}", shown(value)), format!("write it like {example}"))
}

/// Of one text, in bytes: no command line is longer, and each shard has its own copy.
const TEXT_MOST: usize = 16 << 10;

pub(super) fn text(value: &DeValue<'_>) -> Parsed<String> {
    match value {
        DeValue::String(s) if s.trim().is_empty() => {
            wrong("is empty", "fill it in, or leave the key out")
        }
        // No path, argument or environment value can carry one to another process.
        DeValue::String(s) if s.contains('\0') => wrong("holds a NUL character", "take it out"),
        DeValue::String(s) if s.len() > TEXT_MOST => {
            wrong(format!("is longer than {TEXT_MOST} bytes"), "put what is in it into a script")
        }
        DeValue::String(s) => Ok(s.as_ref().to_owned()),
        other => wrong_type(other, "a text", "\"...\", in quotes"),
    }
}

/// A word for Slurm: a QOS, partition, account, user, model.
pub(super) fn word(value: &DeValue<'_>) -> Parsed<String> {
    let text = text(value)?;
    if text.starts_with('-') || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return wrong(format!("{text:?} is not one word"), "write it as Slurm spells it");
    }
    Ok(text)
}

/// A name of the user's, which ends up in job names, paths and shells.
pub(super) fn name(text: &str) -> Parsed<String> {
    if is_name(text) {
        return Ok(text.to_owned());
    }
    wrong(
        format!("{text:?} is not a name"),
        "names are 1 to 64 letters, digits, `_`, `.`, `-`, and not only dots",
    )
}

pub(super) fn name_value(value: &DeValue<'_>) -> Parsed<String> {
    name(&text(value)?)
}

fn integer(value: &DeValue<'_>) -> Parsed<i64> {
    match value {
        DeValue::Integer(n) => match i64::from_str_radix(n.as_str(), n.radix()) {
            Ok(n) => Ok(n),
            Err(_) => wrong(format!("{n} is too large"), "write a smaller number"),
        },
        DeValue::String(s) if s.trim().parse::<i64>().is_ok() => wrong(
            format!("is the text {:?}, not a whole number", s.as_ref()),
            format!("leave the quotes out: {}", s.trim()),
        ),
        other => wrong_type(other, "a whole number", "4, without quotes"),
    }
}

/// A whole number from `least` to `most`.
pub(super) fn whole(value: &DeValue<'_>, least: u32, most: u32) -> Parsed<u32> {
    let n = integer(value)?;
    match u32::try_from(n) {
        Ok(n) if (least..=most).contains(&n) => Ok(n),
        _ if most == u32::MAX => wrong(format!("is {n}"), format!("at least {least}")),
        _ => wrong(format!("is {n}"), format!("allowed are {least} to {most}")),
    }
}

pub(super) fn number(value: &DeValue<'_>) -> Parsed<f64> {
    match value {
        DeValue::Integer(_) => integer(value).map(|n| n as f64),
        DeValue::Float(n) => match n.as_str().parse::<f64>() {
            Ok(n) => Ok(n),
            Err(_) => wrong(format!("{n} is not a number"), "write it like 25.0"),
        },
        DeValue::String(s) if s.trim().trim_start_matches('$').parse::<f64>().is_ok() => wrong(
            format!("is the text {:?}, not a number", s.as_ref()),
            format!("leave the quotes out: {}", s.trim().trim_start_matches('$')),
        ),
        other => wrong_type(other, "a number", "25.0, without quotes"),
    }
}

/// More than nothing, in dollars.
pub(super) fn money(value: &DeValue<'_>) -> Parsed<Money> {
    let n = number(value)?;
    match Money::from_dollars(n) {
        Some(amount) if amount > Money::ZERO => Ok(amount),
        _ => wrong(format!("is {n}"), "write an amount above 0, in dollars"),
    }
}

/// A cap: money, where 0 has another meaning in the user's mind.
pub(super) fn cap(value: &DeValue<'_>) -> Parsed<Money> {
    match number(value)? {
        0.0 => wrong(
            "is 0, which would let nothing run",
            "to keep a shard from running use `babysit hold`; for no cap leave the key out",
        ),
        n if n < 0.0 => wrong(
            format!("is {n}: a cap cannot be negative"),
            "write the most dollars that one shard may spend, or leave the key out for no cap",
        ),
        _ => money(value),
    }
}

pub(super) fn tflops(value: &DeValue<'_>) -> Parsed<Tflops> {
    let n = number(value)?;
    match Tflops::from_f64(n) {
        Some(tflops) => Ok(tflops),
        None => wrong(format!("is {n}"), "write the model's TFLOP/s, above 0, like 82.6"),
    }
}

/// One of a few words.
pub(super) fn one_of<T: Copy>(value: &DeValue<'_>, choices: &[(&str, T)]) -> Parsed<T> {
    let text = text(value)?;
    match choices.iter().find(|(word, _)| *word == text) {
        Some((_, choice)) => Ok(*choice),
        None => {
            let all: Vec<String> = choices.iter().map(|(w, _)| format!("{w:?}")).collect();
            wrong(format!("is {text:?}"), format!("allowed are {}", all.join(" and ")))
        }
    }
}

/// A number of GPUs, or a word.
pub(super) fn own_share(value: &DeValue<'_>) -> Parsed<OwnShare> {
    match value {
        DeValue::String(_) => {
            one_of(value, &[("all", OwnShare::All), ("average", OwnShare::Average)])
        }
        _ => whole(value, 1, u32::MAX).map(OwnShare::Gpus),
    }
}

/// Which shards the pilots of a family take; `None`: its jobs are no pilots.
pub(super) fn pilot(value: &DeValue<'_>) -> Parsed<Option<Kin>> {
    match value {
        DeValue::Boolean(yes) => Ok(yes.then_some(Kin::Family)),
        DeValue::String(word) if word.as_ref() == "any" => Ok(Some(Kin::Any)),
        other => wrong_type(other, "true, false or \"any\"", "true"),
    }
}

pub(super) fn yes_or_no(value: &DeValue<'_>) -> Parsed<bool> {
    match value {
        DeValue::Boolean(yes) => Ok(*yes),
        other => wrong_type(other, "true or false", "true"),
    }
}

pub(super) fn regex(text: &str) -> Parsed<String> {
    match regex::Regex::new(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(e) => {
            // The crate draws the pattern over several lines; its last one says what is wrong.
            let all = e.to_string();
            let last = all.lines().last().unwrap_or_default();
            let why = last.strip_prefix("error: ").unwrap_or(last);
            wrong(
                format!("{text:?} is not a regular expression: {why}"),
                "put `\\\\` before a character that is meant as itself",
            )
        }
    }
}

/// `sbatch --mem`: a number with K, M, G or T.
pub(super) fn memory(value: &DeValue<'_>) -> Parsed<String> {
    let text = match value {
        DeValue::Integer(n) => {
            return wrong(
                format!("is the whole number {n}, without a unit"),
                format!("write \"{n}M\" or \"{n}G\""),
            );
        }
        other => text(other)?,
    };
    let digits = text.trim_end_matches(['K', 'M', 'G', 'T', 'k', 'm', 'g', 't']);
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if plain && text.len() - digits.len() <= 1 {
        return Ok(text);
    }
    wrong(format!("is {text:?}"), "write a number and K, M, G or T, like \"64G\"")
}

/// A length of time longer than nothing: "30s", "1h30m", or Slurm's "2-00:00:00".
pub(super) fn duration(value: &DeValue<'_>) -> Parsed<Secs> {
    let text = match value {
        DeValue::Integer(n) => {
            return wrong(
                format!("is the number {n}, without a unit"),
                format!("write \"{n}s\" or \"{n}m\""),
            );
        }
        other => text(other)?,
    };
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return wrong(
            format!("is {text:?}, without a unit"),
            format!("write \"{text}s\" or \"{text}m\""),
        );
    }
    let length = if text.contains([':', '-']) { slurm_time(text) } else { units(text) };
    match length {
        Some(Secs(0)) => wrong(format!("is {text:?}, no time at all"), "write at least \"1s\""),
        Some(length) => Ok(length),
        None => wrong(
            format!("{text:?} is not a length of time"),
            "write it like \"30s\", \"15m\", \"1h30m\", \"2d\" or \"2-00:00:00\"",
        ),
    }
}

/// `1h30m`: numbers each with d, h, m or s, the larger unit first.
pub fn units(text: &str) -> Option<Secs> {
    let mut total: i64 = 0;
    let mut rest = text;
    let mut last = i64::MAX;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, tail) = rest.split_at_checked(end)?;
        let mut chars = tail.chars();
        let unit = match chars.next()? {
            'd' => 86_400,
            'h' => 3600,
            'm' => 60,
            's' => 1,
            _ => return None,
        };
        if unit >= last {
            return None;
        }
        last = unit;
        total = total.checked_add(number.parse::<i64>().ok()?.checked_mul(unit)?)?;
        rest = chars.as_str();
    }
    (last != i64::MAX).then_some(Secs(total))
}

/// Seconds of `[D-]HH:MM:SS`, `MM:SS`, `D-HH`, `D-HH:MM` or `MM`, as sbatch --time reads them.
fn slurm_time(text: &str) -> Option<Secs> {
    let field = |s: &str| -> Option<i64> {
        (!s.is_empty() && s.len() <= 6 && s.bytes().all(|b| b.is_ascii_digit()))
            .then(|| s.parse().ok())
            .flatten()
    };
    let (days, clock) = match text.split_once('-') {
        Some((days, clock)) => (Some(field(days)?), clock),
        None => (None, text),
    };
    let parts: Vec<i64> = clock.split(':').map(field).collect::<Option<_>>()?;
    let (h, m, s) = match (days.is_some(), parts.as_slice()) {
        (_, [h, m, s]) => (*h, *m, *s),
        (false, [m, s]) => (0, *m, *s),
        (false, [m]) => (0, *m, 0),
        (true, [h, m]) => (*h, *m, 0),
        (true, [h]) => (*h, 0, 0),
        _ => return None,
    };
    Some(Secs(days.unwrap_or(0) * 86_400 + h * 3600 + m * 60 + s))
}

/// `sbatch --time`, kept as it is written.
pub(super) fn time_limit(value: &DeValue<'_>) -> Parsed<String> {
    let text = match value {
        DeValue::Integer(n) => {
            return wrong(
                format!("is the number {n}"),
                "write it as Slurm does, in quotes: \"2-00:00:00\" is two days",
            );
        }
        other => text(other)?.trim().to_owned(),
    };
    if text.eq_ignore_ascii_case("UNLIMITED") || text.eq_ignore_ascii_case("INFINITE") {
        return Ok(text);
    }
    match (slurm_time(&text), units(&text)) {
        (Some(Secs(0)), _) => wrong(format!("is {text:?}, no time at all"), "write \"1:00:00\""),
        (Some(_), _) => Ok(text),
        (None, Some(Secs(s))) => wrong(
            format!("is {text:?}, but Slurm takes days-hours:minutes:seconds"),
            format!(
                "write \"{}-{:02}:{:02}:{:02}\"",
                s / 86_400,
                s / 3600 % 24,
                s / 60 % 60,
                s % 60
            ),
        ),
        (None, None) => wrong(
            format!("{text:?} is not a time limit of Slurm's"),
            "write days-hours:minutes:seconds, like \"2-00:00:00\"",
        ),
    }
}

#[cfg(test)]
mod tests;
