//! `babysit status`: shards.toml and the state file only; no Slurm call, no write.

use std::io::IsTerminal;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

use crate::model::units::Time;
use crate::output::board::Board;
use crate::output::format::{self, ascii};
use crate::output::spark::Point;
use crate::output::table::{self, Look};
use crate::output::view::{self, Status};
use crate::output::word::Word;

use super::context::{Campaign, Context};
use super::exit::{Exit, Stop};
use super::figures::figures;
use super::screen::{Screen, keys};
use super::target;

/// The state changes with a tick, so there is nothing to see sooner than this.
const REDRAW: Duration = Duration::from_secs(2);

/// After a key, so that moving about does not wait for a reading.
const PAUSE: Duration = Duration::from_millis(700);
/// The files are read again, though they seem to be as they were.
const ANYHOW: Duration = Duration::from_secs(60);

/// Of the journal's end: a day of a busy campaign.
const JOURNAL: u64 = 2 << 20;

pub fn run(cx: &Context, filter: &[String], check: bool) -> Result<Exit, Stop> {
    let Seen { status, now, .. } = look(cx, filter)?;
    if cx.talk.json {
        cx.talk.result_json(&status)?;
    } else {
        let look = Look { width: cx.talk.width, paint: cx.talk.paint, now };
        cx.talk.result(&table::render(&status, &look))?;
    }
    let person = check && status.totals.needs_person > 0;
    Ok(if person { Exit::Person } else { Exit::Done })
}

/// On a terminal a board with keys; else the plain text again and again, until nobody reads it.
pub fn watch(cx: &Context, filter: &[String]) -> Result<Exit, Stop> {
    if cx.talk.terminal && std::io::stdin().is_terminal() && !cx.talk.json {
        return board(cx, filter);
    }
    loop {
        run(cx, filter, false)?;
        std::thread::sleep(REDRAW);
    }
}

fn board(cx: &Context, filter: &[String]) -> Result<Exit, Stop> {
    // What is wrong at first is told on the usual screen.
    let mut seen = look(cx, filter)?;
    let (mut read, mut typed) = (Instant::now(), Instant::now());
    let mut as_read = stamp(&seen.files);
    let mut board = Board::default();
    let mut drawn = (Vec::new(), (0, 0));
    let screen = Screen::open()?;
    while !screen.is_ended() {
        // Reading ten thousand shards takes its time: not while somebody types, nor for nothing.
        if read.elapsed() >= REDRAW && typed.elapsed() >= PAUSE {
            let now = stamp(&seen.files);
            if now != as_read || read.elapsed() >= ANYHOW {
                // shards.toml may be saved half-way just now: the last picture stays.
                if let Ok(fresh) = look(cx, filter) {
                    seen = fresh;
                }
                (read, as_read) = (Instant::now(), now);
            }
        }
        let (width, height) = screen.size();
        let look = Look { width: Some(width), paint: cx.talk.paint, now: (cx.clock)() };
        let lines = board.render(&seen.status, &look, height);
        let plain = |line: &String| if cx.talk.ascii { ascii(line) } else { line.clone() };
        let picture = (lines.iter().map(plain).collect::<Vec<_>>(), (width, height));
        if picture != drawn {
            screen.draw(&picture.0)?;
            drawn = picture;
        }
        let Some(keys) = keys(&screen.typed(), board.typing) else { break };
        if !keys.is_empty() {
            typed = Instant::now();
        }
        keys.into_iter().for_each(|key| board.key(key, &seen.status));
    }
    Ok(Exit::Done)
}

/// Changes when a file that the picture is made from does.
fn stamp(files: &[PathBuf]) -> Vec<Option<(u64, u64, SystemTime)>> {
    let of = |path: &PathBuf| {
        let meta = std::fs::metadata(path).ok()?;
        Some((meta.ino(), meta.len(), meta.modified().ok()?))
    };
    files.iter().map(of).collect()
}

/// What the files say now, and which those are.
struct Seen {
    status: Status,
    now: Time,
    files: [PathBuf; 3],
}

fn look(cx: &Context, filter: &[String]) -> Result<Seen, Stop> {
    let campaign = cx.campaign()?;
    let policy = &campaign.loaded.policy;
    let state = cx.look(&campaign)?;
    let words: Vec<Word> =
        Word::ALL.into_iter().filter(|word| filter.iter().any(|f| f == word.text())).collect();
    let names: Vec<String> = filter
        .iter()
        .filter(|f| !Word::ALL.iter().any(|word| word.text() == *f))
        .cloned()
        .collect();
    let states = Word::ALL.map(|word| word.text());
    let named = target::filtered(policy, &names, &states)?;
    let wanted = |i: usize, word: Word| {
        (words.is_empty() || words.contains(&word))
            && (names.is_empty() || named.binary_search(&i).is_ok())
    };
    let now = (cx.clock)();
    let mut status = view::status(policy, &state, &figures(policy, &state), now, wanted);
    // Of the whole campaign, so it says nothing about a part of it.
    if filter.is_empty() {
        status.history = history(&campaign);
    }
    let store = &campaign.store;
    let files = [campaign.loaded.path.clone(), store.path().to_owned(), store.clock_path()];
    Ok(Seen { status, now, files })
}

/// Rows over time, from the journal's lines of totals. A picture beside the numbers: where the
/// journal cannot be read there is none.
fn history(campaign: &Campaign) -> Vec<Point> {
    let lines = campaign.store.journal_tail(JOURNAL).unwrap_or_default();
    let point = |line: &Value| {
        let ours = line.get("project")?.as_str()? == campaign.loaded.policy.project;
        let at = format::moment(line.get("at")?.as_str()?)?;
        let rows = line.get("rows")?.as_u64()?;
        (ours && line.get("kind")?.as_str()? == "totals").then_some(Point { at, rows })
    };
    let mut points: Vec<Point> = lines.iter().filter_map(point).collect();
    points.sort_by_key(|point| point.at);
    points
}
