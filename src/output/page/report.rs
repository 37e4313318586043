//! `babysit report`: the campaign on one page, for whoever has five seconds and for whoever has five
//! minutes. Its numbers are those of `status --json`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::model::policy::Policy;
use crate::model::state::State;
use crate::model::units::{Money, Time};

use super::super::forecast::Forecast;
use super::super::format::{
    ago, count, day_and_minute, dollars, per_row, rate, secs, short_day, span_words,
};
use super::super::steps::steps;
use super::super::table::is_overdue;
use super::super::view::{ShardView, Status, Totals};
use super::super::word::Word;
use super::axis::Axis;
use super::bars;
use super::chart::Table;
use super::history::History;
use super::markup::{El, classed, el};
use super::over_time::{Past, SHARDS_SHOWN};
use super::strips::meter;
use super::{Page, Section, Tile, figure, nothing};

/// Steps shown in full.
const STEPS_SHOWN: usize = 20;
/// Shards of a large campaign that are shown one by one: those nearest to their caps, those that
/// need a person.
const WORST: usize = 20;
const LISTED: usize = 200;

/// What a report is made from. `journal`: this project's, oldest first; `status` and `forecast` of
/// the same policy, state and moment.
pub struct Report<'a> {
    pub policy: &'a Policy,
    pub state: &'a State,
    pub status: &'a Status,
    pub journal: &'a [Value],
    pub forecast: Option<&'a Forecast>,
    pub now: Time,
}

pub fn page(report: &Report<'_>) -> String {
    let Report { policy, state, status, journal, forecast, now } = *report;
    let history = History::new(policy, state, journal, now);
    let x = Axis::of_time(history.begins().unwrap_or(now), now);
    let past = Past { history: &history, status, state, forecast, now, x };
    let mut sections = Vec::new();
    sections.extend(person(status, now));
    sections.push(
        Section::new("rows", "Rows over time")
            .says(forecast_says(forecast, state))
            .put(past.rows()),
    );
    sections.push(money(status));
    sections.push(Section::new("runs", "Runs").all(past.runs()));
    let says = "As Slurm accounts for them. Where more changed than can be seen, means are drawn.";
    sections.push(Section::new("gpus", "GPUs in use").says(says).put(past.gpus()));
    let says = "What each lab was charged, which is what its turn goes by. A run is charged when it \
                ends, so the lines go up in steps.";
    sections.push(Section::new("labs", "Labs").says(says).put(past.labs()));
    sections.push(Section::new("incidents", "Incidents").put(past.incidents()));
    sections.push(shards(status));
    let since = match history.since {
        Some(at) => format!("The journal reaches back to {}.", day_and_minute(at)),
        None => "There is no journal: lanes, nodes and incidents of the past are not known.".into(),
    };
    Page {
        title: status.project.clone(),
        kind: "Campaign report",
        lead: lead(status, forecast, now),
        tiles: tiles(status, forecast, now),
        sections,
        foot: format!(
            "Made by babysit {} at {} from shards.toml, the state file and the journal; Slurm was \
             not asked. {since} All times are UTC. Make it anew: `babysit report`.",
            env!("CARGO_PKG_VERSION"),
            day_and_minute(now)
        ),
    }
    .write()
}

fn money_text(amount: f64) -> String {
    dollars(Money::from_dollars(amount).unwrap_or_default())
}

fn left(totals: &Totals) -> u32 {
    totals.rows_total.saturating_sub(totals.rows_done)
}

/// The page in a few sentences, for those who read no picture.
fn lead(status: &Status, forecast: Option<&Forecast>, now: Time) -> String {
    let totals = &status.totals;
    let mut text = match left(totals) {
        0 => format!("All {} rows are done. ", totals.rows_total),
        _ => format!("{} of {} rows are done. ", totals.rows_done, totals.rows_total),
    };
    if let Some(range) = forecast.and_then(|f| f.all_done_in) {
        text.push_str(&format!(
            "The rest takes between {} and {} in nine of ten simulated futures. ",
            span_words(secs(range.low)),
            span_words(secs(range.high))
        ));
    } else if left(totals) > 0 && totals.eta_seconds.is_none() {
        text.push_str("Nothing moves by itself any more. ");
    }
    text.push_str(&match totals.needs_person {
        0 => "Nothing needs a person.".to_owned(),
        1 => "One shard needs a person.".to_owned(),
        n => format!("{n} shards need a person."),
    });
    if let Some(tick) = &status.last_tick {
        text.push_str(&format!(
            " As of {}; last tick {}",
            day_and_minute(now),
            ago(tick.record.at, now)
        ));
        text.push_str(match () {
            () if is_overdue(status, now) => ": does cron still run it?",
            () => match tick.outcome {
                "skipped" => ", which was skipped.",
                "failed" => ", which failed.",
                _ => ".",
            },
        });
    } else {
        text.push_str(" There was no tick yet.");
    }
    text
}

fn tiles(status: &Status, forecast: Option<&Forecast>, now: Time) -> Vec<El> {
    let totals = &status.totals;
    let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 1.0 };
    let plain = |text: String| el("span").text(text);
    let done = share(f64::from(totals.rows_done), f64::from(totals.rows_total));
    let rows = Tile {
        class: "",
        name: "Rows done",
        big: el("span")
            .put(figure("rows-done", totals.rows_done, totals.rows_done.to_string()))
            .put(el("small").text(" of ").put(figure(
                "rows-total",
                totals.rows_total,
                totals.rows_total.to_string(),
            ))),
        more: vec![
            meter("meter-rows", &format!("{:.0} % of the rows are done", done * 100.0), done, None),
            plain(format!("{} left, ", left(totals))).put(figure(
                "rows-per-hour",
                totals.rows_per_hour,
                format!("{} rows/h now", rate(totals.rows_per_hour)),
            )),
        ],
    };
    let range = forecast.and_then(|f| f.all_done_in);
    let mut more = Vec::new();
    if let Some(seconds) = totals.eta_seconds {
        more.push(plain(format!("in {} at the present pace", span_words(secs(seconds)))));
    }
    let at = |seconds: f64| short_day(now + secs(seconds));
    if let Some(range) = range {
        more.push(plain(format!("by simulation {}", at(range.median))));
        more.push(plain(format!("nine of ten: {} to {}", at(range.low), at(range.high))));
    }
    if totals.eta_is_guess {
        more.push(plain("from configured row times: not all are measured yet".into()));
    }
    if totals.needs_person > 0 && left(totals) > 0 {
        let these = count(totals.needs_person, "shard");
        more.push(plain(format!("{these} that wait for a person not counted")));
    }
    let eta = match (totals.eta_seconds, &totals.eta) {
        (Some(seconds), Some(eta)) => {
            el("span").put(el("time").at("id", "eta").at("datetime", eta).text(at(seconds)))
        }
        _ if left(totals) == 0 => plain("all done".into()),
        _ => plain("not by itself".into()),
    };
    let eta = Tile { class: "", name: "Done by", big: eta, more };
    vec![
        rows.write(),
        eta.write(),
        cost(totals).write(),
        needed(status, now).write(),
        where_they_are(totals).write(),
    ]
}

fn cost(totals: &Totals) -> Tile {
    let spent = figure("spent", totals.spent, money_text(totals.spent));
    let projected = figure("projected", totals.projected, money_text(totals.projected));
    let line = el("span").put(projected).text(" projected at the last row");
    let mut big = el("span").put(spent);
    let mut more = Vec::new();
    let mut class = "";
    match totals.ceiling {
        Some(ceiling) => {
            let of = el("small").text(" of ");
            let of = of.put(figure("ceiling", ceiling, money_text(ceiling)));
            big = big.put(of);
            let share = |amount: f64| if ceiling > 0.0 { amount / ceiling } else { 1.0 };
            let says = format!("{:.0} % of all caps is spent", share(totals.spent) * 100.0);
            more.push(meter(
                "meter-cost",
                &says,
                share(totals.spent),
                Some(share(totals.projected)),
            ));
            if totals.projected > ceiling {
                class = "warning";
            }
        }
        None if totals.spent > 0.0 => more.push(el("span").text("no ceiling: a shard has no cap")),
        None => {}
    }
    more.push(line);
    Tile { class, name: "Spent, of all caps", big, more }
}

fn needed(status: &Status, now: Time) -> Tile {
    let n = status.totals.needs_person;
    let all = steps(&status.shards, now);
    let looks = all.iter().filter(|step| !step.urgent).count();
    let mut more = Vec::new();
    if n > 0 || looks > 0 {
        let link = el("a").at("href", "#person");
        more.push(link.text(match n {
            0 => format!("{} worth a look", count(looks as u64, "thing")),
            _ => "what to type".to_owned(),
        }));
    } else {
        more.push(el("span").text("nothing to do"));
    }
    if is_overdue(status, now) {
        more.push(el("span").text("and no tick for a while: does cron still run it?"));
    }
    if let Some(first) = all.first() {
        let more_of = all.len() - 1;
        let and = if more_of > 0 { format!(" and {more_of} more") } else { String::new() };
        more.push(el("span").text(format!("{}{and}", first.shard)));
    }
    let overdue = is_overdue(status, now);
    let class = match (n, looks) {
        (1.., _) => "alarm",
        (0, 1..) => "warning",
        _ if overdue => "warning",
        _ => "",
    };
    let big = el("span").put(figure("needs-person", n, n.to_string()));
    let big = big.put(el("small").text(if n == 1 { " shard" } else { " shards" }));
    Tile { class, name: "Need a person", big, more }
}

fn where_they_are(totals: &Totals) -> Tile {
    let big = el("span").put(figure("running", totals.running, totals.running.to_string()));
    let big = big.put(
        el("small")
            .text(" of ")
            .put(figure("shards-all", totals.shards, totals.shards.to_string()))
            .text(" shards"),
    );
    let part = |id: &str, n: u32, word: &str| figure(id, n, format!("{n} {word}"));
    let more = el("span")
        .put(part("shards-done", totals.done, "done"))
        .text(", ")
        .put(part("pending", totals.pending, "pending"))
        .text(", ")
        .put(part("waiting", totals.waiting, "waiting"));
    Tile { class: "", name: "Running now", big, more: vec![more] }
}

fn person(status: &Status, now: Time) -> Option<Section> {
    let all = steps(&status.shards, now);
    if all.is_empty() {
        return None;
    }
    let item = |step: &super::super::steps::Step| {
        let class = if step.urgent { "urgent" } else { "" };
        let word = if step.urgent { "" } else { "Worth a look. " };
        classed("li", class)
            .put(el("strong").text(format!("{}: ", step.shard)))
            .text(format!("{word}{}", step.what))
            .all(step.next.iter().map(|next| el("code").text(next.clone())))
    };
    let shown = classed("ul", "steps").all(all.iter().take(STEPS_SHOWN).map(item));
    let title = match all.iter().any(|step| step.urgent) {
        true => "What needs a person",
        false => "Worth a look",
    };
    let section = Section::new("person", title).put(shown);
    Some(match all.len().checked_sub(STEPS_SHOWN).filter(|more| *more > 0) {
        Some(more) => section.says(format!("And {more} more: `babysit status` has them all.")),
        None => section,
    })
}

fn forecast_says(forecast: Option<&Forecast>, state: &State) -> String {
    match forecast {
        Some(f) if f.futures > 0 => {
            let without = match f.left_out.len() {
                0 => String::new(),
                1 => {
                    " One shard is not in it: it waits for a person, or wants several GPUs.".into()
                }
                n => format!(
                    " {n} shards are not in it: they wait for a person, or want several GPUs."
                ),
            };
            format!(
                "The forecast is that of `babysit status --forecast`: {} simulated futures from \
                 here, scenario {} ({}).{without}",
                f.futures, f.scenario, f.scenario_says
            )
        }
        _ if state.last_tick.is_none() => "There was no tick yet.".to_owned(),
        _ => "No forecast here: nothing is left that moves by itself, or there are so many shards \
              that it would take minutes; `babysit status --forecast` takes them."
            .to_owned(),
    }
}

fn money(status: &Status) -> Section {
    let capped: Vec<&ShardView> =
        status.shards.iter().filter(|s| s.cost.cap.is_some_and(|cap| cap > 0.0)).collect();
    let section = Section::new("cost", "Cost against caps");
    if capped.is_empty() {
        return section.put(nothing("No shard has a cap."));
    }
    let mut sorted = capped.clone();
    sorted.sort_by(|a, b| share_of_cap(b).total_cmp(&share_of_cap(a)));
    let over = capped.iter().filter(|s| is_bad(s)).count();
    let says = match over {
        0 => format!("{}, none of which reaches its cap.", count(capped.len() as u64, "shard")),
        n => format!(
            "{n} of {} reached the cap, or will before the last row.",
            count(capped.len() as u64, "shard")
        ),
    };
    let section = section
        .says(format!("{says} Each bar is in parts of its own cap: the line is where it stops."));
    let many = capped.len() > SHARDS_SHOWN;
    let families = many.then(|| {
        let bars = families(&capped);
        let title = "Cost against caps, by family";
        bars::caps("chart-families-cost", title, &says, bars, family_costs(&capped))
    });
    let shown = sorted.iter().take(if many { WORST } else { SHARDS_SHOWN });
    let bars = shown.map(|shard| {
        let cap = shard.cost.cap.unwrap_or(1.0);
        let projected = shard.cost.projected.unwrap_or(shard.cost.spent);
        bars::Money {
            name: shard.id.clone(),
            figure: figures(shard.cost.spent, projected, cap),
            spent: shard.cost.spent / cap,
            projected: projected / cap,
            bad: is_bad(shard),
        }
    });
    let row = |shard: &&ShardView| {
        let amount = |amount: Option<f64>| amount.map_or("-".to_owned(), money_text);
        let cost = &shard.cost;
        vec![
            shard.id.clone(),
            money_text(cost.spent),
            amount(cost.cap),
            cost.per_row.map_or("-".to_owned(), per_row),
            amount(cost.projected),
            format!("{:.0} %", share_of_cap(shard) * 100.0),
        ]
    };
    let table = Table {
        caption: "shards, nearest to their caps first".into(),
        heads: vec![
            ("Shard", false),
            ("Spent", true),
            ("Cap", true),
            ("A row", true),
            ("Projected", true),
            ("Of its cap", true),
        ],
        rows: sorted.iter().take(LISTED).map(row).collect(),
    };
    let title = "Cost of each shard against its cap";
    let chart = bars::caps("chart-cost", title, &says, bars.collect(), table);
    let nearest = many.then(|| el("p").text(format!("The {WORST} shards nearest to their caps:")));
    section.all(families).all(nearest).put(chart)
}

fn figures(spent: f64, projected: f64, cap: f64) -> String {
    let (spent, cap) = (money_text(spent), money_text(cap));
    format!("{spent} → {} of {cap}", money_text(projected))
}

fn share_of_cap(shard: &ShardView) -> f64 {
    let most = shard.cost.projected.unwrap_or(0.0).max(shard.cost.spent);
    shard.cost.cap.filter(|cap| *cap > 0.0).map_or(0.0, |cap| most / cap)
}

fn is_bad(shard: &ShardView) -> bool {
    shard.cost.will_pass_cap || shard.state == Word::OverCap
}

/// Spent, projected, caps, and how many are over or will be, by family.
fn by_family<'a>(capped: &[&'a ShardView]) -> BTreeMap<&'a str, (f64, f64, f64, u32)> {
    let mut families: BTreeMap<&str, (f64, f64, f64, u32)> = BTreeMap::new();
    for shard in capped {
        let sum = families.entry(&shard.family).or_default();
        sum.0 += shard.cost.spent;
        sum.1 += shard.cost.projected.unwrap_or(shard.cost.spent);
        sum.2 += shard.cost.cap.unwrap_or(0.0);
        sum.3 += u32::from(is_bad(shard));
    }
    families
}

fn families(capped: &[&ShardView]) -> Vec<bars::Money> {
    let bar = |(name, (spent, projected, cap, over)): (&str, (f64, f64, f64, u32))| bars::Money {
        name: name.to_owned(),
        figure: figures(spent, projected, cap),
        spent: spent / cap,
        projected: projected / cap,
        bad: over > 0,
    };
    by_family(capped).into_iter().map(bar).take(SHARDS_SHOWN).collect()
}

fn family_costs(capped: &[&ShardView]) -> Table {
    let row = |(name, (spent, projected, cap, over)): (&str, (f64, f64, f64, u32))| {
        vec![
            name.to_owned(),
            money_text(spent),
            money_text(projected),
            money_text(cap),
            over.to_string(),
        ]
    };
    Table {
        caption: "cost of each family".into(),
        heads: vec![
            ("Family", false),
            ("Spent", true),
            ("Projected", true),
            ("Caps", true),
            ("Shards over, or will be", true),
        ],
        rows: by_family(capped).into_iter().map(row).take(LISTED).collect(),
    }
}

fn shards(status: &Status) -> Section {
    let mut families: BTreeMap<&str, [u32; 6]> = BTreeMap::new();
    for shard in &status.shards {
        let sum = families.entry(&shard.family).or_default();
        let counts = [
            1,
            u32::from(shard.state == Word::Done),
            u32::from(shard.state == Word::Running),
            u32::from(shard.needs_person),
            shard.rows.done,
            shard.rows.total,
        ];
        sum.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
    }
    let row = |(name, counts): (&&str, &[u32; 6])| {
        let cells = counts.iter().map(u32::to_string);
        [(*name).to_owned()].into_iter().chain(cells).collect()
    };
    let by_family = Table {
        caption: "By family".into(),
        heads: vec![
            ("Family", false),
            ("Shards", true),
            ("Done", true),
            ("Running", true),
            ("Need a person", true),
            ("Rows done", true),
            ("Rows", true),
        ],
        rows: families.iter().take(LISTED).map(row).collect(),
    };
    let mut sorted: Vec<&ShardView> = status.shards.iter().collect();
    sorted.sort_by_key(|shard| super::super::table::order(shard));
    let row = |shard: &&ShardView| {
        vec![
            shard.id.clone(),
            shard.state.text().to_owned(),
            format!("{}/{}", shard.rows.done, shard.rows.total),
            shard.eta_seconds.map_or("-".to_owned(), |eta| span_words(secs(eta))),
            shard.attempts.to_string(),
            shard.why.clone(),
        ]
    };
    let more = sorted.len().saturating_sub(LISTED);
    let each = Table {
        caption: match more {
            0 => "each shard, what needs a person first".into(),
            _ => format!("the first {LISTED} shards, what needs a person first"),
        },
        heads: vec![
            ("Shard", false),
            ("State", false),
            ("Rows", true),
            ("Done in", true),
            ("Tries", true),
            ("Why", false),
        ],
        rows: sorted.iter().take(LISTED).map(row).collect(),
    };
    let section = Section::new("shards", "Shards").put(by_family.open());
    match more {
        0 => section.put(each.details()),
        _ => section
            .put(each.details())
            .says(format!("{more} more are not listed: `babysit status --json` has them all.")),
    }
}
