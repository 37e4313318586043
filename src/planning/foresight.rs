//! What the rules of placement in force look ahead for: the ends of what runs are looked up once a
//! cycle, and only where one of them asks.

use crate::model::policy::{PlaceOrder, Reserve, ReserveAt};
use crate::model::state::State;

use super::census::Census;
use super::fit_places::FitPlaces;
use super::guard::Guard;
use super::placement::Placement;
use super::shadow::Shadow;
use super::submit::Moment;

/// What dispatch knows of the ends of what runs, as far as the rules ask for it.
#[derive(Debug, Clone, Default)]
pub struct Foresight {
    /// Nobody may delay the start of those ahead.
    pub shadow: Option<Shadow>,
    /// Where a mark is put by the ends.
    pub ends: Option<Shadow>,
    /// Placements of wider shards are taken last.
    pub guard: Option<Guard>,
    pub places: FitPlaces,
}

impl Foresight {
    pub fn new(
        moment: &Moment<'_>,
        state: &State,
        census: &Census,
        queue: &[usize],
        placements: &[Placement],
    ) -> Foresight {
        let rules = &moment.policy.rules.place;
        let shadows = rules.reserve == Reserve::Shadow;
        let by_ends = rules.reserve == Reserve::Mark && rules.reserve_at == ReserveAt::Earliest;
        let guards = rules.order == PlaceOrder::Guard;
        if !(shadows || by_ends || guards) {
            return Foresight::default();
        }
        let looked = Shadow::new(moment, state, census, placements);
        let mut places = FitPlaces::default();
        let guard = guards
            .then(|| Guard::new(moment, state, queue, placements, looked.clone(), &mut places));
        let looked = Some(looked);
        Foresight {
            guard,
            places,
            ends: looked.clone().filter(|_| by_ends),
            shadow: looked.filter(|_| shadows),
        }
    }
}
