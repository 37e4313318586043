//! scontrol: changing pending jobs of ours, and the size of a QOS.
//!
//! What an update says is talk: "Access/permission denied" was seen though it had worked, and silence
//! though the connection broke. Only a re-read queue counts.

use crate::model::id::JobId;
use crate::model::request::Change;

use super::gres;

/// Jobs of one call: far below what one argument may hold, and one refused job is found soon enough.
pub const MOST_JOBS: usize = 200;

/// Arguments of one update, for at most [`MOST_JOBS`] jobs. `None` where there is nothing to change.
pub fn argv(jobs: &[JobId], change: &Change) -> Option<Vec<String>> {
    let ids = jobs.iter().map(JobId::to_string).collect::<Vec<_>>().join(",");
    let mut argv = vec!["update".to_owned(), format!("JobId={ids}")];
    match change {
        Change::Lane { qos, partition, account } => {
            for (name, value) in [("QOS", qos), ("Partition", partition), ("Account", account)] {
                argv.extend(value.as_ref().map(|value| format!("{name}={value}")));
            }
        }
        Change::Nice(nice) => argv.push(format!("Nice={nice}")),
        Change::Exclude(nodes) => argv.push(format!("ExcNodeList={}", nodes.join(","))),
    }
    (!jobs.is_empty() && argv.len() > 2).then_some(argv)
}

/// Arguments that ask the controller for a QOS, for when the accounting does not answer. Never to be
/// asked on a cluster that keeps no accounting: that ends slurmctld 22.05.
pub fn qos_argv(qos: &str) -> Vec<String> {
    vec!["show".to_owned(), "assoc_mgr".to_owned(), "flags=qos".to_owned(), format!("qos={qos}")]
}

/// GPUs of a QOS in the answer to [`qos_argv`]: `Some(None)` is a QOS without a limit of GPUs, `None`
/// an answer that does not hold this QOS.
pub fn parse_qos(text: &str, qos: &str) -> Result<Option<Option<u32>>, String> {
    if !text.contains("Association Manager state") {
        return Err("no \"Association Manager state\" in its answer".to_owned());
    }
    let begins = |line: &str| {
        let name = line.strip_prefix("QOS=").and_then(|rest| rest.split('(').next());
        name.map(str::trim) == Some(qos)
    };
    let mut lines = text.lines().skip_while(|line| !begins(line));
    if lines.next().is_none() {
        return Ok(None);
    }
    for line in lines.take_while(|line| !line.starts_with("QOS=")) {
        let Some(limits) = line.trim().strip_prefix("GrpTRES=") else { continue };
        // `gres/gpu=4(2)`: limit and use; `N` is no limit.
        let limit = limits.split(',').find_map(|entry| entry.trim().strip_prefix("gres/gpu="));
        return match limit.and_then(|limit| limit.split('(').next()) {
            None | Some("N") => Ok(Some(None)),
            Some(number) => number
                .parse()
                .map(|gpus| Some(Some(gpus)))
                .map_err(|_| format!("{number:?} is no limit of GPUs")),
        };
    }
    Err(format!("QOS {qos} is shown without its GrpTRES"))
}

/// The same, asked of the accounting. Any user may, and it does not burden the controller.
pub fn sacctmgr_argv(qos: &str) -> Vec<String> {
    ["-P", "show", "qos", "where", &format!("name={qos}"), "format=Name,GrpTRES"]
        .map(str::to_owned)
        .to_vec()
}

/// As [`parse_qos`], of the answer to [`sacctmgr_argv`].
pub fn parse_sacctmgr(text: &str, qos: &str) -> Result<Option<Option<u32>>, String> {
    let mut lines = text.lines().skip_while(|line| line.trim() != "Name|GrpTRES");
    if lines.next().is_none() {
        return Err("no header Name|GrpTRES in its answer".to_owned());
    }
    for line in lines {
        let Some((name, limits)) = line.split_once('|') else { continue };
        if name != qos {
            continue;
        }
        let limits = gres::of_tres(limits).ok_or_else(|| format!("{limits:?} is no limit"))?;
        return Ok(Some((!limits.gpus.is_empty()).then(|| limits.total())));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates() {
        let check = |change: Change, expected: &str| {
            let argv = argv(&[JobId(1), JobId(2)], &change).map(|argv| argv.join(" "));
            assert_eq!(argv.as_deref().unwrap_or("nothing"), expected);
        };
        let lane = |qos: Option<&str>, partition: Option<&str>| Change::Lane {
            qos: qos.map(str::to_owned),
            partition: partition.map(str::to_owned),
            account: None,
        };
        check(lane(Some("extra"), None), "update JobId=1,2 QOS=extra");
        check(lane(Some("extra"), Some("p")), "update JobId=1,2 QOS=extra Partition=p");
        check(lane(None, None), "nothing");
        check(Change::Nice(0), "update JobId=1,2 Nice=0");
        check(
            Change::Exclude(vec!["a1".into(), "b1".into()]),
            "update JobId=1,2 ExcNodeList=a1,b1",
        );
        check(Change::Exclude(vec![]), "update JobId=1,2 ExcNodeList=");
        assert_eq!(argv(&[], &Change::Nice(1)), None);
    }

    #[test]
    fn sizes_of_a_qos() {
        let answer = |tres: &str| {
            format!(
                "Current Association Manager state\n\nQOS Records\n\nQOS=own(2)\n    GrpTRES={tres}\n    X=1\n"
            )
        };
        let check = |text: &str, expected: Result<Option<Option<u32>>, ()>| {
            assert_eq!(parse_qos(text, "own").map_err(|_| ()), expected, "{text}");
        };
        check(&answer("cpu=N(2),gres/gpu=4(2)"), Ok(Some(Some(4))));
        check(&answer("cpu=N(2),gres/gpu=N(2)"), Ok(Some(None)));
        check(&answer("cpu=N(2)"), Ok(Some(None)));
        check(&answer("gres/gpu=x(2)"), Err(()));
        check("Current Association Manager state\n\nNo QOS currently cached in Slurm.\n", Ok(None));
        check(
            "Current Association Manager state\nQOS=own(2)\nQOS=extra(3)\n  GrpTRES=gres/gpu=4(2)\n",
            Err(()),
        );
        check("", Err(()));
        for (line, expected) in [
            ("own|gres/gpu=4", Ok(Some(Some(4)))),
            ("own|cpu=8,gres/gpu=4,gres/gpu:a=2", Ok(Some(Some(4)))),
            ("own|", Ok(Some(None))),
            ("other|gres/gpu=4", Ok(None)),
            ("own|gres/gpu=many", Err(())),
        ] {
            let text = format!("Name|GrpTRES\n{line}\n");
            assert_eq!(parse_sacctmgr(&text, "own").map_err(|_| ()), expected, "{line}");
        }
        assert!(parse_sacctmgr("", "own").is_err());
    }
}
