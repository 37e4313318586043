//! Slurm's pending reasons in plain words. Slurm's list is open; an unknown one is shown as it is.

/// By how the reason begins; the first that matches counts, so longer ones come first.
const WORDS: &[(&str, &str)] = &[
    ("QOSGrpGRES", "the GPUs of its QOS are all in use"),
    ("QOSGrpCpu", "the CPUs of its QOS are all in use"),
    ("QOSGrpMem", "the memory of its QOS is all in use"),
    ("QOSGrpNode", "the nodes of its QOS are all in use"),
    ("QOSGrpJobs", "as many jobs run in its QOS as it allows"),
    ("QOSGrpSubmit", "as many jobs are submitted to its QOS as it allows"),
    ("QOSGrp", "a group limit of its QOS is reached"),
    ("QOSMaxJobs", "you run as many jobs in this QOS as one user may"),
    ("QOSMaxSubmit", "you have submitted as many jobs to this QOS as one user may"),
    ("QOSMaxGRES", "it asks for more GPUs than its QOS gives one user or job"),
    ("QOSMaxWall", "its time limit is longer than its QOS allows"),
    ("QOSMax", "a limit of its QOS for one user or job is reached"),
    ("QOSUsageThreshold", "the usage limit of its QOS is reached"),
    ("QOSTimeLimit", "its time limit is longer than its QOS allows"),
    ("QOSNotAllowed", "its QOS may not be used in its partition"),
    ("AssocGrpGRES", "the account's GPUs are all in use"),
    ("AssocGrp", "a limit of the account is reached"),
    ("AssocMax", "a limit of the account for one user is reached"),
    ("AssociationJobLimit", "the account runs as many jobs as it may"),
    ("Association", "a limit of the account is reached"),
    ("MaxGRESPerAccount", "the account's GPUs are all in use"),
    ("Resources", "it is first in line, and no GPU it may use is free"),
    ("Priority", "other jobs are ahead of it"),
    ("BeginTime", "Slurm starts it no earlier than a set time (a requeued job waits 2 minutes)"),
    ("DependencyNeverSatisfied", "it depends on a job that can no longer end as required"),
    ("Dependency", "it depends on another job"),
    ("JobHeldAdmin", "an administrator holds it"),
    ("JobHeldUser", "a user holds it (`scontrol release` lets it go)"),
    ("JobHoldMaxRequeue", "Slurm requeued it too often and holds it"),
    ("JobLaunchFailure", "it could not be started (a file system, or the node)"),
    ("launch_failed_requeued_held", "it could not be started, and Slurm holds it"),
    ("JobArrayTaskLimit", "its array may not run more at a time"),
    ("ReqNodeNotAvail", "a node it needs is down, drained or reserved"),
    ("NodeDown", "a node it needs is down"),
    ("Nodes_required_for_job", "the nodes it needs are down, drained or reserved"),
    ("(Nodes_required", "the nodes it needs are down, drained or reserved"),
    ("BadConstraints", "no node can ever give what it asks for"),
    ("PartitionConfig", "its partition can not give what it asks for"),
    ("PartitionDown", "its partition is down"),
    ("PartitionInactive", "its partition takes no jobs now"),
    ("PartitionNodeLimit", "it asks for more nodes than its partition allows"),
    ("PartitionTimeLimit", "its time limit is longer than its partition allows"),
    ("Reservation", "it waits for a Slurm reservation"),
    ("InvalidQOS", "its QOS does not exist any more"),
    ("InvalidAccount", "its account does not exist any more"),
    ("Licenses", "a licence it needs is in use"),
    ("Prolog", "the node is being made ready for it"),
    ("Cleaning", "Slurm is still cleaning up after its last run"),
    ("FrontEndDown", "no front end node is up"),
    ("SchedDefer", "Slurm has put off scheduling for now"),
    ("AccountNotAllowed", "its account may not be used in its partition"),
];

/// `None`: no words for it here.
pub fn words(reason: &str) -> Option<&'static str> {
    WORDS.iter().find(|(start, _)| reason.starts_with(start)).map(|(_, words)| *words)
}

/// Slurm has given a reason at all.
pub fn is_said(reason: &str) -> bool {
    !matches!(reason.trim(), "" | "None" | "(null)" | "N/A")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_can_be_reached() {
        for (i, (start, _)) in WORDS.iter().enumerate() {
            let first = WORDS.iter().position(|(other, _)| start.starts_with(other));
            assert_eq!(first, Some(i), "{start} is hidden behind an earlier entry");
        }
        assert_eq!(words("NoSuchReason"), None);
    }
}
