//! Placements: the GPUs of one model on one node, derived anew in every cycle from what Slurm
//! reports (policy.md section 1), and what of them is free for babysit to give.

use crate::model::cluster::{Node, Usable};
use crate::model::observation::Cluster;
use crate::model::policy::{Policy, Shard};
use crate::model::state::{Attempt, Pin, ShardRecord, Slot, State};

use super::backfill;
use super::census::Census;

/// Key (node, tier).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    pub pin: Pin,
    /// Slurm's spelling of the model, for `--gres`.
    pub model: String,
    pub rank: u32,
    pub capacity: u32,
    /// Free now; a GPU that backfill holds counts as free, one that a job of ours was just pinned
    /// to does not.
    pub idle: u32,
    /// Of `idle`: what backfill holds and must give back first.
    pub held_by_backfill: u32,
    /// Kept for the holders of reservations.
    pub reserved: u32,
    pub cpus_idle: Option<u32>,
    pub mem_idle: Option<u64>,
    pub partitions: Vec<String>,
    /// Jobs may be placed there now; a node that is down still counts for what could ever fit.
    pub up: bool,
}

impl Placement {
    /// Idle and kept for nobody.
    pub fn free(&self) -> u32 {
        self.idle.saturating_sub(self.reserved)
    }
}

/// Every placement of a configured model, nodes that are down included (`up` = false). What our own
/// pinned jobs are about to take is not deducted yet.
pub fn all(policy: &Policy, cluster: &Cluster) -> Vec<Placement> {
    let mut all = Vec::new();
    let yielding = backfill::jobs(policy, cluster);
    for node in &cluster.nodes {
        // Unreadable GRES: nothing of this node may be counted as free.
        let Some(gpus) = &node.gpus else { continue };
        let mut here: Vec<Placement> = Vec::new();
        for entry in gpus {
            let Some(model) = entry.model.as_deref() else { continue };
            let Some(tier) = policy.tier_of(model) else { continue };
            let idle = entry.capacity.saturating_sub(entry.used);
            match here.iter_mut().find(|p| p.pin.tier == tier.name) {
                // Two spellings of one tier on one node are still one placement of each model;
                // `--gres` can name one only, so the larger is kept.
                Some(other) if other.capacity >= entry.capacity => {}
                Some(other) => {
                    *other = fresh(node, &tier.name, tier.rank, model, entry.capacity, idle)
                }
                None => here.push(fresh(node, &tier.name, tier.rank, model, entry.capacity, idle)),
            }
        }
        for placement in &mut here {
            let held = backfill::held(placement, node, &yielding, cluster);
            placement.held_by_backfill = held;
            // What is idle on a full node cannot be used, unless backfill gives way there.
            let idle = if node.usable == Usable::Full { 0 } else { placement.idle };
            placement.idle = (idle + held).min(placement.capacity);
            if held > 0 {
                let cpus = backfill::cpus_on(node, &yielding);
                placement.cpus_idle = placement.cpus_idle.map(|idle| idle.saturating_add(cpus));
                // The queue does not show what memory it gives back.
                placement.mem_idle = None;
            }
            if !placement.up {
                placement.idle = 0;
                placement.held_by_backfill = 0;
            }
        }
        all.append(&mut here);
    }
    all.sort_by(|a, b| a.pin.cmp(&b.pin));
    all
}

/// Deducts what our own pinned jobs are about to take.
pub fn keep_promises(
    policy: &Policy,
    state: &State,
    census: &Census,
    placements: &mut [Placement],
) {
    for (shard, pin, gpus) in promised(state, census) {
        give(placements, &pin, gpus, &policy.shards[shard]);
    }
}

fn fresh(node: &Node, tier: &str, rank: u32, model: &str, capacity: u32, idle: u32) -> Placement {
    Placement {
        pin: Pin { node: node.name.clone(), tier: tier.to_owned() },
        model: model.to_owned(),
        rank,
        capacity,
        idle,
        held_by_backfill: 0,
        reserved: 0,
        cpus_idle: node.cpus_idle,
        mem_idle: node.mem_idle,
        partitions: node.partitions.clone(),
        up: matches!(node.usable, Usable::Yes | Usable::Full | Usable::Backfill),
    }
}

/// GPUs that our own pinned jobs are about to take: submitted, not running yet, so that Slurm
/// still shows them as free.
fn promised(state: &State, census: &Census) -> Vec<(usize, Pin, u32)> {
    let promise = |&shard: &usize| {
        let attempt = about_to_start(&state.shards[shard])?;
        attempt.pin.clone().map(|pin| (shard, pin, attempt.gpus))
    };
    census.pinned.iter().filter_map(promise).collect()
}

/// The attempt that was submitted, or may have been, and does not run yet.
pub fn about_to_start(record: &ShardRecord) -> Option<&Attempt> {
    match &record.slot {
        Slot::Submitting(intent) => Some(&intent.attempt),
        Slot::Live(live) if live.started.is_none() => Some(&live.attempt),
        Slot::Live(_) | Slot::Free | Slot::Settling(_) => None,
    }
}

/// The GPUs of a placement go, and with them CPUs and memory of its node that nobody else may
/// count on.
pub fn give(placements: &mut [Placement], pin: &Pin, gpus: u32, shard: &Shard) {
    let mem = shard.mem.as_deref().and_then(mebibytes).unwrap_or(0);
    for at in placements.iter_mut().filter(|p| p.pin.node == pin.node) {
        if at.pin == *pin {
            at.idle = at.idle.saturating_sub(gpus);
        }
        at.cpus_idle = at.cpus_idle.map(|idle| idle.saturating_sub(shard.cpus.unwrap_or(0)));
        at.mem_idle = at.mem_idle.map(|idle| idle.saturating_sub(mem));
    }
}

/// Static: the model is good enough and there are enough of them (policy.md section 1, "fit").
pub fn fits(policy: &Policy, shard: &Shard, min_tier: Option<u32>, at: &Placement) -> bool {
    let enough = min_tier.or(shard.min_tier).is_none_or(|min| at.rank >= min);
    let tier = policy.tier_by_rank(at.rank);
    let allowed = tier.and_then(|t| t.max_gpus).is_none_or(|most| shard.gpus <= most);
    enough && allowed && at.capacity >= shard.gpus && reachable(policy, at)
}

/// Is its node in the partition that jobs for its tier are sent to?
pub fn reachable(policy: &Policy, at: &Placement) -> bool {
    let own = policy.tier_by_rank(at.rank).and_then(|tier| tier.partition.as_ref());
    own.or(policy.slurm.partition.as_ref()).is_none_or(|p| at.partitions.contains(p))
}

/// Dynamic, beside the GPUs: the node has the CPUs and the memory (policy.md section 1,
/// "available"). What Slurm did not tell does not count against the node; Slurm itself will.
pub fn has_room_beside_gpus(shard: &Shard, at: &Placement) -> bool {
    let cpus = shard.cpus.is_none_or(|want| at.cpus_idle.is_none_or(|idle| idle >= want));
    let mem = shard.mem.as_deref().and_then(mebibytes);
    cpus && mem.is_none_or(|want| at.mem_idle.is_none_or(|idle| idle >= want))
}

/// sbatch's `--mem`: a number with K, M (default), G or T.
fn mebibytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..split].parse().ok()?;
    match text[split..].to_ascii_uppercase().as_str() {
        "K" | "KB" => Some(number.div_ceil(1024)),
        "" | "M" | "MB" => Some(number),
        "G" | "GB" => number.checked_mul(1024),
        "T" | "TB" => number.checked_mul(1024 * 1024),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::mebibytes;

    #[test]
    fn memory_as_sbatch_reads_it() {
        for (text, want) in [
            ("64G", Some(65536)),
            ("1000", Some(1000)),
            ("512M", Some(512)),
            ("1t", Some(1024 * 1024)),
            ("1K", Some(1)),
            ("lots", None),
            ("4X", None),
        ] {
            assert_eq!(mebibytes(text), want, "{text}");
        }
    }
}
