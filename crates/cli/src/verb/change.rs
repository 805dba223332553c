//! `shiftwork change`: changes one reservation.

use schemars::JsonSchema;
use serde::Serialize;
use shiftwork_client::{Cause, Reservation, Step, Task};
use shiftwork_trace::SCHEMA_VERSION;

use super::apply::{Request, request};
use super::{daemon_client, exec, reservations};
use crate::args::ChangeArgs;
use crate::failure::{Answer, Failure};
use crate::output::{Console, tell};

/// What `change --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ChangeOutput {
    schema_version: u64,
    task: u32,
    name: String,
    process: u32,
    thread: u32,
    /// Whether the reservation is as follows, or with `--dry-run`, would be. If not, it is as before.
    applied: bool,
    /// Whether nothing was to be changed.
    dry_run: bool,
    /// Whether it was another one before.
    changed: bool,
    cost_ns: u64,
    period_ns: u64,
    deadline_ns: u64,
    /// A list.
    cpus: Option<String>,
    /// The guarantee; null if there is none.
    guarantee: Option<String>,
    /// Why it is refused; null if it is not.
    refused: Option<String>,
}

/// Finds the reservation, and requests the new one.
pub fn run(args: &ChangeArgs, console: &mut Console) -> Result<Answer, Failure> {
    let mut client = daemon_client::connect()?;
    let status = client.status();
    let status = status.map_err(|failure| daemon_client::of(&failure))?;
    let task = match reservations::find(&args.which, &status.tasks)?.as_slice() {
        [task] => *task,
        several => {
            return Err(Failure::input(format_args!(
                "several threads of process {} have reservations: {}; give the number of one of them",
                args.which,
                reservations::list(several.iter().copied())
            )));
        }
    };
    let to = changed(&task.reservation, args);
    let step = Step::change(task.task, to.clone());
    let answer = request(
        &mut client,
        Request {
            step,
            dry_run: args.dry_run,
        },
    )?;
    let reason = answer.reason.clone().unwrap_or_default();
    match answer.cause {
        Some(Cause::Invalid | Cause::Forbidden | Cause::Missing) => {
            return Err(Failure::input(format_args!("`{}`: {reason}", task.name)));
        }
        Some(Cause::Broken) => {
            return Err(Failure::Machine(format!("the daemon failed: {reason}")));
        }
        Some(Cause::Refused | Cause::Exhausted) | None => {}
    }
    if console.json {
        console.json_line(&ChangeOutput {
            schema_version: SCHEMA_VERSION,
            task: task.task,
            name: task.name.clone(),
            process: task.process,
            thread: task.thread,
            applied: answer.cause.is_none(),
            dry_run: args.dry_run,
            changed: answer.changed,
            cost_ns: to.cost.as_ns(),
            period_ns: to.period.as_ns(),
            deadline_ns: to.deadline.unwrap_or(to.period).as_ns(),
            cpus: to.cpus.clone(),
            guarantee: answer.guarantee.clone(),
            refused: answer.reason.clone(),
        })?;
    }
    if answer.cause.is_some() {
        tell(&format!("{} is refused, and as before: {reason}", of(task)));
        return Ok(Answer::No);
    }
    if !console.json {
        let promise = answer
            .guarantee
            .as_deref()
            .map_or_else(|| "in the background".to_owned(), exec::promise);
        let unchanged = if answer.changed { "" } else { ", unchanged" };
        console.line(format!(
            "{}: {} in {} on CPUs {}{unchanged}: {promise}",
            of(task),
            to.cost,
            to.period,
            to.cpus.as_deref().unwrap_or("-")
        ))?;
        if args.dry_run {
            console.note("dry run: nothing is changed");
        }
    }
    Ok(Answer::Yes)
}

fn of(task: &Task) -> String {
    format!("`{}` (thread {})", task.name, task.thread)
}

/// The reservation with what the arguments change. A deadline at the end of the period stays there, and a priority that follows
/// from the deadline follows the new one.
fn changed(from: &Reservation, args: &ChangeArgs) -> Reservation {
    let period = args.period.unwrap_or(from.period);
    let is_implicit = from.deadline.is_none_or(|it| it == from.period);
    let deadline = match (args.deadline, is_implicit) {
        (Some(deadline), _) => deadline,
        (None, true) => period,
        (None, false) => from.deadline.unwrap_or(period),
    };
    let before = from.deadline.unwrap_or(from.period);
    let by_deadline = Some(Reservation::default_priority(before));
    let cpus = args.cpus.map(|cpus| cpus.to_string());
    Reservation {
        cost: args.cost.unwrap_or(from.cost),
        period,
        deadline: Some(deadline),
        cpus: cpus.or_else(|| from.cpus.clone()),
        priority: args
            .priority
            .or_else(|| from.priority.filter(|_| from.priority != by_deadline)),
        on_overrun: args.on_overrun.map(exec::on_overrun).or(from.on_overrun),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use shiftwork_client::OnOverrun;
    use shiftwork_model::Span;

    use super::*;
    use crate::args::{Cli, Verb};

    fn from() -> Reservation {
        Reservation {
            deadline: Some(Span::from_ms(10)),
            cpus: Some("0-1".to_owned()),
            priority: Some(10_000),
            on_overrun: Some(OnOverrun::Throttle),
            ..Reservation::new(Span::from_ms(2), Span::from_ms(10))
        }
    }

    fn with(options: &[&str], from: &Reservation) -> Reservation {
        let line = [&["shiftwork", "change", "7"], options].concat();
        match Cli::try_parse_from(line).unwrap().verb {
            Verb::Change(args) => changed(from, &args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_not_given_stays() {
        let ms = Span::from_ms;
        // Without a priority the daemon takes that of the deadline.
        let same = Reservation {
            priority: None,
            ..from()
        };
        assert_eq!(
            with(&["--cost", "3ms"], &from()),
            Reservation {
                cost: ms(3),
                ..same.clone()
            }
        );
        let longer = Reservation {
            period: ms(20),
            deadline: Some(ms(20)),
            ..same.clone()
        };
        assert_eq!(with(&["--period", "20ms"], &from()), longer);
        let early = Reservation {
            deadline: Some(ms(5)),
            ..same.clone()
        };
        assert_eq!(with(&["--deadline", "5ms"], &from()), early);
        let given = Reservation {
            priority: Some(7),
            ..early
        };
        let kept = Reservation {
            period: ms(20),
            ..given.clone()
        };
        assert_eq!(with(&["-T", "20ms"], &given), kept);
        let all = with(
            &["-c", "3", "--priority", "1", "--on-overrun", "continue"],
            &from(),
        );
        let expected = Reservation {
            cpus: Some("3".to_owned()),
            priority: Some(1),
            on_overrun: Some(OnOverrun::Continue),
            ..from()
        };
        assert_eq!(all, expected);
        assert!(
            Cli::try_parse_from(["shiftwork", "change", "7"]).is_err(),
            "nothing is given"
        );
    }
}
