//! Under any sequence of events: nothing is given twice, no lane is over its limit, every job ends
//! once, rows and GPU-seconds add up, and the same calls give the same run.

use proptest::prelude::*;

use super::super::job::Job;
use super::super::{Faults, Table};
use super::*;
use crate::model::request::Change;
use crate::model::units::{Money, Secs};

#[derive(Debug, Clone)]
enum Step {
    Submit { shard: u8, lane: bool, gres: u8 },
    Stranger { lane: bool, gres: u8, lasts: u16 },
    Cancel(u8),
    Move(u8, bool),
    Exclude(u8, u8),
    Down(u8),
    Up(u8),
    Drain(u8),
    Gpus(u8),
    Comes,
    Goes,
    Pass(u16),
}

const GRES: [&str; 5] = ["gpu:1", "gpu:2", "gpu:rtx4090:2", "gpu:rtx5090:1", "gpu:3"];
const NODES: [&str; 3] = ["a", "b", "c"];

fn lane(own: bool) -> &'static str {
    if own { "own" } else { "extra" }
}

fn cluster(seed: u64) -> Cluster {
    let mut cluster = Cluster::at(T0)
        .node_with("a", &[("rtx4090", 3)], 6, 100)
        .node("b", &[("rtx4090", 2), ("rtx5090", 2)])
        .node("c", &[("rtx3080ti", 2)])
        .qos("extra", 10, None, &[])
        .qos("own", 100, Some(3), &["extra"])
        .faulty(Faults::seeded(seed).all(0.1));
    for shard in 0..4 {
        let table = Table::new(6, Secs(40 + 10 * shard)).start_cost(Secs(7)).row_cost(Money(3));
        cluster.work.add(&format!("p.f.s{shard}"), table);
    }
    cluster
}

/// Faults are on: what a command says is not the matter here, only what becomes of the cluster.
fn act(cluster: &mut Cluster, step: &Step) {
    let id = |n: u8| JobId(u64::from(n % 24) + 1);
    let node = |n: u8| NODES[usize::from(n) % 3];
    let gres = |n: u8| GRES[usize::from(n) % 5];
    match *step {
        Step::Submit { shard, lane: own, gres: n } => {
            let mut asked = request(&format!("p.f.s{}.a1", shard % 4), lane(own), gres(n));
            if shard % 8 > 3 {
                asked.args.push("--requeue".to_owned());
            }
            cluster.door("alice").submit(&asked);
        }
        Step::Stranger { lane: own, gres: n, lasts } => {
            let lasts = Some(Secs(i64::from(lasts % 500)));
            cluster.add_job_of("bob", lane(own), gres(n), lasts).ok();
        }
        Step::Cancel(n) => {
            cluster.door("alice").cancel(&[id(n)]);
        }
        Step::Move(n, own) => {
            let qos = Some(lane(own).to_owned());
            let change = Change::Lane { qos, partition: None, account: None };
            cluster.door("alice").update(&[id(n), id(n + 1)], &change);
        }
        Step::Exclude(n, at) => {
            let change = Change::Exclude(vec![node(at).to_owned()]);
            cluster.door("alice").update(&[id(n)], &change);
        }
        Step::Down(n) => cluster.node_down(node(n)).expect("there"),
        Step::Up(n) => cluster.node_up(node(n)).expect("there"),
        Step::Drain(n) => cluster.drain(node(n)).expect("there"),
        Step::Gpus(n) => cluster.set_gpus("a", "rtx4090", u32::from(n % 4)).expect("there"),
        Step::Comes => cluster.gpu_comes("x", "rtx4090"),
        Step::Goes => {
            cluster.gpu_comes("x", "rtx4090");
            cluster.gpu_goes("x").expect("there");
        }
        Step::Pass(seconds) => cluster.advance(i64::from(seconds % 400)),
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (any::<u8>(), any::<bool>(), any::<u8>())
            .prop_map(|(shard, lane, gres)| Step::Submit { shard, lane, gres }),
        2 => (any::<bool>(), any::<u8>(), any::<u16>())
            .prop_map(|(lane, gres, lasts)| Step::Stranger { lane, gres, lasts }),
        1 => any::<u8>().prop_map(Step::Cancel),
        2 => (0u8..24, any::<bool>()).prop_map(|(n, own)| Step::Move(n, own)),
        1 => (any::<u8>(), any::<u8>()).prop_map(|(n, at)| Step::Exclude(n, at)),
        1 => any::<u8>().prop_map(Step::Down),
        2 => any::<u8>().prop_map(Step::Up),
        1 => any::<u8>().prop_map(Step::Drain),
        1 => any::<u8>().prop_map(Step::Gpus),
        1 => Just(Step::Comes),
        1 => Just(Step::Goes),
        6 => any::<u16>().prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..80)
}

/// Rows finished by all runs = rows that are there + rows done twice; a ledger says so too.
fn rows_add_up(cluster: &Cluster, before: &mut [u32; 4]) {
    for (index, before) in before.iter_mut().enumerate() {
        let rows = cluster.work.rows_at(index, cluster.now());
        assert!(rows >= *before, "a finished row was lost");
        assert!(rows <= cluster.work.total(index));
        let paid = cluster.work.spent_at(index, cluster.now()).0;
        assert_eq!(paid, 3 * i64::from(rows + cluster.work.redone(index)));
        *before = rows;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_given_twice_and_everything_adds_up(seed in any::<u64>(), steps in steps()) {
        let mut one = cluster(seed);
        let mut two = cluster(seed);
        let mut rows = [0; 4];
        for step in &steps {
            act(&mut one, step);
            if let Err(fault) = one.check() {
                panic!("after {step:?}: {fault}");
            }
            rows_add_up(&one, &mut rows);
            act(&mut two, step);
        }
        prop_assert_eq!(one.history(), two.history());
        prop_assert_eq!(queue_of(&mut one), queue_of(&mut two));

        // Made whole again, every job there is comes to an end, once.
        one.faults = Faults::none();
        for node in NODES {
            one.node_up(node).expect("there");
        }
        one.set_gpus("a", "rtx4090", 3).expect("there");
        one.advance(1_000_000);
        for job in one.history() {
            if job.is_over() {
                prop_assert_eq!(job.stays.len(), job.restarts as usize + 1);
                prop_assert!(job.stays.windows(2).all(|two| two[0].ended <= two[1].submitted));
            } else {
                // Only what no node could ever hold, or a lane, is still there.
                prop_assert!(job.is_pending(), "{job:?} runs for ever");
            }
        }
        let run: u64 = one.history().iter().flat_map(|job| one.runs_of(job))
            .map(|(from, to, gpus)| to.since(from).0 as u64 * u64::from(gpus)).sum();
        prop_assert_eq!(one.gpu_seconds(|_| true).0, run);
    }

    /// The clock may be moved in one go or second by second.
    #[test]
    fn the_size_of_a_step_makes_no_difference(seed in any::<u64>(), steps in steps()) {
        let mut large = cluster(seed);
        let mut small = cluster(seed);
        for step in &steps {
            act(&mut large, step);
            match step {
                Step::Pass(seconds) => (0..seconds % 400).for_each(|_| small.advance(1)),
                other => act(&mut small, other),
            }
        }
        prop_assert_eq!(jobs_of(&large), jobs_of(&small));
    }
}

/// All that anybody can see of the jobs. Which of them the scheduler takes for one kind, so as to look at
/// one for all, depends on what it happened to look at before, and only spares it work.
fn jobs_of(cluster: &Cluster) -> Vec<Job> {
    cluster.history().iter().map(|job| Job { kind: 0, ..job.clone() }).collect()
}

fn queue_of(cluster: &mut Cluster) -> Vec<QueueJob> {
    cluster.squeue(None)
}
