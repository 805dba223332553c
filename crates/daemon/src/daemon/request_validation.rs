//! Validation of requests: parameters, names and permissions.

use shiftwork_client as client;
use shiftwork_client::{Error, NAME_BYTES_MAX};
use shiftwork_model::{CpuSet, OnOverrun, Priority};

use crate::reservation::{Denial, Reservation};
use crate::socket::Peer;
use crate::threads::ThreadInfo;

/// The requested reservation. Without a list of CPUs it takes those of the thread's affinity `thread` that are `available`, or
/// all available ones if there are none.
pub(super) fn reservation(
    request: &client::Reservation,
    thread: CpuSet,
    available: CpuSet,
) -> Result<Reservation, Denial> {
    let cpus = match &request.cpus {
        Some(list) => list.parse().map_err(|error| Denial::Invalid {
            parameter: "reservation.cpus",
            reason: format!("`{list}`: {error}"),
        })?,
        None if thread.intersects(&available) => thread & available,
        None => available,
    };
    let deadline = request.deadline.unwrap_or(request.period);
    let priority = match request.priority {
        Some(number) => Priority::new(number).ok_or_else(|| Denial::Invalid {
            parameter: "reservation.priority",
            reason: format!(
                "{number} is not between {} and {}",
                Priority::MOST_URGENT.number(),
                Priority::LEAST_URGENT.number()
            ),
        })?,
        None => Priority::new(client::Reservation::default_priority(deadline))
            .unwrap_or(Priority::LEAST_URGENT),
    };
    Ok(Reservation {
        cost: request.cost,
        period: request.period,
        deadline,
        cpus,
        priority,
        on_overrun: match request.on_overrun {
            None | Some(client::OnOverrun::Throttle) => OnOverrun::Throttle,
            Some(client::OnOverrun::Signal) => OnOverrun::Signal,
            Some(client::OnOverrun::Continue) => OnOverrun::Continue,
        },
    })
}

/// Checks that the name can be shown on one line.
pub(super) fn check_name(name: &str) -> Result<(), Denial> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
        return Err(Denial::Invalid {
            parameter: "name",
            reason: format!("must be 1 to {NAME_BYTES_MAX} bytes on one line"),
        });
    }
    Ok(())
}

/// Checks that the peer may reserve for this thread or observe it.
pub(super) fn check_thread(peer: &Peer<'_>, found: &ThreadInfo) -> Result<(), Denial> {
    let number = found.thread.thread;
    if peer.user != 0 && found.credentials.user != Some(peer.user) {
        return Err(Denial::Forbidden(format!(
            "thread {number} does not belong to user {}",
            peer.user
        )));
    }
    if found.has_higher_class {
        return Err(Denial::Invalid {
            parameter: "thread",
            reason: format!(
                "thread {number} is under SCHED_FIFO, SCHED_RR or SCHED_DEADLINE, which sched_ext cannot schedule; make it \
                 SCHED_OTHER first, as by `chrt -o -p 0 {number}`"
            ),
        });
    }
    Ok(())
}

/// The error of the varlink interface.
pub(super) fn to_error(denial: Denial) -> Error {
    match denial {
        Denial::Refused(reason) => Error::Refused { reason },
        Denial::Forbidden(reason) => Error::Forbidden { reason },
        Denial::Invalid { parameter, reason } => Error::Invalid {
            parameter: parameter.to_owned(),
            reason,
        },
        Denial::Missing(what) => Error::Missing { what },
        Denial::Exhausted(limit) => Error::Exhausted { limit },
        Denial::Broken(reason) => Error::Broken { reason },
    }
}

/// The reservation as the varlink interface has it.
pub(super) fn to_client(it: &Reservation) -> client::Reservation {
    client::Reservation {
        cost: it.cost,
        period: it.period,
        deadline: Some(it.deadline),
        cpus: Some(it.cpus.to_string()),
        priority: Some(it.priority.number()),
        on_overrun: Some(match it.on_overrun {
            OnOverrun::Throttle => client::OnOverrun::Throttle,
            OnOverrun::Signal => client::OnOverrun::Signal,
            OnOverrun::Continue => client::OnOverrun::Continue,
        }),
    }
}
