//! Optimal priority assignment.

/// An order of the tasks, the most urgent first, in which each is in time; `None` if none is found. Of tasks that may be
/// the least urgent, the first becomes it.
///
/// `in_time` says whether a task is, given those that are more urgent and those that are less, in any order; `None`
/// gives up. If its answer depends on nothing else, and a task that is in time stays so when it becomes more urgent,
/// an order is found whenever one exists.
///
/// # Cost
/// At most n (n + 1) / 2 questions for n tasks.
///
/// # Source
/// N. Audsley, "On priority assignment in fixed priority scheduling", Information Processing Letters 79(1), 2001; the
/// conditions: R. Davis, A. Burns, "Improved priority assignment for global fixed priority pre-emptive scheduling in
/// multiprocessor real-time systems", Real-Time Systems 47, 2011.
pub(super) fn audsley(
    tasks: &[usize],
    mut in_time: impl FnMut(usize, &[usize], &[usize]) -> Option<bool>,
) -> Option<Vec<usize>> {
    let mut open = tasks.to_vec();
    // The least urgent first.
    let mut order = Vec::with_capacity(open.len());
    while !open.is_empty() {
        let mut lowest = None;
        for at in 0..open.len() {
            let task = open.remove(at);
            let found = in_time(task, &open, &order)?;
            open.insert(at, task);
            if found {
                lowest = Some(at);
                break;
            }
        }
        order.push(open.remove(lowest?));
    }
    order.reverse();
    Some(order)
}
