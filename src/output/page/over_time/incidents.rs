//! What went wrong, over time.

use crate::output::format::{day_and_minute, span};

use super::super::chart::{Table, figure};
use super::super::history::{Incident, Trouble};
use super::super::markup::El;
use super::super::nothing;
use super::super::strips::{self, Happened};
use super::{Past, TABLE, at};

impl Past<'_> {
    pub fn incidents(&self) -> El {
        let all = &self.history.incidents;
        if all.is_empty() {
            return nothing(match self.history.since {
                Some(_) => "None: no tick was skipped, nothing was refused, held or stalled.",
                None => "The journal is empty or lost, so none can be told.",
            });
        }
        let kinds = Trouble::ALL.into_iter().filter_map(|trouble| {
            let of = all.iter().filter(|i| i.trouble == trouble);
            let times: Vec<_> = of.map(|i| (at(i.from), at(i.to.min(self.now)))).collect();
            let kind = trouble.name().to_owned();
            (!times.is_empty()).then_some(Happened { kind, times })
        });
        let kinds: Vec<Happened> = kinds.collect();
        let says: Vec<String> =
            kinds.iter().map(|kind| format!("{} {}", kind.times.len(), kind.kind)).collect();
        let says = format!("{}.", says.join(", "));
        let row = |incident: &Incident| {
            let mut when = day_and_minute(incident.from);
            if incident.times > 1 {
                let length = span(incident.to.since(incident.from));
                when.push_str(&format!(" ({} times in {length})", incident.times));
            }
            let shard = incident.shard.clone().unwrap_or_default();
            vec![when, incident.trouble.name().to_owned(), shard, incident.text.clone()]
        };
        let table = Table {
            caption: "the last incidents, newest first".into(),
            heads: vec![("When", false), ("What", false), ("Shard", false), ("In words", false)],
            rows: all.iter().rev().take(TABLE).map(row).collect(),
        };
        let plot = strips::dots("chart-incidents", "Incidents over time", &says, &self.x, kinds);
        figure(Vec::new(), plot, table)
    }
}
