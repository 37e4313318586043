//! The locked state file as the engine's checkpoint.

use crate::engine::Checkpoint;
use crate::model::state::State;
use crate::output::journal;
use crate::planning::event::Event;
use crate::planning::plan::FreeRows;
use crate::store::{self, Locked};

pub struct Keep<'a> {
    pub locked: &'a mut Locked,
    /// What could not be written to the journal; told once, fails nothing.
    pub trouble: Option<String>,
}

impl Checkpoint for Keep<'_> {
    fn save(&mut self, state: &mut State) -> anyhow::Result<()> {
        self.locked.host().clone_into(&mut state.host);
        // The store counts: what is saved gets the number after the file's.
        state.generation = self.locked.save(state)?;
        Ok(())
    }

    fn still_ours(&mut self) -> anyhow::Result<()> {
        Ok(self.locked.still_ours()?)
    }

    fn another_instance(&mut self) {
        self.locked.another_instance();
    }

    fn free_rows(
        &mut self,
        FreeRows { id: _, claims, rows, all }: &FreeRows,
    ) -> anyhow::Result<()> {
        for claim in rows {
            store::free_row(claims, claim.row, &claim.claimant)?;
        }
        if *all {
            store::free_all_rows(claims)?;
        }
        Ok(())
    }

    fn journal(&mut self, events: &[Event]) {
        let lines: Vec<_> = events.iter().map(journal::json).collect();
        if let Err(error) = self.locked.journal(&lines) {
            let path = self.locked.store().journal_path();
            self.trouble =
                Some(format!("babysit: the journal {} cannot be written: {error}", path.display()));
        }
    }
}

/// For a dry run: it asks for no save, and one would be refused.
pub struct Nothing;

impl Checkpoint for Nothing {
    fn save(&mut self, _: &mut State) -> anyhow::Result<()> {
        anyhow::bail!("a dry run saves nothing")
    }
    fn free_rows(&mut self, _: &FreeRows) -> anyhow::Result<()> {
        anyhow::bail!("a dry run gives nothing back")
    }
    fn journal(&mut self, _: &[Event]) {}
}
