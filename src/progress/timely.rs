//! The user's files within a time: a file server that is gone must not hold the cycle, and with it
//! the lock. What was not read in time is a gap of its shard.
//!
//! The reading is done by a thread of its own, since nothing ends a call to a dead NFS mount: it is
//! left behind, and ends with the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use super::Progress;
use crate::model::id::JobId;
use crate::model::observation::{Gap, GapKind, Measured, Seen};
use crate::model::policy::Shard;

/// Reads one shard after the other, and hands on each as soon as it is there.
pub trait Reader: Send + 'static {
    /// In any order; a place is that in `shards`.
    fn each(
        &mut self,
        shards: &[Shard],
        turn: u64,
        hurry: &AtomicBool,
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
    /// Set when half of the time is over: a reader that is only slow then stops by itself, and what
    /// it has read is kept.
    hurry: Arc<AtomicBool>,
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
    pub fn new(mut reader: impl Reader, within: Duration) -> std::io::Result<Timely> {
        let (ask, asked) = channel::<Ask>();
        let (tell, answers) = channel();
        let hurry = Arc::new(AtomicBool::new(false));
        let hurried = Arc::clone(&hurry);
        std::thread::Builder::new().name("files".to_owned()).spawn(move || {
            // An answer that nobody waits for any more is no fault: the cycle went on without it.
            let send = |answer| tell.send(answer).is_ok();
            for ask in asked {
                let went = match ask {
                    Ask::Measure(shards, turn) => {
                        reader.each(&shards, turn, &hurried, &mut |place, reading| {
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
        })?;
        Ok(Timely { ask, answers, hurry, within, waited: Duration::ZERO, stuck: false })
    }

    fn ask(&mut self, ask: Ask) {
        self.stuck = self.stuck || self.ask.send(ask).is_err();
    }

    fn answer(&mut self) -> Option<Answer> {
        while !self.stuck {
            let halfway = self.within / 2;
            if self.waited >= halfway {
                self.hurry.store(true, Ordering::Relaxed);
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
        Gap {
            kind: GapKind::TimedOut,
            source: format!("files of {}", shard.id),
            detail: format!(
                "not read within {} s: their file system is slow or does not answer; the next tick tries again",
                self.within.as_secs()
            ),
        }
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
        if !shards.is_empty() {
            let all = shards.iter().map(|shard| (*shard).clone()).collect();
            self.ask(Ask::Measure(all, turn));
            while let Some(Answer::Measured(place, reading)) = self.answer() {
                if let Some(at) = readings.get_mut(place) {
                    *at = Some(reading);
                }
            }
        }
        let or_gap = |(reading, shard): (Option<_>, &&Shard)| {
            reading.unwrap_or_else(|| Err(self.gap(shard)))
        };
        readings.into_iter().zip(shards).map(or_gap).collect()
    }

    fn log_tail(&mut self, shard: &Shard, job: JobId, lines: usize) -> Seen<Vec<String>> {
        self.ask(Ask::LogTail(Box::new(shard.clone()), job, lines));
        match self.answer() {
            Some(Answer::Log(read)) => read,
            _ => Err(self.gap(shard)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::policy::RowsIn;

    /// Answers as a dead mount does for one shard: never.
    struct Dead {
        at: usize,
        never: Receiver<()>,
    }

    impl Reader for Dead {
        fn each(
            &mut self,
            shards: &[Shard],
            _: u64,
            _: &AtomicBool,
            tell: &mut dyn FnMut(usize, Seen<Measured>),
        ) {
            for place in 0..shards.len() {
                if place == self.at {
                    assert!(self.never.recv().is_err(), "nobody sends");
                }
                tell(place, Ok(Measured { rows: 7, spent: None, bad_lines: 0 }));
            }
        }
        fn log_tail(&mut self, _: &Shard, _: JobId, _: usize) -> Seen<Vec<String>> {
            Ok(vec!["a line".to_owned()])
        }
        fn keep(&self) -> Option<Vec<u8>> {
            Some(vec![1])
        }
    }

    fn shards(count: usize) -> Vec<Shard> {
        let rows = || RowsIn::Glob("/runs/*".to_owned());
        let shard = |n| super::super::tests::shard(&format!("s{n}"), rows(), None);
        (0..count).map(shard).collect()
    }

    #[test]
    fn a_dead_file_system_is_a_gap_of_the_shards_behind_it() {
        let (keep_alive, never) = channel();
        let mut files =
            Timely::new(Dead { at: 1, never }, Duration::from_millis(60)).expect("a thread");
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

    /// Answers, after a while.
    struct Slow;

    impl Reader for Slow {
        fn each(
            &mut self,
            shards: &[Shard],
            _: u64,
            hurry: &AtomicBool,
            tell: &mut dyn FnMut(usize, Seen<Measured>),
        ) {
            std::thread::sleep(Duration::from_millis(20));
            for place in 0..shards.len() {
                let rows = u32::from(!hurry.load(Ordering::Relaxed));
                tell(place, Ok(Measured { rows, spent: None, bad_lines: 0 }));
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
        let mut files = Timely::new(Slow, within).expect("a thread");
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
        let mut files =
            Timely::new(Dead { at: 9, never }, Duration::from_secs(600)).expect("a thread");
        let shards = shards(2);
        let readings = files.measure(&shards.iter().collect::<Vec<_>>(), 0);
        assert!(readings.iter().all(|reading| reading.as_ref().is_ok_and(|m| m.rows == 7)));
        assert_eq!(files.log_tail(&shards[0], JobId(1), 5), Ok(vec!["a line".to_owned()]));
        assert_eq!(files.cache_if_changed(), Some(vec![1]));
    }
}
