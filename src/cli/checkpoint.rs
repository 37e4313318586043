//! The locked state file as the engine's checkpoint.

use std::collections::HashMap;

use crate::engine::Checkpoint;
use crate::model::id::ShardId;
use crate::model::observation::{Gap, GapKind, Seen};
use crate::model::pilot::Claims;
use crate::model::policy::Policy;
use crate::model::state::State;
use crate::model::units::Time;
use crate::output::journal;
use crate::planning::event::Event;
use crate::planning::pilots;
use crate::planning::plan::FreeRows;
use crate::store::{self, Locked, Pilots};

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

    fn claims(&mut self, state: &State, now: Time) -> Seen<Claims> {
        claims(&self.locked.store().pilots(), state, now)
    }

    fn offer(&mut self, policy: &Policy, state: &State, now: Time) {
        let offer = pilots::offer(policy, state);
        let pilots = self.locked.store().pilots();
        let next: HashMap<_, _> = state
            .shards
            .iter()
            .map(|record| (&record.id, record.claims.saturating_add(1)))
            .collect();
        let done = pilots
            .put_offer(&offer)
            .and_then(|_| pilots.forget(|shard| next.get(shard).copied(), now));
        if let Err(error) = done {
            self.trouble = Some(format!("babysit: pilots are not told of this tick: {error}"));
        }
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

/// By shard and number, those that the state does not have behind it.
fn claims(pilots: &Pilots, state: &State, now: Time) -> Seen<Claims> {
    let next: HashMap<_, _> =
        state.shards.iter().map(|record| (&record.id, record.claims)).collect();
    let news = |shard: &ShardId, fence: u32| next.get(shard).is_some_and(|last| fence >= *last);
    pilots.claims(news, now).map_err(|error| Gap {
        kind: GapKind::Failed,
        source: pilots.folder().display().to_string(),
        detail: error.to_string(),
    })
}

/// For a dry run: it asks for no save, and one would be refused.
pub struct Nothing {
    pub pilots: Pilots,
}

impl Checkpoint for Nothing {
    fn claims(&mut self, state: &State, now: Time) -> Seen<Claims> {
        claims(&self.pilots, state, now)
    }

    fn save(&mut self, _: &mut State) -> anyhow::Result<()> {
        anyhow::bail!("a dry run saves nothing")
    }
    fn free_rows(&mut self, _: &FreeRows) -> anyhow::Result<()> {
        anyhow::bail!("a dry run gives nothing back")
    }
    fn journal(&mut self, _: &[Event]) {}
}
