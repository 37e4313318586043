//! What a shards.toml that is right becomes, and how it and the state file are found.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use babysit::config::{self, Loaded, SECTIONS, Surroundings};
use babysit::model::id::ShardId;
use babysit::model::policy::{
    CostIn, LaneMode, Launch, OwnShare, PlaceOrder, Policy, R3, ReservationCharge, Reserve,
    ReserveAt, RowsIn, Rules, Shard, SubmitMode,
};
use babysit::model::units::{Money, Secs};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn loaded(path: &str) -> Loaded {
    let loaded = config::load(&root().join(path)).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(loaded.warnings, [], "{path}");
    loaded
}

#[allow(clippy::disallowed_methods, reason = "the test makes its own files")]
fn write(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, text).expect("written");
    path
}

/// Loads a text as /…/shards.toml of a folder of its own.
fn from_text(text: &str) -> (tempfile::TempDir, Loaded) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = write(dir.path(), "shards.toml", text);
    let loaded = config::load(&path).unwrap_or_else(|faults| panic!("{faults}"));
    (dir, loaded)
}

fn shard<'a>(policy: &'a Policy, id: &str) -> &'a Shard {
    policy.shards.iter().find(|s| s.id.to_string() == id).expect(id)
}

#[test]
fn the_top_level_example_is_the_field_report() {
    let policy = loaded("shards.toml").policy;
    assert_eq!(policy.project, "oracle-plan");
    let ids: Vec<String> = policy.shards.iter().map(|s| s.id.to_string()).collect();
    assert_eq!(
        ids.join(" "),
        "find/s0 find/s1 find/s2 find/s3 restore/s0 restore/s1 restore/s2 \
                               restore/s3 restore/s4 restore/s5 restore/s6 restore/s7"
    );
    // Policy section 4: 4 x 25 + 8 x 40.
    let ceiling: Money = policy.shards.iter().filter_map(|s| s.cap).sum();
    assert_eq!(ceiling, Money::from_dollars(420.0).expect("an amount"));
    let find = shard(&policy, "find/s2");
    assert_eq!(find.index, 2);
    assert_eq!(find.launch, Launch::Command("python run.py --task find --shard s2".to_owned()));
    assert_eq!((find.rows, find.row_time, find.submit), (44, Secs(900), SubmitMode::Queued));
    let pattern = format!("{}/runs/find/s2/row_*.json", root().display());
    assert_eq!(find.done, RowsIn::Glob(pattern));
    let ledger =
        CostIn::Jsonl { path: root().join("runs/find/s2.jsonl"), field: "cost_usd".into() };
    assert_eq!(find.cost, Some(ledger));
    assert_eq!(find.log_dir, root().join("logs/find/s2"));
    assert_eq!(find.workdir, root().into());
    assert_eq!((shard(&policy, "restore/s4").rows, shard(&policy, "restore/s5").rows), (47, 64));
    let lanes = policy.lanes.expect("two lanes");
    assert_eq!((lanes.own_gpus, lanes.park), (Some(8), 2));
    assert_eq!(policy.tiers.iter().map(|t| t.rank).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn every_example_loads_without_a_word() {
    let entries = std::fs::read_dir(root().join("examples")).expect("the folder of examples");
    let mut names: Vec<String> = entries
        .map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned())
        // What `simulate --scenario` reads has keys of its own (tests/scenario_files.rs).
        .filter(|name| name.ends_with(".toml") && name != "scenario.toml")
        .collect();
    names.sort();
    assert!(names.len() >= 3, "{names:?}");
    for name in names {
        loaded(&format!("examples/{name}"));
    }
}

#[test]
fn several_gpus_make_a_shard_placed() {
    let policy = loaded("examples/multi-gpu-lab.toml").policy;
    let check = |id: &str, gpus: u32, submit: SubmitMode, min_tier: Option<u32>| {
        let s = shard(&policy, id);
        assert_eq!((s.gpus, s.submit, s.min_tier), (gpus, submit, min_tier), "{id}");
    };
    check("pretrain/base", 4, SubmitMode::Placed, Some(2));
    check("pretrain/wide", 8, SubmitMode::Placed, Some(2));
    check("tune/s0", 2, SubmitMode::Placed, None);
    check("segment/s0", 1, SubmitMode::Placed, None);
    let script = root().join("examples/pretrain.sbatch");
    assert_eq!(shard(&policy, "pretrain/deep").launch, Launch::Script(script));
    let torchrun = "torchrun --nproc-per-node 2 tune.py --run s5 --rows 40";
    assert_eq!(shard(&policy, "tune/s5").launch, Launch::Command(torchrun.to_owned()));
    assert!(policy.rules.newcomer_floor);
    let tier = policy.tier_of("RTX_3080_Ti").expect("an alias in another case");
    assert_eq!(tier.name, "3080ti");
    assert!(loaded("examples/no-lanes.toml").policy.lanes.is_none());
}

/// The whole grammar of the contract in one file.
const EVERYTHING: &str = r#"
project = "oracle-plan"
state = "shared/state.json"
logs = "out/logs"
[slurm]
bin_dir = "/opt/slurm/bin"
timeout = "45s"
partition = "gpu"
account = "lab"
args = ["--mem=64G"]
[own]
qos = "own"
gpus = 8
park = 0
[extra]
qos = "extra"
account = "guest"
[tiers.rtx4090]
rank = 2
tflops = 82.6
partition = "p4090"
max_gpus = 4
[tiers.rtx3080ti]
gres = "rtx_3080_ti"
rank = 1
tflops = 34.1
[backfill]
name = "^llm-"
partition = "serve"
stop = "./stop.sh {node} {jobids}"
[policy]
reservation_charge = "job-end"
max_failures = 5
backoff = "90s"
settle = "1m"
submit_settle = "10m"
max_submits_per_tick = 7
newcomer = "zero"
[hooks]
notify = "notify.sh --quiet"
[families.restore]
command = "run '{project}' {family} {shard} {index}"
workdir = "work/{shard}"
rows = 64
done = { jsonl = "r/{shard}.jsonl", key = "row_id" }
shards = ["x", "y"]
args = ["--constraint=ib"]
oom = ["first"]
[families.restore.shard.y]
script = "y.sbatch"
lab = "KDG"
rows = 47
gpus = 2
submit = "queued"
cpus = 8
mem = "64G"
min_tier = "rtx4090"
time = "2-00:00:00"
row_time = "25m"
cost = { gpu_hour = 1.20 }
cap = 40
args = ["--exclude=n1"]
oom = ["second"]
[families.find]
command = "f"
rows = 1
done = { glob = "/data/f.done" }
shards = 1
"#;

#[test]
fn every_key_arrives() {
    let (dir, loaded) = from_text(EVERYTHING);
    let at = |path: &str| dir.path().join(path);
    let policy = &loaded.policy;
    assert_eq!(loaded.state, Some(at("shared/state.json")));
    assert_eq!(policy.logs, at("out/logs"));
    assert_eq!(policy.slurm.timeout, Secs(45));
    assert_eq!(policy.slurm.bin_dir, Some(PathBuf::from("/opt/slurm/bin")));
    let lanes = policy.lanes.as_ref().expect("lanes");
    // What only one lane names, the other has from [slurm].
    assert_eq!(lanes.own.account.as_deref(), Some("lab"));
    assert_eq!(lanes.extra.account.as_deref(), Some("guest"));
    assert_eq!(lanes.park, 0);
    let tiers: Vec<_> = policy.tiers.iter().map(|t| (t.name.as_str(), t.gres.join(","))).collect();
    assert_eq!(tiers, [("rtx3080ti", "rtx_3080_ti".into()), ("rtx4090", "rtx4090".to_owned())]);
    let backfill = policy.backfill.as_ref().expect("backfill");
    assert_eq!(backfill.name.as_deref(), Some("^llm-"));
    let stop = format!("{} {{node}} {{jobids}}", at("stop.sh").display());
    assert_eq!(backfill.stop.as_deref(), Some(stop.as_str()));
    assert_eq!(policy.rules.reservation_charge, ReservationCharge::JobEnd);
    assert_eq!((policy.rules.backoff, policy.rules.settle), (Secs(90), Secs(60)));
    assert_eq!(policy.rules.max_submits_per_tick, 7);
    // No such file beside shards.toml: PATH decides.
    let hook = policy.notify.as_ref().expect("a hook");
    assert_eq!((hook.command.as_str(), hook.timeout), ("notify.sh --quiet", Secs(20)));
    // The order of the file, not of the alphabet.
    let ids: Vec<String> = policy.shards.iter().map(|s| s.id.to_string()).collect();
    assert_eq!(ids, ["restore/x", "restore/y", "find/s0"]);

    let x = shard(policy, "restore/x");
    assert_eq!(x.launch, Launch::Command("run 'oracle-plan' restore x 0".to_owned()));
    assert_eq!(x.workdir, at("work/x").into());
    assert_eq!(x.lab, "default".into());
    assert_eq!(x.row_time, Secs::minutes(10));
    assert_eq!(x.args, ["--mem=64G", "--constraint=ib"]);
    assert_eq!((x.cap, x.cost.as_ref()), (None, None));

    let y = shard(policy, "restore/y");
    assert_eq!(y.launch, Launch::Script(at("y.sbatch")));
    assert_eq!((y.lab.as_ref(), y.rows, y.gpus, y.index), ("KDG", 47, 2, 1));
    assert_eq!((y.submit, y.min_tier, y.cpus), (SubmitMode::Queued, Some(2), Some(8)));
    assert_eq!((y.mem.as_deref(), y.time.as_deref()), (Some("64G"), Some("2-00:00:00")));
    assert_eq!(y.cap, Money::from_dollars(40.0));
    assert_eq!(y.args, ["--mem=64G", "--constraint=ib", "--exclude=n1"]);
    assert_eq!(y.oom, ["first", "second"]);
    let done = RowsIn::Jsonl { path: at("r/y.jsonl"), key: Some("row_id".to_owned()) };
    assert_eq!(y.done, done);
    assert_eq!(shard(policy, "find/s0").done, RowsIn::Glob("/data/f.done".to_owned()));
}

#[test]
fn faults_of_later_stages_find_their_line() {
    let (_dir, loaded) = from_text(EVERYTHING);
    let line = |id: &str, name: &str| loaded.shard_key(&ShardId::parse(id).expect("an id"), name);
    let number = |text: &str| EVERYTHING.lines().position(|l| l == text).map(|n| n + 1);
    assert_eq!(
        line("restore/y", "gpus"),
        ("families.restore.shard.y.gpus".into(), number("gpus = 2"))
    );
    assert_eq!(line("restore/x", "rows"), ("families.restore.rows".into(), number("rows = 64")));
    // Nothing written: the family's header.
    assert_eq!(line("find/s0", "gpus"), ("families.find.gpus".into(), number("[families.find]")));
}

#[test]
fn pattern_letters_in_the_folders_name_are_no_pattern() {
    let dir = tempfile::tempdir().expect("a folder");
    let odd = dir.path().join("runs [old]");
    std::fs::create_dir(&odd).expect("made");
    let text = "project = \"p\"\n[families.f]\ncommand = \"c\"\nrows = 1\nshards = 1\n\
                done = { glob = \"./r/*.json\" }\n";
    let loaded = config::load(&write(&odd, "shards.toml", text)).expect("no fault");
    let RowsIn::Glob(pattern) = &loaded.policy.shards[0].done else { panic!("a glob") };
    let glob = globset::Glob::new(pattern).expect("a pattern").compile_matcher();
    assert!(glob.is_match(odd.join("r/1.json")), "{pattern}");
    assert!(!glob.is_match(dir.path().join("runs o/r/1.json")), "{pattern}");
}

/// Not for one shard, but in one file: by family, and for a shard of its own in either.
#[test]
fn pilots_and_splits_stand_in_one_file() {
    let family = |name: &str, keys: &str, of_s1: &str| {
        format!(
            "[families.{name}]\nshards = 2\nrows = 4\nrow_time = \"9m\"\ncommand = \"true\"\n{keys}\n\
             done = {{ glob = \"{name}/{{shard}}/*\" }}\n[families.{name}.shard.s1]\n{of_s1}\n"
        )
    };
    let (find, restore) = (
        family("find", "pilot = true", "pilot = false\nsplit = 3"),
        family("restore", "split = true", "split = false\npilot = \"any\""),
    );
    let (_dir, loaded) = from_text(&format!("project = \"p\"\n{find}{restore}"));
    let kinds = |shard: &Shard| (shard.pilot, shard.split.as_ref().map(|split| split.workers));
    let kinds: Vec<_> = loaded.policy.shards.iter().map(kinds).collect();
    assert_eq!(kinds, [(true, None), (false, Some(3)), (false, Some(8)), (true, None)]);
}

#[test]
fn ten_thousand_shards_load() {
    let mut text = "project = \"big\"\n".to_owned();
    for family in 0..10 {
        let done = "done = { glob = \"runs/{family}/{shard}/row_*.json\" }";
        let head = format!("[families.f{family}]\ncommand = \"run {{shard}}\"\nrows = 64");
        writeln!(text, "{head}\n{done}\nshards = 1000").expect("a string grows");
        for shard in (0..1000).step_by(2) {
            writeln!(text, "[families.f{family}.shard.s{shard}]\nrows = {}", shard + 1)
                .expect("a string grows");
        }
    }
    let (_dir, loaded) = from_text(&text);
    assert_eq!(loaded.policy.shards.len(), 10_000);
    assert_eq!(shard(&loaded.policy, "f9/s998").rows, 999);
    assert_eq!(shard(&loaded.policy, "f9/s999").rows, 64);
}

fn surroundings(cwd: &Path, env: &[(&str, &str)], state_dir: Option<&str>) -> Surroundings {
    let env: BTreeMap<String, String> =
        env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Surroundings { env, cwd: cwd.to_owned(), state_dir: state_dir.map(PathBuf::from) }
}

#[test]
fn the_process_has_surroundings() {
    let s = Surroundings::from_process().expect("a working folder");
    assert!(s.cwd.is_absolute());
    assert!(s.var("PATH").is_some() && s.var("BABYSIT_NOT_SET").is_none());
}

#[test]
fn the_file_is_found_by_option_then_variable_then_upwards() {
    let dir = tempfile::tempdir().expect("a folder");
    let deep = dir.path().join("a/b");
    std::fs::create_dir_all(&deep).expect("made");
    let other = write(dir.path(), "other.toml", "");
    let find = |explicit: Option<&str>, env: &[(&str, &str)]| {
        config::find(explicit.map(Path::new), &surroundings(&deep, env, None))
            .map_err(|e| e.to_string())
    };
    let none = find(None, &[]).expect_err("nothing there yet");
    for part in ["no shards.toml in", "a/b", "above it", "--config", "babysit init"] {
        assert!(none.contains(part), "{none}");
    }
    let here = write(dir.path(), "shards.toml", "");
    assert_eq!(find(None, &[]), Ok(here.clone()));
    assert_eq!(find(None, &[("BABYSIT_CONFIG", "")]), Ok(here));
    assert_eq!(
        find(None, &[("BABYSIT_CONFIG", "../../other.toml")]),
        Ok(deep.join("../../other.toml"))
    );
    let text = other.to_str().expect("UTF-8");
    assert_eq!(find(Some(text), &[("BABYSIT_CONFIG", "/nowhere")]), Ok(other.clone()));
    let gone = find(None, &[("BABYSIT_CONFIG", "/nowhere/x.toml")]).expect_err("not there");
    assert!(gone.contains("$BABYSIT_CONFIG names /nowhere/x.toml: No such file"), "{gone}");
    let folder = find(Some(".."), &[]).expect_err("a folder");
    assert!(folder.contains("--config names") && folder.contains("is a folder"), "{folder}");
}

#[test]
fn the_state_file_has_its_place() {
    let text = "project = \"p\"\n[families.f]\ncommand = \"c\"\nrows = 1\nshards = 1\n\
                done = { glob = \"r/*\" }\n";
    let (_dir, plain) = from_text(text);
    let (dir, with_key) = from_text(&format!("state = \"../s.json\"\n{text}"));
    let cwd = Path::new("/cwd");
    let state = |explicit: Option<&str>, loaded: &Loaded, env: &[(&str, &str)], home| {
        let draft = config::draft(&loaded.path).expect("it was loaded before");
        config::state_path(explicit.map(Path::new), &draft, &surroundings(cwd, env, home))
            .map_err(|e| e.to_string())
    };
    let var = [("BABYSIT_STATE", "v.json")];
    let home = Some("/home/u/.local/state");
    assert_eq!(state(Some("x.json"), &with_key, &var, home), Ok("/cwd/x.json".into()));
    assert_eq!(state(None, &with_key, &var, home), Ok("/cwd/v.json".into()));
    assert_eq!(state(None, &with_key, &[], home), Ok(dir.path().join("../s.json")));
    assert_eq!(
        state(None, &plain, &[], home),
        Ok("/home/u/.local/state/babysit/p/state.json".into())
    );
    let homeless = state(None, &plain, &[], None).expect_err("no home");
    assert!(homeless.contains("HOME") && homeless.contains("--state PATH"), "{homeless}");
}

/// What squeue is asked may be known before there are shards, but not be something else.
#[test]
fn a_draft_knows_whether_babysit_will_look_for_places() {
    let text = |family: &str| {
        format!(
            "project = \"p\"\n[tiers.t]\ngres = \"t\"\nrank = 1\ntflops = 1\n[families.f]\n\
             command = \"c\"\nrows = 1\nshards = 2\ndone = {{ glob = \"r/{{shard}}/*\" }}\n{family}\n"
        )
    };
    for (family, expected) in [
        ("", false),
        ("gpus = 2", true),
        ("gpus = 2\nsubmit = \"queued\"", false),
        ("submit = \"placed\"", true),
        ("shard.s1.gpus = 4", true),
        ("shard.s1.submit = \"placed\"", true),
        ("gpus = 2\nshard.s0.gpus = 1\nshard.s1.submit = \"queued\"", false),
    ] {
        let (_dir, loaded) = from_text(&text(family));
        let draft = config::draft(&loaded.path).expect("it was loaded before");
        assert_eq!(loaded.policy.places(), expected, "{family}");
        assert!(draft.places() || !expected, "{family}");
        assert_eq!(draft.finish().map(|made| made.policy), Ok(loaded.policy), "{family}");
    }
}

#[test]
fn check_is_told_of_files_that_are_missing() {
    let (dir, loaded) = from_text(
        "project = \"p\"\nlogs = \"shards.toml/logs\"\n[families.f]\nscript = \"none.sbatch\"\n\
         workdir = \"work/{shard}\"\nrows = 1\nshards = 3\ndone = { glob = \"runs/{shard}/*\" }\n\
         cost = { jsonl = \"led/{shard}.jsonl\", field = \"usd\" }\n",
    );
    let found = config::file_faults(&loaded);
    let shown = |faults: &[config::Fault]| -> Vec<String> {
        let prefix = format!("{}/", dir.path().display());
        faults.iter().map(|f| f.shown(Path::new("x")).replace(&prefix, "")).collect()
    };
    let faults = shown(&found.faults);
    let starts = [
        "x:2: logs: shards.toml is in the way of the log folder",
        "x:4: families.f.script: none.sbatch is no file (and 2 more shards); ",
        "x:5: families.f.workdir: work/s0 is no folder (and 2 more shards); ",
    ];
    assert_eq!(faults.len(), starts.len(), "{faults:?}");
    for (fault, start) in faults.iter().zip(starts) {
        assert!(fault.starts_with(start), "{fault}");
    }
    let warnings = shown(&found.warnings);
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].starts_with("x:8: families.f.done: runs is not there yet"), "{warnings:?}");
    assert!(warnings[1].starts_with("x:9: families.f.cost: led is not there yet"), "{warnings:?}");
    // The try-out brings everything it needs; only its output is still to come.
    assert_eq!(config::file_faults(&self::loaded("examples/ten-minute-tryout.toml")).faults, []);
}

#[test]
fn backfill_by_ones_own_user_name_is_told() {
    let (_dir, loaded) = from_text(
        "project = \"p\"\n[backfill]\nuser = \"alice\"\n[families.f]\ncommand = \"c\"\nrows = 1\n\
         shards = 1\ndone = { glob = \"r/*\" }\n",
    );
    let as_user = |name: &str| {
        config::user_faults(&loaded, &surroundings(Path::new("/"), &[("USER", name)], None))
    };
    assert_eq!(as_user("bob"), []);
    let faults = as_user("alice");
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert_eq!((faults[0].line, faults[0].key.as_str()), (Some(3), "backfill.user"));
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the test makes its own files")]
fn a_preset_sets_what_no_key_of_its_own_does() {
    let rules = |lines: &str| {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("shards.toml");
        let rest = "[families.find]\ncommand = \"true\"\nrows = 3\nshards = 2\n\
                    done = { glob = \"runs/{shard}/*\" }\n";
        std::fs::write(&path, format!("project = \"p\"\n[policy]\n{lines}\n{rest}")).expect("room");
        config::load(&path).map(|loaded| loaded.policy.rules)
    };
    assert_eq!(rules("").expect("good"), Rules::default());
    assert_eq!(rules("preset = \"field\"").expect("good"), Rules::default());
    assert_eq!(rules("preset = \"v4.1\"").expect("good"), Rules::v4_1());
    let best = rules("preset = \"best\"").expect("good");
    assert_eq!(best, Rules::best());
    assert_eq!(best.lanes.mode, LaneMode::Both);
    assert_eq!(best.place.reserve, Reserve::Shadow);
    let some = rules("preset = \"best\"\nlanes = \"adaptive\"\nreserve = \"mark\"\nown_share = 3");
    let some = some.expect("good");
    assert_eq!((some.lanes.mode, some.lanes.own_share), (LaneMode::Adaptive, OwnShare::Gpus(3)));
    assert_eq!((some.place.reserve, some.place.order), (Reserve::Mark, PlaceOrder::Guard));
    let soft =
        rules("r3 = \"soft\"\nreserve_at = \"earliest\"\nown_share = \"average\"").expect("good");
    assert_eq!((soft.place.r3, soft.place.reserve_at), (R3::Soft, ReserveAt::Earliest));
    assert_eq!(soft.lanes.own_share, OwnShare::Average);
    for wrong in [
        "preset = \"bets\"",
        "own_share = \"half\"",
        "r3 = true",
        "lanes = \"all\"",
        "own_share = 0",
        "reserv = \"mark\"",
    ] {
        assert!(rules(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_reference_names_every_key() {
    let docs = std::fs::read_to_string(root().join("docs/shards-toml.md")).expect("the reference");
    for (section, keys) in SECTIONS {
        let header = match *section {
            "" => "## At the top".to_owned(),
            section => format!("## `[{section}]`"),
        };
        let part = docs.split_once(&header).map(|(_, rest)| rest.split("\n## ").next());
        let part = part.flatten().unwrap_or_else(|| panic!("no heading {header:?}"));
        if *section == "families.NAME.shard.NAME" {
            // Says that it takes the family's keys; they are not listed twice.
            continue;
        }
        for key in *keys {
            let tables = ["slurm", "own", "extra", "tiers", "backfill", "policy", "hooks", "labs"];
            let is_table = section.is_empty() && (tables.contains(key) || *key == "families");
            let row = if is_table { format!("`[{key}") } else { format!("| `{key}` |") };
            let place = if is_table { docs.as_str() } else { part };
            assert!(place.contains(&row), "{header}: no row for {key}");
        }
    }
}
