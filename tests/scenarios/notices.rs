//! What the notify hook is told: through the real tick on the simulated cluster, in memory.

use crate::harness::{Story, plain, shard};
use crate::prose::nodes;
use babysit::engine::Report;
use babysit::model::notice::{DeliveryEnd, Matter, Message};
use babysit::model::policy::{Hook, Policy, Shard};
use babysit::model::state::Gate;
use babysit::model::units::Secs;
use babysit::output::notify::view;
use babysit::planning::notices;
use babysit::planning::person::{Wish, wish};
use babysit::sim::{Command, Fault, Trouble};

const MINUTE: Secs = Secs::minutes(1);

fn story(shards: Vec<Shard>) -> Story {
    let notify = Some(Hook { command: "hook".to_owned(), timeout: Hook::TIMEOUT });
    Story::new(Policy { shards: shards.into(), notify, ..plain() }, nodes(&[("P", "rtx4090", 8)]))
}

fn kinds(message: &Message) -> Vec<&'static str> {
    message.notices.iter().map(|notice| notice.matter.kind()).collect()
}

/// The kinds of every message of the next cycles, one a minute.
fn told(story: &mut Story, minutes: usize) -> Vec<Vec<&'static str>> {
    let reports = (0..minutes).map(|_| story.after(MINUTE)).collect::<Vec<Report>>();
    reports.iter().filter_map(|report| report.message.as_ref()).map(kinds).collect()
}

#[test]
fn what_comes_within_minutes_is_one_digest_and_the_end_is_told_at_once() {
    let mut story = story((0..4).map(|i| shard(&format!("find/s{i}"), 1 + i / 3)).collect());
    assert_eq!(story.tick().message, None, "a submission is no news for a mail");
    // Three are done after a quarter of an hour, at the same moment; the fourth after two.
    assert_eq!(told(&mut story, 25), [vec!["done"; 3]]);
    assert_eq!(told(&mut story, 20), [vec!["done", "finished"]]);
    assert_eq!(told(&mut story, 30), Vec::<Vec<&str>>::new());
    assert!(matches!(
        story.world.state.notices.last.as_ref().expect("one").end,
        DeliveryEnd::InHand
    ));
}

#[test]
fn without_a_hook_nothing_is_kept_for_one() {
    let mut story = Story::new(
        Policy { shards: vec![shard("find/s0", 1)].into(), ..plain() },
        nodes(&[("P", "rtx4090", 8)]),
    );
    assert_eq!(told(&mut story, 30), Vec::<Vec<&str>>::new());
    assert_eq!(story.world.state.notices, Default::default());
}

#[test]
fn five_minutes_lie_between_two_messages() {
    let one_row = |i: i64| {
        let row_time = Secs::minutes(15 + i);
        Shard { row_time, ..shard(&format!("find/s{i}"), 1) }
    };
    let mut shards: Vec<Shard> = (0..4).map(one_row).collect();
    shards.push(shard("find/long", 40));
    let mut story = story(shards);
    story.tick();
    // One a minute: the first is told at once, the others together.
    assert_eq!(told(&mut story, 30), [vec!["done"], vec!["done"; 3]]);
}

#[test]
fn probes_that_fail_are_told_once_until_they_answer_again() {
    let mut story = story(vec![shard("find/s0", 40)]);
    story.tick();
    story.faulty = true;
    let fail = |story: &mut Story, times: usize| {
        for _ in 0..times {
            story.world.cluster.faults.next(Command::Squeue, Fault::Error);
        }
        told(story, times)
    };
    assert_eq!(fail(&mut story, 4), Vec::<Vec<&str>>::new(), "a hiccup");
    assert_eq!(told(&mut story, 1), Vec::<Vec<&str>>::new());
    assert_eq!(fail(&mut story, 30), [["probe-failing"]]);
    assert_eq!(told(&mut story, 1), Vec::<Vec<&str>>::new());
    assert_eq!(fail(&mut story, 6), [["probe-failing"]]);
}

#[test]
fn a_campaign_that_a_person_sets_going_again_ends_twice() {
    let mut story = story(vec![shard("find/s0", 1), shard("find/s1", 3)]);
    let broken = story.world.cluster.work.trouble("find/s1", Trouble::HostMemory(0), None);
    assert!(broken);
    story.tick();
    let all = told(&mut story, 90).concat();
    assert_eq!(all, ["held", "done", "finished"]);
    let now = story.world.now();
    let record = &mut story.world.state.shards[1];
    wish(Wish::Retry, &story.world.policy.shards[1], record, "anna", now);
    assert_eq!(told(&mut story, 90).concat(), ["held", "finished"]);
    // What a person cancels is over, too: the last one to move.
    wish(
        Wish::Cancel,
        &story.world.policy.shards[1],
        &mut story.world.state.shards[1],
        "anna",
        now,
    );
    assert!(matches!(story.world.state.shards[1].gate, Gate::Cancelled { .. }));
    let end = notices::standstill(&story.world.policy, &story.world.state).expect("an end");
    assert_eq!((end.done, end.not_done), (2, 0));
}

#[test]
fn ten_thousand_at_once_are_one_message_of_bounded_size_and_exact_counts() {
    let mut story = story(vec![shard("find/s0", 1)]);
    let state = &mut story.world.state;
    state.align(&story.world.policy, babysit::model::units::Time(0));
    let event =
        |what| babysit::planning::event::Event { at: crate::harness::T0, shard: None, what };
    use babysit::planning::event::What;
    let mut events: Vec<_> = (0..10_000).map(|_| event(What::Done { rows: 1 })).collect();
    events.push(event(What::Held { why: "3 failures in a row".to_owned() }));
    notices::note(&story.world.policy, state, &events);
    let message = notices::take(&story.world.policy, state, crate::harness::T0).expect("due");
    let view = view("oracle-plan", "abc", &message);
    assert_eq!((view.kind, view.events.len(), view.left_out), ("digest", 100, 9_901));
    assert_eq!((view.counts["done"], view.counts["held"]), (10_000, 1));
    // What needs a person is never the one that is left out.
    assert!(message.notices.iter().any(|n| matches!(n.matter, Matter::Held { .. })));
    assert_eq!(view.title, "oracle-plan: 10001 events: 10000 done, 1 held");
    assert_eq!(view.text.lines().count(), 21);
    assert!(state.notices.waiting.is_empty() && state.notices.left_out.is_empty());
}
