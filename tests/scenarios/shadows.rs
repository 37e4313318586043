//! Placement beyond the field's rules: shadows instead of marks (`reserve = "shadow"`), and an order
//! of placements that spares wide ones (`placement_order = "guard"`).

use babysit::model::policy::{PlaceOrder, Reserve, Shard};
use babysit::model::units::Secs;
use babysit::planning::event::What;
use babysit::sim::{Cluster, Rows};

use crate::harness::Story;
use crate::prose::{MIN_3080TI, MIN_4090, nodes, policy, wants};

fn shadow(cluster: Cluster<Rows>, shards: Vec<Shard>) -> Story {
    let mut policy = policy(shards);
    policy.rules.place.reserve = Reserve::Shadow;
    Story::new(policy, cluster)
}

/// `id` takes `rows` rows of a quarter of an hour.
fn takes(mut shard: Shard, rows: u32) -> Shard {
    shard.rows = rows;
    shard
}

#[test]
fn a_short_one_uses_the_hole_and_a_long_one_does_not() {
    // P has two GPUs, one of which is taken for an hour.
    let first = takes(wants("r/first", "BCG", 1, MIN_4090), 4);
    let wide = takes(wants("r/wide", "BCG", 2, MIN_4090), 4);
    let long = takes(wants("r/xlong", "BCG", 1, MIN_4090), 8);
    let short = takes(wants("r/yshort", "BCG", 1, MIN_4090), 2);
    let mut story = shadow(nodes(&[("P", "rtx4090", 2)]), vec![first, wide, long, short]);
    for id in ["r/wide", "r/xlong", "r/yshort"] {
        story.hold(id);
    }
    story.tick();
    story.after(Secs(60));
    assert!(story.runs("r/first"));
    for id in ["r/wide", "r/xlong", "r/yshort"] {
        story.release(id);
    }
    story.after(Secs(60));
    story.after(Secs(60));
    assert!(story.runs("r/yshort"), "it ends before the wide one could start");
    assert!(!story.runs("r/xlong"), "it would delay the wide one");
    assert_eq!(story.reserved("r/wide"), "", "nothing is stored");
    story.after(Secs::minutes(60));
    story.after(Secs(60));
    story.after(Secs(60));
    assert!(story.runs("r/wide"), "{:?}", story.why("r/wide"));
    assert!(!story.runs("r/xlong"));
    assert_eq!(story.told(|what| matches!(what, What::Reserved { .. })), 0);
}

#[test]
fn the_second_wide_one_has_its_gpus_kept_too() {
    // P and Q have one GPU idle each; both wide ones wait, and a long single may delay neither.
    let a = takes(wants("r/a", "BCG", 2, MIN_4090), 4);
    let b = takes(wants("r/b", "BCG", 2, MIN_4090), 4);
    let c = takes(wants("r/c", "BCG", 1, MIN_4090), 100);
    let mut story = shadow(nodes(&[("P", "rtx4090", 2), ("Q", "rtx4090", 2)]), vec![a, b, c]);
    let on_p = story.stranger_takes("P", 1, "rtx4090");
    let on_q = story.stranger_takes("Q", 1, "rtx4090");
    story.tick();
    assert!(!story.runs("r/c"));
    story.ends(on_p);
    story.after(Secs(60));
    story.after(Secs(60));
    assert!(story.runs("r/a"));
    assert!(!story.runs("r/c"), "the mark of the field would have let it in front of b");
    story.ends(on_q);
    story.after(Secs(60));
    story.after(Secs(60));
    assert!(story.runs("r/b"));
}

#[test]
fn another_order_of_the_labs_breaks_nothing_and_costs_nothing() {
    let a = wants("r/a", "BCG", 2, MIN_4090);
    let b = wants("r/b", "KDG", 2, MIN_4090);
    let mut story = shadow(nodes(&[("P", "rtx4090", 2)]), vec![a, b]);
    let held = story.stranger_takes("P", 1, "rtx4090");
    story.tick();
    story.has_used("BCG", 56_000);
    story.after(Secs::minutes(5));
    assert_eq!(story.usage("BCG"), 56_000.0, "waiting is not charged");
    story.ends(held);
    story.after(Secs(60));
    story.after(Secs(60));
    assert!(story.runs("r/b"), "KDG has used less");
    assert_eq!(story.told(|what| matches!(what, What::ReservationReleased { .. })), 0);
}

#[test]
fn a_mark_of_before_is_released_when_shadows_take_over() {
    let mut story =
        Story::on(nodes(&[("P", "rtx4090", 2)]), vec![wants("r/a", "BCG", 2, MIN_4090)]);
    story.stranger_takes("P", 1, "rtx4090");
    story.tick();
    assert_eq!(story.reserved("r/a"), "P 1/2");
    story.world.policy.rules.place.reserve = Reserve::Shadow;
    story.after(Secs::minutes(5));
    assert_eq!(story.reserved("r/a"), "");
}

#[test]
fn a_single_leaves_the_wide_node_to_the_wide_one_that_waits() {
    // P could hold the wide one, Q could not; both have a GPU idle, and P's tier is the better one.
    let places = [("P", "rtx5090", 4), ("Q", "rtx4090", 2)];
    for (order, expected) in [(PlaceOrder::Tier, "P"), (PlaceOrder::Guard, "Q")] {
        let wide = wants("r/wide", "BCG", 4, MIN_4090);
        let single = wants("r/zsingle", "BCG", 1, MIN_3080TI);
        let mut policy = policy(vec![wide, single]);
        policy.rules.place.order = order;
        policy.rules.place.reserve = Reserve::Never;
        let mut story = Story::new(policy, nodes(&places));
        story.stranger_takes("P", 1, "rtx5090");
        story.tick();
        assert_eq!(story.node_of("r/zsingle"), expected, "{order:?}");
    }
}

#[test]
fn without_a_wider_one_the_best_tier_is_taken_as_ever() {
    let mut policy = policy(vec![wants("r/single", "BCG", 1, MIN_3080TI)]);
    policy.rules.place.order = PlaceOrder::Guard;
    let mut story = Story::new(policy, nodes(&[("P", "rtx5090", 4), ("Q", "rtx4090", 2)]));
    story.tick();
    assert_eq!(story.node_of("r/single"), "P");
}

#[test]
fn only_the_node_where_the_wide_one_will_start_is_spared() {
    // P is taken for hours, so the wide one will start on R; a single on P takes nothing from it.
    let mut policy = policy(vec![
        takes(wants("r/long", "BCG", 1, MIN_4090), 100),
        takes(wants("r/wide", "BCG", 4, MIN_4090), 4),
        takes(wants("r/zsingle", "BCG", 1, MIN_3080TI), 4),
    ]);
    policy.rules.place.order = PlaceOrder::Guard;
    policy.rules.place.reserve = Reserve::Shadow;
    let places = [("P", "rtx5090", 4), ("R", "rtx5090", 4), ("Q", "rtx4090", 2)];
    let mut story = Story::new(policy, nodes(&places));
    story.hold("r/wide");
    story.hold("r/zsingle");
    story.tick();
    story.after(Secs(60));
    assert_eq!(story.node_of("r/long"), "P");
    story.stranger_takes("R", 1, "rtx5090");
    story.release("r/wide");
    story.release("r/zsingle");
    story.after(Secs(60));
    assert_eq!(story.node_of("r/zsingle"), "P", "Q is slower, and nobody wider will start on P");
}

#[test]
fn the_fuller_of_two_nodes_keeps_the_other_whole() {
    for (order, expected) in [(PlaceOrder::Tier, "Q"), (PlaceOrder::Guard, "P")] {
        let mut policy = policy(vec![wants("r/single", "BCG", 1, MIN_3080TI)]);
        policy.rules.place.order = order;
        let mut story = Story::new(policy, nodes(&[("P", "rtx4090", 4), ("Q", "rtx4090", 4)]));
        story.stranger_takes("P", 1, "rtx4090");
        story.tick();
        assert_eq!(story.node_of("r/single"), expected, "{order:?}");
    }
}
