//! What people see while tasks run: how far it is, every task so far, and what each CPU runs.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use indicatif::{ProgressBar, ProgressStyle};
use shiftwork_live::Progress;
use shiftwork_model::{Instant, JobId, RecordKind, Recorder, Span, TaskSet};

use crate::output::{Console, columns};
use crate::table::printable;

/// So many tasks fit a terminal beside the rest.
const TASKS_SHOWN: usize = 20;

/// So many characters of a name are shown.
const NAME_SHOWN: usize = 24;

/// The bar, and below it the table.
const TEMPLATE: &str = "{wide_bar} {percent:>3}%\n{msg}";

/// The live table. It is there only if stdout is a terminal.
pub struct View {
    shown: Option<Shown>,
}

struct Shown {
    bar: ProgressBar,
    names: Vec<String>,
    tally: Rc<RefCell<Tally>>,
}

/// Counts for the table what is recorded.
pub struct Counting(Rc<RefCell<Tally>>);

impl Recorder for Counting {
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        self.0.borrow_mut().take(at, kind);
    }
}

impl View {
    /// Nothing is drawn yet.
    pub fn new(console: &Console, set: &TaskSet, horizon: Instant) -> Self {
        let shown = console.shows_progress().then(|| Shown {
            bar: ProgressBar::new(horizon.as_ns()).with_style(
                ProgressStyle::with_template(TEMPLATE)
                    .expect("the template is a constant that a test draws"),
            ),
            names: set.tasks.iter().map(|task| safe(&task.name)).collect(),
            tally: Rc::new(RefCell::new(Tally::new(set.tasks.len()))),
        });
        Self { shown }
    }

    /// Takes the records of the run; `None` if it is not shown.
    pub fn recorder(&self) -> Option<Counting> {
        let shown = self.shown.as_ref()?;
        Some(Counting(Rc::clone(&shown.tally)))
    }

    /// Draws the present state.
    pub fn draw(&self, progress: &Progress<'_>) {
        let Some(shown) = &self.shown else {
            return;
        };
        let tally = shown.tally.borrow();
        let table = table(&shown.names, &tally, progress.now, progress.running);
        shown.bar.set_position(progress.now.as_ns());
        shown.bar.set_message(table);
    }

    /// Takes it all away.
    pub fn finish(&self) {
        if let Some(shown) = &self.shown {
            shown.bar.finish_and_clear();
        }
    }
}

/// The tasks so far.
#[derive(Debug)]
struct Tally {
    tasks: Vec<TaskTally>,
}

/// One task so far.
#[derive(Clone, Debug, Default)]
struct TaskTally {
    /// Release and deadline of the jobs that are not finished, in turn.
    pending: VecDeque<(Instant, Instant)>,
    jobs: u64,
    /// Finished late.
    late: u64,
    worst: Span,
}

impl Tally {
    fn new(tasks: usize) -> Self {
        Self {
            tasks: vec![TaskTally::default(); tasks],
        }
    }

    fn take(&mut self, at: Instant, kind: &RecordKind) {
        match *kind {
            RecordKind::Released { job, deadline } => {
                if let Some(task) = self.tasks.get_mut(job.task.index()) {
                    task.jobs += 1;
                    task.pending.push_back((at, deadline));
                }
            }
            RecordKind::Completed { job } => {
                let task = self.tasks.get_mut(job.task.index());
                if let Some((task, (release, deadline))) =
                    task.and_then(|task| task.pending.pop_front().map(|job| (task, job)))
                {
                    task.worst = task.worst.max(at.late_since(release));
                    task.late += u64::from(at > deadline);
                }
            }
            RecordKind::Left { task } => {
                if let Some(task) = self.tasks.get_mut(task.index()) {
                    task.pending.clear();
                }
            }
            _ => {}
        }
    }
}

impl TaskTally {
    /// Late ones, and those that are overdue now.
    fn missed(&self, now: Instant) -> u64 {
        let overdue = self.pending.partition_point(|&(_, due)| due < now);
        self.late + overdue as u64
    }
}

/// The table: a row per task, most troubled first if not all fit, and what each CPU runs.
fn table(names: &[String], tally: &Tally, now: Instant, running: &[Option<JobId>]) -> String {
    let mut order: Vec<usize> = (0..names.len()).collect();
    if order.len() > TASKS_SHOWN {
        order.sort_by_key(|&task| std::cmp::Reverse(tally.tasks[task].missed(now)));
        order.truncate(TASKS_SHOWN);
        order.sort_unstable();
    }
    let heads = ["task", "jobs", "missed", "worst response", "on CPU"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for &task in &order {
        let counted = &tally.tasks[task];
        let here = |job: &Option<JobId>| job.is_some_and(|job| job.task.index() == task);
        rows.push(vec![
            names[task].clone(),
            counted.jobs.to_string(),
            counted.missed(now).to_string(),
            format!("{:.3} ms", counted.worst.as_ns() as f64 / 1e6),
            running
                .iter()
                .position(here)
                .map_or_else(String::new, |cpu| cpu.to_string()),
        ]);
    }
    let mut text = columns(&rows);
    if names.len() > order.len() {
        text.push_str(&format!("and {} tasks more\n", names.len() - order.len()));
    }
    text
}

/// A name that cannot disturb the terminal.
fn safe(name: &str) -> String {
    printable(name).chars().take(NAME_SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use shiftwork_model::TaskId;

    use super::*;

    const AT: fn(u64) -> Instant = |ms| Instant::ZERO + Span::from_ms(ms);

    fn job(task: usize, number: u64) -> JobId {
        JobId {
            task: TaskId::from_index(task),
            number,
        }
    }

    fn tally() -> Tally {
        let mut tally = Tally::new(2);
        let released = |job, deadline| RecordKind::Released {
            job,
            deadline: AT(deadline),
        };
        tally.take(AT(0), &released(job(0, 1), 10));
        tally.take(AT(0), &released(job(1, 1), 20));
        tally.take(AT(3), &RecordKind::Completed { job: job(0, 1) });
        tally.take(AT(10), &released(job(0, 2), 20));
        tally.take(AT(22), &RecordKind::Completed { job: job(0, 2) });
        tally
    }

    #[test]
    fn late_and_overdue_jobs_are_missed() {
        let tally = tally();
        assert_eq!(tally.tasks[0].missed(AT(22)), 1);
        assert_eq!(tally.tasks[1].missed(AT(20)), 0);
        assert_eq!(tally.tasks[1].missed(AT(22)), 1);
    }

    #[test]
    fn jobs_of_a_task_that_left_are_not_waited_for() {
        let mut tally = tally();
        let task = TaskId::from_index(1);
        tally.take(AT(23), &RecordKind::Left { task });
        assert_eq!(tally.tasks[1].missed(AT(30)), 0);
    }

    #[test]
    fn the_table_says_how_every_task_is_and_where() {
        let names = ["imu".to_owned(), safe("bad\u{1b}[2Jname")];
        let running = [None, Some(job(1, 1))];
        assert_eq!(
            table(&names, &tally(), AT(22), &running),
            "task         jobs  missed  worst response  on CPU\n\
             imu          2     1       12.000 ms\n\
             bad?[2Jname  1     1       0.000 ms        1\n"
        );
    }

    #[test]
    fn of_very_many_tasks_the_most_troubled_are_shown() {
        let names: Vec<String> = (0..100).map(|task| format!("t{task}")).collect();
        let mut tally = Tally::new(100);
        tally.tasks[77].late = 1;
        let text = table(&names, &tally, AT(0), &[]);
        assert_eq!(text.lines().count(), 1 + TASKS_SHOWN + 1);
        assert!(text.contains("\nt77 "), "{text}");
        assert!(text.ends_with("and 80 tasks more\n"), "{text}");
    }

    #[test]
    fn the_template_is_sound() {
        assert!(ProgressStyle::with_template(TEMPLATE).is_ok());
    }
}
