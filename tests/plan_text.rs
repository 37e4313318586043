//! What a dry run prints.

mod common;

use babysit::model::id::{JobId, ShardId};
use babysit::model::policy::Lane;
use babysit::model::request::Change;
use babysit::model::state::Stop;
use babysit::output::plan;
use babysit::planning::plan::{Action, Plan, Purpose, Target};
use expect_test::expect;

fn target(shard: &str, job: u64) -> Target {
    Target { shard: 0, id: ShardId::new("find", shard), job: JobId(job) }
}

#[test]
fn each_action_with_its_command_lines() {
    let update = |purpose, change, jobs| Action::Update { purpose, change, jobs };
    let exclude = |nodes: &[String]| Change::Exclude(nodes.to_vec());
    let (p1, none) = (vec!["p1".to_owned()], Vec::new());
    let to_extra = Change::Lane { qos: Some("extra".into()), partition: None, account: None };
    let two = vec![target("s1", 101), target("s3", 103)];
    let plan = Plan {
        actions: vec![
            Action::Cancel { why: Stop::OverCap, jobs: vec![target("s0", 100)] },
            update(Purpose::Move(Lane::Extra), to_extra, two),
            update(Purpose::Order, Change::Nice(10), vec![target("s2", 102)]),
            update(Purpose::KeepOff(p1.clone()), exclude(&p1), vec![target("s4", 104)]),
            update(Purpose::KeepOff(none.clone()), exclude(&none), vec![target("s4", 104)]),
            Action::StopBackfill {
                node: "p1".into(),
                gpus: 2,
                jobs: vec![JobId(7), JobId(8)],
                command: None,
            },
        ],
        events: Vec::new(),
    };
    let lines: Vec<Vec<String>> =
        (0..plan.actions.len()).map(|i| vec![format!("command {i}")]).collect();
    expect![[r#"
        would cancel 1 job (cost cap reached): find/s0 (100)
          command 0
        would move 2 jobs to extra (not among the longest that wait): find/s1 (101), find/s3 (103)
          command 1
        would put 1 job behind longer ones: find/s2 (102)
          command 2
        would keep 1 job off p1 (GPUs are reserved there, or jobs die): find/s4 (104)
          command 3
        would let 1 job back to every node: find/s4 (104)
          command 4
        would tell 2 jobs of backfill on p1 to give 2 GPUs back
          command 5
    "#]]
    .assert_eq(&plan::text(&plan, &lines));
    let json = plan::json(&plan, &lines);
    assert_eq!(json["actions"][1]["jobs"], serde_json::json!([101, 103]));
    assert_eq!(json["actions"][1]["commands"], serde_json::json!(["command 1"]));
}

#[test]
fn a_plan_of_nothing_says_so() {
    assert_eq!(plan::text(&Plan::default(), &[]), "a tick would change nothing now\n");
}
