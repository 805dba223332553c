//! Schedules as papers draw them: a row for each CPU with its jobs, and a lane for each task with
//! its releases, deadlines and completions.

use std::ops::Range;

use shiftwork_model::{Instant, TaskId, TaskSet};

use crate::schedule::Schedule;
use shiftwork_report::svg::{COLOURS, Svg, step};

const WIDTH: f64 = 900.0;
const LEFT: f64 = 108.0;
const RIGHT: f64 = 16.0;
/// Below the title.
const TOP: f64 = 34.0;
const CPU_ROW: f64 = 28.0;
const LANE: f64 = 24.0;
const NS_PER_MS: u64 = 1_000_000;

/// What `window` shows of a run. Lateness is a red bar from the deadline to the completion; releases are arrows
/// up, deadlines arrows down, completions circles. Times are in milliseconds.
pub fn schedule(set: &TaskSet, run: &Schedule, title: &str, window: Range<Instant>) -> String {
    let mut figure = Figure {
        svg: Svg::default(),
        window,
    };
    figure.svg.text("title", (LEFT, 20.0), title);
    let bottom = TOP + CPU_ROW * set.platform.cpus as f64 + LANE * set.tasks.len() as f64 + 8.0;
    figure.axis(bottom);
    figure.stretches(set, run);
    for cpu in 0..set.platform.cpus {
        let y = TOP + CPU_ROW * cpu as f64;
        let base = y + CPU_ROW - 4.0;
        figure
            .svg
            .text("end", (LEFT - 8.0, y + 17.0), &format!("CPU {cpu}"));
        figure.svg.line("axis", (LEFT, base), (WIDTH - RIGHT, base));
    }
    let lanes = TOP + CPU_ROW * set.platform.cpus as f64 + 6.0;
    for (id, task) in set.iter() {
        let y = lanes + LANE * id.index() as f64;
        let where_ = match task.affinity.cpus().len() {
            1 => task.affinity.to_string(),
            _ => "migrates".to_owned(),
        };
        let where_ = where_
            .parse::<usize>()
            .map_or(where_, |cpu| format!("CPU {cpu}"));
        let label = format!("{} ({where_})", task.name);
        figure
            .svg
            .text("end small", (LEFT - 8.0, y + LANE - 7.0), &label);
        figure.lane(run, id, y);
    }
    figure.svg.finish(title, WIDTH, bottom + 36.0)
}

struct Figure {
    svg: Svg,
    window: Range<Instant>,
}

impl Figure {
    /// Where an instant is; at the border what lies beyond it.
    fn x(&self, at: Instant) -> f64 {
        let length = self.window.end.late_since(self.window.start).as_ns().max(1);
        let at = at
            .min(self.window.end)
            .late_since(self.window.start)
            .as_ns();
        LEFT + at as f64 / length as f64 * (WIDTH - LEFT - RIGHT)
    }

    fn shows(&self, at: Instant) -> bool {
        self.window.start <= at && at <= self.window.end
    }

    fn axis(&mut self, bottom: f64) {
        let [from, to] = [self.window.start, self.window.end].map(|at| at.as_ns() / NS_PER_MS);
        let step = step(to - from, 10);
        for ms in (from.next_multiple_of(step)..=to).step_by(step as usize) {
            let x = self.x(Instant::from_ns(ms * NS_PER_MS));
            self.svg.line("grid", (x, TOP - 4.0), (x, bottom));
            self.svg
                .text("small mid", (x, bottom + 14.0), &ms.to_string());
        }
        let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
        self.svg
            .text("small mid", (middle, bottom + 29.0), "time (ms)");
    }

    fn stretches(&mut self, set: &TaskSet, run: &Schedule) {
        let window = self.window.clone();
        let seen = run
            .stretches
            .iter()
            .filter(|of| of.start < window.end && of.end > window.start);
        for of in seen {
            let [left, right] = [of.start, of.end].map(|at| self.x(at));
            let top = TOP + CPU_ROW * of.cpu.index() as f64;
            let colour = of.job.task.index() % COLOURS;
            let (at, size) = ((left, top), (right - left, CPU_ROW - 4.0));
            self.svg.rectangle(&format!("f{colour}"), at, size);
            self.svg.rectangle("mark", at, size);
            let name = &set.tasks[of.job.task.index()].name;
            let label = format!("{name}.{}", of.job.number);
            let fits = |text: &str| right - left > 7.0 * text.chars().count() as f64 + 2.0;
            let label = [label.as_str(), name].into_iter().find(|text| fits(text));
            if let Some(label) = label {
                let middle = f64::midpoint(left, right);
                self.svg.text("mid", (middle, top + 16.5), label);
            }
        }
    }

    /// The life of the jobs of a task, below `y`.
    fn lane(&mut self, run: &Schedule, task: TaskId, y: f64) {
        let (top, base) = (y + 3.0, y + LANE - 3.0);
        self.svg.line("grid", (LEFT, base), (WIDTH - RIGHT, base));
        for fate in run.of_task(task) {
            let end = fate.finish.unwrap_or(run.horizon);
            let [due, done] = [fate.deadline, end].map(|at| self.x(at));
            if done > due && fate.deadline < end {
                self.svg
                    .rectangle("late", (due, base - 5.0), (done - due, 4.0));
            }
        }
        for fate in run.of_task(task) {
            if self.shows(fate.release) {
                let x = self.x(fate.release);
                self.svg.line("mark", (x, base), (x, top));
                self.svg.path("head", &format!("M{x:.1} {top:.1}l-3 6h6z"));
            }
            if self.shows(fate.deadline) {
                let x = self.x(fate.deadline);
                self.svg.line("mark", (x, base), (x, top));
                self.svg
                    .path("head", &format!("M{x:.1} {base:.1}l-3 -6h6z"));
            }
        }
        for finish in run.of_task(task).filter_map(|fate| fate.finish) {
            if self.shows(finish) {
                let at = (self.x(finish), f64::midpoint(top, base));
                self.svg.circle("done", at);
            }
        }
    }
}
