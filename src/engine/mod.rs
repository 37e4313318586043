//! The only folder that sees planning AND the adapters: it carries out one cycle.

mod act;
mod reconcile;
mod tick;

pub use reconcile::{Reconciled, reconcile};
pub use tick::{Hands, Outcome, Report, dry_run, scope, tick, tick_on};

use crate::model::observation::Seen;
use crate::model::pilot::Claims;
use crate::model::policy::Policy;
use crate::model::state::State;
use crate::model::units::Time;
use crate::planning::event::Event;
use crate::planning::plan::FreeRows;

/// Where a cycle keeps what must survive it: the locked state file, or memory.
pub trait Checkpoint {
    /// Durable when it returns. An error means that nothing more may be asked of Slurm.
    fn save(&mut self, state: &mut State) -> anyhow::Result<()>;
    /// Asked before each effect. An error: another babysit is at work on this state by now, and
    /// nothing more may be asked of Slurm.
    fn still_ours(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
    /// The next save may be of another instance: that of a state that was lost, whose jobs a state
    /// without any history takes up.
    fn another_instance(&mut self) {}
    /// Claims on rows are taken away from jobs that are over: a job of the same shard may have them
    /// next. Under the state's lock, so that nobody else does it at the same time.
    fn free_rows(&mut self, rows: &FreeRows) -> anyhow::Result<()>;
    /// The decision journal. Losing a line loses no state, so it cannot fail a cycle.
    fn journal(&mut self, events: &[Event]);
    /// What pilots claimed, as far as it is news to this state.
    fn claims(&mut self, _: &State, _: Time) -> Seen<Claims> {
        Ok(Claims::default())
    }
    /// Tells pilots what they may take from now on (`planning::pilots::offer`), by a state that has been
    /// saved. Without a new offer they go by the old one, so it cannot fail a cycle.
    fn offer(&mut self, _: &Policy, _: &State, _: Time) {}
}
