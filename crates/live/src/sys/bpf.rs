//! The BPF programs: loading them, calling them, and reading the memory that is shared with them. `kernel/`
//! knows the meaning of the words. `commands.rs` calls their commands, `ring.rs` reads their events in other threads,
//! `holders.rs` reads who holds each mutex, `log.rs` captures messages of the loading.

mod commands;
#[cfg(bpf_coverage)]
mod coverage;
mod holders;
mod log;
mod ring;

pub(crate) use commands::{Command, Commands};
pub(crate) use holders::MutexHolders;
pub(crate) use ring::{EventReader, EventRing, TickNotifier};

use std::cell::RefCell;
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{AsRawLibbpf, Link, MapCore, MapHandle, RingBuffer, libbpf_sys};
use rustix::event::{EventfdFlags, eventfd};
use shiftwork_kernel_core::Core;

use crate::event;
use crate::preflight::THROTTLED_MAX;
use log::{LOG_VARIABLE, capture_log, reason_line};
use ring::{open_ring, poll_fd, wait_for};

#[allow(
    unsafe_code,
    missing_docs,
    dead_code,
    unused_imports,
    non_camel_case_types,
    non_snake_case,
    clippy::all,
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "made by libbpf-cargo"
)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/bpf_skel.rs"));
}

use skeleton::{BpfSkel, BpfSkelBuilder, types};

/// Parameters of the loading.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Number of CPUs of the machine.
    pub(crate) cpu_count: u32,
    /// Whether the kernel lets BPF have timers.
    pub(crate) has_timers: bool,
    /// Timeout of the sched_ext watchdog.
    pub(crate) timeout: Duration,
    /// Size of the trace's ring.
    pub(crate) trace_bytes: u32,
    /// Where decisions are made.
    pub(crate) decision_site: DecisionSite,
}

/// Where decisions are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecisionSite {
    /// In the kernel, by the core.
    Core,
    /// In an agent, on this CPU.
    Agent(u32),
}

/// What the kernel's ring takes for an event besides.
const HEADER_BYTES: usize = 8;

/// The programs, loaded and attached as the machine's scheduler. Dropping this unloads them.
pub(crate) struct Loaded {
    skel: BpfSkel<'static>,
    scheduler: Option<Link>,
    /// By the names of their programs.
    tracepoints: Vec<(String, Link)>,
    ring: RingBuffer<'static>,
    /// How many events the ring holds.
    ring_capacity: usize,
    events: Rc<RefCell<Vec<u8>>>,
    /// The pinned files, and their folder.
    pins: Vec<PathBuf>,
}

/// Why the scheduler is not loaded any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unloaded {
    /// The kernel's `enum scx_exit_kind`.
    pub(crate) kind: u64,
    /// Message of the kernel.
    pub(crate) reason: String,
}

impl Loaded {
    /// Loads the programs and attaches them as the machine's scheduler, without managed tasks.
    ///
    /// # Errors
    /// The error of libbpf, with the line of the verifier's log that gives the reason if there is one, and on request
    /// the end of the log.
    pub(crate) fn load(settings: Settings) -> Result<Self, String> {
        let log = capture_log();
        let explain = |what: &str, error: libbpf_rs::Error| {
            let log = log.take();
            match reason_line(&log) {
                None => format!("{what}: {error:#}"),
                Some(_) if std::env::var_os(LOG_VARIABLE).is_some() => {
                    format!("{what}: {error:#}\n{log}")
                }
                Some(line) => {
                    format!("{what}: {error:#} ({line}; with {LOG_VARIABLE}=1 the whole log)")
                }
            }
        };
        // The skeleton borrows this for its whole life; there is one per process.
        let object = Box::leak(Box::new(MaybeUninit::uninit()));
        let builder = BpfSkelBuilder::default();
        let mut open = builder
            .open(object)
            .map_err(|error| explain("could not read the programs", error))?;
        let constants = open
            .maps
            .rodata_data
            .as_deref_mut()
            .ok_or("the programs have no constants")?;
        constants.cpu_count = settings.cpu_count;
        constants.has_timers = settings.has_timers;
        constants.throttled_max = THROTTLED_MAX.as_ns();
        if let DecisionSite::Agent(cpu) = settings.decision_site {
            constants.agent_decides = true;
            constants.agent_cpu = cpu + 1;
        }
        open.struct_ops.shiftwork_mut().timeout_ms =
            u32::try_from(settings.timeout.as_millis()).unwrap_or(u32::MAX);
        open.progs.tick_command.set_autoload(!settings.has_timers);
        let room = settings
            .trace_bytes
            .clamp(rustix::param::page_size() as u32, 1 << 30)
            .next_power_of_two();
        open.maps
            .events
            .set_max_entries(room)
            .map_err(|error| explain("could not size the trace", error))?;
        #[cfg(bpf_coverage)]
        coverage::continue_counting(open.open_object_mut());
        let mut skel = open
            .load()
            .map_err(|error| explain("the kernel refuses the programs", error))?;
        #[cfg(bpf_coverage)]
        coverage::keep_counters(&skel);
        associate(&skel);
        let events = Rc::new(RefCell::new(Vec::new()));
        let ring = open_ring(&skel.maps.events, Rc::clone(&events))
            .map_err(|error| explain("could not map the trace", error))?;
        let probe = skel
            .progs
            .scx_lib_init_probe
            .attach()
            .map_err(|error| explain("could not attach the probe", error))?;
        let attach = |what: &'static str, program: &libbpf_rs::ProgramMut<'_>| {
            let link = program.attach().map_err(|error| explain(what, error))?;
            Ok::<_, String>((program.name().to_string_lossy().into_owned(), link))
        };
        // Before the scheduler: the kernel attaches that between two CPU hotplug operations, and all later ones
        // are seen.
        let mut tracepoints = Vec::new();
        for program in [
            &skel.progs.shiftwork_cpuhp_enter,
            &skel.progs.shiftwork_cpuhp_exit,
        ] {
            tracepoints.push(attach("could not watch CPUs come and go", program)?);
        }
        let scheduler = skel
            .maps
            .shiftwork
            .attach_struct_ops()
            .map_err(|error| explain("the kernel does not take the scheduler", error))?;
        drop(probe);
        let switches = &skel.progs.shiftwork_sched_switch;
        tracepoints.push(attach("could not watch the switches", switches)?);
        Ok(Self {
            skel,
            scheduler: Some(scheduler),
            tracepoints,
            ring,
            ring_capacity: room as usize / (HEADER_BYTES + event::BYTES),
            events,
            pins: Vec::new(),
        })
    }

    /// The commands.
    ///
    /// # Errors
    /// If there are no file descriptors left.
    pub(crate) fn commands(&self) -> io::Result<Commands> {
        Commands::new(self.skel.progs.command.as_fd())
    }

    /// The command [`Command::Tick`], which the kernel has only if it was loaded for one without timers.
    ///
    /// # Errors
    /// If there are no file descriptors left, or the kernel has timers.
    pub(crate) fn tick_command(&self) -> io::Result<Commands> {
        Commands::new(self.skel.progs.tick_command.as_fd())
    }

    /// Who holds each mutex.
    ///
    /// # Errors
    /// The error of the kernel.
    pub(crate) fn mutex_holders(&self) -> io::Result<MutexHolders> {
        let map = MapHandle::try_from(&self.skel.maps.bss).map_err(io::Error::other)?;
        MutexHolders::new(map.as_fd())
    }

    /// The next of the events since the last call, at most so many, one after the other, as bytes. Never more than the ring holds: all
    /// that were written before the call, and not for ever those that are written meanwhile.
    ///
    /// # Errors
    /// The error of libbpf.
    pub(crate) fn take_events(&mut self, count: usize) -> io::Result<Vec<u8>> {
        match self.ring.consume_raw_n(count.min(self.ring_capacity)) {
            failed @ ..0 => Err(io::Error::from_raw_os_error(failed.saturating_neg())),
            _ => Ok(self.events.take()),
        }
    }

    /// Notifies a thread when `tick` is due earlier than it answered.
    ///
    /// # Errors
    /// If there are no file descriptors left.
    pub(crate) fn tick_notifier(&self) -> io::Result<TickNotifier> {
        let map = MapHandle::try_from(&self.skel.maps.alarms).map_err(io::Error::other)?;
        Ok(TickNotifier {
            map: Arc::new(map),
            wakeup: Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?),
        })
    }

    /// The ring, for another thread than the one that loaded the programs. It has one reader: after this,
    /// [`take_events`](Self::take_events) must not be called.
    ///
    /// # Errors
    /// If there are no file descriptors left.
    pub(crate) fn event_ring(&self) -> io::Result<EventRing> {
        let map = MapHandle::try_from(&self.skel.maps.events).map_err(io::Error::other)?;
        Ok(EventRing {
            map: Arc::new(map),
            wakeup: Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?),
        })
    }

    /// Returns at this instant of the monotonic clock, or when a program waits for an answer. Events before the call
    /// that need no answer do not end it, or only once.
    pub(crate) fn wait_until(&self, at_ns: u64) {
        wait_for(&[&self.ring], &[], at_ns);
    }

    /// Readable when [`wait_until`](Self::wait_until) would return early.
    pub(crate) fn poll_fd(&self) -> BorrowedFd<'_> {
        poll_fd(&self.ring)
    }

    /// Number of events that found no room in the ring.
    pub(crate) fn events_lost(&self) -> u64 {
        read(&raw const self.shared().events_lost)
    }

    /// How often a thread that waited for a lock lent its reservation.
    pub(crate) fn loans_made(&self) -> u64 {
        read(&raw const self.shared().loans_made)
    }

    /// How often a check found a CPU that had not run its assignment for 100 ms although the assigned task waited in
    /// its queue.
    pub(crate) fn assignments_neglected(&self) -> u64 {
        read(&raw const self.shared().assignments_neglected)
    }

    /// Sets the time of each second that waiting background work gets, in ns.
    pub(crate) fn set_reserve(&mut self, reserve_ns: u64) {
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            let place = &raw mut bss.reserve_ns;
            #[expect(unsafe_code, reason = "writes to shared memory")]
            // SAFETY: `place` is a word of the mapped memory, which the kernel only reads.
            unsafe {
                ptr::write_volatile(place, reserve_ns);
            }
        }
    }

    /// Why the scheduler was unloaded; `None` as long as it is not.
    pub(crate) fn unloaded(&self) -> Option<Unloaded> {
        let shared = self.shared();
        let kind = read(&raw const shared.exit_kind);
        if kind == 0 {
            return None;
        }
        // The kind is written last, so the kernel does not write these any more.
        let reason = read(&raw const shared.exit_reason);
        let message = read(&raw const shared.exit_message);
        let (reason, message) = (text(&reason), text(&message));
        Some(Unloaded {
            kind,
            reason: match message.is_empty() {
                true => reason,
                false => format!("{reason}: {message}"),
            },
        })
    }

    /// How many running jobs were moved to make room so far.
    pub(crate) fn shifts(&self) -> u64 {
        read(&raw const self.shared().core.shifts)
    }

    /// A copy of the core between two decisions; `None` if every attempt was interrupted by a decision. What decides holds
    /// the lock with interrupts off, so there is nothing to yield to.
    pub(crate) fn snapshot(&self) -> Option<Core> {
        const TRIES: usize = 100;
        let shared = self.shared();
        let ticket = || {
            let ticket = &shared.ticket;
            (read(&raw const ticket.next), read(&raw const ticket.owner))
        };
        let mut bytes = vec![0_u8; Core::STATE_BYTES];
        for _ in 0..TRIES {
            let before = ticket();
            std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
            let core = (&raw const shared.core).cast::<u8>();
            #[expect(unsafe_code, reason = "reads shared memory")]
            // SAFETY: the core is as long as a snapshot (an assertion below); a copy that the kernel
            // changed meanwhile is dropped.
            unsafe {
                ptr::copy_nonoverlapping(core, bytes.as_mut_ptr(), bytes.len());
            }
            std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
            let after = ticket();
            if before == after && before.0 == before.1 {
                return Core::from_snapshot(&bytes);
            }
            std::hint::spin_loop();
        }
        None
    }

    /// Pins the scheduler and all that it needs in a new folder: if this program ends unexpectedly, the scheduler
    /// stays loaded until the folder is removed.
    ///
    /// # Errors
    /// If the folder exists already, or the error of libbpf.
    pub(crate) fn pin(&mut self, folder: &Path) -> Result<(), String> {
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            format!("could not pin {what} in {}: {error}", folder.display())
        };
        fs::create_dir(folder)
            .map_err(|error| format!("could not make {}: {error}", folder.display()))?;
        self.pins.push(folder.to_owned());
        // Timers end with the last user of their map, so maps are pinned too. Names of pins contain no dots.
        for mut map in self.skel.object_mut().maps_mut() {
            let name = map.name().to_string_lossy().replace('.', "_");
            if map.map_type() == libbpf_rs::MapType::StructOps {
                continue;
            }
            let file = folder.join(&name);
            map.pin(&file).map_err(|error| failed(&name, &error))?;
            self.pins.push(file);
        }
        let scheduler = self.scheduler.iter_mut();
        let links = scheduler.map(|link| ("scheduler", link)).chain(
            self.tracepoints
                .iter_mut()
                .map(|(name, link)| (name.as_str(), link)),
        );
        for (name, link) in links {
            let file = folder.join(name);
            link.pin(&file).map_err(|error| failed(name, &error))?;
            self.pins.push(file);
        }
        Ok(())
    }

    /// Unloads the scheduler: all threads are scheduled by the kernel's own again.
    pub(crate) fn unload(&mut self) {
        for pin in self.pins.drain(..).rev() {
            // A pin that has been removed already is no error.
            let _ = fs::remove_file(&pin).or_else(|_| fs::remove_dir(&pin));
        }
        self.scheduler = None;
        self.tracepoints.clear();
    }

    fn shared(&self) -> &types::bss {
        match &self.skel.maps.bss_data {
            Some(bss) => bss,
            None => unreachable!("the programs share memory"),
        }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.unload();
    }
}

/// Reads a value from the memory that is shared with the kernel, which may change it at any time.
fn read<T: Copy>(place: *const T) -> T {
    #[expect(unsafe_code, reason = "reads shared memory")]
    // SAFETY: callers name a place of the mapped memory. Its types are numbers and arrays of them,
    // so every bit pattern is a value.
    unsafe {
        place.read_volatile()
    }
}

const _: () = assert!(size_of::<types::sw_core>() == Core::STATE_BYTES);

/// Associates the other programs with the scheduler, for kernels that know such an association.
fn associate(skel: &BpfSkel<'_>) {
    let scheduler = skel.maps.shiftwork.as_libbpf_object().as_ptr();
    for program in skel.object().progs() {
        let kind = program.prog_type();
        if kind != libbpf_rs::ProgramType::Syscall && kind != libbpf_rs::ProgramType::Tracing {
            continue;
        }
        let program = program.as_libbpf_object().as_ptr();
        #[expect(unsafe_code, reason = "calls libbpf")]
        // SAFETY: both belong to the loaded object, which outlives the call.
        unsafe {
            libbpf_sys::bpf_program__assoc_struct_ops(program, scheduler, ptr::null_mut());
        }
    }
}

/// The text up to the first zero byte.
fn text(bytes: &[i8]) -> String {
    let bytes: Vec<u8> = bytes
        .iter()
        .map(|&byte| byte as u8)
        .take_while(|&byte| byte != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
