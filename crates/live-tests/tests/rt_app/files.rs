//! Files of rt-app, one for each way in which its threads are released and wait for each other.
//!
//! Threads are named `t` and a digit, and have a CPU whenever they want one, but where a file binds them to one. What happens is
//! far enough apart for the emulator. There a CPU waits while others are executed, so that loops that rt-app counts (`run`)
//! take longer beside others: where threads compute at the same time they do so for a time (`runtime`). That passes while a thread
//! waits for a CPU, too, and the kernel may leave threads that wake up at the same time on one CPU for a while: those are
//! `SCHED_FIFO` threads, which it moves at once. All that is released by time begins with a delay: only then are the threads of
//! rt-app all started. What starting takes counts against budgets, which are larger than the work for that.

/// A file.
pub struct File {
    /// What it is about.
    pub about: &'static str,
    /// Whether its mutexes inherit priorities.
    pub pi: bool,
    /// The contents of `tasks`.
    pub tasks: &'static str,
    /// A policy under which the threads of the task set take precedence as rt-app's own do.
    pub policy: &'static str,
}

impl File {
    /// The whole text, for a machine that takes so many nanoseconds for a loop of rt-app's computing.
    pub fn text(&self, loop_ns: u64) -> String {
        let (pi, tasks) = (self.pi, self.tasks);
        format!(
            r#"{{ "global": {{ "duration": -1, "calibration": {loop_ns}, "pi_enabled": {pi}, "lock_pages": false,
                               "log_size": "disable", "gnuplot": false }},
                 "tasks": {{ {tasks} }} }}"#
        )
    }
}

/// The usual one; others say in what they differ.
const USUAL: File = File {
    about: "",
    pi: false,
    tasks: "",
    policy: "strong-edf",
};

/// All files.
pub const FILES: [File; 13] = [
    File {
        about: "timers",
        tasks: r#""t0": { "delay": 5000, "loop": -1, "run": 3000, "timer": { "ref": "unique", "period": 10000 } },
                  "t1": { "delay": 9000, "loop": -1, "run": 4000, "timer": { "ref": "own", "period": 20000 } }"#,
        ..USUAL
    },
    File {
        about: "an absolute timer",
        tasks: r#""t0": { "delay": 5000, "loop": -1, "run": 2000,
                          "timer": { "ref": "unique", "period": 10000, "mode": "absolute" } }"#,
        ..USUAL
    },
    File {
        about: "phases with loops, once",
        tasks: r#""t0": { "delay": 5000, "loop": 1, "phases": {
                      "light": { "loop": 4, "run": 1000, "timer": { "ref": "unique", "period": 10000 } },
                      "heavy": { "loop": 3, "run": 6000, "timer": { "ref": "unique", "period": 10000 } },
                      "last": { "loop": 6, "run": 2000, "timer": { "ref": "unique", "period": 10000 } } } }"#,
        ..USUAL
    },
    File {
        about: "phases that are repeated",
        tasks: r#""t0": { "delay": 5000, "loop": -1, "phases": {
                      "a": { "loop": 2, "run": 1000, "timer": { "ref": "unique", "period": 8000 } },
                      "b": { "run": 4000, "timer": { "ref": "unique", "period": 8000 } } } }"#,
        ..USUAL
    },
    File {
        about: "a thread that ends",
        tasks: r#""t0": { "delay": 5000, "loop": 1, "phases": {
                      "a": { "loop": 6, "run": 2000, "timer": { "ref": "unique", "period": 10000 } } } },
                  "t1": { "delay": 8000, "loop": -1, "run": 2000, "timer": { "ref": "unique", "period": 30000 } }"#,
        ..USUAL
    },
    File {
        about: "sleeps",
        tasks: r#""t0": { "delay": 5000, "loop": -1, "run": 2000, "sleep": 7000, "run1": 1000, "sleep1": 5000 }"#,
        ..USUAL
    },
    File {
        about: "sleeps before a timer",
        tasks: r#""t0": { "delay": 5000, "loop": -1, "run": 2000, "sleep": 4000, "run1": 3000,
                          "timer": { "ref": "unique", "period": 25000 } }"#,
        ..USUAL
    },
    File {
        about: "work that is measured in time",
        tasks: r#""t0": { "policy": "SCHED_FIFO", "priority": 10, "delay": 5000, "loop": -1,
                          "runtime": 4000, "timer": { "ref": "unique", "period": 15000 } },
                  "t1": { "policy": "SCHED_FIFO", "priority": 10, "delay": 6000, "loop": -1,
                          "runtime": 5000, "timer": { "ref": "unique", "period": 20000 } }"#,
        ..USUAL
    },
    File {
        about: "instances",
        tasks: r#""t0": { "policy": "SCHED_FIFO", "priority": 10, "delay": 5000, "instance": 3, "loop": -1,
                          "runtime": 2000, "timer": { "ref": "unique", "period": 12000 } }"#,
        ..USUAL
    },
    File {
        about: "threads that are resumed one after the other",
        tasks: r#""t0": { "delay": 5000, "loop": -1, "run": 2000, "resume": "t1", "timer": { "ref": "unique", "period": 25000 } },
                  "t1": { "loop": -1, "suspend": "t1", "run": 3000, "resume": "t2" },
                  "t2": { "loop": -1, "suspend": "t2", "run": 2000, "sleep": 2000, "run1": 3500 }"#,
        ..USUAL
    },
    File {
        about: "a condition that two threads wait for",
        tasks: r#""t0": { "delay": 5000, "loop": -1, "run": 2000, "lock": "m", "broad": "c", "unlock": "m",
                          "timer": { "ref": "unique", "period": 20000 } },
                  "t1": { "policy": "SCHED_FIFO", "priority": 10, "loop": -1,
                          "lock": "m", "wait": { "ref": "c", "mutex": "m" }, "unlock": "m", "runtime": 4000 },
                  "t2": { "policy": "SCHED_FIFO", "priority": 10, "loop": -1,
                          "lock": "m", "wait": { "ref": "c", "mutex": "m" }, "unlock": "m", "runtime": 2500 }"#,
        ..USUAL
    },
    File {
        about: "SCHED_FIFO and a mutex that inherits, on one CPU",
        pi: true,
        tasks: r#""t0": { "policy": "SCHED_FIFO", "priority": 10, "cpus": [1], "delay": 5000, "loop": -1,
                          "lock": "m", "run": 5000, "unlock": "m", "run1": 2000, "timer": { "ref": "unique", "period": 30000 } },
                  "t1": { "policy": "SCHED_FIFO", "priority": 20, "cpus": [1], "delay": 7000, "loop": -1,
                          "run": 6000, "timer": { "ref": "unique", "period": 30000 } },
                  "t2": { "policy": "SCHED_FIFO", "priority": 30, "cpus": [1], "delay": 9000, "loop": -1,
                          "run": 1000, "lock": "m", "run1": 2000, "unlock": "m", "timer": { "ref": "unique", "period": 30000 } }"#,
        policy: "strong-fp",
    },
    File {
        about: "SCHED_DEADLINE",
        tasks: r#""t0": { "policy": "SCHED_DEADLINE", "dl-runtime": 9000, "dl-period": 20000, "dl-deadline": 20000,
                          "delay": 5000, "loop": -1, "run": 4000, "timer": { "ref": "unique", "period": 20000 } },
                  "t1": { "policy": "SCHED_DEADLINE", "dl-runtime": 7000, "dl-period": 20000, "dl-deadline": 8000,
                          "delay": 31000, "loop": -1, "run": 3000, "timer": { "ref": "unique", "period": 20000 } }"#,
        ..USUAL
    },
];
