//! Every GRES, TRES and node-state string of the corpus gives the meaning in its columns.

use babysit::model::cluster::Usable;
use babysit::slurm::gres::{self, Gres};
use babysit::slurm::state;

const CORPUS: &str = include_str!("fixtures/gres_corpus.tsv");

/// The three columns that a GRES string should give.
fn columns(gres: Option<&Gres>) -> [String; 3] {
    let Some(gres) = gres else {
        return ["-".to_owned(), "unknown".to_owned(), "-".to_owned()];
    };
    let model = |gpu: &babysit::model::cluster::GpuCount| {
        format!("{}={}", gpu.model.as_deref().unwrap_or("-"), gpu.count)
    };
    let mut others: Vec<String> = gres.others.iter().map(|(n, a)| format!("{n}={a}")).collect();
    if gres.torn {
        others.push("TRUNCATED".to_owned());
    }
    let or_dash = |list: Vec<String>| match list.is_empty() {
        true => "-".to_owned(),
        false => list.join(";"),
    };
    let models = or_dash(gres.gpus.iter().map(model).collect());
    [models, gres.total().to_string(), or_dash(others)]
}

fn state_column(raw: &str) -> String {
    let state = state::node(raw);
    let flags = match state.flags.is_empty() {
        true => "none".to_owned(),
        false => state.flags.join("+"),
    };
    let usable = match state.usable() {
        Usable::Yes => "yes",
        Usable::Backfill => "backfill",
        Usable::Reserved => "reservation",
        Usable::No if state.must_boot() => "boot",
        Usable::Full | Usable::No => "no",
    };
    format!("base={};flags={flags};usable={usable}", state.base)
}

#[test]
fn all_73_mean_what_the_corpus_says() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for line in CORPUS.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [id, field, raw, by_model, total, other] = cells.as_slice() else {
            panic!("six columns: {line:?}");
        };
        seen += 1;
        let (read, expected) = match *field {
            "state_sinfo" | "state_scontrol" => (state_column(raw), (*other).to_owned()),
            _ => {
                let gres = match *field {
                    "Gres" | "GresUsed" => gres::of_node(raw),
                    "JobGres" => gres::of_job(raw),
                    "TRES" => gres::of_tres(raw),
                    field => panic!("no such field: {field}"),
                };
                let by_model = if *by_model == "MALFORMED" { "-" } else { by_model };
                (columns(gres.as_ref()).join("\t"), format!("{by_model}\t{total}\t{other}"))
            }
        };
        if read != expected {
            wrong.push(format!("{id} {raw:?}\n  is       {read}\n  should be {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(seen, 73);
}
