//! What a person may ask of a shard, in which state, and what becomes of it.

mod common;

use babysit::cli::figures::figures;
use babysit::model::cluster::JobState;
use babysit::model::policy::Lane;
use babysit::model::state::{Gate, HeldWhy, ShardRecord, Slot, Stop};
use babysit::model::units::Secs;
use babysit::output::word::{self, Word};
use babysit::planning::person::{Answer, Wish, wish};
use common::{NOW, dollars, fresh, live, policy};

/// Asks, and returns the answer's kind and the state that status shows then.
fn ask(wanted: Wish, before: impl Fn(&mut ShardRecord)) -> (&'static str, Word, ShardRecord) {
    let policy = policy();
    let mut state = fresh(&policy);
    before(&mut state.shards[0]);
    let answer = wish(wanted, &policy.shards[0], &mut state.shards[0], "anna", NOW);
    let figures = figures(&policy, &state);
    let record = state.shards[0].clone();
    let word = word::of(&record, figures.done[0], &figures.reasons[0]);
    let kind = match answer {
        Answer::Done(_) => "done",
        Answer::Already(_) => "already",
        Answer::Refused(_) => "refused",
    };
    (kind, word, record)
}

fn held_by(record: &mut ShardRecord, why: HeldWhy) {
    record.gate = Gate::Held { why, at: NOW };
}

fn running(record: &mut ShardRecord) {
    record.slot = Slot::Live(Box::new(live(&record.id, 152_012, Lane::Own, JobState::Running)));
}

/// Brings a fresh record into the state that is asked about.
type Setting<'a> = &'a dyn Fn(&mut ShardRecord);

#[test]
fn each_wish_in_each_state() {
    let open = |_: &mut ShardRecord| {};
    let person = |r: &mut ShardRecord| held_by(r, HeldWhy::Person { by: "bob".into() });
    let failed = |r: &mut ShardRecord| {
        r.failures = 3;
        held_by(r, HeldWhy::Failures { count: 3, log: Vec::new() });
    };
    let refused = |r: &mut ShardRecord| r.gate = Gate::Refused { text: "no".into(), at: NOW };
    let backoff = |r: &mut ShardRecord| {
        r.failures = 1;
        r.gate = Gate::Backoff { until: NOW + Secs(60) };
    };
    let cancelled = |r: &mut ShardRecord| r.gate = Gate::Cancelled { by: "bob".into(), at: NOW };
    let over = |r: &mut ShardRecord| {
        r.over_cap = Some(babysit::model::state::OverCap {
            spent: dollars(25.0),
            cap: dollars(25.0),
            at: NOW,
        });
    };
    let before: [(&str, Setting); 8] = [
        ("open", &open),
        ("person", &person),
        ("failed", &failed),
        ("refused", &refused),
        ("backoff", &backoff),
        ("cancelled", &cancelled),
        ("over", &over),
        ("running", &running),
    ];
    use Wish::{Cancel, Hold, Release, Retry};
    use Word::{Backoff, Cancelled, Held, OverCap, Refused, Running, Waiting};
    let want = [
        ("open", Hold, "done", Held),
        ("open", Release, "already", Waiting),
        ("open", Retry, "already", Waiting),
        ("open", Cancel, "done", Cancelled),
        ("person", Hold, "already", Held),
        ("person", Release, "done", Waiting),
        ("person", Retry, "done", Waiting),
        ("person", Cancel, "done", Cancelled),
        ("failed", Hold, "already", Held),
        ("failed", Release, "refused", Held),
        ("failed", Retry, "done", Waiting),
        ("refused", Release, "already", Refused),
        ("refused", Retry, "done", Waiting),
        ("backoff", Hold, "done", Held),
        ("backoff", Release, "already", Backoff),
        ("backoff", Retry, "done", Waiting),
        ("cancelled", Hold, "refused", Cancelled),
        ("cancelled", Release, "refused", Cancelled),
        ("cancelled", Retry, "refused", Cancelled),
        ("cancelled", Cancel, "already", Cancelled),
        ("over", Retry, "refused", OverCap),
        ("over", Cancel, "done", Cancelled),
        ("running", Hold, "done", Running),
        ("running", Cancel, "done", Cancelled),
    ];
    for (name, wanted, kind, word) in want {
        let (_, before) = before.iter().find(|(n, _)| *n == name).expect("a state above");
        let (got, shown, _) = ask(wanted, before);
        assert_eq!((got, shown), (kind, word), "{wanted:?} of {name}");
    }
}

#[test]
fn a_cancelled_job_is_marked_as_ended_by_babysit() {
    let (_, _, record) = ask(Wish::Cancel, running);
    assert_eq!(record.live().and_then(|live| live.stop), Some(Stop::Cancelled));
    let (_, _, record) = ask(Wish::Hold, running);
    assert_eq!(record.live().and_then(|live| live.stop), None);
}
