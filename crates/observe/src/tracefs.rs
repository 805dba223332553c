//! The kernel's trace of processes: an instance of its own below tracefs, which disturbs no other trace.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use shiftwork_model::Span;

use crate::collector::Collector;
use crate::error::ObserveError;
use crate::event::{Recording, Thread};
use crate::process::{ThreadFacts, name, now, thread};
use crate::process_tree::ProcessTree;

/// Where tracefs may be mounted.
const ROOTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Before the number of the process that made an instance.
const PREFIX: &str = "shiftwork-init-";

/// Room for events of all CPUs together, in KiB; an event takes some 100 bytes.
const BUFFERS_KIB: usize = 65_536;
/// Room for those of one CPU, in KiB: no less, and no more.
const BUFFER_KIB: (usize, usize) = (256, 4_096);

/// Options that change the form of lines, as it is read here. Kernels that do not know one have no such form.
const FORM: [(&str, &str); 9] = [
    ("irq-info", "1"),
    ("context-info", "1"),
    ("latency-format", "0"),
    ("record-tgid", "0"),
    ("raw", "0"),
    ("hex", "0"),
    ("bin", "0"),
    ("fields", "0"),
    // Threads and processes that are created are traced, too.
    ("event-fork", "1"),
];

/// The namespace of the machine's own process numbers, which is the same in every kernel.
const MACHINE_NUMBERS: &str = "pid:[4026531836]";

/// Traces processes until it is dropped, which removes everything from the kernel.
pub struct TraceSession {
    tree: ProcessTree,
    folder: PathBuf,
    pipe: Option<File>,
    threads: BTreeMap<u32, Known>,
    collected: Collector,
}

/// A thread of one of the processes.
struct Known {
    process: u32,
    facts: ThreadFacts,
    /// CPU time when the recording began, or when the thread did.
    began_ns: Option<u64>,
    /// Whether it had not ended when it was last looked at.
    is_there: bool,
}

impl TraceSession {
    /// Begins to trace these processes, and what they will start.
    ///
    /// # Errors
    /// If the kernel's trace may not be used.
    pub fn begin(tree: ProcessTree) -> Result<Self, ObserveError> {
        let instances = instances()?;
        let own = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        if !own.as_os_str().is_empty() && own != Path::new(MACHINE_NUMBERS) {
            return Err(ObserveError::OtherNumbers);
        }
        remove_stale(&instances);
        let folder = instances.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&folder).map_err(|error| failed(&folder, error))?;
        // From here on dropping it removes the folder.
        let mut session = Self {
            tree,
            folder,
            pipe: None,
            threads: BTreeMap::new(),
            collected: Collector::new(now()),
        };
        session.prepare()?;
        Ok(session)
    }

    fn prepare(&mut self) -> Result<(), ObserveError> {
        self.write("tracing_on", "0")?;
        self.write("trace_clock", "mono")?;
        let cpus =
            fs::read_dir(self.folder.join("per_cpu")).map_or(1, |entries| entries.count().max(1));
        let (least, most) = BUFFER_KIB;
        let room = (BUFFERS_KIB / cpus).clamp(least, most);
        self.write("buffer_size_kb", &room.to_string())?;
        for (option, value) in FORM {
            let _ = self.write(&format!("options/{option}"), value);
        }
        let pipe = self.folder.join("trace_pipe");
        let mut options = OpenOptions::new();
        let nonblocking = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
        let opened = options.read(true).custom_flags(nonblocking).open(&pipe);
        self.pipe = Some(opened.map_err(|error| failed(&pipe, error))?);
        self.follow(&self.tree.followed())?;
        let ids: Vec<u32> = self.tree.threads().into_keys().collect();
        self.follow(&ids)?;
        for event in ["sched_switch", "sched_waking"] {
            self.write(&format!("events/sched/{event}/enable"), "1")?;
        }
        self.write("tracing_on", "1")?;
        self.collected = Collector::new(now());
        self.look(false)
    }

    /// Follows threads that were not known, and notes the names of all. What begins while it is traced has had no CPU time before.
    fn look(&mut self, is_tracing: bool) -> Result<(), ObserveError> {
        let there = self.tree.threads();
        let mut new = Vec::new();
        for (&id, &process) in &there {
            match self.threads.get_mut(&id) {
                Some(known) => {
                    if let Some(name) = name(process, id) {
                        known.facts.name = name;
                    }
                }
                None => {
                    let Some(facts) = thread(process, id) else {
                        continue;
                    };
                    let began_ns = match is_tracing {
                        true => Some(0),
                        false => facts.cpu_ns,
                    };
                    let known = Known {
                        process,
                        facts,
                        began_ns,
                        is_there: true,
                    };
                    self.threads.insert(id, known);
                    new.push(id);
                }
            }
        }
        match new.is_empty() {
            true => Ok(()),
            false => self.follow(&new),
        }
    }

    fn write(&self, name: &str, text: &str) -> Result<(), ObserveError> {
        let path = self.folder.join(name);
        fs::write(&path, text).map_err(|error| failed(&path, error))
    }

    /// Traces these threads, too.
    fn follow(&self, ids: &[u32]) -> Result<(), ObserveError> {
        let path = self.folder.join("set_event_pid");
        let mut text = String::new();
        for id in ids {
            text.push_str(&format!("{id} "));
        }
        // What is written with truncation replaces what there was.
        let opened = OpenOptions::new().append(true).open(&path);
        let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| failed(&path, error))
    }

    /// How long it has traced.
    pub fn elapsed(&self) -> Span {
        now().late_since(self.collected.from())
    }

    /// The names of the threads.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.threads.values().map(|it| it.facts.name.as_str())
    }

    /// Takes what was traced since the last time, and returns whether any of the processes is still there. To be called several
    /// times a second: the kernel has room for that long.
    ///
    /// # Errors
    /// If the trace cannot be read.
    pub fn poll(&mut self) -> Result<bool, ObserveError> {
        self.look(true)?;
        self.read()?;
        Ok(self.tree.has_processes())
    }

    fn read(&mut self) -> Result<(), ObserveError> {
        const ROOM: usize = 1 << 16;
        let path = self.folder.join("trace_pipe");
        let mut buffer = vec![0; ROOM];
        loop {
            let Some(pipe) = &mut self.pipe else {
                return Ok(());
            };
            match pipe.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(length) => self
                    .collected
                    .take(&buffer[..length], |id| self.threads.contains_key(&id)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(&path, error)),
            }
        }
    }

    /// Ends the trace, and returns what was recorded.
    ///
    /// # Errors
    /// If the end of the trace cannot be read.
    pub fn finish(mut self) -> Result<Recording, ObserveError> {
        let until = now();
        self.write("tracing_on", "0")?;
        for (id, known) in &mut self.threads {
            let facts = thread(known.process, *id);
            known.is_there = facts.is_some();
            if let Some(facts) = facts {
                known.facts = facts;
            }
        }
        self.read()?;
        let threads = self.threads.iter().map(|(id, known)| {
            let ended = known.facts.cpu_ns.filter(|_| known.is_there);
            let times = known.began_ns.zip(ended);
            let thread = Thread {
                process: known.process,
                process_name: self.tree.name(known.process).to_owned(),
                name: known.facts.name.clone(),
                affinity: known.facts.affinity,
                cpu_time: times.map(|(began, ended)| Span::from_ns(ended.saturating_sub(began))),
                started: known.facts.started,
                has_ended: !known.is_there,
            };
            (*id, thread)
        });
        let collected = std::mem::replace(&mut self.collected, Collector::new(until));
        Ok(collected.finish(self.tree.main(), threads.collect(), until))
    }
}

/// Nothing can be done about what cannot be removed: the next session removes it.
impl Drop for TraceSession {
    fn drop(&mut self) {
        let _ = self.write("tracing_on", "0");
        // An instance with an open file cannot be removed.
        self.pipe = None;
        let _ = fs::remove_dir(&self.folder);
    }
}

fn failed(path: &Path, error: io::Error) -> ObserveError {
    let path = path.display().to_string();
    match error.kind() {
        io::ErrorKind::PermissionDenied => ObserveError::NotPermitted { path },
        _ => ObserveError::File { path, error },
    }
}

/// The folder of instances, wherever tracefs is mounted.
fn instances() -> Result<PathBuf, ObserveError> {
    for root in ROOTS {
        let folder = Path::new(root).join("instances");
        match fs::metadata(&folder) {
            Ok(_) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(failed(&folder, error));
            }
            Err(_) => {}
        }
    }
    Err(ObserveError::NoTracefs)
}

/// Removes instances of processes that were killed. Those of processes in other containers, of which the number means
/// nothing here, cannot be removed: they have an open file.
fn remove_stale(instances: &Path) {
    for entry in fs::read_dir(instances).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(number) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else {
            continue;
        };
        let is_own = number == std::process::id().to_string();
        if is_own || !Path::new("/proc").join(number).exists() {
            let _ = fs::remove_dir(entry.path());
        }
    }
}
