//! Every section but the families: read, checked, defaults filled in.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::document::{Field, Section, Sink, dotted};
use super::keys;
use super::sbatch_args::{self, Laned};
use super::template;
use super::values::{self, regex, whole, word};
use crate::model::policy::{
    Backfill, Hook, LaneMode, LaneRules, LaneSpec, Lanes, PlaceOrder, PlaceRules, R3,
    ReservationCharge, Reserve, ReserveAt, Rules, SlurmSettings, Tier,
};
use crate::model::units::{Secs, Tflops};

/// Per Slurm command. Slurm's own tools give up after about 20 s, and their message is worth
/// waiting for (slurm.md, "munged hung").
const TIMEOUT: Secs = Secs(30);
/// K where the file does not say (policy.md section 3).
const PARK: u32 = 2;
/// Shortest `tick_budget`: the probes alone may take as long as one command's time limit.
const TICK_BUDGET_LEAST: Secs = Secs(30);
/// Longest back-off there is (contract.md, `backoff`); a first one beyond it makes no sense.
const BACKOFF_MOST: Secs = Secs::hours(1);

/// Longest time of a hook: `loop` does not tick meanwhile.
const HOOK_MOST: Secs = Secs::minutes(5);

/// A path of the user's: relative to the folder of shards.toml, absolute afterwards. Symbolic
/// links stay as they are.
pub(super) fn path_in(base: &Path, text: &str) -> PathBuf {
    base.join(text).components().collect()
}

pub(super) fn slurm(
    top: &Section<'_>,
    sink: &mut Sink,
    base: &Path,
    laned: Laned,
) -> SlurmSettings {
    let s = top.section(sink, "slurm", keys::SLURM);
    SlurmSettings {
        bin_dir: s.read(sink, "bin_dir", |v| values::text(v).map(|t| path_in(base, &t))).optional(),
        timeout: s.read(sink, "timeout", values::duration).or(TIMEOUT),
        partition: s.read(sink, "partition", word).optional(),
        account: s.read(sink, "account", word).optional(),
        args: s.read_list(sink, "args", false, |a| sbatch_args::check(a, laned)).or(Vec::new()),
        babysit: s.read(sink, "babysit", |v| values::text(v).map(|t| path_in(base, &t))).optional(),
        // Beside the state, which is not found yet.
        pilots: None,
    }
}

fn lane(section: &Section<'_>, sink: &mut Sink) -> LaneSpec {
    let spec = LaneSpec {
        qos: section.read(sink, "qos", word).optional(),
        partition: section.read(sink, "partition", word).optional(),
        account: section.read(sink, "account", word).optional(),
    };
    let named = ["qos", "partition", "account"].iter().any(|k| section.value(k).is_some());
    if section.present && !named && !section.is_broken() {
        sink.fault(
            &section.key,
            "names no qos, partition or account",
            "give at least one, so that Slurm can tell the lane's jobs",
        );
    }
    spec
}

/// `[own]` and `[extra]`: both or none (policy.md section 3). Slurm's defaults of `[slurm]` stand
/// in for what only one of the two names.
pub(super) fn lanes(top: &Section<'_>, sink: &mut Sink) -> Option<Lanes> {
    let own = top.section(sink, "own", keys::OWN);
    let extra = top.section(sink, "extra", keys::EXTRA);
    let own_spec = lane(&own, sink);
    let extra_spec = lane(&extra, sink);
    let own_gpus = own.read(sink, "gpus", |v| whole(v, 1, u32::MAX)).optional();
    let park = own.read(sink, "park", |v| whole(v, 0, u32::MAX)).or(PARK);
    match (own.present, extra.present) {
        (false, false) => return None,
        (true, true) => {}
        (true, false) => {
            sink.fault("own", "stands without [extra]", BOTH);
            return None;
        }
        (false, true) => {
            sink.fault("extra", "stands without [own]", BOTH);
            return None;
        }
    }
    if own_spec == extra_spec && own_spec != LaneSpec::default() {
        sink.fault(
            "extra",
            "is the same lane as [own]",
            "give it another qos, partition or account, or leave both sections out",
        );
    }
    Some(Lanes { own: own_spec, extra: extra_spec, own_gpus, park: park as usize })
}

const BOTH: &str = "give both lanes, or leave both out where the cluster has no such pair";

/// What one lane names and the other does not would stick to a job that is moved.
pub(super) fn even_lanes(lanes: &mut Lanes, slurm: &SlurmSettings, sink: &mut Sink) {
    let Lanes { own, extra, own_gpus: _, park: _ } = lanes;
    even(("qos", &mut own.qos, &mut extra.qos), None, sink);
    even(("partition", &mut own.partition, &mut extra.partition), slurm.partition.as_ref(), sink);
    even(("account", &mut own.account, &mut extra.account), slurm.account.as_ref(), sink);
}

type Pair<'a> = (&'a str, &'a mut Option<String>, &'a mut Option<String>);

fn even((key, own, extra): Pair<'_>, usual: Option<&String>, sink: &mut Sink) {
    let (lacking, section, other) = match (&own, &extra) {
        (None, Some(_)) => (own, "own", "extra"),
        (Some(_), None) => (extra, "extra", "own"),
        _ => return,
    };
    match usual {
        Some(usual) => *lacking = Some(usual.clone()),
        None => sink.fault(
            section,
            format!(
                "has no `{key}`, while [{other}] has: a job moved over from there would keep it"
            ),
            format!("give `{key}` in both lanes or in none"),
        ),
    }
}

pub(super) fn tiers(top: &Section<'_>, sink: &mut Sink) -> Vec<Tier> {
    let mut tiers: Vec<Tier> = Vec::new();
    let mut ranks: BTreeMap<u32, String> = BTreeMap::new();
    let mut models: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in top.children(sink, "tiers") {
        let s = Section::of(sink, dotted("tiers", &name), value, keys::TIER);
        let rank = s.read(sink, "rank", |v| whole(v, 0, u32::MAX));
        s.require(sink, "rank", &rank, "write `rank = 1` for the weakest model, higher for better");
        let tflops = s.read(sink, "tflops", values::tflops);
        s.require(sink, "tflops", &tflops, "write the model's TFLOP/s, the weight of its usage");
        let gres = match s.value("gres").map(|v| v.get_ref()) {
            Some(toml::de::DeValue::String(_)) => {
                s.read(sink, "gres", |v| word(v).map(|w| vec![w]))
            }
            _ => s.read_list(sink, "gres", true, |g| Ok(g.to_owned())),
        };
        if gres.get().is_some_and(Vec::is_empty) {
            sink.fault(
                &dotted(&s.key, "gres"),
                "is empty",
                "leave it out to use the section's name",
            );
        }
        let gres = gres.or(vec![name.clone()]);
        let partition = s.read(sink, "partition", word).optional();
        let max_gpus = s.read(sink, "max_gpus", |v| whole(v, 1, u32::MAX)).optional();
        if let Some(rank) = rank.get()
            && let Some(other) = ranks.insert(*rank, name.clone())
        {
            sink.fault(
                &dotted(&s.key, "rank"),
                format!("is {rank}, which tier {other} has too"),
                "no two tiers share a rank: give the better model the higher one",
            );
        }
        for model in &gres {
            match models.insert(model.to_ascii_lowercase(), name.clone()) {
                Some(other) if other != name => sink.fault(
                    &dotted(&s.key, "gres"),
                    format!("model {model:?} is in tier {other} too"),
                    "each model belongs to one tier (letter case does not count)",
                ),
                _ => {}
            }
        }
        let (rank, tflops) = (rank.or(0), tflops.or(Tflops::default()));
        tiers.push(Tier { name, gres, rank, tflops, partition, max_gpus });
    }
    tiers.sort_by_key(|t| t.rank);
    tiers
}

pub(super) fn backfill(top: &Section<'_>, sink: &mut Sink, base: &Path) -> Option<Backfill> {
    let s = top.section(sink, "backfill", keys::BACKFILL);
    if !s.present {
        return None;
    }
    let backfill = Backfill {
        qos: s.read(sink, "qos", word).optional(),
        name: s.read(sink, "name", |v| values::text(v).and_then(|t| regex(&t))).optional(),
        partition: s.read(sink, "partition", word).optional(),
        user: s.read(sink, "user", word).optional(),
        stop: s
            .read(sink, "stop", |v| {
                let text = values::text(v)?;
                template::check_stop(&text).map(|t| command_in(base, &t))
            })
            .optional(),
    };
    let criteria = ["qos", "name", "partition", "user"];
    if criteria.iter().all(|k| s.value(k).is_none()) && !s.is_broken() {
        sink.fault(
            "backfill",
            "has no criterion: which jobs give way?",
            "give qos, name, partition or user",
        );
    }
    Some(backfill)
}

pub(super) fn rules(top: &Section<'_>, sink: &mut Sink) -> Rules {
    let s = top.section(sink, "policy", keys::POLICY);
    let field = Rules::default as fn() -> Rules;
    let presets = [("field", field), ("best", Rules::best), ("v4.1", Rules::v4_1)];
    let preset = s.read(sink, "preset", |v| values::one_of(v, &presets));
    let d = preset.or(Rules::default)();
    let charges = [("release", ReservationCharge::Release), ("job-end", ReservationCharge::JobEnd)];
    let backoff = s.read(sink, "backoff", values::duration);
    if backoff.get().is_some_and(|b| *b > BACKOFF_MOST) {
        sink.fault(
            "policy.backoff",
            "is longer than an hour",
            "the wait doubles up to 1h by itself",
        );
    }
    let tick_budget = s.read(sink, "tick_budget", values::duration);
    if tick_budget.get().is_some_and(|b| *b < TICK_BUDGET_LEAST) {
        sink.fault(
            "policy.tick_budget",
            "is shorter than 30s",
            "Slurm's own messages come after 10 to 20 s; give a tick at least 30s",
        );
    }
    Rules {
        reservation_charge: s
            .read(sink, "reservation_charge", |v| values::one_of(v, &charges))
            .or(d.reservation_charge),
        max_failures: s.read(sink, "max_failures", |v| whole(v, 1, u32::MAX)).or(d.max_failures),
        backoff: backoff.or(d.backoff),
        settle: s.read(sink, "settle", values::duration).or(d.settle),
        submit_settle: s.read(sink, "submit_settle", values::duration).or(d.submit_settle),
        max_submits_per_tick: s
            .read(sink, "max_submits_per_tick", |v| whole(v, 1, u32::MAX))
            .optional()
            .map_or(d.max_submits_per_tick, |n| n as usize),
        newcomer_floor: s
            .read(sink, "newcomer", |v| values::one_of(v, &[("floor", true), ("zero", false)]))
            .or(d.newcomer_floor),
        breaker: s.read(sink, "breaker", |v| whole(v, 1, u32::MAX)).or(d.breaker),
        node_deaths: s.read(sink, "node_deaths", |v| whole(v, 1, u32::MAX)).or(d.node_deaths),
        node_rest: s.read(sink, "node_rest", values::duration).or(d.node_rest),
        restart_stalled: s.read(sink, "restart_stalled", values::yes_or_no).or(d.restart_stalled),
        tick_budget: tick_budget.or(d.tick_budget),
        journal_observations: s
            .read(sink, "journal_observations", values::yes_or_no)
            .or(d.journal_observations),
        place: place_rules(&s, sink, d.place),
        lanes: lane_rules(&s, sink, d.lanes),
    }
}

fn place_rules(s: &Section<'_>, sink: &mut Sink, preset: PlaceRules) -> PlaceRules {
    let reserve = [("mark", Reserve::Mark), ("shadow", Reserve::Shadow)];
    let order = [("tier", PlaceOrder::Tier), ("guard", PlaceOrder::Guard)];
    let r3 = [("release", R3::Release), ("soft", R3::Soft)];
    let at = [("best", ReserveAt::Best), ("earliest", ReserveAt::Earliest)];
    PlaceRules {
        reserve: s.read(sink, "reserve", |v| values::one_of(v, &reserve)).or(preset.reserve),
        order: s.read(sink, "placement_order", |v| values::one_of(v, &order)).or(preset.order),
        r3: s.read(sink, "r3", |v| values::one_of(v, &r3)).or(preset.r3),
        reserve_at: s.read(sink, "reserve_at", |v| values::one_of(v, &at)).or(preset.reserve_at),
    }
}

fn lane_rules(s: &Section<'_>, sink: &mut Sink, preset: LaneRules) -> LaneRules {
    let modes =
        [("fixed", LaneMode::Fixed), ("adaptive", LaneMode::Adaptive), ("both", LaneMode::Both)];
    LaneRules {
        mode: s.read(sink, "lanes", |v| values::one_of(v, &modes)).or(preset.mode),
        own_share: s.read(sink, "own_share", values::own_share).or(preset.own_share),
        ..preset
    }
}

/// Slurm takes a list of QOS for a job, but has no such pair of partitions or accounts.
pub(super) fn one_job_in_both(lanes: Option<&Lanes>, rules: &LaneRules, sink: &mut Sink) {
    if rules.mode == LaneMode::Both && lanes.is_some_and(|lanes| !lanes.differ_by_qos_alone()) {
        sink.warn(
            "extra",
            "differs from [own] in more than its qos, so that no job can be in both lanes",
            "`lanes = \"both\"` under [policy] works as \"adaptive\" here",
        );
    }
}

pub(super) fn notify(top: &Section<'_>, sink: &mut Sink, base: &Path) -> Option<Hook> {
    let s = top.section(sink, "hooks", keys::HOOKS);
    let timeout = s.read(sink, "timeout", values::duration);
    if timeout.get().is_some_and(|t| *t > HOOK_MOST) {
        sink.fault(
            "hooks.timeout",
            "is longer than 5m",
            "a hook that has more to do can start it in the background",
        );
    }
    let command =
        s.read(sink, "notify", |v| values::text(v).map(|t| command_in(base, &t))).optional()?;
    Some(Hook { command, timeout: timeout.or(Hook::TIMEOUT) })
}

/// Labs that the file defines; `None` where it defines none, and any name will do.
pub(super) fn labs(top: &Section<'_>, sink: &mut Sink) -> Option<BTreeSet<String>> {
    top.value("labs")?;
    let mut names = BTreeSet::new();
    for (name, value) in top.children(sink, "labs") {
        Section::of(sink, dotted("labs", &name), value, keys::LAB);
        names.insert(name);
    }
    Some(names)
}

/// The project's name, checked; a stand-in where it is wrong, so that reading goes on.
pub(super) fn project(top: &Section<'_>, sink: &mut Sink) -> String {
    let field = top.read(sink, "project", values::name_value);
    if field.is_absent() {
        sink.fault("project", "is missing", "write `project = \"a-name\"` on the first line");
    }
    field.or("project".to_owned())
}

pub(super) fn path(top: &Section<'_>, sink: &mut Sink, name: &str, base: &Path) -> Field<PathBuf> {
    top.read(sink, name, |v| values::text(v).map(|t| path_in(base, &t)))
}

/// A command line whose program lies beside shards.toml: cron starts us in another folder, so the
/// program's path is made absolute. A bare word that is no file there is left to PATH.
fn command_in(base: &Path, text: &str) -> String {
    let text = text.trim();
    let (program, rest) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
    let plain = program
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'/'));
    let path = path_in(base, program);
    let Some(absolute) = path.to_str().filter(|_| plain && !program.starts_with('/')) else {
        return text.to_owned();
    };
    if program.contains('/') || path.is_file() {
        return format!("{}{rest}", shell_words::quote(absolute));
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_beside_the_file_is_found_from_anywhere() {
        let base = Path::new("/lab/my project");
        assert_eq!(command_in(base, "./n.sh --x 1"), "'/lab/my project/n.sh' --x 1");
        assert_eq!(command_in(base, "bin/n.sh"), "'/lab/my project/bin/n.sh'");
        for kept in ["mail -s babysit me", "/usr/bin/n", "$HOME/n.sh x", "X=1/2 n"] {
            assert_eq!(command_in(base, kept), kept);
        }
    }
}
