//! `babysit archive --out-dir DIR`: everything of a campaign in one folder. Asks Slurm nothing.

use std::path::Path;

use crate::archive::{self, Failed, Folders, Given, LeftOut, Place, Wanted, once};
use crate::model::policy::{CostIn, RowsIn, Shard};
use crate::output::archive::{View, json, text};
use crate::progress::sources;

use super::context::{Campaign, Context};
use super::exit::{Exit, Stop};
use super::figures::figures;

pub fn run(cx: &Context, out_dir: &Path, dry_run: bool) -> Result<Exit, Stop> {
    let campaign = cx.campaign()?;
    let policy = &campaign.loaded.policy;
    let state = cx.look(&campaign)?;
    let done = figures(policy, &state).done;
    let folders = Folders::of(&cx.surroundings.cwd.join(out_dir))?;
    let mut view = View { dry_run, shards: done.len(), ..View::default() };
    for ((shard, record), done) in policy.shards.iter().zip(&state.shards).zip(&done) {
        match done {
            true => view.shards_done += 1,
            false => {
                view.open.push(format!("{} ({}/{})", shard.id, record.progress.rows, shard.rows))
            }
        }
    }
    let all_done = view.open.is_empty();
    let (wanted, mut left_out) = wanted(&campaign, &folders, &done)?;
    if dry_run {
        let lacking = archive::lacking(folders.present()?, &policy.project, &wanted)?;
        view.files = wanted.len();
        view.copied = lacking.len();
        view.bytes = lacking.iter().map(|(_, bytes)| bytes).sum();
        view.whole = all_done && left_out.is_empty();
        view.folder = folders.present()?.display().to_string();
    } else {
        // One that was whole is not any more where shards were added.
        let folder = if all_done { folders.present()? } else { folders.name(false)? };
        let mut report = archive::run(folder, &policy.project, &wanted, all_done)?;
        left_out.append(&mut report.left_out);
        view.whole = all_done && left_out.is_empty();
        view.folder = folders.name(view.whole)?.display().to_string();
        view.files = report.files;
        view.bytes = report.bytes;
        view.copied = report.copied;
        view.again = report.again.iter().map(|path| path.display().to_string()).collect();
    }
    view.left_out = left_out
        .into_iter()
        .map(|LeftOut { path, why }| (path.display().to_string(), why))
        .collect();
    if cx.talk.json {
        cx.talk.result_json(&json(&view))?;
    } else {
        cx.talk.result(&text(&view))?;
    }
    Ok(if view.left_out.is_empty() { Exit::Done } else { Exit::Failed })
}

/// Every file that belongs into it, and what cannot be had.
fn wanted(
    campaign: &Campaign,
    folders: &Folders,
    done: &[bool],
) -> Result<(Vec<Wanted>, Vec<LeftOut>), Stop> {
    let loaded = &campaign.loaded;
    let base = loaded.path.parent().unwrap_or(Path::new("/"));
    let place = Place { base, archive: [&folders.whole, &folders.partial] };
    let mut wanted = Vec::new();
    let mut left_out = Vec::new();
    for (shard, done) in loaded.policy.shards.iter().zip(done) {
        let found = match sources(shard) {
            Ok(found) => found.files,
            Err(gap) => {
                left_out.push(LeftOut { path: gap.source.into(), why: gap.detail });
                continue;
            }
        };
        let mut files = 0;
        for (file, folder) in &found {
            match place.of(Given { file, folder }) {
                Ok(one) => {
                    files += usize::from(one.is_some() && !is_ledger(shard, file));
                    wanted.extend(one);
                }
                Err(one) => left_out.push(one),
            }
        }
        if let (true, RowsIn::Glob(pattern)) = (done, &shard.done)
            && files < shard.rows as usize
        {
            let why = format!(
                "{} is done with {} rows, but {files} files are there",
                shard.id, shard.rows
            );
            left_out.push(LeftOut { path: pattern.into(), why });
        }
    }
    let records = campaign.store.records().map_err(|error| {
        Stop::failed("state", format!("the folder of the state cannot be read: {error}"))
    })?;
    let own = |name: &str, source: &Path| Wanted {
        source: source.to_owned(),
        to: format!("babysit/{name}"),
    };
    wanted.push(own("shards.toml", &loaded.path));
    wanted.extend(records.iter().map(|(name, path)| own(name, path)));
    Ok((once(wanted), left_out))
}

fn is_ledger(shard: &Shard, file: &Path) -> bool {
    matches!(&shard.cost, Some(CostIn::Jsonl { path, .. }) if path == file)
}

impl From<Failed> for Stop {
    fn from(failed: Failed) -> Stop {
        let hint = failed.source.is_some().then(|| {
            "put it right (is there room? may you write there?) and run it again: what is verified \
             is not copied again"
                .to_owned()
        });
        Stop::new(Exit::Failed, "archive", failed.to_string(), hint)
    }
}
