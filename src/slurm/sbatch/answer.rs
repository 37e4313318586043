//! What became of a submission.
//!
//! Nothing about sbatch is atomic for us: killed, timed out or cut off, the job may exist. So an
//! outcome is Accepted only with an id, Refused only where the controller said so or was never
//! reached, and Unknown in all other cases: then the job's token is looked for, and sbatch is not
//! called again.

use crate::model::id::JobId;
use crate::model::observation::Seen;
use crate::model::request::{Refusal, RefusalClass, Submitted};
use crate::slurm::command::{End, NotFound, Outcome};
use crate::slurm::error;

/// Limits that bind a job by itself, so that waiting does not help.
const PER_JOB: [&str; 5] = ["PerJob", "MaxWall", "MinCPU", "MinGRES", "MinTRES"];
/// Limits of a lane, which pass by waiting.
const LIMITS: [&str; 12] = [
    "QOSMax",
    "QOSGrp",
    "QOSJobLimit",
    "QOSResourceLimit",
    "QOSUsageThreshold",
    "AssocMax",
    "AssocGrp",
    "AssociationJobLimit",
    "MaxJobs",
    "MaxSubmitJobs",
    "MaxJobCount",
    "violates accounting/QOS policy",
];
/// Faults that sbatch finds by itself, before it asks anybody.
const LOCAL: [&str; 9] = [
    "nvalid",
    "unrecognized option",
    "unrecognised option",
    "requires an argument",
    "is ambiguous",
    "Unable to open file",
    "does not look like a batch script",
    "Batch script",
    "specification can not be satisfied",
];

/// Before the controller's own words: of a submission, and of a dry one.
const SUBMISSION_FAILED: [&str; 2] = ["Batch job submission failed:", "allocation failure:"];

/// The request never left this host ...
const NEVER_SENT: [&str; 2] =
    ["Munge encode failed", "Unable to establish control machine address"];
/// ... unless an earlier try of the same sbatch did.
const SENT: [&str; 4] =
    ["Socket timed out", "Zero Bytes", "Connection reset", "sleeping and retrying"];

/// Of one that was meant.
pub fn parse(run: &Result<Outcome, NotFound>) -> Submitted {
    let outcome = match run {
        Ok(outcome) => outcome,
        Err(NotFound(text)) => return refused(RefusalClass::Overload, text.clone()),
    };
    let words = error::in_words(outcome);
    match outcome.end {
        // Whatever stderr says.
        End::Code(0) => match id(&String::from_utf8_lossy(&outcome.stdout)) {
            Some(id) => Submitted::Accepted(id),
            None => Submitted::Unknown(format!("sbatch said success without a job id ({words})")),
        },
        End::Code(_) => failed(&String::from_utf8_lossy(&outcome.stderr), words),
        End::TimedOut | End::Signal(_) => Submitted::Unknown(words),
    }
}

fn failed(stderr: &str, words: String) -> Submitted {
    let line = error::telling_line(stderr);
    let why = SUBMISSION_FAILED
        .iter()
        .find_map(|words| stderr.lines().find_map(|line| line.split_once(words)));
    let any = |texts: &[&str]| texts.iter().any(|text| stderr.contains(text));
    // Munge refuses to sign before anything is sent; the broken text that follows comes from that.
    if any(&NEVER_SENT) && !any(&SENT) {
        return refused(RefusalClass::Overload, line);
    }
    if error::is_broken(stderr) {
        return Submitted::Unknown(words);
    }
    if error::is_unreached(stderr) {
        return refused(RefusalClass::Overload, line);
    }
    if any(&PER_JOB) {
        return refused(RefusalClass::Request, line);
    }
    if any(&LIMITS) {
        return refused(RefusalClass::Limit, line);
    }
    match why {
        // An error number that belongs to no answer of the controller.
        Some((_, text)) if matches!(text.trim(), "" | "No error" | "Success") => {
            Submitted::Unknown(words)
        }
        Some(_) => refused(RefusalClass::Request, line),
        None if any(&LOCAL) => refused(RefusalClass::Request, line),
        None => Submitted::Unknown(words),
    }
}

fn refused(class: RefusalClass, text: String) -> Submitted {
    Submitted::Refused(Refusal { class, text })
}

/// The last line that as a whole is `digits` or `digits;cluster`: sites print banners around it.
///
/// A line without its newline may be cut off, and a shorter number is somebody else's job.
fn id(stdout: &str) -> Option<JobId> {
    stdout.split_inclusive('\n').rev().find_map(|line| {
        let line = line.strip_suffix('\n')?.trim_end();
        let (digits, cluster) = line.split_once(';').unwrap_or((line, "-"));
        let whole = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let named = !cluster.is_empty() && !cluster.contains(char::is_whitespace);
        let id = digits.parse().ok().filter(|id| *id > 0);
        if whole && named { id.map(JobId) } else { None }
    })
}

/// Of a dry one: taken, or the words of the refusal. All else is no answer: who was not reached, is
/// overloaded or at a limit has refused nothing.
pub(in crate::slurm) fn parse_dry(
    source: &str,
    run: Result<Outcome, NotFound>,
) -> Seen<Result<(), String>> {
    let submitted = parse(&run);
    match (error::reading(source, run), submitted) {
        (Ok(_), _) => Ok(Ok(())),
        (Err(_), Submitted::Refused(Refusal { class: RefusalClass::Request, text })) => {
            Ok(Err(text))
        }
        (Err(gap), _) => Err(gap),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// `class` is the first letter of the variant, then of the class.
    fn check(end: End, stdout: &str, stderr: &str, expected: &str) {
        let outcome = Outcome {
            end,
            stdout: stdout.into(),
            stderr: stderr.into(),
            overflow: false,
            elapsed: Duration::ZERO,
        };
        let found = match parse(&Ok(outcome)) {
            Submitted::Accepted(id) => format!("accepted {id}"),
            Submitted::Unknown(_) => "unknown".to_owned(),
            Submitted::Refused(refusal) => format!("{:?}", refusal.class),
        };
        assert_eq!(found, expected, "{end:?} {stdout:?} {stderr:?}");
    }

    #[test]
    fn success_needs_an_id_and_nothing_else() {
        check(End::Code(0), "22\n", "", "accepted 22");
        check(End::Code(0), "24;lab\n", "sbatch: error: Socket timed out\n", "accepted 24");
        check(End::Code(0), "Welcome 7\n12\n\nYour quota: 3 of 4\n", "", "accepted 12");
        check(End::Code(0), "Submitted batch job 12\n", "", "unknown");
        check(End::Code(0), "", "", "unknown");
        check(End::Code(0), "15205", "", "unknown");
        check(End::Code(0), "152054\nYour quo", "", "accepted 152054");
        check(End::Code(0), "0\n", "", "unknown");
        check(End::Code(0), "99999999999999999999999\n", "", "unknown");
        check(End::Code(1), "12\n", "", "unknown");
        check(End::Signal(9), "12\n", "", "unknown");
        check(End::TimedOut, "", "", "unknown");
        let missing = parse(&Err(NotFound("sbatch is not on PATH".into())));
        assert!(matches!(missing, Submitted::Refused(r) if r.class == RefusalClass::Overload));
    }

    #[test]
    fn refusals_by_class() {
        let failed = |text: &str| format!("sbatch: error: Batch job submission failed: {text}\n");
        let policy = failed(
            "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
        );
        let coded = |code: &str| format!("sbatch: error: {code}\n{policy}");
        check(End::Code(1), "", &coded("QOSMaxSubmitJobPerUserLimit"), "Limit");
        check(End::Code(1), "", &coded("QOSGrpGRES"), "Limit");
        check(End::Code(1), "", &coded("AssocGrpSubmitJobsLimit"), "Limit");
        check(End::Code(1), "", &coded("QOSMaxGRESPerUser"), "Limit");
        check(End::Code(1), "", &policy, "Limit");
        check(End::Code(1), "", &coded("QOSMaxGRESPerJob"), "Request");
        check(End::Code(1), "", &coded("QOSMaxWallDurationPerJobLimit"), "Request");
        check(End::Code(1), "", &failed("Something new that nobody has seen"), "Request");
        check(End::Code(1), "", &failed("Unspecified error"), "Request");
        check(
            End::Code(255),
            "",
            "sbatch: unrecognized option '--foo'\nTry \"sbatch --help\"\n",
            "Request",
        );
        check(End::Code(1), "", "sbatch: error: a plugin of the site has a word\n", "unknown");
        check(End::Code(1), "", &failed("No error"), "unknown");
        check(End::Code(1), "", "", "unknown");
        check(End::Code(1), "", &failed("Slurm temporarily unable to accept job"), "Overload");
        // It was sent once, then it could not be sent again: the first may have arrived.
        let twice = "sbatch: error: Slurm controller not responding, sleeping and retrying.\n"
            .to_owned()
            + &failed("Unable to contact slurm controller (connect failure)");
        check(End::Code(1), "", &twice, "unknown");
        let munge = format!(
            "sbatch: error: Munge encode failed: x\n{}",
            failed("Protocol authentication error")
        );
        check(End::Code(1), "", &munge, "Overload");
        check(
            End::Code(1),
            "",
            &format!(
                "sbatch: error: Slurm controller not responding, sleeping and retrying.\n{munge}"
            ),
            "unknown",
        );
    }
}
