//! Lines of squeue, kept from one look to the next: a job that is what it was has its line already,
//! all but the priority, which grows with age.

use super::job::Job;
use crate::model::cluster::QueueJob;
use crate::model::id::JobId;

/// By id, as the queue is.
#[derive(Debug, Clone, Default)]
pub(super) struct Sheet {
    /// Those of the last look, once they were given back.
    lines: Vec<QueueJob>,
    /// Line by line: whose it is, and that job's mark by then.
    shown: Vec<(JobId, u32)>,
    /// Where the lines of the last look lie in memory. What an older one showed is dropped: `shown` is
    /// not about it.
    given: usize,
    /// Lines of jobs that are gone: the memory of the next ones.
    spare: Vec<QueueJob>,
}

impl Sheet {
    /// Lines that were handed out and are not needed any more.
    pub fn take_back(&mut self, lines: Vec<QueueJob>) {
        if lines.as_ptr().addr() == self.given && lines.len() == self.shown.len() {
            self.lines = lines;
        }
    }

    /// The lines of these jobs, by id; `write` makes all of one but its priority.
    pub fn renew<'a>(
        &mut self,
        jobs: impl Iterator<Item = &'a Job> + Clone,
        write: impl Fn(&Job, &mut QueueJob),
        priority: impl Fn(&Job) -> u64,
    ) -> Vec<QueueJob> {
        let mut lines = std::mem::take(&mut self.lines);
        if lines.len() != self.shown.len() {
            self.shown.clear();
            lines.clear();
        }
        let mut count = 0;
        for (at, job) in jobs.clone().enumerate() {
            count = at + 1;
            // Both go by id: what stands before this one is gone.
            if self.shown.get(at).is_some_and(|(id, _)| *id < job.id) {
                self.take_out(&mut lines, at, jobs.clone().skip(at));
            }
            let mark = (job.id, job.mark);
            let shown = self.shown.get(at).copied();
            // Whoever is new came last.
            if shown.is_none() {
                self.shown.push(mark);
                lines.push(self.spare.pop().unwrap_or_default());
            }
            let Some(line) = lines.get_mut(at) else { break };
            if shown != Some(mark) {
                write(job, line);
                if let Some(shown) = self.shown.get_mut(at) {
                    *shown = mark;
                }
            }
            line.priority = Some(priority(job));
        }
        self.shown.truncate(count);
        self.spare.extend(lines.drain(count..));
        self.given = lines.as_ptr().addr();
        lines
    }

    /// Takes out the lines from there on whose jobs are not among these, all at once: a line that stays
    /// moves no more than once.
    fn take_out<'a>(
        &mut self,
        lines: &mut Vec<QueueJob>,
        from: usize,
        jobs: impl Iterator<Item = &'a Job> + Clone,
    ) {
        let mut gone = not_among(jobs.clone());
        self.spare.extend(lines.extract_if(from.., |line| gone(line.id)));
        let mut gone = not_among(jobs);
        self.shown.extract_if(from.., |(id, _)| gone(*id)).for_each(drop);
    }
}

/// Asked by growing ids.
fn not_among<'a>(jobs: impl Iterator<Item = &'a Job>) -> impl FnMut(JobId) -> bool {
    let mut ids = jobs.map(|job| job.id).peekable();
    move |id| {
        while ids.next_if(|next| *next < id).is_some() {}
        ids.peek() != Some(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{T0, lab, request};
    use crate::model::observation::Cluster as Seen;
    use crate::model::units::Secs;
    use crate::sim::Rng;
    use crate::slurm::{Scope, Slurm};

    /// A cluster whose looks are given back shows what one shows that writes every line anew.
    #[test]
    fn lines_that_were_given_back_show_what_new_ones_do() {
        let (mut cluster, mut rng) = (lab(), Rng::new(3));
        let mut older: Option<Seen> = None;
        for step in 0..400 {
            let name = format!("p.a.s{step}.a1");
            let qos = if rng.chance(0.5) { "own" } else { "extra" };
            let asked = request(&name, qos, "gpu:1");
            match rng.below(6) {
                0 | 1 => drop(cluster.door("alice").submit(&asked)),
                2 => drop(cluster.add_job_of("bob", "own", "gpu:2", Some(Secs(900)))),
                3 => {
                    let jobs: Vec<_> = cluster.history().iter().map(|job| job.id).collect();
                    let job = jobs.get(rng.below(jobs.len() as u64) as usize).copied();
                    drop(cluster.door("alice").cancel(job.as_slice()));
                }
                _ => cluster.advance(rng.below(600) as i64),
            }
            let mut fresh = cluster.clone();
            fresh.lines = super::super::cluster::Lines::default();
            let seen = cluster.door("alice").look(Scope::Everybody).expect("it answers");
            let anew = fresh.door("alice").look(Scope::Everybody).expect("it answers");
            assert_eq!(seen, anew, "step {step}");
            let mine = cluster.door("alice").jobs(Scope::Mine).expect("it answers");
            assert_eq!(Ok(&mine), fresh.door("alice").jobs(Scope::Mine).as_ref(), "step {step}");
            cluster.door("alice").take_back(mine);
            // Now and then the lines of an older look come back instead, which nobody may trust.
            match rng.below(4) {
                0 => older = Some(seen),
                1 => older.take().into_iter().for_each(|seen| cluster.take_back(seen)),
                _ => cluster.take_back(seen),
            }
        }
        assert!(cluster.history().len() > 100 && T0 < cluster.now());
    }
}
