//! What will happen, in the order in which it will.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::model::units::Time;

/// Entries come out by time and, within a second, in the order they were put in.
#[derive(Debug, Clone)]
pub(super) struct Calendar<T> {
    order: BinaryHeap<Reverse<(Time, u64, usize)>>,
    /// Payloads, apart from the heap so that they need no order of their own.
    entries: Vec<Option<T>>,
    free: Vec<usize>,
    count: u64,
}

impl<T> Calendar<T> {
    pub fn new() -> Calendar<T> {
        Calendar { order: BinaryHeap::new(), entries: Vec::new(), free: Vec::new(), count: 0 }
    }

    pub fn put(&mut self, at: Time, entry: T) {
        let place = match self.free.pop() {
            Some(place) => place,
            None => {
                self.entries.push(None);
                self.entries.len() - 1
            }
        };
        if let Some(cell) = self.entries.get_mut(place) {
            *cell = Some(entry);
        }
        self.order.push(Reverse((at, self.count, place)));
        self.count += 1;
    }

    pub fn next_at(&self) -> Option<Time> {
        self.order.peek().map(|Reverse((at, _, _))| *at)
    }

    /// The next entry that is due by `at`.
    pub fn take_due(&mut self, at: Time) -> Option<T> {
        if self.next_at()? > at {
            return None;
        }
        let Reverse((_, _, place)) = self.order.pop()?;
        self.free.push(place);
        self.entries.get_mut(place)?.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_by_time_then_in_the_order_they_were_put_in() {
        let mut calendar = Calendar::new();
        for (at, word) in [(5, "late"), (1, "a"), (1, "b"), (3, "mid")] {
            calendar.put(Time(at), word);
        }
        assert_eq!(calendar.next_at(), Some(Time(1)));
        let mut due = |at| std::iter::from_fn(|| calendar.take_due(Time(at))).collect::<Vec<_>>();
        assert_eq!(due(0), Vec::<&str>::new());
        assert_eq!(due(3), ["a", "b", "mid"]);
        assert_eq!(due(9), ["late"]);
    }
}
