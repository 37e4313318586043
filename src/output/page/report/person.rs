//! What needs a person, with what to type.

use crate::model::units::Time;
use crate::output::steps::{Step, steps};
use crate::output::view::Status;

use super::super::Section;
use super::super::markup::{classed, el};

/// Steps shown in full.
const STEPS_SHOWN: usize = 20;

pub(super) fn section(status: &Status, now: Time) -> Option<Section> {
    let all = steps(&status.shards, now);
    if all.is_empty() {
        return None;
    }
    let item = |step: &Step| {
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
