//! The field cases and the scenarios of policy.md section 8, in memory.

#[path = "scenarios/asked_again.rs"]
mod asked_again;
#[path = "scenarios/backfill.rs"]
mod backfill;
#[allow(dead_code, reason = "shared with the random campaigns")]
#[path = "scenarios/bills.rs"]
mod bills;
#[path = "scenarios/cautions.rs"]
mod cautions;
#[path = "scenarios/cutting.rs"]
mod cutting;
#[path = "scenarios/field.rs"]
mod field;
#[allow(dead_code, reason = "shared with the random campaigns")]
#[path = "scenarios/harness.rs"]
mod harness;
#[path = "scenarios/helpers.rs"]
mod helpers;
#[path = "scenarios/mixed.rs"]
mod mixed;
#[path = "scenarios/notices.rs"]
mod notices;
#[path = "scenarios/odd_pasts.rs"]
mod odd_pasts;
#[path = "scenarios/odd_queues.rs"]
mod odd_queues;
#[path = "scenarios/odd_states.rs"]
mod odd_states;
#[path = "scenarios/orphans.rs"]
mod orphans;
#[path = "scenarios/pilots.rs"]
mod pilots;
#[path = "scenarios/prose.rs"]
mod prose;
#[path = "scenarios/reasons.rs"]
mod reasons;
#[path = "scenarios/reservations.rs"]
mod reservations;
#[allow(dead_code, reason = "shared with the random campaigns")]
#[path = "scenarios/rules.rs"]
mod rules;
#[path = "scenarios/section8.rs"]
mod section8;
#[path = "scenarios/shadows.rs"]
mod shadows;
#[path = "scenarios/soft.rs"]
mod soft;
#[path = "scenarios/submission.rs"]
mod submission;
#[path = "scenarios/turnover.rs"]
mod turnover;
#[path = "scenarios/usage.rs"]
mod usage;
#[path = "scenarios/wishes.rs"]
mod wishes;
