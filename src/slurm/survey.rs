//! What only `babysit init` asks: everything that the first shards.toml should know of the cluster.

use crate::model::observation::{Gap, Seen};
use crate::model::survey::{Qos, Survey};

use super::error;
use super::gres;
use super::real::RealSlurm;

/// As asked for, and as the header of the answer spells it.
const QOS: &str = "Name|GrpTRES|MaxTRESPU|Preempt";

impl RealSlurm {
    /// Each question on its own: what one command does not know the others may.
    pub fn survey(&mut self, user: Option<&str>) -> Survey {
        let nodes = self.nodes();
        let of_user = |words: &dyn Fn(&str) -> Seen<Vec<String>>| match user {
            Some(user) => words(user),
            None => Err(Gap {
                kind: crate::model::observation::GapKind::Failed,
                source: "sacctmgr".to_owned(),
                detail: "neither USER nor LOGNAME is set".to_owned(),
            }),
        };
        Survey {
            default_partition: nodes.as_ref().ok().and_then(|_| self.default_partition()),
            nodes,
            qos: self.all_qos(),
            allowed: of_user(&|user| self.allowed_qos(user)),
            accounts: of_user(&|user| self.accounts(user)),
        }
    }

    fn default_partition(&self) -> Option<String> {
        let ask = ["-a", "-h", "-o", "%P"].map(str::to_owned).to_vec();
        let (text, _) = self.read("sinfo", ask).ok()?;
        text.lines().find_map(|line| line.trim().strip_suffix('*')).map(str::to_owned)
    }

    fn all_qos(&self) -> Seen<Vec<Qos>> {
        let format = format!("format={}", QOS.replace('|', ","));
        let ask = ["-P", "show", "qos", &format].map(str::to_owned).to_vec();
        let (text, source) = self.read("sacctmgr", ask)?;
        all_qos(&text).ok_or_else(|| error::unreadable(&source, format!("no header {QOS}")))
    }
}

fn all_qos(text: &str) -> Option<Vec<Qos>> {
    let mut lines = text.lines().skip_while(|line| line.trim() != QOS);
    lines.next()?;
    let gpus = |limits: &str| {
        let limits = gres::of_tres(limits).filter(|limits| !limits.gpus.is_empty())?;
        Some(limits.total())
    };
    let qos = |line: &str| {
        let cells: Vec<&str> = line.trim_end().split('|').collect();
        let [name, group, user, preempt] = cells.as_slice() else { return None };
        Some(Qos {
            name: (*name).to_owned(),
            gpus: gpus(group),
            gpus_per_user: gpus(user),
            preempts: preempt.split(',').filter(|n| !n.is_empty()).map(str::to_owned).collect(),
        })
    };
    Some(lines.filter_map(qos).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qos_as_the_accounting_lists_them() {
        let text = "Name|GrpTRES|MaxTRESPU|Preempt\nnormal|||\nown|cpu=8,gres/gpu=4||extra,low\n\
                    extra||gres/gpu:a100=2|\ntorn|\n";
        let found = all_qos(text).expect("a header");
        let names: Vec<&str> = found.iter().map(|qos| qos.name.as_str()).collect();
        assert_eq!(names, ["normal", "own", "extra"]);
        assert_eq!((found[1].gpus, found[1].preempts.join(" ")), (Some(4), "extra low".to_owned()));
        assert_eq!((found[2].gpus, found[2].gpus_per_user), (None, Some(2)));
        assert_eq!(all_qos("sacctmgr: error\n"), None);
    }
}
