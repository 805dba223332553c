//! In which order a study is worked off, and in pieces of what size.
//!
//! All cells advance together: the piece with the lowest index is always the next. So a study that is interrupted
//! has about as many task sets in each cell. How long a piece takes is measured, and the next of its cell is cut to last
//! [`PIECE`]; results do not depend on that.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use crate::work::Work;

/// How long one piece should take: short, so that an interruption is noticed and the last threads do not wait long for
/// one another; long against what it costs to hand one out.
const PIECE: Duration = Duration::from_millis(250);

/// What is left to do.
pub struct Queue {
    /// For each cell the ranges that are left, the last first.
    ranges: Vec<Vec<Work>>,
    /// The next index of each cell that has some left, the lowest first.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    pace: Vec<Pace>,
}

/// How fast a cell goes.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// How many task sets are in the next piece.
    size: u64,
    /// How many nanoseconds one task set took in the latest piece; `None` before the first.
    each_ns: Option<f64>,
    /// How many task sets have not come back yet.
    left: u64,
}

impl Queue {
    /// A queue of this work. The ranges of a cell must not overlap.
    pub fn new(mut work: Vec<Work>) -> Self {
        work.sort_unstable();
        let cells = work.iter().map(|work| work.cell + 1).max().unwrap_or(0);
        let fresh = Pace {
            size: 1,
            each_ns: None,
            left: 0,
        };
        let mut queue = Self {
            ranges: vec![Vec::new(); cells],
            next: BinaryHeap::new(),
            pace: vec![fresh; cells],
        };
        for &work in work.iter().rev() {
            queue.pace[work.cell].left += work.sets();
            queue.ranges[work.cell].push(work);
        }
        for cell in 0..cells {
            queue.announce(cell);
        }
        queue
    }

    /// The next piece; `None` if everything was handed out.
    pub fn take(&mut self) -> Option<Work> {
        let Reverse((_, cell)) = self.next.pop()?;
        let range = self.ranges[cell].pop()?;
        let size = self.pace[cell].size.min(range.sets());
        let piece = Work {
            last: range.first + size,
            ..range
        };
        if piece.last < range.last {
            self.ranges[cell].push(Work {
                first: piece.last,
                ..range
            });
        }
        self.announce(cell);
        Some(piece)
    }

    fn announce(&mut self, cell: usize) {
        if let Some(range) = self.ranges[cell].last() {
            self.next.push(Reverse((range.first, cell)));
        }
    }

    /// A piece came back after so long.
    pub fn done(&mut self, piece: Work, took: Duration) {
        let sets = piece.sets();
        let pace = &mut self.pace[piece.cell];
        pace.left -= sets;
        if sets == 0 {
            return;
        }
        let each = took.as_nanos() as f64 / sets as f64;
        pace.each_ns = Some(each);
        let fitting = (PIECE.as_nanos() as f64 / each.max(1.0)) as u64;
        // The first pieces of a cell say little, so that sizes grow slowly.
        pace.size = fitting.clamp(1, pace.size.max(sets).saturating_mul(2));
    }

    /// How long so many threads will need for what has not come back; `None` as long as nothing is known. Cells of
    /// which nothing is known are taken to be as fast as the others on average.
    pub fn time_left(&self, threads: usize) -> Option<Duration> {
        let known = || self.pace.iter().filter_map(|pace| pace.each_ns);
        let count = known().count();
        if count == 0 {
            return None;
        }
        let mean = known().sum::<f64>() / count as f64;
        let each = |pace: &Pace| pace.left as f64 * pace.each_ns.unwrap_or(mean);
        let total: f64 = self.pace.iter().map(each).sum();
        Some(Duration::from_nanos((total / threads.max(1) as f64) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(cell: usize, first: u64, last: u64) -> Work {
        Work { cell, first, last }
    }

    fn drain(queue: &mut Queue, each: Duration) -> Vec<Work> {
        let mut pieces = Vec::new();
        while let Some(piece) = queue.take() {
            queue.done(piece, each * piece.sets() as u32);
            pieces.push(piece);
        }
        pieces
    }

    #[test]
    fn everything_is_handed_out_once() {
        let all = [work(0, 5, 9), work(2, 0, 3), work(0, 0, 2), work(2, 7, 8)];
        for each_ms in [0, 1, 100, 1_000] {
            let mut queue = Queue::new(all.to_vec());
            let pieces = drain(&mut queue, Duration::from_millis(each_ms));
            let indices = |work: &Work| {
                (work.first..work.last)
                    .map(move |index| (work.cell, index))
                    .collect()
            };
            let flat = |work: &[Work]| -> Vec<(usize, u64)> {
                let mut flat: Vec<_> = work.iter().map(indices).collect::<Vec<Vec<_>>>().concat();
                flat.sort_unstable();
                flat
            };
            assert_eq!(flat(&pieces), flat(&all), "{each_ms} ms: {pieces:?}");
            assert_eq!(queue.time_left(1), Some(Duration::ZERO));
        }
    }

    #[test]
    fn cells_advance_together() {
        let mut queue = Queue::new(vec![work(0, 0, 100), work(1, 0, 100), work(2, 40, 100)]);
        let pieces = drain(&mut queue, Duration::from_millis(100));
        let mut reached = [0, 0, 40];
        for piece in pieces {
            let lowest = reached.into_iter().filter(|&at| at < 100).min();
            assert_eq!(Some(piece.first), lowest, "{piece:?} after {reached:?}");
            reached[piece.cell] = piece.last;
        }
    }

    #[test]
    fn pieces_grow_until_they_last_long_enough() {
        let mut queue = Queue::new(vec![work(0, 0, 1_000)]);
        let pieces = drain(&mut queue, Duration::from_millis(10));
        let sizes: Vec<u64> = pieces.iter().map(Work::sets).take(7).collect();
        assert_eq!(sizes, [1, 2, 4, 8, 16, 25, 25]);
    }

    #[test]
    fn the_time_left_is_that_of_all_threads() {
        let mut queue = Queue::new(vec![work(0, 0, 11), work(1, 0, 20)]);
        assert_eq!(queue.time_left(2), None);
        let piece = queue.take().unwrap();
        queue.done(piece, Duration::from_secs(1));
        assert_eq!(queue.time_left(2), Some(Duration::from_secs(15)));
    }
}
