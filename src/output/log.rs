//! `babysit log`: which lines of the journal are shown.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::model::units::Time;

use super::format::iso;

/// All that is set must hold.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Lines of other projects, whose journal this is too, are not shown.
    pub project: String,
    pub of: Option<Of>,
    /// Of these kinds; all where it is empty.
    pub kinds: BTreeSet<&'static str>,
    pub since: Option<Time>,
    /// Up to this moment, not with it.
    pub until: Option<Time>,
}

#[derive(Debug, Clone, Default)]
pub struct Of {
    /// `family/shard`
    pub shards: BTreeSet<String>,
    /// Families named as such: what is told of them as a whole is shown too.
    pub families: BTreeSet<String>,
}

impl Wanted {
    pub fn shows(&self, line: &Value) -> bool {
        let text = |key: &str| line.get(key).and_then(Value::as_str);
        let Wanted { project, of, kinds, since, until } = self;
        // Moments are written in one form only, and sort as text.
        let at = text("at").unwrap_or_default();
        text("project").is_none_or(|written| written == project)
            && of.as_ref().is_none_or(|of| {
                text("shard").is_some_and(|shard| of.shards.contains(shard))
                    || text("family").is_some_and(|family| of.families.contains(family))
            })
            && (kinds.is_empty() || text("kind").is_some_and(|kind| kinds.contains(kind)))
            && since.is_none_or(|since| at >= iso(since).as_str())
            && until.is_none_or(|until| at < iso(until).as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_is_shown_where_all_that_is_asked_holds() {
        let line = json!({
            "at": "2026-11-02T15:00:00Z", "shard": "find/s0", "kind": "ended", "project": "p",
        });
        let family = json!({
            "at": "2026-11-02T15:00:00Z", "shard": null, "kind": "breaker-opened",
            "family": "find", "project": "p",
        });
        let at = |seconds: i64| Some(Time(1_793_631_600 + seconds));
        let all = Wanted { project: "p".into(), ..Wanted::default() };
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let of = |shards: &[&str], families: &[&str]| {
            Some(Of { shards: set(shards), families: set(families) })
        };
        for (wanted, shows) in [
            (all.clone(), [true, true]),
            (Wanted { project: "q".into(), ..all.clone() }, [false, false]),
            (Wanted { of: of(&["find/s0"], &[]), ..all.clone() }, [true, false]),
            (Wanted { of: of(&["find/s0"], &["find"]), ..all.clone() }, [true, true]),
            (Wanted { of: of(&["find/s1"], &["restore"]), ..all.clone() }, [false, false]),
            (Wanted { kinds: ["ended"].into(), ..all.clone() }, [true, false]),
            (Wanted { since: at(0), until: at(1), ..all.clone() }, [true, true]),
            (Wanted { since: at(1), ..all.clone() }, [false, false]),
            (Wanted { until: at(0), ..all.clone() }, [false, false]),
        ] {
            assert_eq!([&line, &family].map(|line| wanted.shows(line)), shows, "{wanted:?}");
        }
    }
}
