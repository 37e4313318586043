//! `babysit usage [LAB]`: shards.toml and the state file only; no Slurm call, no write.

use crate::output::usage::{self, lab_names};

use super::context::Context;
use super::exit::{Exit, Stop};
use super::target::did_you_mean;

pub fn run(cx: &Context, lab: Option<&str>) -> Result<Exit, Stop> {
    let campaign = cx.campaign()?;
    let policy = &campaign.loaded.policy;
    let state = cx.look(&campaign)?;
    let names = lab_names(policy, &state);
    if let Some(lab) = lab.filter(|lab| !names.contains(*lab)) {
        let all = names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let hint = did_you_mean(lab, names.iter().map(String::as_str))
            .unwrap_or_else(|| format!("the labs are: {all}"));
        return Err(Stop::usage(format!("no lab is called `{lab}`"), &hint));
    }
    let view = usage::view(policy, &state, lab, (cx.clock)());
    if cx.talk.json {
        cx.talk.result_json(&view)?;
    } else {
        cx.talk.result(&usage::text(&view, cx.talk.width, cx.talk.paint))?;
    }
    let adds_up = view.labs.iter().all(|lab| lab.sum_is_usage);
    Ok(if adds_up { Exit::Done } else { Exit::Failed })
}
