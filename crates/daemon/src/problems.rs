//! What does not work for now, though the daemon goes on: each problem is logged when it begins and when it is over.

use std::collections::BTreeMap;

/// Something that may not work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// Restoring the reservations of the state file.
    Restoring,
    /// Saving reservations to the state file.
    Saving,
    /// Writing the metrics.
    Metrics,
    /// Keeping recordings of missed deadlines.
    Recordings,
}

impl Subject {
    /// What works again.
    const fn name(self) -> &'static str {
        match self {
            Self::Restoring => "restoring reservations",
            Self::Saving => "saving reservations",
            Self::Metrics => "writing metrics",
            Self::Recordings => "keeping recordings of missed deadlines",
        }
    }
}

/// The present problems.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    present: BTreeMap<Subject, String>,
    /// How many there were so far.
    count: u64,
}

impl Problems {
    /// Notes whether the subject works now; `Err` says why it does not. Returns a line for the log if that is new.
    pub(crate) fn note(&mut self, subject: Subject, result: Result<(), String>) -> Option<String> {
        match result {
            Ok(()) => {
                self.present.remove(&subject)?;
                Some(format!("{} works again", subject.name()))
            }
            Err(why) => {
                let is_new = !self.present.contains_key(&subject);
                self.count += u64::from(is_new);
                self.present.insert(subject, why.clone());
                is_new.then_some(why)
            }
        }
    }

    /// The present problems.
    pub(crate) fn all(&self) -> impl Iterator<Item = &str> {
        self.present.values().map(String::as_str)
    }

    /// How many problems there were since the daemon started.
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problem_is_logged_at_its_beginning_and_end() {
        let mut all = Problems::default();
        assert_eq!(all.note(Subject::Saving, Ok(())), None);
        let full = || Err("disk full".to_owned());
        assert_eq!(
            all.note(Subject::Saving, full()),
            Some("disk full".to_owned())
        );
        assert_eq!(all.note(Subject::Saving, full()), None);
        assert_eq!(all.all().collect::<Vec<_>>(), ["disk full"]);
        let over = all.note(Subject::Saving, Ok(()));
        assert_eq!(over.as_deref(), Some("saving reservations works again"));
        assert_eq!((all.all().count(), all.count()), (0, 1));
    }
}
