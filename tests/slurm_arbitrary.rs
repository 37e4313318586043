//! Whatever bytes come: no parser panics, and none makes more than it was given.

use babysit::model::units::Time;
use babysit::slurm::command::{End, Outcome};
use babysit::slurm::{
    PastAsk, error, gres, hostlist, sacct, sbatch, scontrol, sinfo, squeue, state, time,
};
use proptest::prelude::*;

/// Bytes that look like Slurm's more often than chance would have it.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "\u{1f}",
            "\n",
            "|",
            "gpu",
            "gpu:",
            "gres/",
            "gres:",
            ":",
            ",",
            "=",
            "(",
            ")",
            "(S:0-1)",
            "[",
            "]",
            "-",
            "0",
            "1",
            "99999",
            "123_4",
            "N/A",
            "(null)",
            "UNLIMITED",
            "*",
            "+",
            "IDLE",
            "a[1-",
            "Name|GrpTRES\n",
            "QOS=own(1)\n",
            "GrpTRES=gres/gpu=",
            "Current Association Manager state\n",
            "CANCELLED by 7",
            "365-",
        ])
        .prop_map(|s| s.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..8),
    ];
    prop::collection::vec(piece, 0..60)
        .prop_map(|pieces| String::from_utf8_lossy(&pieces.concat()).into_owned())
}

/// A header, then anything: the inside of the parsers is reached too.
fn table(headers: &[&str], separator: &str, last: bool, body: &str) -> String {
    let end = if last { separator } else { "" };
    format!("{}{end}\n{body}", headers.join(separator))
}

/// `usual`, or as many as $PROPTEST_CASES says (scripts/fuzz).
fn cases(usual: u32) -> u32 {
    const UNSET: u32 = 256;
    Some(ProptestConfig::default().cases).filter(|wish| *wish != UNSET).unwrap_or(usual)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(512)))]

    #[test]
    fn tables(body in text()) {
        let ask = PastAsk { names: vec!["x".to_owned()], since: Time(0) };
        for separator in ["\u{1f}", "|"] {
            let headers = squeue::COLUMNS.map(|(_, _, header)| header);
            let whole = table(&headers, separator, true, &body);
            for text in [&body, &whole] {
                if let Ok(jobs) = squeue::parse(text, separator) {
                    prop_assert!(jobs.len() <= text.len());
                }
            }
            let headers = sinfo::COLUMNS.map(|(_, _, header)| header);
            let whole = table(&headers, separator, true, &body);
            for text in [&body, &whole] {
                if let Ok(nodes) = sinfo::parse(text, separator) {
                    prop_assert!(nodes.len() <= text.len());
                }
            }
            let headers = sacct::COLUMNS.map(|(_, header)| header);
            let whole = table(&headers, separator, false, &body);
            for text in [&body, &whole] {
                if let Ok(jobs) = sacct::parse(text, separator, &ask) {
                    prop_assert!(jobs.len() <= text.len());
                }
            }
        }
    }

    #[test]
    fn cells(cell in text()) {
        for gres in [gres::of_node(&cell), gres::of_job(&cell), gres::of_tres(&cell)].into_iter().flatten() {
            prop_assert!(gres.gpus.len() + gres.others.len() <= cell.len() + 1);
        }
        if let Some(names) = hostlist::expand(&cell) {
            prop_assert!(names.len() <= hostlist::MOST_NAMES);
        }
        prop_assert!(state::node(&cell).flags.len() <= cell.len() + 1);
        std::hint::black_box((state::job(&cell), state::cancelled_by(&cell)));
        // A date of Slurm's has at most four digits for the year, a length at most nine for the days.
        prop_assert!(time::length(&cell).ok().flatten().is_none_or(|s| s.0 >= 0 && s.0 < i64::MAX / 1000));
        prop_assert!(time::moment(&cell).is_err() || !cell.contains("gpu"));
    }

    #[test]
    fn answers(out in text(), err in text(), rc in 0..3) {
        let outcome = Outcome {
            end: End::Code(rc),
            stdout: out.clone().into(),
            stderr: err.clone().into(),
            overflow: false,
            elapsed: std::time::Duration::ZERO,
        };
        let accepted = matches!(
            sbatch::parse(&Ok(outcome.clone())),
            babysit::model::request::Submitted::Accepted(_)
        );
        prop_assert!(!accepted || rc == 0);
        prop_assert!(error::reading("it", Ok(outcome)).is_err() || rc == 0);
        prop_assert!(error::telling_line(&err).chars().count() <= 300);
        for size in [scontrol::parse_qos(&out, "own"), scontrol::parse_sacctmgr(&out, "own")] {
            prop_assert!(size.is_err() || out.contains("Association Manager state") || out.contains("GrpTRES"));
        }
    }
}
