//! The cost of a merge of simultaneous releases, in comparisons of keys.

use shiftwork_queue::{Heap, Job, QUEUE_KINDS};

use crate::counted::{compared, scattered};

pub fn table() {
    let waiting = 1_023;
    println!("comparisons of keys: a merge of k jobs into {waiting}, then taking one");
    println!(
        "| k | {} |",
        QUEUE_KINDS.map(|kind| kind.name()).join(" | ")
    );
    println!("|---:|{}", "---:|".repeat(QUEUE_KINDS.len()));
    for batch in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1023] {
        let row = QUEUE_KINDS.map(|kind| {
            let queue = kind.build(1, waiting + batch);
            for task in 0..waiting {
                queue.insert(0, Job::new(scattered(task), task as u32));
            }
            let mut heap = Heap::default();
            for task in waiting..waiting + batch {
                heap.insert(Job::new(scattered(task), task as u32));
            }
            let merged = compared(|| queue.merge(0, heap));
            let taken = compared(|| assert!(queue.take(0).is_some()));
            format!("{merged} + {taken}")
        });
        println!("| {batch} | {} |", row.join(" | "));
    }
}
