//! `babysit reconcile`: what Slurm and the state disagree on, and the settling of what can be
//! proved, by the rules of a tick. Submits nothing.

use crate::model::request::Asked;
use crate::model::state::State;
use crate::planning::differences::{Difference, differences, lost_instance};
use crate::planning::event::Event;
use crate::planning::orphans;
use crate::planning::pilots;
use crate::planning::plan::Target;
use crate::planning::reconcile::reconcile as settle;
use crate::planning::roster::Roster;
use crate::slurm::Scope;

use super::tick::{Hands, Outcome, observe};

#[derive(Debug, Clone, PartialEq)]
pub struct Reconciled {
    pub outcome: Outcome,
    /// The state was new, every live job under its names proved to be of this one instance, and a
    /// person said that its state is lost.
    pub taken_up: Option<String>,
    /// As they were before anything was settled.
    pub found: Vec<Difference>,
    /// What is left of them.
    pub left: Vec<Difference>,
    pub events: Vec<Event>,
}

/// `take_up`: the instance whose state a person says is lost. A campaign that is alive elsewhere
/// cannot be told from it by its jobs.
pub fn reconcile(hands: &mut Hands<'_>, state: &mut State, take_up: Option<&str>) -> Reconciled {
    state.align(hands.policy, hands.now);
    let mut done = Reconciled {
        outcome: Outcome::Ok,
        taken_up: None,
        found: Vec::new(),
        left: Vec::new(),
        events: Vec::new(),
    };
    // Strangers and orphans are of interest whoever they belong to.
    let cluster = match hands.slurm.look(Scope::Everybody) {
        Ok(cluster) => cluster,
        Err(gap) => {
            done.outcome = Outcome::Skipped(gap.to_string());
            return done;
        }
    };
    done.found = differences(state, &cluster);
    if let Some(wanted) = take_up {
        match lost_instance(state, &cluster) {
            Some(instance) if instance == wanted => {
                state.instance.clone_from(&instance);
                hands.checkpoint.another_instance();
                done.taken_up = Some(instance);
            }
            _ => {
                done.outcome = Outcome::Failed(format!(
                    "nothing was taken up: it takes a state that has never submitted, and live jobs \
                     under this project's names that are all yours, of instance {wanted:?}, and one \
                     for each of shards that shards.toml has. `babysit reconcile` lists what there is"
                ));
                return done;
            }
        }
    }
    let seen = observe(hands, state, cluster);
    let roster = Roster::new(state, &seen.cluster.jobs, seen.cluster.me);
    let booked = pilots::book(hands.policy, state, &seen, &roster, hands.now, &mut done.events);
    let roster = Roster::without(state, &seen.cluster.jobs, seen.cluster.me, &booked.aside);
    let wait = &booked.wait;
    let twins = settle(hands.policy, state, &seen, &roster, wait, hands.now, &mut done.events);
    orphans::follow(hands.policy, state, &seen, wait, hands.now, &mut done.events);
    done.left = differences(state, &seen.cluster);
    if let Err(error) = hands.checkpoint.save(state) {
        done.outcome = Outcome::Failed(format!("the state could not be saved: {error:#}"));
        return done;
    }
    // Only what is in the state is told, as in a tick.
    hands.checkpoint.journal(&done.events);
    if let Err(error) = hands.checkpoint.still_ours() {
        done.outcome = Outcome::Failed(format!("no second job was cancelled: {error:#}"));
        return done;
    }
    let jobs: Vec<_> = twins.iter().map(|Target { job, .. }| *job).collect();
    if !jobs.is_empty()
        && let Asked::Failed(said) = hands.slurm.cancel(&jobs)
    {
        // The next tick sees the twins again, and asks again.
        done.outcome = Outcome::Failed(format!("a second job could not be cancelled: {said}"));
    }
    done
}
