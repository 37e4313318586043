//! `babysit simulate --compare field,best` of shards that babysit places: on the GPUs that the last
//! tick saw, under two placement policies.

use crate::config;
use crate::output::placed::{SCHEMA, Savings};
use crate::study::many::{paired, side_by_side};
use crate::study::placed::{self, Placed};
use crate::study::placing::{self, run};
use crate::study::waits::Width;

use super::args::Simulate;
use super::context::Context;
use super::exit::Stop;
use super::simulate::{mean_of, with_bar};

/// What is said of the shards that are placed.
pub struct Compared {
    pub savings: Savings,
    /// There are no others.
    pub whole: bool,
}

/// `None`: nobody asked for a comparison that placement knows, of a shards.toml with such shards.
pub fn compare(cx: &Context, asked: &Simulate) -> Result<Option<Compared>, Stop> {
    let [a, b] = asked.compare.as_slice() else { return Ok(None) };
    let (Some(a), Some(b)) = (placing::by_name(a), placing::by_name(b)) else { return Ok(None) };
    if asked.field || config::find(cx.global.config.as_deref(), cx.surroundings).is_err() {
        return Ok(None);
    }
    let campaign = cx.campaign()?;
    let (policy, state) = (&campaign.loaded.policy, cx.look(&campaign)?);
    if !placed::any(policy) {
        return Ok(None);
    }
    let whole = placed::all(policy);
    let Some(placed) = Placed::of(policy, &state, asked.from_state) else {
        let text = "no tick has seen which GPUs there are to place shards on";
        let next = "run `babysit tick` first; `simulate --labs` has a cluster of its own";
        if whole {
            return Err(Stop::usage(text.to_owned(), next));
        }
        cx.talk.say(&format!("{text}: those that are placed are not compared\n  next: {next}"));
        return Ok(None);
    };
    let runs = with_bar(cx, asked.seeds, 2, |orders| {
        side_by_side(2, orders, |n, seed| {
            let placing = if n == 0 { &a } else { &b };
            run(&placed.field, &placed.site, placing, &placed.jobs(seed), orders.stop)
        })
    })?;
    let [before, after] = runs.as_slice() else { return Ok(None) };
    let of_all = |of: fn(&Width) -> f64| {
        paired(after, before, |waits| waits.widths.last().map(of)).map(mean_of)
    };
    let savings = Savings {
        schema: SCHEMA,
        policy: b.name.to_owned(),
        against: a.name.to_owned(),
        longer_by: paired(after, before, |waits| waits.makespan).map(mean_of),
        waits_longer_by: of_all(|width| width.mean),
        done_later_by: of_all(|width| width.turnaround),
        never_ended: before.iter().chain(after).filter(|(_, w)| w.makespan.is_none()).count(),
        never_after_hours: placed.field.days * 24,
        shards: placed.shards(),
        too_wide: placed.too_wide,
        gpus: placed.site.gpus(),
        seeds: before.len(),
        shards_of: campaign.loaded.path.display().to_string(),
    };
    Ok(Some(Compared { savings, whole }))
}
