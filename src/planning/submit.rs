//! Which shards are submitted in this cycle, and the complete request for each.

use crate::model::caution::Caution;
use crate::model::id::Token;
use crate::model::observation::Cluster;
use crate::model::policy::{Lane, LaneSpec, Policy, Shard, Tier};
use crate::model::request::Request;
use crate::model::state::{Attempt, Gate, Pin, ShardRecord, Slot, State};
use crate::model::units::{Money, Time};

use super::ask::{Ask, ask};
use super::breaker;
use super::exclude::users_own;
use super::kept_off::union;
use super::measure::is_done;
use super::pilots;
use super::plan::Submit;

/// What every decision of one cycle shares.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    pub policy: &'a Policy,
    pub cluster: &'a Cluster,
    pub now: Time,
    /// The cycle's randomness.
    pub seed: u64,
}

/// May it be submitted now?
pub fn is_ready(shard: &Shard, record: &ShardRecord, caution: &Caution) -> bool {
    record.slot == Slot::Free
        && record.gate == Gate::Open
        && record.over_cap.is_none()
        && !breaker::is_open(caution, &record.id.family)
        && !is_done(shard, record)
        // Never counted: its files could not be read even once.
        && record.progress.measured_at.is_some()
}

/// Where a submission goes.
#[derive(Debug, Clone, PartialEq)]
pub enum Way<'a> {
    /// Slurm picks the node; these are kept for the holder of a reservation.
    Queued {
        kept_off: &'a [String],
    },
    Placed {
        pin: &'a Pin,
        model: &'a str,
    },
}

/// The request of one shard for one lane.
pub fn request(
    moment: &Moment<'_>,
    state: &State,
    shard: usize,
    lane: Option<Lane>,
    way: &Way<'_>,
) -> Submit {
    let Moment { policy, cluster, now, seed } = *moment;
    let spec = &policy.shards[shard];
    let record = &state.shards[shard];
    let number = record.attempts.saturating_add(1);
    let nonce = nonce(seed, shard, number);
    let token = Token::new(&state.project, &state.instance, &spec.id, number, &nonce);
    let (gres, node, exclude, kept_off, pin) = match way {
        Way::Queued { kept_off } => {
            let Ask { gres, exclude } = ask(policy, spec, record.min_tier, cluster);
            (gres, None, exclude, *kept_off, None)
        }
        Way::Placed { pin, model } => {
            let gres = format!("gpu:{model}:{}", spec.gpus);
            (gres, Some(pin.node.clone()), Vec::new(), [].as_slice(), Some((*pin).clone()))
        }
    };
    let tier = pin.as_ref().and_then(|pin| policy.tiers.iter().find(|t| t.name == pin.tier));
    let tier_partition = tier.and_then(|tier| tier.partition.clone());
    let lane_spec = match (lane, &policy.lanes) {
        (Some(lane), Some(lanes)) => lanes.spec(lane).into_owned(),
        _ => LaneSpec::default(),
    };
    let cap = state.cap_of(&spec.id, spec.cap);
    let pilot = pilots::place(policy, spec, record);
    let mut env = env(policy, spec, number, cap, tier);
    if let Some(split) = &spec.split {
        let mut tell = |key: &str, value| env.push((format!("BABYSIT_{key}"), value));
        tell("ROW_CLAIMS", split.claims.display().to_string());
        tell("ROW_CLAIMANT", token.comment.clone());
        tell("HELPER", spec.id.helper_number().map_or(String::new(), |n| n.to_string()));
    }
    let request = Request {
        token: token.clone(),
        qos: lane_spec.qos,
        partition: lane_spec
            .partition
            .or(tier_partition)
            .or_else(|| policy.slurm.partition.clone()),
        account: lane_spec.account.or_else(|| policy.slurm.account.clone()),
        gres,
        node,
        exclude: union(&exclude, kept_off),
        nice: 0,
        cpus: spec.cpus,
        mem: spec.mem.clone(),
        time: spec.time.clone(),
        workdir: spec.workdir.to_path_buf(),
        log_dir: spec.log_dir.clone(),
        env: env.into(),
        args: spec.args.clone(),
        launch: spec.launch.clone(),
        pilot,
    };
    let attempt = Attempt {
        number,
        token,
        lane,
        gpus: spec.gpus,
        pin,
        rows_before: record.progress.rows,
        asked_at: now,
        uid: cluster.me,
        exclude: union(&exclude, &users_own(&spec.args)),
        pilot: request.pilot.is_some(),
    };
    let kept_off = kept_off.to_vec();
    Submit { shard, id: spec.id.clone(), attempt, request, kept_off }
}

/// The variable that tells a program its cap; without one it is empty.
pub const COST_CAP: &str = "BABYSIT_COST_CAP";

/// What the shard's program is told (contract.md, "Job names").
pub(super) fn env(
    policy: &Policy,
    spec: &Shard,
    number: u32,
    cap: Option<Money>,
    tier: Option<&Tier>,
) -> Vec<(String, String)> {
    let env = [
        ("BABYSIT_PROJECT", policy.project.clone()),
        ("BABYSIT_FAMILY", spec.id.family.to_string()),
        ("BABYSIT_SHARD", spec.id.shard_helped().to_owned()),
        ("BABYSIT_SHARD_INDEX", spec.index.to_string()),
        ("BABYSIT_ATTEMPT", number.to_string()),
        ("BABYSIT_ROWS", spec.rows.to_string()),
        (COST_CAP, cap.map_or(String::new(), |cap| cap.dollars().to_string())),
        ("BABYSIT_GPUS", spec.gpus.to_string()),
        ("BABYSIT_TIER", tier.map_or(String::new(), |tier| tier.name.clone())),
    ];
    env.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
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
