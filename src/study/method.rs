//! Policies by name: each is a setting of the real planner, never a rule of its own.

use crate::model::policy::{LaneMode, LaneRules, OwnShare, Park, Policy};
use crate::model::state::State;
use crate::planning::{both, own_share};

/// A way to use the two lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method {
    pub name: &'static str,
    pub sentence: &'static str,
    pub rules: LaneRules,
    /// K. `None`: as shards.toml has it.
    pub park: Option<usize>,
    /// Shards that may be split are.
    pub split: bool,
    /// Jobs are pilots, where they may be.
    pub pilots: bool,
    /// Of these only those that shards.toml makes pilots, for each other as it says there.
    pub as_set: bool,
}

/// As the field's script did: everything is submitted to own, in the order of shards.toml, and the
/// next cycle promotes; Slurm starts the oldest.
const FIELD: LaneRules =
    LaneRules { park: Park::Longest, straight: false, longest_first: false, ..NOW };

/// As policy.md has it: straight into the lane where it belongs, longest first.
const NOW: LaneRules = LaneRules {
    park: Park::Longest,
    straight: true,
    longest_first: true,
    mode: LaneMode::Fixed,
    own_share: OwnShare::All,
};

/// More jobs than anybody has: all of them stay.
const ALL: usize = usize::MAX;

/// What babysit does by default; each of the others names what it does differently.
const PLAIN: Method = Method {
    name: "now",
    sentence: "as v4.1, straight into the lane where it belongs, longest first",
    rules: NOW,
    park: None,
    split: false,
    pilots: false,
    as_set: false,
};

pub const METHODS: [Method; 10] = [
    Method {
        name: "own-only",
        sentence: "wait in own, never use extra",
        rules: FIELD,
        park: Some(ALL),
        ..PLAIN
    },
    Method {
        name: "v3",
        sentence: "what pends in own for a cycle goes to extra",
        rules: FIELD,
        park: Some(0),
        ..PLAIN
    },
    Method {
        name: "v4",
        sentence: "as v3, but the K submitted first stay in own",
        rules: LaneRules { park: Park::Oldest, ..FIELD },
        ..PLAIN
    },
    Method {
        name: "v4.1",
        sentence: "as v4, but the K with most work left, wherever they pend",
        rules: FIELD,
        ..PLAIN
    },
    PLAIN,
    Method {
        name: "adaptive",
        sentence: "as now, but as many stay in own as it will take before the tick after next",
        rules: LaneRules { mode: LaneMode::Adaptive, ..NOW },
        ..PLAIN
    },
    Method {
        name: "both",
        sentence: "what waits, waits in own and extra at once (Slurm 24.11 and later)",
        rules: LaneRules { mode: LaneMode::Both, ..NOW },
        ..PLAIN
    },
    Method {
        name: "split",
        sentence: "as both, and idle GPUs take rows of the longest shards (split = true)",
        rules: LaneRules { mode: LaneMode::Both, ..NOW },
        split: true,
        ..PLAIN
    },
    Method {
        name: "pilots",
        sentence: "as both, and a job works on the longest shard that waits, then on the next (pilot = \"any\")",
        rules: LaneRules { mode: LaneMode::Both, ..NOW },
        pilots: true,
        ..PLAIN
    },
    Method {
        name: "best",
        sentence: "as [policy] preset = \"best\" has it: both, and of own what others left on average",
        rules: LaneRules { mode: LaneMode::Both, own_share: OwnShare::Average, ..NOW },
        ..PLAIN
    },
];

/// The same as `now`, by the name that shards.toml has for it.
pub const FIELD_PRESET: Method = Method {
    name: "field",
    sentence: "as [policy] preset = \"field\" has it, which is now",
    ..PLAIN
};

/// Also those that are another name of one of `METHODS`.
pub fn all() -> impl Iterator<Item = Method> {
    METHODS.into_iter().chain([FIELD_PRESET])
}

pub fn by_name(name: &str) -> Option<Method> {
    all().find(|method| method.name == name)
}

/// What shards.toml itself says.
pub const YOURS: &str = "yours";

impl Method {
    /// As shards.toml has it, on the cluster as the state knows it: both lanes at once only where Slurm
    /// may take that.
    pub fn of(policy: &Policy, state: &State) -> Method {
        let set = policy.rules.lanes;
        let yours = Method {
            name: YOURS,
            sentence: "as your shards.toml has it",
            split: policy.shards.iter().any(|shard| shard.split.is_some()),
            pilots: policy.has_pilots(),
            as_set: true,
            ..PLAIN
        };
        if policy.lanes.is_none() {
            // One queue, which is what waiting in own alone is.
            let rules = LaneRules { mode: LaneMode::Fixed, own_share: OwnShare::All, ..set };
            return Method { rules, park: Some(ALL), ..yours };
        }
        let may = both::works(policy, state) || both::is_unknown(policy, state);
        let mode = match set.mode {
            LaneMode::Both if !may => LaneMode::Adaptive,
            mode => mode,
        };
        Method { rules: LaneRules { mode, ..set }, ..yours }
    }

    /// The same for a campaign that goes on from that state: what others have left of own on average is
    /// known already.
    pub fn from_here(self, state: &State) -> Method {
        let own_share = own_share::so_far(self.rules.own_share, state);
        Method { rules: LaneRules { own_share, ..self.rules }, ..self }
    }
}
