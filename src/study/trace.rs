//! Traces of other clusters: the Standard Workload Format, or a CSV with a header.

use crate::model::units::Secs;
use crate::sim::Rng;

use super::lab_mix::{Arrival, CAPACITY, WIDEST};

/// What became of the lines of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    pub jobs: Vec<Arrival>,
    /// Wider than any placement of the simulated cluster.
    pub too_wide: usize,
    /// Without a run time or a GPU (cancelled before they started).
    pub empty: usize,
}

/// By its content: a CSV begins with a header that names its columns.
///
/// # Errors
/// The first line that cannot be read, by number.
pub fn read(text: &str) -> Result<Trace, String> {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
    let named = first.starts_with(|c: char| c.is_ascii_alphabetic()) && first.contains(',');
    let mut trace = Trace { jobs: Vec::new(), too_wide: 0, empty: 0 };
    let columns = if named { Columns::named(first)? } else { Columns::swf() };
    let lines = text.lines().enumerate().skip(usize::from(named));
    for (n, line) in lines.filter(|(_, line)| !is_comment(line)) {
        let read = columns.job(line, named);
        let (at, lab, gpus, runs, limit) = read.map_err(|why| format!("line {}: {why}", n + 1))?;
        if gpus < 1.0 || runs < 1.0 {
            trace.empty += 1;
        } else if gpus > f64::from(WIDEST) {
            trace.too_wide += 1;
        } else {
            trace.jobs.push(Arrival {
                at: Secs(at as i64),
                lab,
                gpus: gpus as u32,
                runs: Secs(runs as i64),
                limit: Secs(limit.max(runs) as i64),
                min_tier: None,
            });
        }
    }
    trace.jobs.sort_by_key(|job| job.at);
    let first = trace.jobs.first().map_or(Secs(0), |job| job.at);
    trace.jobs.iter_mut().for_each(|job| job.at = Secs(job.at.0 - first.0));
    Ok(trace)
}

fn is_comment(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with([';', '#'])
}

/// Places of what is needed in a line.
struct Columns {
    at: usize,
    lab: Vec<usize>,
    gpus: Vec<usize>,
    runs: usize,
    limit: Option<usize>,
}

type Line = (f64, String, f64, f64, f64);

impl Columns {
    /// Field 2 is the submission, 4 the run time, 5 and 8 the processors used and asked for, 9 the
    /// time asked for, 13 the group (else 12, the user), counted from 1.
    fn swf() -> Columns {
        Columns { at: 1, lab: vec![12, 11], gpus: vec![4, 7], runs: 3, limit: Some(8) }
    }

    fn named(header: &str) -> Result<Columns, String> {
        let names: Vec<&str> = header.trim().split(',').map(str::trim).collect();
        let place = |wanted: &[&str]| {
            wanted.iter().find_map(|name| names.iter().position(|n| n.eq_ignore_ascii_case(name)))
        };
        let must = |wanted: &[&str]| {
            place(wanted)
                .ok_or_else(|| format!("line 1: no column {} in `{header}`", wanted.join(" or ")))
        };
        Ok(Columns {
            at: must(&["submit_s", "submit", "submit_time"])?,
            lab: vec![must(&["lab", "vc", "group", "user"])?],
            gpus: vec![must(&["gpus", "num_gpus", "procs"])?],
            runs: must(&["duration_s", "duration", "run_time", "runtime"])?,
            limit: place(&["limit_s", "time_limit", "requested_s"]),
        })
    }

    fn job(&self, line: &str, commas: bool) -> Result<Line, String> {
        let cells: Vec<&str> = match commas {
            true => line.split(',').map(str::trim).collect(),
            false => line.split_whitespace().collect(),
        };
        let cell = |place: usize| {
            cells.get(place).copied().ok_or_else(|| format!("only {} columns", cells.len()))
        };
        let number = |place: usize| {
            let text = cell(place)?;
            let number = text.parse::<f64>().ok().filter(|n| n.is_finite() && n.abs() < 1e12);
            number.ok_or_else(|| format!("`{text}` is no number"))
        };
        // -1 stands for what is not known.
        let mut gpus = -1.0;
        for place in &self.gpus {
            gpus = if gpus > 0.0 { gpus } else { number(*place)? };
        }
        let mut lab = "";
        for place in &self.lab {
            lab = if lab.is_empty() || lab == "-1" { cell(*place)? } else { lab };
        }
        let limit = self.limit.map_or(Ok(-1.0), number)?;
        Ok((number(self.at)?, lab.to_owned(), gpus, number(self.runs)?, limit))
    }
}

/// The jobs of the first so many days, as many of them, by chance, as give this load. A job that
/// did not say how long it wants gets one to five times its run time.
pub fn scaled(jobs: &[Arrival], seed: u64, load: f64, days: u32) -> Vec<Arrival> {
    let mut rng = Rng::stream(seed, 21);
    let end = i64::from(days) * 86_400;
    let early = || jobs.iter().filter(|job| job.at.0 < end);
    let offered: f64 = early().map(|job| f64::from(job.gpus) * job.runs.as_f64()).sum();
    let keep = load * f64::from(CAPACITY) * end as f64 / offered.max(1.0);
    let kept = early().filter(|_| rng.chance(keep)).cloned().collect::<Vec<_>>();
    let with_limit = |job: Arrival| {
        let known = job.limit > job.runs;
        let limit =
            if known { job.limit.as_f64() } else { job.runs.as_f64() * (1.0 + 4.0 * rng.unit()) };
        Arrival { limit: Secs(limit as i64), ..job }
    };
    kept.into_iter().map(with_limit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str =
        "job_id,vc,submit_s,gpus,duration_s\n1,a,100,1,60\n2,b,40,16,60\n3,a,50,8,7\n";
    const SWF: &str = "; Version: 2.2\n\
        1 100 -1 60 1 -1 -1 1 -1 -1 1 7 3 -1 -1 -1 -1 -1\n\
        2 40 -1 60 16 -1 -1 16 -1 -1 1 7 3 -1 -1 -1 -1 -1\n\
        3 50 -1 7 -1 -1 -1 8 900 -1 1 7 -1 -1 -1 -1 -1 -1\n\
        4 60 -1 -1 1 -1 -1 1 -1 -1 0 7 3 -1 -1 -1 -1 -1\n";

    fn seen(trace: &Trace) -> Vec<(i64, &str, u32, i64)> {
        trace.jobs.iter().map(|j| (j.at.0, j.lab.as_str(), j.gpus, j.runs.0)).collect()
    }

    #[test]
    fn both_formats_are_read_by_their_content() {
        let csv = read(CSV).expect("a trace");
        assert_eq!(seen(&csv), [(0, "a", 8, 7), (50, "a", 1, 60)]);
        assert_eq!((csv.too_wide, csv.empty), (1, 0));
        let swf = read(SWF).expect("a trace");
        assert_eq!(seen(&swf), [(0, "7", 8, 7), (50, "3", 1, 60)]);
        assert_eq!((swf.too_wide, swf.empty, swf.jobs[0].limit.0), (1, 1, 900));
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named() {
        let fails = |text: &str, word: &str| {
            let error = read(text).expect_err("no trace");
            assert!(error.contains(word), "{error}");
        };
        fails("job_id,vc,submit_s,gpus,duration_s\n1,a,100\n", "line 2: only 3 columns");
        fails("job_id,vc,submit_s,gpus,duration_s\n1,a,x,1,2\n", "line 2: `x` is no number");
        fails("job_id,submit_s,gpus,duration_s\n", "no column lab or vc");
        fails("1 2 3\n", "line 1: only 3 columns");
    }

    #[test]
    fn scaling_drops_jobs_until_the_load_is_right() {
        let job = |n: i64| Arrival {
            at: Secs(n * 600),
            lab: "a".into(),
            gpus: 4,
            runs: Secs(3600 * 10),
            limit: Secs(0),
            min_tier: None,
        };
        let jobs: Vec<Arrival> = (0..2000).map(job).collect();
        let kept = scaled(&jobs, 1, 0.5, 10);
        let hours: f64 = kept.iter().map(|j| f64::from(j.gpus) * j.runs.as_f64() / 3600.0).sum();
        let load = hours / (f64::from(CAPACITY) * 240.0);
        assert!((load - 0.5).abs() < 0.1, "{load}");
        assert!(kept.iter().all(|job| job.at.0 < 10 * 86_400 && job.limit >= job.runs));
    }
}
