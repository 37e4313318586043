//! One campaign to look at: the shards of a shards.toml on a simulated cluster of which everybody
//! has seen the like.

use crate::model::policy::Policy;
use crate::model::state::State;
use crate::model::units::{Money, Secs};
use crate::sim::{Cluster, Event, Rng, Table};

use super::campaign::BEGINS;
use super::setting::ROW_CV;
use super::world::World;

/// A campaign that has not ended by then is not shown to its end.
pub const LIMIT: Secs = Secs::hours(240);
/// From one tick to the next.
pub const EVERY: Secs = Secs::minutes(10);
const MODEL: &str = "rtx4090";
/// GPUs of the own lane; another session holds half of them.
const OWN: u32 = 8;
/// Extra GPUs, each there for some hours, then somebody else's for some hours.
const EXTRA: u32 = 3;
const THERE: f64 = 180.0;
const GONE: f64 = 120.0;
const ROW_PRICE: Money = Money(150_000_000);

/// # Errors
/// The simulated cluster refused the other session's job.
pub fn world(mut policy: Policy) -> Result<World, String> {
    if policy.has_pilots() {
        // As a tick that is about to submit them has it; nothing is run or written there.
        policy.slurm.babysit.get_or_insert_with(|| "/babysit".into());
        policy.slurm.pilots.get_or_insert_with(|| "/pilots".into());
    }
    let mut rng = Rng::new(1);
    let lane = |lane: &str, or: &str| {
        let lanes = policy.lanes.as_ref();
        let spec = lanes.map(|lanes| if lane == "own" { &lanes.own } else { &lanes.extra });
        spec.and_then(|spec| spec.qos.clone()).unwrap_or_else(|| or.to_owned())
    };
    let (own, extra) = (lane("own", "own"), lane("extra", "extra"));
    let mut cluster = Cluster::at(BEGINS)
        .node("node1", &[(MODEL, OWN)])
        .qos(&extra, 10, None, &[])
        .qos(&own, 100, Some(OWN), &[&extra]);
    cluster.add_job_of("another-session", &own, &format!("gpu:{}", OWN / 2), None)?;
    for n in 0..EXTRA {
        let mut at = BEGINS;
        while at.since(BEGINS) < LIMIT {
            let node = format!("spare{n}");
            cluster.plan(at, Event::GpuComes { node: node.clone(), model: MODEL.to_owned() });
            at = at + Secs::minutes(30 + rng.exponential(THERE) as i64);
            cluster.plan(at, Event::GpuGoes { node });
            at = at + Secs::minutes(20 + rng.exponential(GONE) as i64);
        }
    }
    for shard in &policy.shards {
        let mean = shard.row_time.as_f64();
        let rows = (0..shard.rows).map(|_| Secs(rng.lognormal_cv(mean, ROW_CV) as i64 + 1));
        let table = Table::of(rows.collect::<Vec<_>>()).start_cost(Secs::minutes(6));
        let table = table.row_cost(ROW_PRICE);
        let table = if shard.split.is_some() { table.shared() } else { table };
        cluster.work.add(&shard.id.to_string(), table);
    }
    let mut world = World::new(policy, cluster, "you", 1);
    world.advance(Secs(5));
    Ok(world)
}

/// Time since the campaign began.
pub fn passed(world: &World) -> Secs {
    world.now().since(BEGINS)
}

/// Every shard has all its rows, and no job any more.
pub fn is_over(state: &State) -> bool {
    state.shards.iter().all(|record| record.finished.is_some() && record.live().is_none())
}
