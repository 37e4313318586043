//! What every command is handed, and how it gets at shards.toml and the state.

use std::time::Duration;

use crate::config::{self, Loaded, Surroundings};
use crate::model::state::State;
use crate::model::units::Time;
use crate::store::{Locked, Store};

use super::args::Global;
use super::exit::Stop;
use super::talk::Talk;

/// How long a command of a person waits for a tick to end.
const PATIENCE: Duration = Duration::from_secs(10);

pub struct Context<'a> {
    pub global: &'a Global,
    pub surroundings: &'a Surroundings,
    pub talk: Talk,
    /// The one clock, read in main.
    pub clock: &'a dyn Fn() -> Time,
    /// Randomness: a new number at each call.
    pub seed: &'a dyn Fn() -> u64,
}

/// shards.toml, read, and where its state is.
pub struct Campaign {
    pub loaded: Loaded,
    pub store: Store,
}

/// The same before its shards are made.
pub struct Draft {
    pub draft: config::Draft,
    pub store: Store,
}

impl Draft {
    pub fn finish(self) -> Result<Campaign, Stop> {
        let Draft { draft, store } = self;
        let mut loaded = draft.finish()?;
        if loaded.policy.has_pilots() {
            let slurm = &mut loaded.policy.slurm;
            slurm.pilots = Some(store.pilots().folder().to_owned());
            // This very program, where the nodes have it too.
            slurm.babysit = slurm.babysit.take().or_else(|| std::env::current_exe().ok());
        }
        Ok(Campaign { loaded, store })
    }
}

impl Context<'_> {
    pub fn campaign(&self) -> Result<Campaign, Stop> {
        self.draft()?.finish()
    }

    pub fn draft(&self) -> Result<Draft, Stop> {
        let path = config::find(self.global.config.as_deref(), self.surroundings)?;
        let draft = config::draft(&path)?;
        let state = config::state_path(self.global.state.as_deref(), &draft, self.surroundings)?;
        let store = Store::at(state).of_project(&draft.policy().project);
        Ok(Draft { draft, store })
    }

    /// The person at the keyboard (or behind cron), as caps and holds are signed.
    pub fn who(&self) -> String {
        let name = self.surroundings.var("LOGNAME").or_else(|| self.surroundings.var("USER"));
        let uid = rustix::process::getuid().as_raw();
        match name {
            Some(name) => format!("{name} (uid {uid})"),
            None => format!("uid {uid}"),
        }
    }

    pub fn aligned(&self, campaign: &Campaign, found: Option<State>) -> State {
        let policy = &campaign.loaded.policy;
        let fresh = || State::new(&policy.project, &format!("{:012x}", (self.seed)() >> 16));
        let mut state = found.unwrap_or_else(fresh);
        state.align(policy, (self.clock)());
        state
    }

    /// A state without any history.
    pub fn fresh(&self, campaign: &Campaign) -> State {
        self.aligned(campaign, None)
    }

    /// The state for those who only look: no lock, nothing written.
    pub fn look(&self, campaign: &Campaign) -> Result<State, Stop> {
        Ok(self.aligned(campaign, campaign.store.read()?))
    }

    /// The state under its lock; `Busy` at once where a tick holds it.
    pub fn lock(&self, campaign: &Campaign, wait: Duration) -> Result<(Locked, State), Stop> {
        let mut locked = campaign.store.lock(wait)?;
        let state = self.load(campaign, &mut locked)?;
        Ok((locked, state))
    }

    pub fn load(&self, campaign: &Campaign, locked: &mut Locked) -> Result<State, Stop> {
        let found = locked.load()?;
        Ok(self.aligned(campaign, found))
    }

    /// The lock alone: what is under it may be unreadable.
    pub fn locked_patiently(&self, campaign: &Campaign) -> Result<Locked, Stop> {
        Ok(campaign.store.lock(PATIENCE)?)
    }

    /// For what a person asked: waits for the tick in hand.
    pub fn lock_patiently(&self, campaign: &Campaign) -> Result<(Locked, State), Stop> {
        self.lock(campaign, PATIENCE)
    }
}
