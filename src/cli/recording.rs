//! What of a cycle is kept, so that `babysit replay` can plan it again.

use std::io;

use crate::engine::Report;
use crate::model::policy::Policy;
use crate::model::units::{Secs, Time};
use crate::store::Locked;
use crate::store::recording::{Before, Given};

/// A cycle that decided nothing, and in which nothing happened, is kept so often: another policy
/// might have decided something there.
const QUIET: Secs = Secs::hours(1);

/// After the cycle's last save, so that nothing here can cost it anything.
///
/// # Errors
/// What kept it from being written; the cycle is as good without it.
pub fn keep(
    locked: &mut Locked,
    policy: &Policy,
    before: &Before,
    report: &Report,
    now: Time,
    seed: u64,
) -> io::Result<()> {
    let Some(seen) = &report.seen else { return Ok(()) };
    let is_due = || locked.recorded_at().is_none_or(|at| now.since(at) >= QUIET || at > now);
    if report.plan.is_quiet() && !is_due() {
        return Ok(());
    }
    let plan = report.plan.spelled_out();
    locked.record(&Given { policy, before, seen, now, seed, plan: &plan })
}
