//! How much of all CPUs is reserved, used, and left.

use shiftwork_client::Status;
use shiftwork_model::{CPUS_MAX, CpuId, CpuSet};

/// Capacity of all CPUs of the daemon, in CPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    /// Available to reservations, of the CPUs that are online.
    pub available: f64,
    /// Reserved, by the tasks of all users.
    pub reserved: f64,
    /// Used by reserved tasks in the last second.
    pub used: f64,
    /// Largest utilization of a further task that would be admitted; `None`: not known.
    pub free: Option<f64>,
}

impl Capacity {
    /// As the status says.
    pub fn of(status: &Status) -> Self {
        let all = all_cpus(status).to_string();
        let room = status.rooms.iter().find(|room| room.cpus == all);
        let online = status.cpus.iter().filter(|cpu| cpu.online);
        Self {
            available: online.clone().map(|cpu| cpu.share).sum(),
            reserved: room.map_or(0.0, |room| room.reserved),
            used: online.map(|cpu| cpu.load).sum(),
            free: room.map(|room| room.free),
        }
    }
}

/// All CPUs of the daemon.
pub fn all_cpus(status: &Status) -> CpuSet {
    let mut all = CpuSet::EMPTY;
    for cpu in status.cpus.iter().map(|cpu| cpu.cpu as usize) {
        if cpu < CPUS_MAX {
            all.insert(CpuId::from_index(cpu));
        }
    }
    all
}
