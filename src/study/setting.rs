//! What is simulated: the shards, their rows, and the cluster's own lane.

use crate::model::id::ShardId;
use crate::model::policy::{
    CostIn, Kin, Lane, LaneSpec, Lanes, Policy, Rules, Shard, SlurmSettings,
};
use crate::model::split::Split;
use crate::model::state::State;
use crate::model::units::{Money, Secs};
use crate::sim::{Lognormal, Rng, Table};

use super::kinds::Kinds;
use super::method::Method;
pub use super::price::Price;
use super::price::prices;
use super::scenario::Scenario;

/// One campaign, but for its seed and its policy.
#[derive(Debug, Clone)]
pub struct Setting {
    pub scenario: Scenario,
    pub work: Vec<ShardWork>,
    /// GPUs of the own lane.
    pub own: u32,
    /// Of these, held for good by another session.
    pub held: u32,
    /// K, where the method does not fix it.
    pub park: usize,
    /// From one tick to the next.
    pub every: Secs,
    /// A campaign that has not ended by then never ends.
    pub limit: Secs,
    /// Spent at each start before the first row.
    pub start: Secs,
    /// Deviation of a row's time over its mean.
    pub row_cv: f64,
    /// Extra GPUs that are there at the beginning; `None`: as many as chance gives.
    pub at_begin: Option<u32>,
    /// Probability that a tick's probe fails (v4.2: the tick is skipped).
    pub probe_fails: f64,
}

/// The work of one shard.
#[derive(Debug, Clone, PartialEq)]
pub struct ShardWork {
    pub id: ShardId,
    /// GPUs of each of its jobs.
    pub gpus: u32,
    pub rows: u32,
    /// Of these, finished when the campaign begins.
    pub done: u32,
    /// Mean hours of a row.
    pub row_hours: f64,
    pub price: Price,
    pub cap: Option<Money>,
    /// Most jobs at once that may share its rows, under a policy that splits; 1: never.
    pub workers: u32,
    /// Its jobs may be pilots, under a policy that has them; those with the same number here ask the
    /// same of Slurm.
    pub pilot: Option<u32>,
    /// Its jobs are pilots by shards.toml; those with the same number stand in for each other there.
    pub set_pilot: Option<u32>,
    /// It has a GPU of this lane when the campaign begins.
    pub runs: Option<Lane>,
    /// Its helpers that have one, by their numbers.
    pub helped: Vec<(u32, Lane)>,
}

impl ShardWork {
    /// Who shares its jobs under this policy; `None`: they are no pilots.
    fn kin(&self, method: &Method) -> Option<u32> {
        let kin = if method.as_set { self.set_pilot } else { self.pilot };
        kin.filter(|_| method.pilots)
    }

    /// Lanes of all its jobs that have GPUs when the campaign begins.
    fn running(&self) -> impl Iterator<Item = Lane> {
        self.runs.into_iter().chain(self.helped.iter().map(|(_, lane)| *lane))
    }
}

/// The field's campaign.
const RESTORE_ROWS: [u32; 8] = [30, 64, 14, 38, 47, 40, 36, 30];
const FIND_ROWS: [u32; 4] = [8, 55, 55, 55];
/// 64 rows took 27 hours.
const RESTORE_ROW_HOURS: f64 = 27.0 / 64.0;
/// The field's second find rate, 0.634, gives its 8 rows an hour on four GPUs.
pub const FIND_ROW_HOURS: f64 = 0.45;
/// Deviation of a row's time over its mean.
pub(super) const ROW_CV: f64 = 0.4;
/// Loading a model before the first row.
const START: Secs = Secs::minutes(6);
const OWN: u32 = 8;
const HELD: u32 = 4;
const PARK: usize = 2;
/// As `split = true` has it.
const WORKERS: u32 = 8;

impl Setting {
    /// The field's twelve shards, all rows still to do.
    pub fn field(scenario: Scenario) -> Setting {
        Setting::of(scenario, field_work(RESTORE_ROW_HOURS, FIND_ROW_HOURS))
    }

    /// The same shards, every row of this mean length in hours.
    pub fn field_at(scenario: Scenario, row_hours: f64) -> Setting {
        Setting::of(scenario, field_work(row_hours, row_hours))
    }

    pub fn of(scenario: Scenario, work: Vec<ShardWork>) -> Setting {
        Setting {
            scenario,
            work,
            own: OWN,
            held: HELD,
            park: PARK,
            every: Secs::minutes(10),
            limit: Secs::hours(600),
            start: START,
            row_cv: ROW_CV,
            at_begin: None,
            probe_fails: 0.0,
        }
    }

    /// The user's own shards, all rows still to do; prices are what the state's rows cost so far.
    /// `state` must have been aligned with `policy`.
    pub fn of_policy(scenario: Scenario, policy: &Policy, state: &State) -> Setting {
        let prices = prices(policy, state);
        let mut kin = Kinds::default();
        let of = policy.shards.iter().zip(&state.shards).zip(prices);
        let each = of.map(|((shard, record), price)| ShardWork {
            id: shard.id.clone(),
            gpus: shard.gpus,
            rows: shard.rows,
            done: 0,
            row_hours: shard.row_time.as_f64() / 3600.0,
            price,
            cap: state.cap_of(&shard.id, shard.cap),
            workers: shard.split.as_ref().map_or(1, |split| split.workers),
            pilot: kin.may(shard),
            set_pilot: kin.set(shard, record),
            runs: None,
            helped: Vec::new(),
        });
        let mut setting = Setting::of(scenario, each.collect());
        if let Some(lanes) = &policy.lanes {
            setting.own = lanes.own_gpus.unwrap_or(OWN).max(1);
            setting.park = lanes.park;
        }
        // As in the field: half of the lane is another session's.
        setting.held = setting.own / 2;
        setting.make_room();
        setting
    }

    /// Nobody holds so much of own for good that a shard which fits it could never start there.
    pub fn make_room(&mut self) {
        let fitting = self.work.iter().map(|work| work.gpus).filter(|gpus| *gpus <= self.own);
        let widest = fitting.max().unwrap_or(1);
        self.held = self.held.min(self.own.saturating_sub(widest));
    }

    /// Some shard wants several GPUs, so extra ones have to stand together.
    pub(super) fn is_wide(&self) -> bool {
        self.work.iter().any(|work| work.gpus > 1)
    }

    pub(super) fn widest(&self) -> u32 {
        self.work.iter().map(|work| work.gpus).max().unwrap_or(1)
    }

    /// Does any shard run when the campaign begins?
    pub(super) fn runs_already(&self) -> bool {
        self.work.iter().any(|work| work.running().next().is_some())
    }

    /// The lane in which a shard, or a helper, has its GPUs when the campaign begins.
    pub(super) fn lane_at_begin(&self, id: &ShardId) -> Option<Lane> {
        let Some(n) = id.helper_number() else {
            return self.work.iter().find(|work| work.id == *id)?.runs;
        };
        let work = self.work.iter().find(|work| id.helps(&work.id))?;
        work.helped.iter().find(|(of, _)| *of == n).map(|(_, lane)| *lane)
    }

    /// Extra GPUs that are there at the beginning: those that shards run on, where any runs.
    pub(super) fn extra_at_begin(&self) -> Option<u32> {
        let in_extra =
            |work: &ShardWork| work.running().filter(|lane| *lane == Lane::Extra).count() as u32;
        let extra = self.work.iter().map(|work| work.gpus * in_extra(work)).sum();
        if self.runs_already() { Some(extra) } else { self.at_begin }
    }

    /// GPUs of own that are not held for good.
    pub fn own_free(&self) -> u32 {
        self.own.saturating_sub(self.held)
    }

    /// The row times of a seed, by shard: what each shard's rows take is the same under every
    /// policy.
    pub fn tables(&self, seed: u64) -> Vec<Vec<Secs>> {
        let rows = |(n, work): (usize, &ShardWork)| {
            let mut rng = Rng::stream(seed, 1000 + n as u64);
            let times = Lognormal::of_cv(work.row_hours, self.row_cv);
            let time = |_| {
                let hours = rng.draw(times);
                Secs((hours * 3600.0).round().max(1.0) as i64)
            };
            (0..work.rows).map(time).collect()
        };
        self.work.iter().enumerate().map(rows).collect()
    }

    /// The least each shard takes, its rows that are left and one start, and on how many GPUs.
    pub fn shortest(&self, tables: &[Vec<Secs>]) -> Vec<(Secs, u32)> {
        let each = |(work, rows): (&ShardWork, &Vec<Secs>)| {
            let left = rows.iter().skip(work.done as usize).map(|row| row.0).sum::<i64>();
            (Secs(if left > 0 { left + self.start.0 } else { 0 }), work.gpus)
        };
        self.work.iter().zip(tables).map(each).collect()
    }

    pub(super) fn table(
        &self,
        work: &ShardWork,
        rows: &[Secs],
        begins: crate::model::units::Time,
        method: &Method,
    ) -> Table {
        let table = Table::of(rows.iter().copied())
            .start_cost(self.start)
            .row_cost(match work.price {
                Price::Row(money) => money,
                Price::GpuHour(_) => Money::ZERO,
            })
            .with_done(work.done, begins);
        if method.split && work.workers > 1 { table.shared() } else { table }
    }

    /// Is it the same to plan by either?
    pub fn same(&self, a: &Method, b: &Method) -> bool {
        let order: Vec<usize> = (0..self.work.len()).collect();
        self.policy(&order, a) == self.policy(&order, b)
    }

    /// The policy that ticks, its shards in this order.
    pub(super) fn policy(&self, order: &[usize], method: &Method) -> Policy {
        let shard = |work: &ShardWork| {
            let split = (method.split && work.workers > 1)
                .then(|| Split { workers: work.workers, claims: "/claims".into() });
            let pilot = work.kin(method);
            // A label, which is all the same to Slurm: pilots of another one ask something else of it.
            let args = pilot.map(|kin| format!("--wckey={kin}")).into_iter().collect();
            Shard { split, pilot: pilot.is_some(), args, ..shard(work) }
        };
        let rules = Rules { lanes: method.rules, ..Rules::default() };
        let place = |path: &str| method.pilots.then(|| path.into());
        let (babysit, pilots) = (place("/babysit"), place("/pilots"));
        let shards = order.iter().filter_map(|n| self.work.get(*n)).map(shard);
        Policy {
            project: "sim".to_owned(),
            shards: shards.collect(),
            tiers: Vec::new(),
            lanes: Some(Lanes {
                own: lane("own"),
                extra: lane("extra"),
                own_gpus: Some(self.own),
                park: method.park.unwrap_or(self.park),
            }),
            backfill: None,
            rules,
            slurm: SlurmSettings { babysit, pilots, ..SlurmSettings::default() },
            logs: "/logs".into(),
            notify: None,
        }
    }
}

/// The two lanes' GPUs are different ones here: each QOS leads to the nodes of a partition.
pub(super) const OWN_PARTITION: &str = "own";
pub(super) const EXTRA_PARTITION: &str = "gpu";

fn lane(qos: &str) -> LaneSpec {
    LaneSpec { qos: Some(qos.to_owned()), ..LaneSpec::default() }
}

fn field_work(restore: f64, find: f64) -> Vec<ShardWork> {
    let family = |name: &'static str, rows: &'static [u32], row_hours: f64, price: Money| {
        rows.iter().enumerate().map(move |(n, rows)| ShardWork {
            id: ShardId::new(name, &format!("s{n}")),
            gpus: 1,
            rows: *rows,
            done: 0,
            row_hours,
            price: Price::Row(price),
            cap: None,
            workers: WORKERS,
            pilot: Some(0),
            set_pilot: None,
            runs: None,
            helped: Vec::new(),
        })
    };
    // $0.27 and $0.08: restore_s0 and find_s0 (policy.md section 4).
    family("restore", &RESTORE_ROWS, restore, Money(270_000_000))
        .chain(family("find", &FIND_ROWS, find, Money(80_000_000)))
        .collect()
}

fn shard(work: &ShardWork) -> Shard {
    Shard {
        kin: Kin::Any,
        gpus: work.gpus,
        rows: work.rows,
        row_time: Secs((work.row_hours * 3600.0).round().max(1.0) as i64),
        cost: Some(match work.price {
            Price::Row(_) => CostIn::Jsonl { path: "/ledger".into(), field: "usd".to_owned() },
            Price::GpuHour(price) => CostIn::GpuHour(price),
        }),
        cap: work.cap,
        // Its text is the campaign's own: what cores share they wait for, be it a count of copies.
        ..Shard::plain(ShardId::new(&work.id.family, &work.id.shard))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_s_campaign_has_its_472_rows_and_27_hour_shard() {
        let field = Setting::field(Scenario::Seed);
        assert_eq!(field.work.iter().map(|w| w.rows).sum::<u32>(), 299 + 173);
        let hours = field.work.iter().map(|w| f64::from(w.rows) * w.row_hours);
        assert!((hours.fold(0.0, f64::max) - 27.0).abs() < 1e-9);
    }

    #[test]
    fn row_times_depend_on_the_seed_and_have_the_asked_mean() {
        let field = Setting::field(Scenario::Seed);
        assert_eq!(field.tables(3), field.tables(3));
        assert_ne!(field.tables(3), field.tables(4));
        let sum: i64 = (0..50).flat_map(|seed| field.tables(seed)).flatten().map(|s| s.0).sum();
        let hours = sum as f64 / 3600.0 / 50.0;
        let asked: f64 = field.work.iter().map(|w| f64::from(w.rows) * w.row_hours).sum();
        assert!((hours / asked - 1.0).abs() < 0.02, "{hours} {asked}");
    }
}
