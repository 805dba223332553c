//! The names by which `apply` finds a measured thread again.

use shiftwork_model::ThreadName;

use crate::measure::{Measurement, ThreadMeasurement};

/// The names of the thread in its process; `None` if it has none that a file can have: the main thread was never seen, or a name
/// is empty.
pub(super) fn thread_name(
    thread: &ThreadMeasurement,
    measurement: &Measurement,
) -> Option<ThreadName> {
    let can_be_written = |name: &str| (1..=ThreadName::BYTES_MAX).contains(&name.len());
    if !can_be_written(&thread.process_name) || !can_be_written(&thread.name) {
        return None;
    }
    let process = thread.process_name.clone();
    if thread.id == thread.process {
        return Some(ThreadName {
            process,
            name: None,
            number: None,
        });
    }
    // Threads that have ended are found only by the next run of a program that has ended, which starts all of them again.
    let mut alike: Vec<&ThreadMeasurement> = measurement
        .threads
        .iter()
        .filter(|it| it.process == thread.process && it.name == thread.name)
        .filter(|it| thread.has_ended || !it.has_ended)
        .collect();
    alike.sort_by_key(|it| (it.id != it.process, it.started, it.id));
    let place = alike.iter().position(|it| it.id == thread.id)?;
    Some(ThreadName {
        process,
        name: Some(thread.name.clone()),
        number: match alike.len() {
            1 => None,
            _ => u32::try_from(place + 1).ok(),
        },
    })
}

#[cfg(test)]
mod tests {
    use shiftwork_model::{CpuSet, Span};

    use super::*;
    use crate::measure::{Activity, Source};
    use crate::statistics::Costs;
    use crate::wakeups::Relation;

    fn thread(id: u32, name: &str, started: u64) -> ThreadMeasurement {
        ThreadMeasurement {
            id,
            process: 70,
            process_name: "rover".to_owned(),
            name: name.to_owned(),
            started,
            has_ended: false,
            affinity: CpuSet::first(1),
            jobs: 0,
            executed: Span::ZERO,
            costs: Costs::default(),
            distances: None,
            activity: Activity::Idle,
            suspended: 0,
            continued: 0,
            wakers: Vec::new(),
            relation: Relation::None,
        }
    }

    fn names(threads: Vec<ThreadMeasurement>) -> Vec<Option<String>> {
        let measurement = Measurement {
            process: 70,
            length: Span::from_s(1),
            source: Source::Trace,
            threads,
            paths: Vec::new(),
            gaps: 0,
            unreadable: 0,
        };
        let threads = measurement.threads.iter();
        threads
            .map(|it| thread_name(it, &measurement).map(|it| it.to_string()))
            .collect()
    }

    #[test]
    fn threads_with_one_name_are_numbered_by_age() {
        let mut gone = thread(3, "worker", 20);
        gone.has_ended = true;
        let mut of_child = thread(80, "worker", 8);
        of_child.process = 79;
        of_child.process_name = "arm".to_owned();
        let found = names(vec![
            thread(2, "worker", 12),
            gone.clone(),
            thread(70, "rover", 9),
            thread(71, "camera", 9),
            thread(72, "worker", 11),
            thread(73, "rover", 9),
            thread(74, "name of 16 bytes", 9),
            thread(75, "", 9),
            of_child,
        ]);
        let of = |what: &str| Some(format!("{what} of process `rover`"));
        let expected = [
            of("thread `worker` (2)"),
            of("thread `worker` (3)"),
            of("the main thread"),
            of("thread `camera`"),
            of("thread `worker` (1)"),
            // The main thread has the name, too.
            of("thread `rover` (2)"),
            None,
            None,
            Some("thread `worker` of process `arm`".to_owned()),
        ];
        assert_eq!(found, expected);
        let mut without = thread(1, "a", 1);
        without.process_name.clear();
        assert_eq!(names(vec![without]), [None], "no main thread was seen");
    }
}
