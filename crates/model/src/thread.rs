//! Threads of running programs, by name.

use core::fmt;

use alloc::string::String;

/// A thread of a running program, by the names that the kernel keeps of threads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadName {
    /// The name of the process, which is that of its main thread.
    pub process: String,
    /// The name of the thread; `None`: the main thread.
    pub name: Option<String>,
    /// Which of the threads with this name in the process, from 1, the oldest; `None` if it is the only one.
    pub number: Option<u32>,
}

impl ThreadName {
    /// How many bytes of a name the kernel keeps.
    pub const BYTES_MAX: usize = 15;
}

/// For people: "thread `worker` (2) of process `rover`".
impl fmt::Display for ThreadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "thread `{name}`")?,
            None => f.write_str("the main thread")?,
        }
        if let Some(number) = self.number {
            write!(f, " ({number})")?;
        }
        write!(f, " of process `{}`", self.process)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn thread_is_shown_by_its_names() {
        let main = ThreadName {
            process: "rover".into(),
            name: None,
            number: None,
        };
        assert_eq!(main.to_string(), "the main thread of process `rover`");
        let second = ThreadName {
            name: Some("worker".into()),
            number: Some(2),
            ..main
        };
        assert_eq!(second.to_string(), "thread `worker` (2) of process `rover`");
    }
}
