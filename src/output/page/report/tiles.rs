//! The five figures at the top.

use crate::model::units::Time;
use crate::output::forecast::Forecast;
use crate::output::format::{count, rate, secs, short_day, span};
use crate::output::heading::is_overdue;
use crate::output::steps::steps;
use crate::output::view::{Status, Totals};

use super::super::markup::{El, el};
use super::super::strips::meter;
use super::super::{Tile, figure};
use super::{left, money_text};

pub(super) fn all(status: &Status, forecast: Option<&Forecast>, now: Time) -> Vec<El> {
    let totals = &status.totals;
    let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 1.0 };
    let plain = |text: String| el("span").text(text);
    let done = share(totals.rows_done as f64, totals.rows_total as f64);
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
        more.push(plain(format!("in {} at the present pace", span(secs(seconds)))));
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
