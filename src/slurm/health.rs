//! What only `babysit doctor` asks: version, the controller's clock, the QOS a user may use.

use crate::model::observation::Seen;
use crate::model::units::Time;

use super::error;
use super::real::RealSlurm;

/// The commands whose lack makes ticks impossible.
pub const NEEDED: [&str; 5] = ["squeue", "sinfo", "sbatch", "scontrol", "scancel"];
/// Without them some questions stay open.
pub const USEFUL: [&str; 2] = ["sacct", "sacctmgr"];

impl RealSlurm {
    /// `slurm-wlm 22.05.8`, as the command says it. Asks no daemon.
    pub fn version(&self) -> Seen<String> {
        let (text, source) = self.read("squeue", vec!["--version".to_owned()])?;
        version(&text).ok_or_else(|| error::unreadable(&source, "it names no version".to_owned()))
    }

    /// The controller's clock when it answered.
    pub fn controller_time(&self) -> Seen<Time> {
        let (text, source) = self.read("scontrol", vec!["show".to_owned(), "config".to_owned()])?;
        controller_time(&text)
            .ok_or_else(|| error::unreadable(&source, "it does not say as of when".to_owned()))
    }

    /// Every QOS of the user's associations.
    pub fn allowed_qos(&self, user: &str) -> Seen<Vec<String>> {
        self.of_associations(user, "QOS")
    }

    /// Every account of the user's associations.
    pub fn accounts(&self, user: &str) -> Seen<Vec<String>> {
        self.of_associations(user, "Account")
    }

    fn of_associations(&self, user: &str, column: &str) -> Seen<Vec<String>> {
        let user = format!("user={user}");
        let format = format!("format={column}");
        let ask = ["-P", "show", "assoc", "where", &user, &format];
        let (text, source) = self.read("sacctmgr", ask.map(str::to_owned).to_vec())?;
        names(&text, column)
            .ok_or_else(|| error::unreadable(&source, format!("no header {column}")))
    }
}

/// First release that takes a list of QOS, and starts the job in the first that has room (facts,
/// section 9).
const LIST_OF_QOS: (u32, u32) = (24, 11);

/// Is a release, as `squeue --version` names it, worth asking for two QOS at once?
pub(super) fn takes_a_list_of_qos(version: &str) -> bool {
    let mut words = version.split_whitespace();
    let number = words.find(|word| word.starts_with(|c: char| c.is_ascii_digit())).unwrap_or("");
    let mut parts = number.split('.').map(|part| part.parse::<u32>().ok());
    let release = parts.next().flatten().zip(parts.next().flatten());
    release.is_some_and(|release| release >= LIST_OF_QOS)
}

fn version(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| line.starts_with("slurm"))?;
    line.contains(char::is_numeric).then(|| line.to_owned())
}

/// Its first line, in epoch seconds by our environment.
fn controller_time(text: &str) -> Option<Time> {
    let mut lines = text.lines();
    let at = lines.find_map(|line| line.trim().strip_prefix("Configuration data as of "))?;
    at.trim().parse().ok().map(Time)
}

/// The names below a header, sorted, each once.
fn names(text: &str, header: &str) -> Option<Vec<String>> {
    let mut lines = text.lines().skip_while(|line| line.trim() != header);
    lines.next()?;
    let names = lines.flat_map(|line| line.trim().split(',')).filter(|name| !name.is_empty());
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort();
    names.dedup();
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_that_take_a_list_of_qos() {
        for (version, expected) in [
            ("slurm-wlm 22.05.8", false),
            ("slurm 24.05.9", false),
            ("slurm 24.11.5", true),
            ("slurm 25.05.0rc1", true),
            ("slurm 26.05.5", true),
            ("slurm", false),
            ("slurm 24", false),
        ] {
            assert_eq!(takes_a_list_of_qos(version), expected, "{version}");
        }
    }

    #[test]
    fn answers() {
        assert_eq!(version("slurm-wlm 22.05.8\n").as_deref(), Some("slurm-wlm 22.05.8"));
        assert_eq!(version("slurm 24.11.5\n").as_deref(), Some("slurm 24.11.5"));
        assert_eq!(version("command not found"), None);
        let config = "Configuration data as of 1795960018\nAccountingStorageHost = x\n";
        assert_eq!(controller_time(config), Some(Time(1_795_960_018)));
        assert_eq!(controller_time("Configuration data as of 2026-11-29T13:46:58\n"), None);
        let qos = names("QOS\nextra,own\nnormal\n\n", "QOS").expect("an answer");
        assert_eq!(qos, ["extra", "normal", "own"]);
        assert_eq!(names("QOS\n", "QOS"), Some(Vec::new()));
        assert_eq!(names("", "QOS"), None);
    }
}
