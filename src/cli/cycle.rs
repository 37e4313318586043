//! One cycle under the lock, with the real hands; `tick` and `loop` share it.

use std::borrow::Borrow;
use std::time::Duration;

use crate::engine::{self, Hands, Outcome, Report};
use crate::model::observation::{Cluster, Seen};
use crate::model::policy::Policy;
use crate::model::state::State;
use crate::model::units::Time;
use crate::progress::{Behind, Files, Timely};
use crate::slurm::real::RealSlurm;
use crate::slurm::{Scope, Slurm};
use crate::store::{Locked, Store};

use super::checkpoint::Keep;
use super::context::{Campaign, Context, Draft};
use super::exit::Stop;
use super::{notify, recording, slurm};

/// What a cycle left behind.
pub struct Cycle {
    pub report: Report,
    pub state: State,
}

/// Loads, ticks, saves. A lock that another tick holds is not waited for.
///
/// `behind`: readings of earlier cycles of this process that hang.
pub fn run(cx: &Context, campaign: &Campaign, behind: &mut Behind) -> Result<Cycle, Stop> {
    let policy = &campaign.loaded.policy;
    let beginning = Beginning::of(cx, &campaign.store, policy, policy.places());
    beginning.cycle(cx, || Ok(campaign), behind).map(|(_, cycle)| cycle)
}

/// The same for a process of one cycle: the shards are made while Slurm is waited for.
pub fn run_once(cx: &Context, draft: Draft) -> Result<(Campaign, Cycle), Stop> {
    let beginning = Beginning::of(cx, &draft.store, draft.draft.policy(), draft.draft.places());
    beginning.cycle(cx, || draft.finish(), &mut Behind::default())
}

/// What a cycle can begin with before there are shards.
struct Beginning {
    store: Store,
    slurm: RealSlurm,
    scope: Scope,
    budget: Duration,
}

impl Beginning {
    fn of(cx: &Context, store: &Store, policy: &Policy, places: bool) -> Beginning {
        let budget = budget(policy);
        Beginning {
            store: store.clone(),
            slurm: slurm::real(policy, cx.surroundings, (cx.seed)()).with_budget(budget),
            scope: engine::scope(policy, places),
            budget,
        }
    }

    fn cycle<C: Borrow<Campaign>>(
        self,
        cx: &Context,
        make: impl FnOnce() -> Result<C, Stop>,
        behind: &mut Behind,
    ) -> Result<(C, Cycle), Stop> {
        let Beginning { store, mut slurm, scope, budget } = self;
        let mut locked = store.lock(Duration::ZERO)?;
        let now = (cx.clock)();
        // Slurm thinks while the shards are made and put in order, and a large state, and what is known
        // of the ledgers, is read. Whoever breaks off meanwhile waits for it too.
        let (made, slurm, cycle) = std::thread::scope(|threads| {
            let probes = threads.spawn(move || {
                let looked = slurm.look(scope);
                (slurm, looked)
            });
            let made = make()?;
            let policy = &*made.borrow().loaded.policy.with_helpers();
            let state = cx.load(made.borrow(), &mut locked)?;
            policy.shards.work_out();
            let files = files(store.read_cache().as_deref(), budget, behind)?;
            let (mut slurm, looked) =
                probes.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let ready = Ready { policy, slurm: &mut slurm, locked: &mut locked, state, files, now };
            let cycle = ready.cycle(cx, looked, behind);
            Ok::<_, Stop>((made, slurm, cycle))
        })?;
        drop(locked);
        if let Some(message) = &cycle.report.message {
            notify::deliver(cx, made.borrow(), &slurm, &cycle.state.instance, message);
        }
        Ok((made, cycle))
    }
}

/// All that a cycle goes by, but what Slurm said.
struct Ready<'a> {
    policy: &'a Policy,
    slurm: &'a mut RealSlurm,
    locked: &'a mut Locked,
    state: State,
    files: Timely,
    now: Time,
}

impl Ready<'_> {
    fn cycle(self, cx: &Context, looked: Seen<Cluster>, behind: &mut Behind) -> Cycle {
        let Ready { policy, slurm, locked, mut state, mut files, now } = self;
        let before = policy.rules.journal_observations.then(|| locked.before(&state));
        let mut keep = Keep { locked: &mut *locked, trouble: None };
        let seed = (cx.seed)();
        let progress = &mut files;
        let mut hands = Hands { policy, slurm, progress, checkpoint: &mut keep, now, seed };
        let report = engine::tick_on(&mut hands, &mut state, looked);
        if let Some(trouble) = &keep.trouble {
            cx.talk.say(trouble);
        }
        // Without it the next cycle reads the files from their beginning; nothing else is lost.
        if let Some(Err(error)) = files.cache_if_changed().map(|bytes| locked.write_cache(&bytes)) {
            cx.talk.aside(&format!("babysit: {error}"));
        }
        if let Some(Err(error)) =
            before.map(|before| recording::keep(locked, policy, &before?, &report, now, seed))
        {
            let path = locked.store().recording_path();
            cx.talk.aside(&format!("babysit: {} was not written: {error}", path.display()));
        }
        files.leave(behind);
        Cycle { report, state }
    }
}

/// The time that a tick may take.
pub fn budget(policy: &Policy) -> Duration {
    Duration::from_secs(policy.rules.tick_budget.0.unsigned_abs())
}

/// Of a tick's time, this part is the most that the user's files get: what they leave is for the
/// submissions.
const FILES_PART: u32 = 4;

/// The user's files as a tick reads them that may take so long.
pub fn files(cache: Option<&[u8]>, budget: Duration, behind: &mut Behind) -> Result<Timely, Stop> {
    Timely::new(Files::new(cache), budget / FILES_PART, behind)
        .map_err(|error| Stop::failed("thread", format!("no thread can be started: {error}")))
}

/// Skips in a row at which cron's mail says so: the first, then ever more rarely. In a terminal
/// and with -v each one is told.
pub fn is_told(skipped_in_a_row: u32) -> bool {
    matches!(skipped_in_a_row, 1 | 10 | 100 | 1_000 | 10_000)
}

/// Sentences of what is worth a person's attention. A skipped cycle is told apart from them.
pub fn news(report: &Report) -> String {
    use crate::output::journal::line;
    use crate::planning::event::What;
    let worth = |what: &What| what.is_news() && !matches!(what, What::CycleSkipped { .. });
    let events = report.events.iter().filter(|event| worth(&event.what));
    events.map(|event| format!("{}\n", line(event))).collect()
}

/// On stderr, where the outcome is not the usual one.
pub fn tell_outcome(cx: &Context, cycle: &Cycle) {
    match &cycle.report.outcome {
        Outcome::Ok => {}
        Outcome::Skipped(why) => {
            let row = cycle.state.last_tick.as_ref().map_or(1, |tick| tick.skipped_in_a_row);
            let text = match row {
                0 | 1 => format!("babysit: tick skipped, nothing was decided: {why}"),
                row => format!("babysit: {row} ticks skipped in a row, nothing was decided: {why}"),
            };
            if is_told(row) { cx.talk.say(&text) } else { cx.talk.aside(&text) }
        }
        Outcome::Failed(why) => cx.talk.insist(&format!("babysit: tick failed: {why}")),
    }
}
