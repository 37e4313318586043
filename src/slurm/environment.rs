//! The environment that Slurm's commands get: built from nothing, as theirs changes what they print.
//!
//! Reads no environment itself: what babysit was started with is handed in.

use std::path::Path;

use crate::model::request::Request;

/// What is taken over from the environment of babysit; read elsewhere, once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment {
    /// Numeric user id.
    pub me: u32,
    pub path: Option<String>,
    pub home: Option<String>,
    pub user: Option<String>,
    pub shell: Option<String>,
    pub lang: Option<String>,
    pub slurm_conf: Option<String>,
    /// Handed to every command, and through sbatch to the jobs. Names of Slurm's are left out.
    pub extra: Vec<(String, String)>,
}

impl Environment {
    /// What every command gets, and all that a command of the user's own gets. SQUEUE_*, SINFO_*,
    /// SACCT_* and most of SLURM_* would change or filter what Slurm's commands print.
    pub fn base(&self, bin_dir: Option<&Path>) -> Vec<(String, String)> {
        let mut env = Vec::new();
        let mut set = |name: &str, value: Option<&str>| {
            env.extend(value.filter(|v| !v.is_empty()).map(|v| (name.to_owned(), v.to_owned())));
        };
        for (name, value) in &self.extra {
            if !is_slurms(name) {
                set(name, Some(value));
            }
        }
        set("PATH", Some(&self.sane_path(bin_dir)));
        set("HOME", self.home.as_deref());
        set("USER", self.user.as_deref());
        set("LOGNAME", self.user.as_deref());
        set("SHELL", self.shell.as_deref());
        // An empty one makes every command wait for a minute.
        set("SLURM_CONF", self.slurm_conf.as_deref());
        env
    }

    /// Epoch times, English, no local time zone.
    pub fn of_reading(&self, bin_dir: Option<&Path>) -> Vec<(String, String)> {
        let mut env = self.base(bin_dir);
        let fixed = [
            ("LANG", "C.UTF-8"),
            ("LC_ALL", "C.UTF-8"),
            ("SLURM_TIME_FORMAT", "%s"),
            ("TZ", "UTC0"),
        ];
        env.retain(|(name, _)| !fixed.iter().any(|(fixed, _)| fixed == name));
        env.extend(fixed.map(|(name, value)| (name.to_owned(), value.to_owned())));
        env
    }

    /// What sbatch has the job has too (`--export=ALL`): no odd time format or zone, and the user's
    /// language. The job's login shell then loads the user's profile on top.
    pub fn of_sbatch(&self, bin_dir: Option<&Path>, request: &Request) -> Vec<(String, String)> {
        let mut env = self.base(bin_dir);
        let lang = self.lang.as_deref().filter(|lang| !lang.is_empty());
        env.retain(|(name, _)| name != "LANG" && !request.env.iter().any(|(ours, _)| ours == name));
        env.push(("LANG".to_owned(), lang.unwrap_or("C.UTF-8").to_owned()));
        env.extend(request.env.iter().filter(|(name, _)| !is_slurms(name)).cloned());
        env
    }

    /// Ours, and what a shell needs even where cron gave us less.
    fn sane_path(&self, bin_dir: Option<&Path>) -> String {
        let own = self.path.as_deref().unwrap_or("");
        let mut dirs: Vec<&str> = own.split(':').filter(|dir| dir.starts_with('/')).collect();
        let bin_dir = bin_dir.and_then(Path::to_str);
        for dir in ["/usr/local/bin", "/usr/bin", "/bin"].into_iter().chain(bin_dir) {
            if !dirs.contains(&dir) {
                dirs.push(dir);
            }
        }
        dirs.join(":")
    }
}

/// Slurm's own variables, that would change what its commands do.
fn is_slurms(name: &str) -> bool {
    ["SLURM_", "SLURMD_", "SBATCH_", "SQUEUE_", "SINFO_", "SACCT_", "SCANCEL_", "SCONTROL_"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}
