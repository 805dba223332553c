//! Asks the daemon for several reservations, all or none, and waits for what counts no more in a moment.
//!
//! What a reservation had still counts until the end of its period, so that it cannot be given to another one at once. Where
//! only this is in the way, what gives something back is carried out first, and the rest as soon as it fits. If it does not fit
//! after all, since another user was faster, what was given back is requested again.

use std::time::Duration;

use shiftwork_client::{Applied, Outcome, Step, Task as Reserved};

use super::plan::{Action, Plan, Requests};
use crate::failure::Failure;

/// How long is waited for what still counts: more than two of the longest periods that users may have by default.
const PATIENCE: Duration = Duration::from_secs(2);

/// Between two attempts, for each step: within the rate limit of calls, of which each step is one.
const PAUSE: Duration = Duration::from_millis(5);

/// The shortest time between two attempts.
const PAUSE_MIN: Duration = Duration::from_millis(20);

/// What the daemon has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Whether everything is carried out, or would be.
    pub applied: bool,
    /// One for each step, up to the first that is not carried out.
    pub outcomes: Vec<Outcome>,
    /// It was not carried out only for what still counts.
    pub later: bool,
    /// Why something that was given back could not be restored, by name.
    pub not_restored: Vec<(String, String)>,
}

/// Calls the daemon.
pub type Call<'a> = &'a mut dyn FnMut(&[Step], bool) -> Result<Applied, Failure>;

/// Says what would become of the requests.
///
/// # Errors
/// If the daemon does not answer.
pub fn attempt(requests: &Requests, call: Call<'_>) -> Result<Answered, Failure> {
    call(&requests.steps, true).map(Answered::from)
}

/// Carries out all requests of the plan, or none.
///
/// # Errors
/// If the daemon does not answer.
pub fn carry_out(plan: &Plan, requests: &Requests, call: Call<'_>) -> Result<Answered, Failure> {
    let at_once = call(&requests.steps, false)?;
    if at_once.applied || !at_once.later {
        return Ok(at_once.into());
    }
    let (giving, taking) = requests.steps.split_at(requests.giving);
    let given = match giving {
        [] => Vec::new(),
        _ => {
            let given = call(giving, false)?;
            if !given.applied {
                return Ok(given.into());
            }
            given.outcomes
        }
    };
    let taken = patiently(taking, call)?;
    let not_restored = match taken.applied {
        true => Vec::new(),
        false => restore(plan, requests, call)?,
    };
    Ok(Answered {
        applied: taken.applied,
        later: taken.later,
        outcomes: [given, taken.outcomes].concat(),
        not_restored,
    })
}

/// Repeats the call while it fails only for what still counts.
///
/// # Errors
/// If the daemon does not answer.
pub fn patiently(steps: &[Step], call: Call<'_>) -> Result<Applied, Failure> {
    let mut waited = Duration::ZERO;
    let pause = PAUSE_MIN.max(PAUSE * u32::try_from(steps.len()).unwrap_or(u32::MAX));
    loop {
        let answer = call(steps, false)?;
        if answer.applied || !answer.later || waited > PATIENCE {
            return Ok(answer);
        }
        std::thread::sleep(pause);
        waited += pause;
    }
}

/// Requests again what was given back; returns what could not be restored, and why.
fn restore(
    plan: &Plan,
    requests: &Requests,
    call: Call<'_>,
) -> Result<Vec<(String, String)>, Failure> {
    let mut failed = Vec::new();
    for &entry in requests.entries.iter().take(requests.giving) {
        let (step, name) = match &plan.entries[entry].action {
            Action::Admit => continue,
            Action::Change(from) => (change_back(from), &from.name),
            Action::Release(from) => {
                let back = from.reservation.clone();
                (Step::admit(&from.name, from.thread, back), &from.name)
            }
        };
        let answer = patiently(&[step], call)?;
        if !answer.applied {
            let reason = answer.outcomes.into_iter().find_map(|it| it.reason);
            failed.push((name.clone(), reason.unwrap_or_default()));
        }
    }
    Ok(failed)
}

fn change_back(from: &Reserved) -> Step {
    Step::change(from.task, from.reservation.clone())
}

impl From<Applied> for Answered {
    fn from(it: Applied) -> Self {
        Self {
            applied: it.applied,
            outcomes: it.outcomes,
            later: it.later,
            not_restored: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use shiftwork_client::{Cause, Reservation, State};
    use shiftwork_model::Span;

    use super::super::plan::{Entry, Target};
    use super::*;

    fn reservation(cost_ms: u64) -> Reservation {
        Reservation::new(Span::from_ms(cost_ms), Span::from_ms(10))
    }

    fn reserved(task: u32, name: &str, cost_ms: u64) -> Reserved {
        Reserved {
            task,
            name: name.to_owned(),
            process: task,
            thread: task,
            user: 0,
            cgroup: String::new(),
            reservation: reservation(cost_ms),
            state: State::Admitted,
            guarantee: "hard".to_owned(),
            cpu: None,
            jobs: 0,
            misses: 0,
            overruns: 0,
            tardiness_max: Span::ZERO,
            response_max: Span::ZERO,
            ran: Span::ZERO,
            load: 0.0,
        }
    }

    fn entry(name: &str, cost_ms: u64, action: Action) -> Entry {
        Entry {
            task: name.to_owned(),
            name: name.to_owned(),
            of: String::new(),
            target: Target::Thread {
                process: 9,
                thread: 9,
            },
            reservation: reservation(cost_ms),
            action,
        }
    }

    fn outcome(cause: Option<Cause>) -> Outcome {
        Outcome {
            task: None,
            guarantee: None,
            changed: true,
            cause,
            reason: cause.map(|_| "no room".to_owned()),
        }
    }

    /// A daemon on which the new task fits at the third attempt at it alone, or never, and the released one is not admitted again.
    fn negotiate(fits_at: Option<usize>) -> (Answered, Vec<Vec<Step>>) {
        let plan = Plan {
            entries: vec![
                entry("new", 5, Action::Admit),
                entry(
                    "shrinks",
                    1,
                    Action::Change(Box::new(reserved(3, "shrinks", 4))),
                ),
                entry("gone", 2, Action::Release(Box::new(reserved(4, "gone", 2)))),
            ],
            ..Plan::default()
        };
        let requests = plan.requests(&[]);
        let mut calls: Vec<Vec<Step>> = Vec::new();
        let mut alone = 0;
        let answered = carry_out(&plan, &requests, &mut |steps, is_dry| {
            assert!(!is_dry);
            calls.push(steps.to_vec());
            let name = |it: &Step| it.name.clone();
            let names: Vec<String> = steps.iter().filter_map(name).collect();
            let refused = |later| Applied {
                applied: false,
                outcomes: vec![outcome(Some(Cause::Refused))],
                later,
            };
            Ok(match names.first().map(String::as_str) {
                Some("new") => {
                    alone += usize::from(steps.len() == 1);
                    match fits_at {
                        Some(at) if alone == at => Applied {
                            applied: true,
                            outcomes: vec![outcome(None)],
                            later: false,
                        },
                        None if alone == 2 => refused(false),
                        _ => refused(true),
                    }
                }
                Some(_) => refused(false),
                None => Applied {
                    applied: true,
                    outcomes: vec![outcome(None); steps.len()],
                    later: false,
                },
            })
        });
        (answered.unwrap(), calls)
    }

    #[test]
    fn what_gives_back_is_carried_out_first_where_that_helps() {
        let (answered, calls) = negotiate(Some(3));
        assert!(answered.applied && answered.not_restored.is_empty());
        assert_eq!(answered.outcomes.len(), 3);
        let lengths: Vec<usize> = calls.iter().map(Vec::len).collect();
        assert_eq!(lengths, [3, 2, 1, 1, 1]);
        let giving = [Step::change(3, reservation(1)), Step::dismiss(4)];
        assert_eq!(calls[1], giving);
    }

    #[test]
    fn what_was_given_back_is_requested_again_if_the_rest_is_refused() {
        let (answered, calls) = negotiate(None);
        assert!(!answered.applied && !answered.later);
        assert_eq!(answered.outcomes.len(), 3);
        let expected = [("gone".to_owned(), "no room".to_owned())];
        assert_eq!(answered.not_restored, expected);
        let back = [
            vec![Step::change(3, reservation(4))],
            vec![Step::admit("gone", 4, reservation(2))],
        ];
        assert_eq!(calls[calls.len() - 2..], back);
    }

    #[test]
    fn what_does_not_fit_at_all_changes_nothing() {
        let plan = Plan {
            entries: vec![entry("new", 5, Action::Admit)],
            ..Plan::default()
        };
        let mut calls = 0;
        let answered = carry_out(&plan, &plan.requests(&[]), &mut |_, _| {
            calls += 1;
            Ok(Applied {
                applied: false,
                outcomes: vec![outcome(Some(Cause::Refused))],
                later: false,
            })
        });
        assert!(!answered.unwrap().applied);
        assert_eq!(calls, 1);
    }
}
