//! Nodes: what they have, what is taken, and whether a job fits.

use super::ask::Ask;
use crate::model::cluster::{Node, NodeGpus, Usable};

/// GPUs of one model on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpus {
    /// Empty where the site's GRES has no type.
    pub model: String,
    pub count: u32,
    pub used: u32,
}

/// What somebody has done to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeState {
    Up,
    /// Its jobs run on, nothing new starts.
    Drain,
    Down,
    /// Not in sinfo: an extra GPU that is not there now.
    Gone,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimNode {
    pub name: String,
    pub state: NodeState,
    pub partitions: Vec<String>,
    pub gpus: Vec<Gpus>,
    pub cpus: u32,
    pub cpus_used: u32,
    /// MiB.
    pub mem: u64,
    pub mem_used: u64,
}

/// What a job holds: GPUs by the index of the model on its node.
pub type Taken = Vec<(usize, u32)>;

impl SimNode {
    /// GPUs of a model, taken or not; `None` where it has no such model.
    pub fn gpus_of(&self, model: &str) -> Option<u32> {
        self.gpus.iter().find(|gpus| gpus.model == model).map(|gpus| gpus.count)
    }

    /// Would it fit on this node if nobody else were there?
    pub fn could_hold(&self, ask: &Ask) -> bool {
        ask.cpus <= self.cpus
            && ask.mem <= self.mem
            && match ask.is_untyped() {
                // Any models will do, so that there is nothing to pick.
                true => self.gpus.iter().map(|g| g.count).sum::<u32>() >= ask.total(),
                false => pick(ask, &self.gpus, |g| g.count).is_some(),
            }
    }

    /// The GPUs it gets now, or `None`.
    pub fn room_for(&self, ask: &Ask) -> Option<Taken> {
        self.room_without(ask, |_| 0, 0, 0)
    }

    /// As `room_for`, with so much given back by jobs that might be put aside.
    pub fn room_without(
        &self,
        ask: &Ask,
        freed: impl Fn(usize) -> u32,
        cpus: u32,
        mem: u64,
    ) -> Option<Taken> {
        let cpus_left = (self.cpus + cpus).saturating_sub(self.cpus_used);
        let mem_left = (self.mem + mem).saturating_sub(self.mem_used);
        if ask.cpus > cpus_left || ask.mem > mem_left {
            return None;
        }
        let idle = |(place, g): (usize, &Gpus)| (g.count + freed(place)).saturating_sub(g.used);
        if ask.is_untyped() && self.gpus.iter().enumerate().map(idle).sum::<u32>() < ask.total() {
            return None;
        }
        let mut place = 0;
        pick(ask, &self.gpus, |g| {
            place += 1;
            idle((place - 1, g))
        })
    }

    pub fn take(&mut self, ask: &Ask, taken: &Taken) {
        self.cpus_used += ask.cpus;
        self.mem_used += ask.mem;
        for &(place, count) in taken {
            if let Some(gpus) = self.gpus.get_mut(place) {
                gpus.used += count;
            }
        }
    }

    pub fn give_back(&mut self, ask: &Ask, taken: &Taken) {
        self.cpus_used = self.cpus_used.saturating_sub(ask.cpus);
        self.mem_used = self.mem_used.saturating_sub(ask.mem);
        for &(place, count) in taken {
            if let Some(gpus) = self.gpus.get_mut(place) {
                gpus.used = gpus.used.saturating_sub(count);
            }
        }
    }

    /// As sinfo shows it; states as in slurm-facts.md section 1. `line` is an empty one, or some
    /// node's from an earlier look.
    pub fn show(&self, line: &mut Node) {
        let busy = self.cpus_used > 0 || self.gpus.iter().any(|g| g.used > 0);
        let full = self.cpus_used >= self.cpus;
        let (state, usable) = match self.state {
            NodeState::Down | NodeState::Gone => ("down", Usable::No),
            NodeState::Drain if busy => ("drng", Usable::No),
            NodeState::Drain => ("drain", Usable::No),
            NodeState::Up if full => ("alloc", Usable::Full),
            NodeState::Up if busy => ("mix", Usable::Yes),
            NodeState::Up => ("idle", Usable::Yes),
        };
        let gpus = |g: &Gpus| NodeGpus {
            model: (!g.model.is_empty()).then(|| g.model.clone()),
            capacity: g.count,
            used: g.used,
        };
        line.usable = usable;
        line.cpus_idle = Some(self.cpus.saturating_sub(self.cpus_used));
        line.mem_idle = Some(self.mem.saturating_sub(self.mem_used));
        if line.state != state {
            state.clone_into(&mut line.state);
        }
        if line.name != self.name {
            line.name.clone_from(&self.name);
            line.gpus = None;
        }
        if line.partitions != self.partitions {
            line.partitions.clone_from(&self.partitions);
        }
        // A node's models stay what they are.
        match &mut line.gpus {
            Some(there) if there.len() == self.gpus.len() => {
                for (line, gpus) in there.iter_mut().zip(&self.gpus) {
                    (line.capacity, line.used) = (gpus.count, gpus.used);
                }
            }
            other => *other = Some(self.gpus.iter().map(gpus).collect()),
        }
    }
}

/// Typed parts first; an untyped part takes what is left in the node's own order and mixes models
/// where it must (slurm-facts.md section 6 iv).
fn pick(ask: &Ask, gpus: &[Gpus], mut idle: impl FnMut(&Gpus) -> u32) -> Option<Taken> {
    let mut left: Vec<u32> = gpus.iter().map(&mut idle).collect();
    let mut taken: Taken = Vec::new();
    for part in ask.gpus.iter().filter(|p| p.model.is_some()) {
        let place = gpus.iter().position(|g| Some(&g.model) == part.model.as_ref())?;
        let room = left.get_mut(place)?;
        *room = room.checked_sub(part.count)?;
        taken.push((place, part.count));
    }
    for part in ask.gpus.iter().filter(|p| p.model.is_none()) {
        let mut need = part.count;
        for (place, room) in left.iter_mut().enumerate() {
            let some = need.min(*room);
            if some > 0 {
                *room -= some;
                need -= some;
                taken.push((place, some));
            }
        }
        if need > 0 {
            return None;
        }
    }
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::super::ask::gres;
    use super::*;

    fn mixed(used: [u32; 2]) -> SimNode {
        let gpus = |model: &str, used| Gpus { model: model.to_owned(), count: 2, used };
        SimNode {
            name: "b1".into(),
            state: NodeState::Up,
            partitions: Vec::new(),
            gpus: vec![gpus("rtx4090", used[0]), gpus("rtx5090", used[1])],
            cpus: 8,
            cpus_used: 0,
            mem: 100,
            mem_used: 0,
        }
    }

    fn check(used: [u32; 2], asked: &str, expected: Option<&[(usize, u32)]>) {
        let ask = Ask { gpus: gres(asked).expect("a gres"), cpus: 1, mem: 0 };
        assert_eq!(mixed(used).room_for(&ask).as_deref(), expected, "{used:?} {asked}");
    }

    #[test]
    fn untyped_requests_mix_models_on_a_mixed_node() {
        check([0, 0], "gpu:3", Some(&[(0, 2), (1, 1)]));
        check([1, 0], "gpu:2", Some(&[(0, 1), (1, 1)]));
        check([2, 0], "gpu:2", Some(&[(1, 2)]));
        check([2, 1], "gpu:2", None);
    }

    #[test]
    fn typed_requests_get_their_model_or_nothing() {
        check([0, 0], "gpu:rtx5090:2", Some(&[(1, 2)]));
        check([0, 1], "gpu:rtx5090:2", None);
        check([0, 0], "gpu:rtx4090:1,gpu:rtx5090:1", Some(&[(0, 1), (1, 1)]));
        check([0, 0], "gpu:RTX4090:1", None);
        check([0, 0], "gpu:h100:1", None);
    }

    #[test]
    fn cpus_and_memory_bound_a_node_too() {
        let one = |cpus, mem| Ask { gpus: gres("gpu:1").expect("a gres"), cpus, mem };
        assert!(mixed([0, 0]).room_for(&one(8, 100)).is_some());
        assert!(mixed([0, 0]).room_for(&one(9, 0)).is_none());
        assert!(!mixed([0, 0]).could_hold(&one(1, 101)));
    }
}
