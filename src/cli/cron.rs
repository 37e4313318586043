//! `babysit cron [--install | --remove]`

use crate::model::units::Secs;
use crate::output::crontab::{json, schedule};

use super::args::Cron;
use super::context::Context;
use super::exit::{Exit, Stop};
use super::{crontab, slurm};

pub fn run(cx: &Context, asked: &Cron) -> Result<Exit, Stop> {
    let Cron { install, remove, every, log } = asked;
    let every = Secs(i64::try_from(every.as_secs()).unwrap_or(i64::MAX));
    let schedule = schedule(every).ok_or_else(|| {
        let message = format!("cron cannot start something every {} s evenly", every.0);
        Stop::usage(
            message,
            "whole minutes that divide an hour, or hours that divide a day: 5m, 1h",
        )
    })?;
    let campaign = cx.campaign()?;
    let slurm = slurm::real(&campaign.loaded.policy, cx.surroundings, (cx.seed)());
    let line = crontab::of(cx, &campaign, &slurm, &schedule, log.as_deref())?.line();
    let project = &campaign.loaded.policy.project;
    let show = |did: &str, before: &[String], text: String| {
        if cx.talk.json {
            cx.talk.result_json(&json(&line, did, before))
        } else {
            cx.talk.result(&text)
        }
    };
    if !install && !remove {
        show("shown", &[], format!("{line}\n"))?;
        cx.talk.aside("babysit: `babysit cron --install` puts this line into your crontab");
        return Ok(Exit::Done);
    }
    let (old, new) = crontab::change(cx, project, install.then_some(line.as_str()))?;
    let did = match (new.text == old, *install) {
        (true, true) => "unchanged",
        (true, false) => "absent",
        (false, true) => "installed",
        (false, false) => "removed",
    };
    let mut text = match did {
        "unchanged" => format!("in your crontab already, as it should be:\n    {line}\n"),
        "absent" => format!("your crontab has no line of babysit's for {project}\n"),
        "removed" => "taken out of your crontab:\n".to_owned(),
        _ => format!("installed in your crontab on this host:\n    {line}\n"),
    };
    if !new.before.is_empty() && did != "unchanged" {
        text.push_str(if *install { "in the place of:\n" } else { "" });
        new.before.iter().for_each(|line| text.push_str(&format!("    {line}\n")));
    }
    show(did, &new.before, text)?;
    for other in &new.others {
        cx.talk.say(&format!(
            "babysit: this line of your crontab ticks too, which does no harm; take it out with \
             `crontab -e` if it is for the same project:\n    {other}"
        ));
    }
    Ok(Exit::Done)
}
