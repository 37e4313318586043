//! One campaign under one policy and one seed: the real tick on the simulated cluster.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::engine::Outcome as TickOutcome;
use crate::model::observation::Cluster as Seen;
use crate::model::request::Submitted;
use crate::model::state::ShardRecord;
use crate::model::units::{Secs, Time};
use crate::planning::apply;
use crate::planning::submit::{self, Moment, Way};
use crate::sim::{Cluster, Command, Event, Fault, Faults, Rng, Stranger};
use crate::slurm::Slurm;

use super::conserved;
use super::left_out::Quiet;
use super::luck::Luck;
use super::measures::{Measures, measure};
use super::method::Method;
use super::path::Path;
use super::setting::{EXTRA_PARTITION, OWN_PARTITION, Setting};
use super::world::World;

/// Any moment would do: the hour of the day is the scenario's, not the clock's.
pub(super) const BEGINS: Time = Time(1_793_718_000);
/// How far ahead of the clock the path is drawn.
const AHEAD: Secs = Secs::hours(24);
/// Its user, and those of the other jobs in own.
pub(super) const ME: &str = "me";
pub(super) const VISITOR: &str = "visitor";
const HOLDER: &str = "holder";
const MODEL: &str = "gpu";
/// The node on which extra GPUs come and go where some shard wants several of them.
const TOGETHER: &str = "x";

/// What became of one campaign.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    pub seed: u64,
    /// Hours.
    pub bound: f64,
    /// `None`: it had not ended after `Setting::limit`.
    pub measures: Option<Measures>,
}

/// # Errors
/// What broke: a tick that failed, or rows, GPU-seconds or money that do not add up. Both are bugs
/// of babysit, never of the setting.
pub fn run(setting: &Setting, method: &Method, seed: u64) -> Result<Ran, String> {
    let never = AtomicBool::new(false);
    let ran = run_with(setting, method, &Luck::of(setting, seed), &never)?;
    ran.ok_or_else(|| format!("seed {seed}, {}: broken off", method.name))
}

/// The same for who has the luck of this setting and a seed already; `None`: it was broken off, since
/// `stop` was set by then.
///
/// # Errors
/// As of `run`.
pub fn run_with(
    setting: &Setting,
    method: &Method,
    luck: &Luck,
    stop: &AtomicBool,
) -> Result<Option<Ran>, String> {
    Ok(go_through(setting, method, luck, true, stop)?.map(|(ran, _)| ran))
}

pub(super) fn go(
    setting: &Setting,
    method: &Method,
    seed: u64,
    stop: &AtomicBool,
) -> Result<Option<(Ran, World)>, String> {
    go_through(setting, method, &Luck::of(setting, seed), true, stop)
}

/// `leave_out`: cycles in which there is nothing to decide are not run, which changes nothing but
/// the time it takes. Where probes fail all are run, since each has luck of its own.
fn go_through(
    setting: &Setting,
    method: &Method,
    luck: &Luck,
    leave_out: bool,
    stop: &AtomicBool,
) -> Result<Option<(Ran, World)>, String> {
    let Luck { seed, tables, path, bound } = luck;
    let (seed, bound, mut path) = (*seed, *bound, path.clone());
    let mut world = world(setting, method, seed, tables)?;
    let mut fed = Fed { together: setting.is_wide(), ..Fed::default() };
    if setting.runs_already() {
        let now = world.now();
        fed.feed(&mut path, &mut world.cluster, now);
        world.advance(Secs(1));
        take_up(setting, &mut world)?;
    }
    let mut quiet = Quiet::new(&mut world);
    let leave_out = leave_out && setting.probe_fails <= 0.0;
    let ended = loop {
        // With ten thousand shards a campaign takes seconds, and somebody waits for it to stop.
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let is_last = world.now().since(BEGINS) >= setting.limit;
        if is_last {
            // No later cycle makes up for files that were not read.
            quiet.read_all();
        }
        if leave_out && quiet.is_it(&mut world) {
            world.leave_out();
        } else {
            quiet.before(&world);
            let report = world.tick();
            if let TickOutcome::Failed(why) = report.outcome {
                return Err(format!("seed {seed}, {}: a tick failed: {why}", method.name));
            }
            // One that its cap has stopped waits for a person, and nobody comes.
            let over = |r: &ShardRecord| r.finished.is_some() || r.over_cap.is_some();
            if world.state.shards.iter().all(|r| over(r) && r.live().is_none()) {
                break true;
            }
            if leave_out {
                quiet.after(&world, &report);
            }
            if let Some(seen) = report.seen {
                world.cluster.take_back(seen.cluster);
            }
        }
        if is_last {
            break false;
        }
        let next = world.now() + setting.every;
        fed.feed(&mut path, &mut world.cluster, next);
        world.advance(setting.every);
    };
    let broken = |what: String| format!("seed {seed}, {}: {what}", method.name);
    conserved::check(setting, &world, tables, ended).map_err(broken)?;
    let measures = ended.then(|| measure(setting, &world, &path));
    Ok(Some((Ran { seed, bound, measures }, world)))
}

fn world(
    setting: &Setting,
    method: &Method,
    seed: u64,
    tables: &[Vec<Secs>],
) -> Result<World, String> {
    let mut cluster = Cluster::at(BEGINS)
        .node_in(OWN_PARTITION, "own", &[(MODEL, setting.own)])
        // Extra GPUs that are never there: jobs may wait for some even while there are none.
        .node_in(EXTRA_PARTITION, "later", &[(MODEL, setting.widest())])
        .qos("extra", PRIORITY / 2, None, &[])
        .on_nodes_of(EXTRA_PARTITION)
        .qos("own", PRIORITY, Some(setting.own), &[])
        .on_nodes_of(OWN_PARTITION)
        .site(|site| {
            // First come, first served: a point a minute of age, whatever the campaign's length.
            site.age_max = Secs(setting.limit.0 * 2);
            site.age_weight = (site.age_max.0 / 60).max(1) as u64;
        });
    cluster.drain("later")?;
    if setting.is_wide() {
        cluster = cluster.node_in(EXTRA_PARTITION, TOGETHER, &[(MODEL, 0)]);
    }
    if setting.probe_fails > 0.0 {
        let probes = Faults::seeded(seed).rate(Command::Squeue, setting.probe_fails);
        cluster = cluster.faulty(probes.only(&[Fault::Error]));
    }
    if setting.held > 0 {
        let gres = format!("gpu:{}", setting.held);
        cluster.add_job(in_own(HOLDER, &gres, None))?;
    }
    cluster.advance(10);
    for (work, rows) in setting.work.iter().zip(tables) {
        cluster.work.add(&work.id.to_string(), setting.table(work, rows, BEGINS, method));
    }
    let policy = setting.policy(&order(setting.work.len(), seed), method);
    let mut world = World::new(policy, cluster, ME, seed);
    world.look_up();
    world.unread = true;
    Ok(world)
}

/// Shards that run when the campaign begins get their GPUs before the first cycle, which adopts
/// their jobs by their tokens.
fn take_up(setting: &Setting, world: &mut World) -> Result<(), String> {
    let nobody = Seen { jobs: Vec::new(), nodes: Vec::new(), me: world.cluster.uid_of(ME) };
    let now = world.now();
    world.state.align(&world.policy, now);
    // Rows that are there already are no pace of these runs.
    for record in &mut world.state.shards {
        let work = setting.work.iter().find(|work| work.id == record.id);
        record.progress.rows = work.map_or(0, |work| work.done);
    }
    let moment = Moment { policy: &world.policy, cluster: &nobody, now, seed: 0 };
    for (i, shard) in world.policy.shards.iter().enumerate() {
        let Some(lane) = setting.lane_at_begin(&shard.id) else { continue };
        let way = Way::Queued { kept_off: &[] };
        let submit = submit::request(&moment, &world.state, i, Some(lane), &way);
        // As a real cycle does: one that is preempted before the first cycle is found by it too.
        apply::begin(&mut world.state, &submit);
        let answer = world.cluster.door(ME).submit(&submit.request);
        if !matches!(answer, Submitted::Accepted(_)) {
            return Err(format!("{}: {answer:?}", shard.id));
        }
    }
    world.advance(Secs(5));
    Ok(())
}

/// Higher than any nice value that LPT order takes from it.
const PRIORITY: u64 = 1_000_000;

fn in_own(user: &str, gres: &str, lasts: Option<Secs>) -> Stranger {
    let stranger = Stranger { lasts, ..Stranger::new(user, "own", gres) };
    Stranger { partition: Some(OWN_PARTITION.to_owned()), ..stranger.no_requeue() }
}

/// A random order of the shards, so that no policy profits from how they were written down.
fn order(shards: usize, seed: u64) -> Vec<usize> {
    let mut rng = Rng::stream(seed, 4);
    let mut order: Vec<usize> = (0..shards).collect();
    for last in (1..shards).rev() {
        order.swap(last, rng.below(last as u64 + 1) as usize);
    }
    order
}

/// What of the path the cluster knows already.
#[derive(Default)]
struct Fed {
    /// All extra GPUs are on one node, else each is a node of its own.
    together: bool,
    until: Option<Time>,
    lives: usize,
    visits: usize,
}

impl Fed {
    fn feed(&mut self, path: &mut Path, cluster: &mut Cluster, needed: Time) {
        if self.until.is_some_and(|until| until >= needed) {
            return;
        }
        let until = needed + AHEAD;
        path.reach(until);
        self.until = Some(until);
        // The path may be drawn further than that.
        let (lives, visits) = (self.lives, self.visits);
        for life in path.extra.iter().skip(lives).take_while(|life| life.from <= until) {
            self.lives += 1;
            if self.together {
                let by = |by| Event::GpusBy { node: TOGETHER.into(), model: MODEL.into(), by };
                cluster.plan(life.from, by(1));
                cluster.plan(life.to, by(-1));
                continue;
            }
            let node = format!("x{}", life.place);
            cluster.plan(life.from, Event::GpuComes { node: node.clone(), model: MODEL.into() });
            cluster.plan(life.to, Event::GpuGoes { node });
        }
        for visit in path.visitors.iter().skip(visits).take_while(|visit| visit.at <= until) {
            self.visits += 1;
            cluster.plan(visit.at, Event::Job(in_own(VISITOR, "gpu:1", Some(visit.lasts))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::method::METHODS;
    use super::super::scenario::Scenario;
    use super::super::setting::Price;
    use super::*;
    use crate::model::units::Money;

    /// Jobs as they were submitted, moved, started and ended, and what the last cycle knows.
    fn history(world: &World) -> String {
        let records = world.state.shards.iter().map(|r| (&r.progress, r.pace, r.ran, r.attempts));
        format!("{:?} {:?}", world.cluster.history(), records.collect::<Vec<_>>())
    }

    /// The field's shards, the same with caps and prices by the hour, and the same of several GPUs.
    fn settings(scenario: &Scenario) -> [Setting; 3] {
        let mut field = Setting::field(scenario.clone());
        field.limit = Secs::hours(60);
        let (mut money, mut wide) = (field.clone(), field.clone());
        for (n, work) in money.work.iter_mut().enumerate() {
            if n % 2 == 0 {
                work.price = Price::GpuHour(Money(1_000_000_000));
            }
            if n % 3 == 0 {
                work.cap = Some(Money(3_000_000_000));
            }
        }
        for (gpus, work) in (1..=3).cycle().zip(&mut wide.work) {
            work.gpus = gpus;
        }
        wide.make_room();
        [field, money, wide]
    }

    #[test]
    fn leaving_out_quiet_cycles_changes_nothing() {
        for scenario in Scenario::ALL {
            for method in METHODS {
                for (seed, setting) in (1..).zip(settings(&scenario)) {
                    let run = |leave_out| {
                        let never = AtomicBool::new(false);
                        let luck = Luck::of(&setting, seed);
                        let ran = go_through(&setting, &method, &luck, leave_out, &never);
                        ran.expect("adds up").expect("nobody stops it")
                    };
                    let ((all, every), (some, fewer)) = (run(false), run(true));
                    let what = format!("{scenario:?} {} {seed}", method.name);
                    assert_eq!(all, some, "{what}");
                    assert!(history(&every) == history(&fewer), "{what}");
                    let (looks, less) = (every.cluster.calls.looks, fewer.cluster.calls.looks);
                    assert!(less < looks, "{what}: {less} of {looks} cycles were run");
                }
            }
        }
    }

    #[test]
    fn whoever_stops_it_need_not_wait_for_its_end() {
        let stop = AtomicBool::new(true);
        let setting = Setting::field(Scenario::Seed);
        let luck = Luck::of(&setting, 1);
        assert_eq!(run_with(&setting, &METHODS[0], &luck, &stop), Ok(None));
    }
}
