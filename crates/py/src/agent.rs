//! The calling thread as a task of the agent.

use std::path::PathBuf;
use std::sync::Mutex;

use pyo3::prelude::*;
use shiftwork_client::{
    Failure, OnOverrun, OwnTask as Own, Reservation, Span, calling_thread, socket_path,
};

use crate::failure::{agent, wrong};

/// Cost, period, deadline in nanoseconds; the list of CPUs; priority; what happens on an overrun.
type ReservationFields = (u64, u64, Option<u64>, Option<String>, Option<u32>, String);

/// A thread with a reservation. Any thread may hold this object; calls from another thread than its
/// own fail, and the error names its own.
#[pyclass(frozen, module = "shiftwork._shiftwork")]
pub struct OwnTask {
    thread: u32,
    /// `None` once it is dismissed. Locked by its own thread alone, so never for long by another.
    own: Mutex<Option<Own>>,
}

/// Dropping dismisses the task: this waits for the agent's answer, without the interpreter's lock
/// like everything else.
impl Drop for OwnTask {
    fn drop(&mut self) {
        let own = self.own.get_mut().ok().and_then(Option::take);
        // Where there is no interpreter any more no other thread waits for it.
        Python::try_attach(|py| py.detach(|| drop(own)));
    }
}

#[pymethods]
impl OwnTask {
    /// The calling thread has the reservation from now on.
    #[staticmethod]
    fn admit(
        py: Python<'_>,
        name: &str,
        reservation: ReservationFields,
        socket: Option<PathBuf>,
    ) -> PyResult<Self> {
        let reservation = read(reservation)?;
        let socket = socket.unwrap_or_else(socket_path);
        let own = py
            .detach(|| Own::admit_at(socket, name, &reservation))
            .map_err(|failure| agent(&failure))?;
        Ok(Self {
            thread: calling_thread(),
            own: Mutex::new(Some(own)),
        })
    }

    /// It has another reservation from its next job on.
    fn change(&self, py: Python<'_>, reservation: ReservationFields) -> PyResult<()> {
        let reservation = read(reservation)?;
        self.with(py, |own| own.change(&reservation))
    }

    /// Sleeps until the next release that is still ahead; how many are past. Handlers of signals run meanwhile,
    /// and what they raise ends the sleep.
    fn wait_next(&self, py: Python<'_>) -> PyResult<u64> {
        let mut raised = None;
        let waited = self.with(py, |own| {
            own.wait_next_while(|| {
                raised = Python::attach(|py| py.check_signals().err());
                raised.is_none()
            })
        });
        match raised {
            Some(error) => Err(error),
            None => Ok(waited?.unwrap_or(0)),
        }
    }

    /// Ends the reservation; `False` if it was ended before.
    fn dismiss(&self, py: Python<'_>) -> PyResult<bool> {
        self.check_thread()?;
        let taken = self.own.try_lock().ok().and_then(|mut own| own.take());
        let Some(own) = taken else {
            return Ok(false);
        };
        py.detach(|| own.dismiss())
            .map_err(|failure| agent(&failure))?;
        Ok(true)
    }

    /// The number of the task.
    fn number(&self, py: Python<'_>) -> PyResult<u32> {
        self.with(py, |own| Ok(own.number()))
    }

    /// What is guaranteed.
    fn guarantee(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |own| Ok(own.guarantee().to_owned()))
    }

    /// When the present job was released, on the monotonic clock.
    fn release_ns(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |own| Ok(own.release().as_ns()))
    }
}

impl OwnTask {
    fn check_thread(&self) -> PyResult<()> {
        let thread = self.thread;
        match calling_thread() == thread {
            true => Ok(()),
            false => Err(agent(&Failure::OtherThread { thread })),
        }
    }

    /// Does this with the task, without the interpreter's lock.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Own) -> Result<T, Failure> + Send,
    ) -> PyResult<T> {
        self.check_thread()?;
        let answer = py.detach(|| match self.own.try_lock().as_deref_mut() {
            Ok(Some(own)) => Ok(work(own)),
            Ok(None) => Err("the task is dismissed; admit it again"),
            // No other thread ever locks it.
            Err(_) => Err("the task is in use by what this handler of signals has interrupted"),
        });
        answer
            .map_err(|why| wrong(why.to_owned()))?
            .map_err(|failure| agent(&failure))
    }
}

fn read(fields: ReservationFields) -> PyResult<Reservation> {
    let (cost_ns, period_ns, deadline_ns, cpus, priority, on_overrun) = fields;
    let on_overrun = match on_overrun.as_str() {
        "throttle" => OnOverrun::Throttle,
        "signal" => OnOverrun::Signal,
        "continue" => OnOverrun::Continue,
        other => {
            return Err(wrong(format!(
                "`on_overrun` is {other:?}; \"throttle\", \"signal\" or \"continue\" would be accepted"
            )));
        }
    };
    Ok(Reservation {
        deadline: deadline_ns.map(Span::from_ns),
        cpus,
        priority,
        on_overrun: Some(on_overrun),
        ..Reservation::new(Span::from_ns(cost_ns), Span::from_ns(period_ns))
    })
}
