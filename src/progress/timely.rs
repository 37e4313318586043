//! The user's files within a time: a file server that is gone must not hold the cycle, and with it
//! the lock. What was not read in time is a gap of its shard.
//!
//! The reading is done by a thread of its own, since nothing ends a call to a dead NFS mount: it is
//! left behind, and ends with the process, or when the mount answers again. `loop` keeps such threads in
//! mind: what they hang on is not touched by another one.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{Progress, folder_of};
use crate::model::id::JobId;
use crate::model::observation::{Gap, GapKind, Measured, Seen};
use crate::model::policy::Shard;

/// What a reader and who waits for it tell each other meanwhile.
#[derive(Debug, Default)]
pub struct Watch {
    /// Set when half of the time is over: a reader that is only slow then stops by itself, and what
    /// it has read is kept.
    pub hurry: AtomicBool,
    /// Place of the shard that is being read.
    pub at: AtomicUsize,
}

/// Readers of earlier cycles that hang, and the folder that each hangs in.
#[derive(Debug, Default)]
pub struct Behind(Vec<(PathBuf, JoinHandle<()>)>);

/// More than so many threads are not left hanging: then nothing is read until one comes back.
const MOST_BEHIND: usize = 8;

impl Behind {
    fn folders(&mut self) -> Vec<PathBuf> {
        self.0.retain(|(_, thread)| !thread.is_finished());
        self.0.iter().map(|(folder, _)| folder.clone()).collect()
    }
}

/// Reads one shard after the other, and hands on each as soon as it is there.
pub trait Reader: Send + 'static {
    /// In any order; a place is that in `shards`.
    fn each(
        &mut self,
        shards: &[Shard],
        turn: u64,
        watch: &Watch,
        tell: &mut dyn FnMut(usize, Seen<Measured>),
    );
    fn log_tail(&mut self, shard: &Shard, job: JobId, lines: usize) -> Seen<Vec<String>>;
    /// What to keep for the next cycle, where anything is new.
    fn keep(&self) -> Option<Vec<u8>>;
}

enum Ask {
    Measure(Vec<Shard>, u64),
    LogTail(Box<Shard>, JobId, usize),
    Keep,
}

enum Answer {
    Measured(usize, Seen<Measured>),
    AllMeasured,
    Log(Seen<Vec<String>>),
    Keep(Option<Vec<u8>>),
}

/// [`Progress`] that answers in time.
pub struct Timely {
    ask: Sender<Ask>,
    answers: Receiver<Answer>,
    watch: Arc<Watch>,
    /// `None`: too many hang already.
    thread: Option<JoinHandle<()>>,
    /// Folders that earlier readers hang in.
    avoid: Vec<PathBuf>,
    /// Where this one was when it did not answer.
    at: PathBuf,
    within: Duration,
    /// What of it was waited for answers. Slurm's commands, before and in between, use none of it up.
    waited: Duration,
    /// It did not answer once; nothing more is asked of it.
    stuck: bool,
}

impl Timely {
    /// `within`: for all that is asked of it together.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn new(
        mut reader: impl Reader,
        within: Duration,
        behind: &mut Behind,
    ) -> std::io::Result<Timely> {
        let avoid = behind.folders();
        let (ask, asked) = channel::<Ask>();
        let (tell, answers) = channel();
        let watch = Arc::new(Watch::default());
        let watched = Arc::clone(&watch);
        let work = move || {
            // An answer that nobody waits for any more is no fault: the cycle went on without it.
            let send = |answer| tell.send(answer).is_ok();
            for ask in asked {
                let went = match ask {
                    Ask::Measure(shards, turn) => {
                        reader.each(&shards, turn, &watched, &mut |place, reading| {
                            send(Answer::Measured(place, reading));
                        });
                        send(Answer::AllMeasured)
                    }
                    Ask::LogTail(shard, job, lines) => {
                        send(Answer::Log(reader.log_tail(&shard, job, lines)))
                    }
                    Ask::Keep => send(Answer::Keep(reader.keep())),
                };
                if !went {
                    return;
                }
            }
        };
        let thread = match avoid.len() < MOST_BEHIND {
            true => Some(std::thread::Builder::new().name("files".to_owned()).spawn(work)?),
            false => None,
        };
        let (waited, at, stuck) = (Duration::ZERO, PathBuf::new(), thread.is_none());
        Ok(Timely { ask, answers, watch, thread, avoid, at, within, waited, stuck })
    }

    /// At the end of a cycle: kept in mind where it hangs.
    pub fn leave(self, behind: &mut Behind) {
        if let Some(thread) = self.thread.filter(|_| self.stuck) {
            behind.0.push((self.at, thread));
        }
    }

    fn hangs(&self, shard: &Shard) -> bool {
        self.avoid.iter().any(|folder| folder == folder_of(shard))
    }

    fn ask(&mut self, ask: Ask) {
        self.stuck = self.stuck || self.ask.send(ask).is_err();
    }

    fn answer(&mut self) -> Option<Answer> {
        while !self.stuck {
            let halfway = self.within / 2;
            if self.waited >= halfway {
                self.watch.hurry.store(true, Ordering::Relaxed);
            }
            let until = if self.waited < halfway { halfway } else { self.within };
            let begin = Instant::now();
            let answer = self.answers.recv_timeout(until.saturating_sub(self.waited));
            self.waited += begin.elapsed();
            match answer {
                Ok(answer) => return Some(answer),
                Err(RecvTimeoutError::Timeout) if self.waited < self.within => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    self.stuck = true;
                }
            }
        }
        None
    }

    fn gap(&self, shard: &Shard) -> Gap {
        let detail = if self.thread.is_none() || self.hangs(shard) {
            "an earlier reading still hangs: their file system does not answer; they are read when it \
             does"
                .to_owned()
        } else {
            format!(
                "not read within {} s: their file system is slow or does not answer; the next tick tries again",
                self.within.as_secs()
            )
        };
        Gap { kind: GapKind::TimedOut, source: format!("files of {}", shard.id), detail }
    }

    /// What to keep for the next cycle; `None` where nothing new was read, or it cannot be told.
    pub fn cache_if_changed(&mut self) -> Option<Vec<u8>> {
        self.ask(Ask::Keep);
        loop {
            if let Answer::Keep(bytes) = self.answer()? {
                return bytes;
            }
        }
    }
}

impl Progress for Timely {
    fn measure(&mut self, shards: &[&Shard], turn: u64) -> Vec<Seen<Measured>> {
        let mut readings: Vec<Option<Seen<Measured>>> = shards.iter().map(|_| None).collect();
        let asked: Vec<usize> = (0..shards.len()).filter(|at| !self.hangs(shards[*at])).collect();
        if !asked.is_empty() {
            let all = asked.iter().map(|at| shards[*at].clone()).collect();
            let was_stuck = self.stuck;
            self.ask(Ask::Measure(all, turn));
            while let Some(Answer::Measured(place, reading)) = self.answer() {
                if let Some(at) = asked.get(place).and_then(|at| readings.get_mut(*at)) {
                    *at = Some(reading);
                }
            }
            let at = asked.get(self.watch.at.load(Ordering::Relaxed));
            if let Some(at) = at.filter(|_| self.stuck && !was_stuck) {
                folder_of(shards[*at]).clone_into(&mut self.at);
            }
        }
        let or_gap = |(reading, shard): (Option<_>, &&Shard)| {
            reading.unwrap_or_else(|| Err(self.gap(shard)))
        };
        readings.into_iter().zip(shards).map(or_gap).collect()
    }

    fn log_tail(&mut self, shard: &Shard, job: JobId, lines: usize) -> Seen<Vec<String>> {
        if self.stuck || self.hangs(shard) {
            return Err(self.gap(shard));
        }
        self.ask(Ask::LogTail(Box::new(shard.clone()), job, lines));
        match self.answer() {
            Some(Answer::Log(read)) => read,
            _ => {
                folder_of(shard).clone_into(&mut self.at);
                Err(self.gap(shard))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::policy::RowsIn;

    /// Answers as a dead mount does for one shard: never.
    struct Dead {
        at: &'static str,
        never: Receiver<()>,
    }

    impl Reader for Dead {
        fn each(
            &mut self,
            shards: &[Shard],
            _: u64,
            watch: &Watch,
            tell: &mut dyn FnMut(usize, Seen<Measured>),
        ) {
            for (place, shard) in shards.iter().enumerate() {
                watch.at.store(place, Ordering::Relaxed);
                if shard.id.shard == self.at {
                    assert!(self.never.recv().is_err(), "nobody sends");
                }
                tell(place, Ok(Measured { rows: 7, spent: None, bad_lines: 0, claims: None }));
            }
        }
        fn log_tail(&mut self, _: &Shard, _: JobId, _: usize) -> Seen<Vec<String>> {
            Ok(vec!["a line".to_owned()])
        }
        fn keep(&self) -> Option<Vec<u8>> {
            Some(vec![1])
        }
    }

    fn dead(
        at: &'static str,
        never: Receiver<()>,
        within: Duration,
        behind: &mut Behind,
    ) -> Timely {
        Timely::new(Dead { at, never }, within, behind).expect("a thread")
    }

    fn shards(count: usize) -> Vec<Shard> {
        let rows = |n| RowsIn::Glob(format!("/runs/s{n}/*"));
        let shard = |n| super::super::tests::shard(&format!("s{n}"), rows(n), None);
        (0..count).map(shard).collect()
    }

    #[test]
    fn a_dead_file_system_is_a_gap_of_the_shards_behind_it() {
        let (keep_alive, never) = channel();
        let mut files = dead("s1", never, Duration::from_millis(60), &mut Behind::default());
        let shards = shards(3);
        let readings = files.measure(&shards.iter().collect::<Vec<_>>(), 0);
        let kinds: Vec<_> =
            readings.iter().map(|r| r.as_ref().map(|m| m.rows).map_err(|gap| gap.kind)).collect();
        assert_eq!(kinds, [Ok(7), Err(GapKind::TimedOut), Err(GapKind::TimedOut)]);
        // Nothing waits for it a second time.
        let log = files.log_tail(&shards[0], JobId(1), 5);
        assert_eq!(log.map_err(|gap| gap.kind), Err(GapKind::TimedOut));
        assert_eq!(files.cache_if_changed(), None);
        drop(keep_alive);
    }

    #[test]
    fn what_a_reader_hangs_on_is_not_touched_by_the_next_one() {
        let mut behind = Behind::default();
        let shards = shards(3);
        let shards: Vec<&Shard> = shards.iter().collect();
        let cycle = |at: &'static str, never, within, behind: &mut Behind| {
            let mut files = dead(at, never, within, behind);
            let read: Vec<bool> = files.measure(&shards, 0).iter().map(Result::is_ok).collect();
            files.leave(behind);
            (read, behind.0.len())
        };
        let (short, long) = (Duration::from_millis(60), Duration::from_secs(600));
        let (first, never) = channel();
        assert_eq!(cycle("s1", never, short, &mut behind), (vec![true, false, false], 1));
        // The same mount is dead still: the shards behind it are read, and no second thread hangs.
        let (second, never) = channel();
        assert_eq!(cycle("s1", never, long, &mut behind), (vec![true, false, true], 1));
        // It answers again.
        drop((first, second));
        while !behind.folders().is_empty() {
            std::thread::yield_now();
        }
        let (_, never) = channel();
        assert_eq!(cycle("none", never, long, &mut behind), (vec![true; 3], 0));
    }

    #[test]
    fn no_more_than_a_few_threads_hang() {
        let mut behind = Behind::default();
        let shards = shards(MOST_BEHIND + 2);
        let (mut alive, mut hanging) = (Vec::new(), Vec::new());
        for shard in &shards {
            let (sender, never) = channel();
            alive.push(sender);
            let at = Box::leak(shard.id.shard.to_string().into_boxed_str());
            let mut files = dead(at, never, Duration::from_millis(5), &mut behind);
            assert!(files.measure(&[shard], 0)[0].is_err());
            files.leave(&mut behind);
            hanging.push(behind.0.len());
        }
        assert_eq!(hanging, [1, 2, 3, 4, 5, 6, 7, 8, 8, 8]);
    }

    /// Answers, after a while.
    struct Slow;

    impl Reader for Slow {
        fn each(
            &mut self,
            shards: &[Shard],
            _: u64,
            watch: &Watch,
            tell: &mut dyn FnMut(usize, Seen<Measured>),
        ) {
            std::thread::sleep(Duration::from_millis(20));
            for place in 0..shards.len() {
                let rows = u32::from(!watch.hurry.load(Ordering::Relaxed));
                tell(place, Ok(Measured { rows, spent: None, bad_lines: 0, claims: None }));
            }
        }
        fn log_tail(&mut self, _: &Shard, _: JobId, _: usize) -> Seen<Vec<String>> {
            Ok(Vec::new())
        }
        fn keep(&self) -> Option<Vec<u8>> {
            std::thread::sleep(Duration::from_millis(20));
            Some(vec![1])
        }
    }

    #[test]
    fn the_time_of_slurms_commands_is_not_that_of_the_files() {
        let within = Duration::from_secs(1);
        let mut files = Timely::new(Slow, within, &mut Behind::default()).expect("a thread");
        let shards = shards(1);
        std::thread::sleep(within);
        let readings = files.measure(&shards.iter().collect::<Vec<_>>(), 0);
        assert_eq!(readings[0].as_ref().map(|m| m.rows), Ok(1), "and nobody hurries it");
        std::thread::sleep(within);
        assert_eq!(files.cache_if_changed(), Some(vec![1]));
    }

    #[test]
    fn one_that_answers_is_asked_on() {
        let (_, never) = channel();
        let mut files = dead("none", never, Duration::from_secs(600), &mut Behind::default());
        let shards = shards(2);
        let readings = files.measure(&shards.iter().collect::<Vec<_>>(), 0);
        assert!(readings.iter().all(|reading| reading.as_ref().is_ok_and(|m| m.rows == 7)));
        assert_eq!(files.log_tail(&shards[0], JobId(1), 5), Ok(vec!["a line".to_owned()]));
        assert_eq!(files.cache_if_changed(), Some(vec![1]));
    }
}
