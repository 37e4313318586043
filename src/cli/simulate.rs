//! `babysit simulate`: policies side by side on a simulated cluster. Asks Slurm nothing and writes
//! nothing.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::config;
use crate::output::page::simulate::page;
use crate::output::placed::line as placed_line;
use crate::output::simulate::{
    Difference, Mean, PolicyView, SCHEMA, Simulation, Yours, savings, text,
};
use crate::study::Ran;
use crate::study::forecast::rest;
use crate::study::many::{Orders, Summary, longer_by, more, run_all, summary};
use crate::study::method::{self, METHODS, Method, YOURS};
use crate::study::placed;
use crate::study::setting::{Setting, ShardWork};
use crate::study::statistics::Estimate;

use super::args::Simulate;
use super::context::Context;
use super::exit::{Exit, Stop};
use super::page::{is_stdout, may_write, put};
use super::scenario::{Chosen, may_simulate};
use super::simulate_placed::{self, Compared};
use super::target::did_you_mean;
use super::{simulate_page, simulate_placement};

pub fn run(cx: &Context, asked: &Simulate) -> Result<Exit, Stop> {
    if asked.labs || asked.trace.is_some() {
        return simulate_placement::run(cx, asked);
    }
    let placed = simulate_placed::compare(cx, asked)?;
    if let Some(Compared { savings, whole: true }) = &placed {
        match cx.talk.json {
            true => cx.talk.result_json(savings)?,
            false => cx.talk.result(&placed_line(savings))?,
        }
        return Ok(Exit::Done);
    }
    let Asked { mut setting, shards_of, yours, placed: placed_here } = setting(cx, asked)?;
    may_simulate(setting.work.iter().map(|work| work.rows))?;
    setting.probe_fails = asked.probe_fails;
    let two = match asked.compare.as_slice() {
        [] => None,
        [a, b] => Some([a.clone(), b.clone()]),
        _ => return Err(Stop::usage("--compare takes two policies".into(), "--compare v4.1,now")),
    };
    let names = two.as_ref().map_or(asked.policies.as_slice(), |two| two);
    let methods = methods(names, &setting, yours)?;
    let (runs, pictures) = match &asked.out {
        None => {
            let go = |orders: &Orders<'_>| run_all(&setting, &methods, orders);
            (with_bar(cx, asked.seeds, methods.len(), go)?, Vec::new())
        }
        Some(out) => {
            may_write(out)?;
            simulate_page::run(cx, &setting, &methods, asked.seeds)?
        }
    };
    let seen = Simulation {
        yours: yours.map(|yours| as_set(&setting, &yours, placed_here)),
        ..view(&setting, shards_of, asked.seeds, &methods, &runs)
    };
    if let Some(out) = &asked.out {
        put(cx, out, &page(&seen, &pictures))?;
        if is_stdout(out) {
            return Ok(Exit::Done);
        }
    }
    if cx.talk.json {
        cx.talk.result_json(&seen)?;
    } else if two.is_some() {
        let placed = placed.map_or(String::new(), |compared| placed_line(&compared.savings));
        cx.talk.result(&format!("{}{placed}", savings(&seen)))?;
    } else {
        cx.talk.result(&text(&seen, cx.talk.width, cx.talk.paint))?;
    }
    Ok(Exit::Done)
}

/// What is simulated, whose shards these are, and the policy of their shards.toml.
struct Asked {
    setting: Setting,
    shards_of: String,
    yours: Option<Method>,
    /// Families whose shards babysit places.
    placed: Vec<String>,
}

/// The user's shards where there is a shards.toml, else the field's.
fn setting(cx: &Context, asked: &Simulate) -> Result<Asked, Stop> {
    let chosen = Chosen::of(&asked.scenario)?;
    let scenario = chosen.scenario.clone();
    let found = config::find(cx.global.config.as_deref(), cx.surroundings);
    let nothing_named = cx.global.config.is_none() && !asked.from_state;
    if asked.field || (found.is_err() && nothing_named) {
        let mut setting = Setting::field(scenario);
        chosen.apply(&mut setting)?;
        return Ok(Asked {
            setting,
            shards_of: "the field's campaign".to_owned(),
            yours: None,
            placed: Vec::new(),
        });
    }
    let campaign = cx.campaign()?;
    let (policy, state) = (&campaign.loaded.policy, cx.look(&campaign)?);
    let path = campaign.loaded.path.display();
    let yours = Method::of(policy, &state);
    let placed = placed::families(policy);
    if asked.from_state {
        let mut setting = rest(scenario, policy, &state).setting;
        chosen.apply_around(&mut setting);
        let yours = Some(yours.from_here(&state));
        return Ok(Asked { setting, shards_of: format!("what is left of {path}"), yours, placed });
    }
    let mut setting = Setting::of_policy(scenario, policy, &state);
    chosen.apply(&mut setting)?;
    Ok(Asked { setting, shards_of: path.to_string(), yours: Some(yours), placed })
}

/// The named ones; else all, and that of shards.toml where it is another.
fn methods(
    names: &[String],
    setting: &Setting,
    yours: Option<Method>,
) -> Result<Vec<Method>, Stop> {
    let mut all = match names.is_empty() {
        true => METHODS.to_vec(),
        false => method::all().collect(),
    };
    match yours {
        Some(yours) if !names.is_empty() || !all.iter().any(|m| setting.same(m, &yours)) => {
            all.push(yours);
        }
        None if names.iter().any(|name| name == YOURS) => {
            let text = format!("`{YOURS}` is the policy of a shards.toml, and here is none");
            return Err(Stop::usage(text, "name one with --config, and leave --field out"));
        }
        _ => {}
    }
    named(names, &all, |method| method.name)
}

fn as_set(setting: &Setting, yours: &Method, placed: Vec<String>) -> Yours {
    let same = METHODS.iter().find(|method| setting.same(method, yours));
    let families = |of: fn(&ShardWork) -> bool| {
        let mut names: Vec<String> =
            setting.work.iter().filter(|w| of(w)).map(|w| w.id.family.to_string()).collect();
        names.dedup();
        names
    };
    Yours {
        policy: same.unwrap_or(yours).name.to_owned(),
        pilots: families(|work| work.set_pilot.is_some()),
        split: families(|work| work.workers > 1),
        placed,
    }
}

/// The policies of these names, each once; all where none is named.
pub(super) fn named<T: Copy>(
    names: &[String],
    all: &[T],
    name: fn(&T) -> &'static str,
) -> Result<Vec<T>, Stop> {
    if names.is_empty() {
        return Ok(all.to_vec());
    }
    if let Some((n, _)) =
        names.iter().enumerate().find(|(n, a)| names.iter().take(*n).any(|b| b == *a))
    {
        let twice = names.get(n).map_or("", String::as_str);
        return Err(Stop::usage(
            format!("policy `{twice}` is named twice"),
            "name each policy once",
        ));
    }
    let one = |asked: &String| {
        all.iter().find(|one| name(one) == asked).copied().ok_or_else(|| {
            let known: Vec<&str> = all.iter().map(name).collect();
            let text = format!("there is no policy `{asked}`");
            let near = did_you_mean(asked, known.iter().copied());
            Stop::usage(text, &near.unwrap_or_else(|| format!("policies: {}", known.join(", "))))
        })
    };
    names.iter().map(one).collect()
}

/// All cores, a bar where somebody looks on, and what is there by then after a Ctrl-C.
pub(super) fn with_bar<T>(
    cx: &Context,
    seeds: u64,
    policies: usize,
    go: impl FnOnce(&Orders<'_>) -> Result<T, String>,
) -> Result<T, Stop> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(|error| {
            Stop::failed("signal", format!("signal {signal} cannot be listened to: {error}"))
        })?;
    }
    let bar = std::io::stderr().is_terminal() && !cx.talk.quiet;
    let all = seeds as usize * policies;
    let done = |n: usize| {
        if bar {
            show(n, all);
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let found = go(&Orders { seeds, threads, stop: &stop, done: &done });
    if bar {
        // The bar's line is cleared for what is said next.
        write!(std::io::stderr(), "\r\u{1b}[2K").unwrap_or_default();
    }
    found.map_err(|text| Stop::failed("simulate", format!("a campaign broke: {text}")))
}

const BAR: usize = 30;

/// A line that is drawn over itself; once a percent, so that drawing costs nothing.
fn show(done: usize, all: usize) {
    let percent = |n: usize| n * 100 / all.max(1);
    if percent(done) != percent(done.saturating_sub(1)) || done == 1 {
        let full = done * BAR / all.max(1);
        let bar: String = (0..BAR).map(|n| if n < full { '#' } else { '.' }).collect();
        let line = format!("\r[{bar}] {done} of {all} campaigns");
        std::io::stderr().lock().write_all(line.as_bytes()).unwrap_or_default();
    }
}

fn view(
    setting: &Setting,
    shards_of: String,
    asked: u64,
    methods: &[Method],
    runs: &[Vec<Ran>],
) -> Simulation {
    let pairs = || methods.iter().zip(runs);
    let priced = setting.work.iter().any(|work| work.price.is_known());
    let differences = pairs().enumerate().flat_map(|(n, (method, ran))| {
        pairs().take(n).map(move |(other, against)| Difference {
            policy: method.name.to_owned(),
            against: other.name.to_owned(),
            longer_by: longer_by(ran, against).map(mean_of),
            dearer_by: priced
                .then(|| more(ran, against, |m| m.cost.dollars()).map(mean_of))
                .flatten(),
            more_rows_lost: more(ran, against, |m| m.lost_rows).map(mean_of),
        })
    });
    Simulation {
        schema: SCHEMA,
        yours: None,
        scenario: setting.scenario.word().to_owned(),
        scenario_says: setting.scenario.sentence().into_owned(),
        shards_of,
        shards: setting.work.len(),
        rows: setting.work.iter().map(|work| u64::from(work.rows.saturating_sub(work.done))).sum(),
        own_gpus: setting.own,
        own_gpus_held_by_others: setting.held,
        park_own: setting.park,
        tick_every_seconds: setting.every.0,
        never_after_hours: setting.limit.as_f64() / 3600.0,
        seeds_asked: asked,
        seeds: runs.first().map_or(0, Vec::len),
        differences: differences.collect(),
        policies: pairs().map(|(method, ran)| policy(method, summary(ran), priced)).collect(),
    }
}

fn policy(method: &Method, s: Summary, priced: bool) -> PolicyView {
    PolicyView {
        name: method.name.to_owned(),
        says: method.sentence.to_owned(),
        ended: s.ended,
        never_ended: s.never,
        makespan: s.makespan.map(mean_of),
        bound: s.bound.map(mean_of),
        times_bound: s.times_bound.map(mean_of),
        mean_completion: s.completion.map(mean_of),
        preemptions: s.preemptions.map(mean_of),
        lost_rows: s.lost_rows.map(mean_of),
        idle_gpu_hours: s.idle.map(mean_of),
        gpu_hours: s.gpu_hours.map(mean_of),
        cost: s.cost.filter(|_| priced).map(mean_of),
        stopped_by_cap: s.capped.map(mean_of),
        wait_of_others: s.others_wait.map(mean_of),
    }
}

/// For the output's own types.
pub(super) fn mean_of(estimate: Estimate) -> Mean {
    let Estimate { mean, half, n } = estimate;
    Mean { mean, plus_minus: half.is_finite().then_some(half), n }
}
