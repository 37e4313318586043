//! How the planner decides, as far as it can be chosen: the keys of `[policy]`, and what is kept only to
//! be compared. The defaults are the rules as policy.md has them.

use super::units::Secs;

/// Everything that `[policy]` says.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    pub reservation_charge: ReservationCharge,
    pub max_failures: u32,
    pub backoff: Secs,
    pub settle: Secs,
    pub submit_settle: Secs,
    pub max_submits_per_tick: usize,
    /// A lab that joins late starts at the lowest usage of the active labs.
    pub newcomer_floor: bool,
    /// Refused submissions of one family in a row, after which no more of it are tried.
    pub breaker: u32,
    /// Deaths on one node after which it is kept out.
    pub node_deaths: u32,
    /// For how long; also how long a death counts.
    pub node_rest: Secs,
    /// What families without a `restart_stalled` of their own do.
    pub restart_stalled: bool,
    /// Longest that one tick may hold the lock.
    pub tick_budget: Secs,
    /// What a cycle was given to decide on is kept, so that it can be planned again.
    pub journal_observations: bool,
    pub place: PlaceRules,
    pub lanes: LaneRules,
}

/// How placed shards get their GPUs (policy.md sections 5-7). The default is the rule as it stands
/// there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlaceRules {
    pub reserve: Reserve,
    pub order: PlaceOrder,
    pub r3: R3,
    pub reserve_at: ReserveAt,
}

/// What becomes of a reservation whose holder is no longer rank 1 (policy.md section 6, R3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum R3 {
    /// It is released at once.
    #[default]
    Release,
    /// It stays, and the new rank 1 draws from it what it needs.
    Soft,
}

/// Where rank 1 begins a reservation (policy.md section 6 c).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReserveAt {
    /// On the best fit placement that has any idle GPU.
    #[default]
    Best,
    /// On that of them where all its GPUs will be free first, by the ends of what runs.
    Earliest,
}

/// What is done for a shard that cannot start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reserve {
    /// Rank 1 that cannot start collects GPUs (policy.md section 6 c).
    #[default]
    Mark,
    /// Nobody behind a shard of several GPUs may delay its earliest start, which is derived anew in
    /// each cycle.
    Shadow,
    /// It is skipped: the old head-of-line rule, which is kept so that it can be compared.
    Never,
}

/// Which of the available placements a shard starts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PlaceOrder {
    /// Best tier first (policy.md section 6 a).
    #[default]
    Tier,
    /// The same, but last of all those where wider shards of the queue will start, and the fullest of
    /// equal ones.
    Guard,
}

/// How the two lanes are used (policy.md section 3). The default is the rule as it stands there;
/// the other settings are the field's earlier versions, kept so that they can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneRules {
    pub park: Park,
    /// A submission goes straight into the lane where it belongs. Else all go to own, and the next
    /// cycle promotes what still pends there.
    pub straight: bool,
    /// Longest first among our own: in the order of submissions, and by nice while they pend.
    /// Else in the order of shards.toml, and Slurm starts the oldest.
    pub longest_first: bool,
    pub mode: LaneMode,
    pub own_share: OwnShare,
}

/// Most GPUs of own that we hold or wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OwnShare {
    /// As many as there are.
    #[default]
    All,
    Gpus(u32),
    /// Those of the lane, less what others held of it on average.
    Average,
}

/// How many of those that wait stay in own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneMode {
    /// K, as `[own] park` says.
    Fixed,
    /// As many as own will take before the tick after next.
    Adaptive,
    /// All of them, since each waits in both lanes at once; as `Adaptive` where Slurm cannot.
    Both,
}

/// Which K pending jobs stay parked in own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Park {
    /// Those with most work left; one that pends in extra moves back for it (v4.1).
    Longest,
    /// Those in own that were submitted first; nothing moves back (v4).
    Oldest,
}

impl Default for LaneRules {
    fn default() -> LaneRules {
        LaneRules {
            park: Park::Longest,
            straight: true,
            longest_first: true,
            mode: LaneMode::Fixed,
            own_share: OwnShare::All,
        }
    }
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            reservation_charge: ReservationCharge::Release,
            max_failures: 3,
            backoff: Secs::minutes(1),
            settle: Secs::minutes(2),
            submit_settle: Secs::minutes(5),
            max_submits_per_tick: 50,
            newcomer_floor: false,
            breaker: 3,
            node_deaths: 2,
            node_rest: Secs::hours(1),
            restart_stalled: false,
            tick_budget: Secs::minutes(5),
            journal_observations: true,
            place: PlaceRules::default(),
            lanes: LaneRules::default(),
        }
    }
}

impl Rules {
    /// What was measured to be better than the field's rules: `[policy] preset = "best"`.
    pub fn best() -> Rules {
        let place = PlaceRules {
            reserve: Reserve::Shadow,
            order: PlaceOrder::Guard,
            ..PlaceRules::default()
        };
        Rules { place, lanes: LaneRules::best(), newcomer_floor: true, ..Rules::default() }
    }

    /// Lanes as the field's own script had them, to compare with: `[policy] preset = "v4.1"`.
    pub fn v4_1() -> Rules {
        Rules { lanes: LaneRules::v4_1(), ..Rules::default() }
    }
}

impl LaneRules {
    pub fn best() -> LaneRules {
        LaneRules { mode: LaneMode::Both, own_share: OwnShare::Average, ..LaneRules::default() }
    }

    /// Everything is submitted to own, in the order of shards.toml; a cycle later all that pends is
    /// promoted but for the K with most work left, and within a lane Slurm starts the oldest.
    pub fn v4_1() -> LaneRules {
        LaneRules { straight: false, longest_first: false, ..LaneRules::default() }
    }
}

/// When a reservation that led to no start is charged (policy.md section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReservationCharge {
    Release,
    JobEnd,
}
