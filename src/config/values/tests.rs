use super::*;

fn parsed<T>(toml: &str, parse: impl Fn(&DeValue<'_>) -> Parsed<T>) -> Result<T, String> {
    let value = DeValue::parse(toml).expect("valid TOML");
    parse(value.get_ref())
        .map_err(|w| w.into_iter().map(|w| w.text + "; " + &w.hint.unwrap_or_default()).collect())
}

#[test]
fn durations() {
    let good = |text: &str, secs: i64| {
        assert_eq!(parsed(text, duration), Ok(Secs(secs)), "{text}");
    };
    good("\"30s\"", 30);
    good("\"2m\"", 120);
    good("\"1h30m\"", 5400);
    good("\"1d2h3m4s\"", 93_784);
    good("\"2-00:00:00\"", 172_800);
    good("\"1:30\"", 90);
    let bad = |text: &str, part: &str| {
        let message = parsed(text, duration).expect_err(text);
        assert!(message.contains(part), "{text}: {message}");
    };
    bad("90", "write \"90s\" or \"90m\"");
    bad("\"90\"", "write \"90s\" or \"90m\"");
    bad("\"0s\"", "no time at all");
    bad("\"30m1h\"", "not a length of time");
    bad("\"1.5h\"", "not a length of time");
    bad("\"-5s\"", "not a length of time");
    bad("\"99999999999999999999s\"", "not a length of time");
    bad("\"99999999999999999d\"", "not a length of time");
    bad("\"µ\"", "not a length of time");
    bad("true", "is true, not a text");
}

#[test]
fn time_limits_are_kept_as_written() {
    for good in ["2-00:00:00", "90", "1:30:00", "30:00", "1-12", "1-12:30", "UNLIMITED"] {
        assert_eq!(parsed(&format!("{good:?}"), time_limit), Ok(good.to_owned()));
    }
    let bad = |text: &str, part: &str| {
        let message = parsed(text, time_limit).expect_err(text);
        assert!(message.contains(part), "{text}: {message}");
    };
    bad("\"36h\"", "write \"1-12:00:00\"");
    bad("\"tomorrow\"", "not a time limit");
    bad("\"1:2:3:4\"", "not a time limit");
    bad("\"--wrap=x\"", "not a time limit");
    bad("\"00:00:00\"", "no time at all");
    bad("120", "in quotes");
}

#[test]
fn a_text_is_no_longer_than_any_command_line() {
    let of = |length: usize| parsed(&format!("{:?}", "x".repeat(length)), text);
    assert_eq!(of(TEXT_MOST).map(|text| text.len()), Ok(TEXT_MOST));
    let message = of(TEXT_MOST + 1).expect_err("too long");
    assert!(message.contains("longer than 16384 bytes; put what is in it"), "{message}");
}

#[test]
fn memory_has_a_unit_at_most() {
    for good in ["64G", "64000", "1T", "512m"] {
        assert_eq!(parsed(&format!("{good:?}"), memory), Ok(good.to_owned()));
    }
    for bad in ["\"G\"", "\"64GB\"", "\"64 G\"", "\"-1G\"", "64"] {
        assert!(parsed(bad, memory).is_err(), "{bad}");
    }
}

#[test]
fn amounts() {
    assert_eq!(parsed("25", cap), Ok(Money(25_000_000_000)));
    assert_eq!(parsed("0.5", money), Ok(Money(500_000_000)));
    for bad in ["0", "-1", "nan", "inf", "\"25\"", "1e300", "true", "-0.0"] {
        assert!(parsed(bad, cap).is_err(), "{bad}");
        assert!(parsed(bad, money).is_err(), "{bad}");
    }
    assert!(parsed("\"$25\"", cap).expect_err("text").contains("leave the quotes out: 25"));
}
