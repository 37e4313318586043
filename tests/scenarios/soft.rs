//! Marks beyond the field's rules: a reservation that outlasts its holder's rank (`r3 = "soft"`), and one
//! that is begun where it will be complete first (`reserve_at = "earliest"`).

use babysit::model::policy::{R3, ReserveAt};
use babysit::model::units::Secs;
use babysit::planning::event::What;

use crate::harness::Story;
use crate::prose::{MIN_3080TI, MIN_4090, nodes, policy, wants};

/// A of BCG holds 1/2 on P; then KDG leads, with one shard that wants so many GPUs. Q has its only
/// GPU idle or not.
fn kdg_leads(r3: R3, gpus: u32, q_is_idle: bool) -> Story {
    let shards = vec![wants("a/s0", "BCG", 2, MIN_4090), wants("k/s0", "KDG", gpus, MIN_4090)];
    let mut policy = policy(shards);
    policy.rules.place.r3 = r3;
    let cluster = nodes(&[("P", "rtx4090", 2), ("Q", "rtx4090", 1)]);
    let mut story = Story::new(policy, cluster);
    story.has_used("BCG", 24_000);
    story.has_used("KDG", 28_000);
    story.stranger_takes("P", 1, "rtx4090");
    if !q_is_idle {
        story.stranger_takes("Q", 1, "rtx4090");
    }
    story.hold("k/s0");
    story.tick();
    assert_eq!(story.reserved("a/s0"), "P 1/2");
    story.release("k/s0");
    story.has_used("BCG", 8_000);
    story.after(Secs(300));
    story
}

#[test]
fn a_soft_reservation_stays_while_the_new_rank_1_needs_nothing_of_it() {
    let story = kdg_leads(R3::Soft, 1, true);
    assert_eq!(story.node_of("k/s0"), "Q");
    assert_eq!(story.reserved("a/s0"), "P 1/2");
    assert_eq!(story.usage("BCG"), 32_000.0, "nothing was released, so nothing is charged");
    let story = kdg_leads(R3::Release, 1, true);
    assert_eq!(story.usage("BCG"), 56_780.0, "the field's R3");
}

#[test]
fn the_new_rank_1_draws_from_a_soft_reservation_what_it_needs() {
    let story = kdg_leads(R3::Soft, 1, false);
    assert_eq!(story.node_of("k/s0"), "P");
    assert_eq!(story.reserved("a/s0"), "", "its last GPU was taken");
    assert_eq!(story.usage("BCG"), 32_000.0 + 24_780.0, "charged once, as at any release");
    assert_eq!(story.told(|what| matches!(what, What::ReservationReleased { .. })), 1);
}

#[test]
fn a_wide_rank_1_collects_out_of_a_soft_reservation() {
    let story = kdg_leads(R3::Soft, 2, false);
    assert_eq!(story.node_of("k/s0"), "");
    assert_eq!((story.reserved("k/s0"), story.reserved("a/s0")), ("P 1/2".into(), String::new()));
}

#[test]
fn a_reservation_is_begun_where_it_will_be_complete_first() {
    for (reserve_at, expected) in [(ReserveAt::Best, "P 1/2"), (ReserveAt::Earliest, "Q 1/2")] {
        // P is of the better tier; what runs there takes ten hours, on Q one.
        let mut policy = policy(vec![
            wants("r/on-p", "BCG", 1, MIN_4090),
            wants("r/on-q", "BCG", 1, MIN_3080TI),
            wants("w/wide", "KDG", 2, MIN_3080TI),
        ]);
        policy.rules.place.reserve_at = reserve_at;
        (policy.shards[0].rows, policy.shards[1].rows) = (40, 4);
        let mut story = Story::new(policy, nodes(&[("P", "rtx4090", 2), ("Q", "rtx3080ti", 2)]));
        story.hold("w/wide");
        story.hold("r/on-q");
        story.tick();
        assert_eq!(story.node_of("r/on-p"), "P");
        let bob = story.stranger_takes("P", 1, "rtx4090");
        story.release("r/on-q");
        story.after(Secs(60));
        assert_eq!(story.node_of("r/on-q"), "Q");
        story.ends(bob);
        story.after(Secs(60));
        story.release("w/wide");
        story.after(Secs(60));
        assert_eq!(story.reserved("w/wide"), expected, "{reserve_at:?}");
    }
}
