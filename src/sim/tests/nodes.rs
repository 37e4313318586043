//! Nodes that go down, drain, come and go; what sinfo shows of them (facts, sections 1 and 6).

use super::super::{Event, Stranger};
use super::*;
use crate::model::cluster::Usable;
use crate::model::units::Secs;

fn node(cluster: &mut Cluster, name: &str) -> crate::model::cluster::Node {
    let seen = cluster.door("alice").look(Scope::Everybody).expect("no fault");
    seen.nodes.into_iter().find(|node| node.name == name).expect("in sinfo")
}

fn used(cluster: &mut Cluster, name: &str) -> Vec<u32> {
    let gpus = node(cluster, name).gpus.expect("readable");
    gpus.iter().map(|gpus| gpus.used).collect()
}

#[test]
fn sinfo_shows_gpus_in_use_by_model_and_the_rest() {
    let mut cluster = Cluster::at(T0)
        .node_with("b1", &[("rtx4090", 2), ("rtx5090", 2)], 4, 100)
        .partition("all", &["b1"]);
    let job = Stranger { cpus: 3, mem: 60, ..Stranger::new("bob", "normal", "gpu:3") };
    cluster.add_job(job).expect("fits");
    assert_eq!(node(&mut cluster, "b1").state, "idle");
    cluster.advance(1);
    assert_eq!(used(&mut cluster, "b1"), [2, 1]);
    let seen = node(&mut cluster, "b1");
    assert_eq!((seen.state.as_str(), seen.usable), ("mix", Usable::Yes));
    assert_eq!((seen.cpus_idle, seen.mem_idle), (Some(1), Some(40)));
    assert_eq!(seen.partitions, ["gpu", "all"]);
    cluster.add_job_of("bob", "normal", "gpu:1", None).expect("fits");
    cluster.advance(1);
    assert_eq!(node(&mut cluster, "b1").usable, Usable::Full);
}

#[test]
fn a_node_that_goes_down_requeues_or_ends_its_jobs() {
    let mut cluster = pair();
    let back = cluster.add_job(Stranger::new("bob", "own", "gpu:1")).expect("fits");
    let over = cluster.add_job(Stranger::new("bob", "own", "gpu:1").no_requeue()).expect("fits");
    cluster.advance(10);
    cluster.node_down("p").expect("there");
    assert_eq!(states(&mut cluster, &[back, over]), ["PENDING BeginTime", "NODE_FAIL"]);
    assert_eq!((node(&mut cluster, "p").usable, used(&mut cluster, "p")), (Usable::No, vec![0]));
    cluster.advance(130);
    let waits = "PENDING ReqNodeNotAvail, UnavailableNodes:p";
    assert_eq!(state(&mut cluster, back), waits);
    cluster.node_up("p").expect("there");
    cluster.advance(1);
    assert_eq!(state(&mut cluster, back), "RUNNING p");
    cluster.check().expect("nothing given twice");
}

#[test]
fn a_draining_node_keeps_its_jobs_and_takes_no_more() {
    let mut cluster = pair();
    let runs = cluster.add_job_of("bob", "own", "gpu:1", Some(Secs(60))).expect("fits");
    cluster.advance(1);
    cluster.drain("p").expect("there");
    let waits = cluster.add_job_of("bob", "own", "gpu:1", None).expect("could fit");
    cluster.advance(10);
    assert_eq!(state(&mut cluster, runs), "RUNNING p");
    assert!(state(&mut cluster, waits).starts_with("PENDING ReqNodeNotAvail"));
    assert_eq!(
        (node(&mut cluster, "p").state.as_str(), used(&mut cluster, "p")),
        ("drng", vec![1])
    );
    cluster.advance(60);
    assert_eq!(node(&mut cluster, "p").state, "drain");
}

#[test]
fn an_extra_gpu_comes_takes_a_job_and_goes_with_it() {
    let mut cluster = pair();
    cluster.work.add("x", super::super::Table::new(10, Secs(100)));
    cluster.add_job_of("bob", "own", "gpu:2", None).expect("fits");
    let id = submit(&mut cluster, &request("x", "extra", "gpu:1"));
    cluster.plan(Time(T0.0 + 50), Event::GpuComes { node: "x1".into(), model: "rtx4090".into() });
    cluster.plan(Time(T0.0 + 401), Event::GpuGoes { node: "x1".into() });
    cluster.plan(Time(T0.0 + 402), Event::NodeDown("nosuch".into()));
    cluster.advance(60);
    assert_eq!(state(&mut cluster, id), "RUNNING x1");
    cluster.advance(400);
    assert_eq!(state(&mut cluster, id), "PREEMPTED");
    let ended = cluster.job(id).and_then(|job| job.ended());
    assert_eq!(ended, Some(Time(T0.0 + 401)));
    assert_eq!(cluster.work.rows_of("x", cluster.now()), Some(3));
    let seen = cluster.door("alice").look(Scope::Mine).expect("no fault");
    assert!(seen.nodes.iter().all(|node| node.name != "x1"));
    assert_eq!(cluster.complaints, ["no node nosuch"]);
}

#[test]
fn gpus_taken_away_end_the_youngest_job_on_that_model() {
    let mut cluster = pair();
    let old = cluster.add_job_of("bob", "extra", "gpu:1", None).expect("fits");
    cluster.advance(5);
    let young = cluster.add_job_of("bob", "extra", "gpu:1", None).expect("fits");
    cluster.advance(5);
    cluster.set_gpus("p", "rtx4090", 1).expect("there");
    assert_eq!(states(&mut cluster, &[old, young]), ["RUNNING p", "PENDING BeginTime"]);
    cluster.check().expect("nothing given twice");
}
