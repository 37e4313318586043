//! Who gets which shard, and what becomes of the job that was submitted for it.

use super::*;

#[test]
fn pilots_that_start_side_by_side_change_places() {
    let mut desk = Desk::new(3);
    assert_eq!(desk.offered(), ["s2.1", "s1.1", "s0.1"], "longest first");
    // Slurm starts the oldest; it takes the longest, and the next one the next.
    desk.starts(11, 10);
    desk.starts(12, 11);
    desk.claims(11, 2, 1, 0, 0);
    desk.claims(12, 1, 1, 0, 0);
    desk.tick(60);
    assert_eq!(desk.jobs(), "13 12! 11!");
    assert_eq!(desk.offered(), ["s0.1"]);
    let before = desk.state.clone();
    let plan = desk.tick(60);
    assert_eq!((desk.state.shards, plan.actions), (before.shards, Vec::new()), "booked once");
}

#[test]
fn the_attempts_of_one_run_add_up_to_it_whatever_ticks_saw() {
    // From a tick after each claim to one tick when all is over.
    for every in [1, 2, 4] {
        let mut desk = Desk::new(3);
        desk.starts(11, 10);
        let steps: [&dyn Fn(&mut Desk); 4] = [
            &|desk| _ = desk.claims(11, 2, 1, 0, 0),
            &|desk| _ = desk.claims(11, 1, 1, 1, 100),
            &|desk| _ = desk.claims(11, 0, 1, 2, 250),
            &|desk| desk.ends(11, EndWord::Completed, 417),
        ];
        for (i, step) in steps.iter().enumerate() {
            step(&mut desk);
            if (i + 1) % every == 0 {
                desk.tick(500 + i as i64);
            }
        }
        desk.settle();
        // 10 to 417, cut at 110 and 260.
        assert_eq!(desk.charged(), [157, 150, 100], "a tick every {every} steps");
    }
}

#[test]
fn a_job_that_goes_on_takes_the_next_shard_from_its_pending_job_which_is_left_over() {
    let mut desk = Desk::new(2);
    desk.starts(11, 0);
    desk.claims(11, 0, 1, 0, 0);
    desk.tick(60);
    assert_eq!(desk.jobs(), "11! 12");
    desk.claims(11, 1, 1, 1, 90);
    // It has to be gone first, so that nothing that it still does is lost.
    assert_eq!((cancelled(&desk.tick(120)), desk.jobs().as_str()), (vec![12], "11! 12"));
    assert_eq!(desk.offered(), Vec::<String>::new());
    desk.job(12).state = JobState::Over(EndWord::Cancelled);
    let plan = desk.tick(180);
    assert_eq!((plan.actions, desk.jobs().as_str()), (Vec::new(), "11! -"), "it has a job");
    desk.tick(240);
    assert_eq!((desk.jobs().as_str(), desk.charged()), ("(11) 11!", vec![90, 0]));
    assert_eq!(desk.state.shards[1].failures, 0);
}

#[test]
fn a_pilot_that_starts_before_it_could_be_cancelled_is_left_alone_and_charged() {
    let mut desk = Desk::new(2);
    desk.starts(11, 0);
    desk.claims(11, 0, 1, 0, 0);
    desk.tick(60);
    desk.claims(11, 1, 1, 1, 90);
    desk.starts(12, 100);
    assert_eq!((cancelled(&desk.tick(120)), desk.jobs().as_str()), (vec![], "11! 12"));
    // It found nothing.
    desk.ends(12, EndWord::Completed, 104);
    desk.ends(11, EndWord::Completed, 150);
    desk.tick(180);
    desk.tick(240);
    assert_eq!(desk.charged(), [90, 4 + 60]);
}

#[test]
fn the_pending_job_of_a_shard_that_is_taken_goes_to_one_without() {
    let mut desk = Desk::new(3);
    desk.starts(11, 0);
    desk.claims(11, 0, 1, 0, 0);
    desk.tick(60);
    desk.state.shards[2].slot = Slot::Free;
    desk.jobs.retain(|job| job.id.0 != 13);
    desk.claims(11, 1, 1, 1, 90);
    let plan = desk.tick(120);
    assert_eq!((cancelled(&plan), desk.jobs().as_str()), (vec![], "(11) 11! 12"));
}

/// Its shard is no longer in shards.toml, and the job pends on: it may take another's all the same.
#[test]
fn a_pilot_of_a_shard_that_was_taken_out_works_for_those_that_are_left() {
    let mut desk = Desk::new(3);
    desk.policy.shards.remove(0);
    desk.state.align(&desk.policy, START);
    assert_eq!(desk.state.orphans.len(), 1);
    desk.tick(5);
    desk.starts(11, 10);
    desk.claims(11, 2, 1, 0, 0);
    desk.tick(60);
    assert_eq!(desk.jobs(), "12 11!");
    let left = desk.state.orphans.iter().filter_map(|orphan| Some(orphan.live()?.job.0));
    assert_eq!(left.collect::<Vec<_>>(), [13], "followed to its end");
    // It starts, finds nothing, and is charged as any run.
    desk.starts(13, 70);
    desk.tick(120);
    desk.ends(13, EndWord::Completed, 72);
    desk.ends(11, EndWord::Completed, 110);
    desk.tick(180);
    desk.tick(240);
    assert_eq!(desk.charged(), [0, 100]);
    let orphans = desk.state.orphans.iter().flat_map(|orphan| &orphan.charges);
    assert_eq!(orphans.map(|charge| charge.gpu_seconds.0).sum::<u64>(), 2);
}
