//! A service that answers all calls.

use shiftwork_client::{
    Admitted, Answer, Applied, Call, Changed, Dismissed, Error, Explained, GotRecord, Observing,
};
use shiftwork_daemon::socket::{Peer, Service};

/// Answers all calls; a recording has as many bytes as seconds are requested.
#[derive(Default)]
pub struct EchoService {
    /// Dismissed tasks, in order.
    pub dismissed: Vec<u32>,
}

impl Service for EchoService {
    fn call(&mut self, peer: &Peer<'_>, call: Call) -> Result<Answer, Error> {
        let missing = |what: &str| Err(Error::Missing { what: what.into() });
        match call {
            Call::Admit(admit) => Ok(Answer::Admit(Admitted {
                task: admit.thread.unwrap_or(0),
                guarantee: admit.name,
            })),
            Call::Change(_) => Ok(Answer::Change(Changed {
                guarantee: "hard".into(),
            })),
            Call::Dismiss(dismiss) => {
                self.dismissed.push(dismiss.task);
                Ok(Answer::Dismiss(Dismissed {}))
            }
            Call::Apply(apply) => Ok(Answer::Apply(Applied {
                applied: true,
                outcomes: Vec::new(),
                later: apply.steps.len() > 1,
            })),
            Call::Observe(_) => Ok(Answer::Observe(Observing {
                task: peer.process.unwrap_or(0),
            })),
            Call::GetRecord(get) => Ok(Answer::GetRecord(GotRecord {
                record: vec![b'x'; get.seconds.unwrap_or(0.0) as usize],
                folder: None,
            })),
            Call::Explain(_) => Ok(Answer::Explain(Explained {
                explanations: vec![peer.user.to_string()],
            })),
            Call::GetMisses(_) => missing("task"),
            Call::GetStatus(_) => missing("status"),
            Call::EndObservation(_) => missing("observation"),
        }
    }
}
