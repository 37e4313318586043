//! Backfill gives way (policy.md sections 1 and 6).

use babysit::model::cluster::EndWord;
use babysit::model::id::JobId;
use babysit::model::policy::{Backfill, Policy};
use babysit::model::units::Secs;
use babysit::planning::event::What;
use babysit::sim::{Cluster, Rows, Stranger};

use crate::harness::{Story, T0};
use crate::prose::{MIN_4090, llm, nodes, policy, wants};

fn story(gpus: u32, backfill: Backfill, cluster: Cluster<Rows>) -> Story {
    let policy =
        Policy { backfill: Some(backfill), ..policy(vec![wants("a/s0", "BCG", gpus, MIN_4090)]) };
    Story::new(policy, cluster)
}

fn stopped(story: &Story, job: JobId) -> bool {
    story.world.cluster.job(job).and_then(|job| job.end()) == Some(EndWord::Cancelled)
}

#[test]
fn who_is_backfill_by_each_criterion() {
    let none = Backfill { qos: None, ..llm() };
    let text = |text: &str| Some(text.to_owned());
    let table = [
        (llm(), true),
        (Backfill { qos: text("normal"), ..none.clone() }, false),
        (Backfill { name: text("^llm-"), ..none.clone() }, true),
        (Backfill { name: text("^serve"), ..none.clone() }, false),
        (Backfill { partition: text("serve"), ..none.clone() }, true),
        (Backfill { partition: text("gpu"), ..none.clone() }, false),
        (Backfill { user: text("alice"), ..none.clone() }, true),
        (Backfill { user: text("bob"), ..none.clone() }, false),
        (Backfill { user: text("alice"), name: text("^x"), ..llm() }, false),
    ];
    for (rule, is) in table {
        let cluster = nodes(&[("P", "rtx4090", 2)]).partition("serve", &["P"]);
        let mut story = story(2, rule.clone(), cluster);
        let job = Stranger {
            partition: text("serve"),
            ..Stranger::new("alice", "llm", "gpu:2").named("llm-7b").no_requeue()
        };
        let job = story.world.cluster.add_job(job).expect("a job");
        story.world.advance(Secs(2));
        // The checker of the scenarios tells backfill by QOS only.
        story.world.tick();
        story.world.advance(Secs(2));
        assert_eq!((stopped(&story, job), story.runs("a/s0")), (is, is), "{rule:?}");
    }
}

#[test]
fn exactly_as_many_as_needed_are_stopped() {
    // (GPUs wanted, which of the jobs of 1, 1 and 2 GPUs stop); one of five GPUs is idle.
    for (wanted, stop) in [(1, ""), (2, "1b"), (3, "2"), (4, "2 1b"), (5, "2 1b 1a")] {
        let mut story = story(wanted, llm(), nodes(&[("P", "rtx4090", 5)]));
        let a = story.backfill_takes("P", "gpu:1");
        let b = story.backfill_takes("P", "gpu:1");
        let two = story.backfill_takes("P", "gpu:2");
        story.tick();
        story.world.advance(Secs(2));
        assert!(story.runs("a/s0"), "{wanted}");
        let gone = [(two, "2"), (b, "1b"), (a, "1a")];
        let gone = gone.iter().filter(|(job, _)| stopped(&story, *job)).map(|(_, name)| *name);
        assert_eq!(gone.collect::<Vec<_>>().join(" "), stop, "{wanted} GPUs");
    }
}

#[test]
fn what_backfill_holds_is_found_where_it_asked_untyped_on_a_mixed_node() {
    let cluster = Cluster::at(T0).node("X", &[("rtx4090", 2), ("rtx5090", 1)]);
    let mut story = story(2, llm(), cluster.qos("llm", 0, None, &[]));
    // Slurm takes the first models of the node for it.
    let job = story.backfill_takes("X", "gpu:2");
    // The checker of the scenarios does not know models that were not asked.
    story.world.tick();
    story.world.advance(Secs(2));
    assert!(stopped(&story, job));
    assert!(story.runs("a/s0"));
}

#[test]
fn a_failing_stop_command_is_told_and_the_start_is_not_lost() {
    // bob's backfill: our scancel is denied.
    let mut story = story(2, llm(), nodes(&[("P", "rtx4090", 2)]));
    let job = story.someone_takes("bob", "llm", "P", "gpu:2");
    story.tick();
    assert_eq!(story.told(|what| matches!(what, What::BackfillStopFailed { .. })), 1);
    assert_eq!(story.submissions("a/s0"), 1);
    story.after(Secs(60));
    assert!(!story.runs("a/s0"));
    story.faulty = true; // It is told again as long as it does not give way.
    story.after(Secs(60));
    assert_eq!(story.told(|what| matches!(what, What::BackfillStopFailed { .. })), 2);
    story.ends(job);
    story.faulty = false;
    story.after(Secs(60));
    assert!(story.runs("a/s0"));
    assert_eq!(story.submissions("a/s0"), 1);
}

#[test]
fn the_configured_command_is_run_with_node_gpus_and_jobs() {
    for (stop, ran) in [
        ("llmctl stop --node {node} --gpus {gpus}", vec!["llmctl stop --node P --gpus 2"]),
        ("llmctl stop {jobids}", vec!["llmctl stop 2,1"]),
        ("kill {jobid} on {node}: {gpus}", vec!["kill 2 on P: 1", "kill 1 on P: 1"]),
    ] {
        let rule = Backfill { stop: Some(stop.to_owned()), ..llm() };
        let mut story = story(2, rule, nodes(&[("P", "rtx4090", 2)]));
        let jobs = [story.backfill_takes("P", "gpu:1"), story.backfill_takes("P", "gpu:1")];
        story.tick();
        assert_eq!(story.world.cluster.ran, ran);
        assert_eq!(story.submissions("a/s0"), 1, "sbatch follows at once");
        for job in jobs {
            story.ends(job);
        }
        story.after(Secs(10));
        assert!(story.runs("a/s0"));
        assert_eq!(story.world.cluster.ran, ran, "asked once");
    }
}

#[test]
fn a_node_whose_cpus_backfill_holds_gives_way_too() {
    let cluster = Cluster::at(T0).node_with("P", &[("rtx4090", 2)], 8, 1 << 20);
    let mut story = story(2, llm(), cluster.qos("llm", 0, None, &[]));
    story.world.policy.shards[0].cpus = Some(4);
    let job = Stranger { cpus: 8, ..Stranger::new("alice", "llm", "gpu:2").no_requeue() };
    let job = story.world.cluster.add_job(job).expect("a job");
    story.world.advance(Secs(2));
    story.world.tick();
    story.world.advance(Secs(2));
    assert!(stopped(&story, job) && story.runs("a/s0"));
}
