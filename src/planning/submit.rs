//! Which shards are submitted in this cycle, and the complete request for each.

use crate::model::id::Token;
use crate::model::observation::Cluster;
use crate::model::policy::{Lane, LaneSpec, Policy};
use crate::model::request::Request;
use crate::model::state::{Attempt, Gate, Slot, State};
use crate::model::units::Time;

use super::ask::{Ask, ask};
use super::measure::is_done;
use super::plan::Submit;

/// Shards that may be submitted now, in index order.
pub fn ready(policy: &Policy, state: &State) -> Vec<usize> {
    let may = |i: &usize| {
        let record = &state.shards[*i];
        record.slot == Slot::Free
            && record.gate == Gate::Open
            && record.over_cap.is_none()
            && !is_done(&policy.shards[*i], record)
            // Never counted: its files could not be read even once.
            && (record.progress.measured_at.is_some())
    };
    (0..policy.shards.len()).filter(may).collect()
}

/// The request of one shard for one lane.
pub fn request(
    policy: &Policy,
    state: &State,
    cluster: &Cluster,
    shard: usize,
    lane: Option<Lane>,
    seed: u64,
    now: Time,
) -> Submit {
    let spec = &policy.shards[shard];
    let record = &state.shards[shard];
    let number = record.attempts.saturating_add(1);
    let nonce = nonce(seed, shard, number);
    let token = Token::new(&state.project, &state.instance, &spec.id, number, &nonce);
    let Ask { gres, exclude } = ask(policy, spec, record.min_tier, cluster);
    let none = LaneSpec::default();
    let lane_spec = match (lane, &policy.lanes) {
        (Some(lane), Some(lanes)) => lanes.spec(lane),
        _ => &none,
    };
    let cap = state.cap_of(&spec.id, spec.cap);
    let env = [
        ("PROJECT", policy.project.clone()),
        ("FAMILY", spec.id.family.clone()),
        ("SHARD", spec.id.shard.clone()),
        ("SHARD_INDEX", spec.index.to_string()),
        ("ATTEMPT", number.to_string()),
        ("ROWS", spec.rows.to_string()),
        ("COST_CAP", cap.map_or(String::new(), |cap| cap.dollars().to_string())),
        ("GPUS", spec.gpus.to_string()),
        ("TIER", String::new()),
    ];
    let request = Request {
        token: token.clone(),
        qos: lane_spec.qos.clone(),
        partition: lane_spec.partition.clone().or_else(|| policy.slurm.partition.clone()),
        account: lane_spec.account.clone().or_else(|| policy.slurm.account.clone()),
        gres,
        node: None,
        exclude,
        nice: 0,
        cpus: spec.cpus,
        mem: spec.mem.clone(),
        time: spec.time.clone(),
        workdir: spec.workdir.clone(),
        log_dir: spec.log_dir.clone(),
        env: env.into_iter().map(|(key, value)| (format!("BABYSIT_{key}"), value)).collect(),
        args: spec.args.clone(),
        launch: spec.launch.clone(),
    };
    let attempt = Attempt {
        number,
        token,
        lane,
        gpus: spec.gpus,
        pin: None,
        rows_before: record.progress.rows,
        asked_at: now,
        uid: cluster.me,
    };
    Submit { shard, id: spec.id.clone(), attempt, request }
}

/// Eight hex digits that no earlier attempt of this shard had, from the cycle's randomness.
fn nonce(seed: u64, shard: usize, attempt: u32) -> String {
    let mut z = seed
        .wrapping_add((shard as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .wrapping_add(u64::from(attempt) << 32);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    format!("{:08x}", (z ^ (z >> 31)) as u32)
}
