//! What users other than root may request. The parameters of a reservation cost others time beyond its share: a long period
//! blocks what it leaves for long, and a small budget is mostly the cost of switching to it.

use std::collections::BTreeMap;

use shiftwork_model::{CpuSet, OnOverrun, Span};
use shiftwork_taskset::daemon::{DaemonFile, Requests};

use crate::accounts::user_number;
use crate::reservation::{Denial, Reservation};

/// Default maximum of periods.
const PERIOD_MAX: Span = Span::from_ms(100);
/// Default minimum of costs: some context switches.
const COST_MIN: Span = Span::from_us(50);

/// What a user may request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRules {
    /// The longest period.
    pub period_max: Span,
    /// The smallest cost.
    pub cost_min: Span,
    /// The CPUs; `None`: all that can be reserved.
    pub cpus: Option<CpuSet>,
    /// The reactions to an exhausted budget.
    pub on_overrun: Vec<OnOverrun>,
}

/// What all users may request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllRequestRules {
    general: RequestRules,
    users: BTreeMap<u32, RequestRules>,
}

impl AllRequestRules {
    /// The rules in this file. Users that this machine does not have are left out.
    pub fn of(file: &DaemonFile) -> Self {
        let defaults = RequestRules {
            period_max: PERIOD_MAX,
            cost_min: COST_MIN,
            cpus: None,
            // Neither is at the expense of others; a signal costs the daemon time for each job.
            on_overrun: vec![OnOverrun::Throttle, OnOverrun::Continue],
        };
        let general = defaults.with(&file.requests);
        let users = file.users.iter();
        let users = users.filter_map(|(name, own)| Some((user_number(name)?, general.with(own))));
        Self {
            users: users.collect(),
            general,
        }
    }

    /// The rules of this user, which is not root.
    pub fn of_user(&self, user: u32) -> &RequestRules {
        self.users.get(&user).unwrap_or(&self.general)
    }
}

impl RequestRules {
    /// These rules, but for what `own` says.
    fn with(&self, own: &Requests) -> Self {
        Self {
            period_max: own.period_max.unwrap_or(self.period_max),
            cost_min: own.cost_min.unwrap_or(self.cost_min),
            cpus: own.cpus.or(self.cpus),
            on_overrun: own.on_overrun.as_ref().unwrap_or(&self.on_overrun).clone(),
        }
    }

    /// Checks the parameters of a reservation for this user.
    ///
    /// # Errors
    /// The first parameter that the user may not request.
    pub fn check(&self, user: u32, it: &Reservation) -> Result<(), Denial> {
        let refused = |parameter, what: String| {
            Err(Denial::Invalid {
                parameter,
                reason: format!("{what}; see [requests] in the daemon's configuration"),
            })
        };
        if it.period > self.period_max {
            let most = self.period_max;
            return refused(
                "period",
                format!(
                    "{} is longer than {most}, the maximum of user {user}",
                    it.period
                ),
            );
        }
        if it.cost < self.cost_min {
            let least = self.cost_min;
            return refused(
                "cost",
                format!(
                    "{} is less than {least}, the minimum of user {user}",
                    it.cost
                ),
            );
        }
        if !self.on_overrun.contains(&it.on_overrun) {
            return refused(
                "on_overrun",
                format!("user {user} may request {}", names(&self.on_overrun)),
            );
        }
        match self.cpus {
            Some(cpus) if !it.cpus.is_subset(&cpus) => refused(
                "cpus",
                format!("`{}`: user {user} may reserve CPUs {cpus}", it.cpus),
            ),
            _ => Ok(()),
        }
    }
}

fn names(modes: &[OnOverrun]) -> String {
    let name = |mode: &OnOverrun| match mode {
        OnOverrun::Throttle => "`throttle`",
        OnOverrun::Signal => "`signal`",
        OnOverrun::Continue => "`continue`",
    };
    modes.iter().map(name).collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use shiftwork_taskset::Environment;
    use shiftwork_taskset::daemon::read_in;

    use super::*;
    use crate::reservation_table::tests::reservation;

    fn rules(text: &str) -> AllRequestRules {
        AllRequestRules::of(&read_in(text, &Environment::default()).unwrap())
    }

    #[test]
    fn user_is_refused_long_periods_and_small_costs_by_default() {
        let all = rules("");
        let check = |it: &Reservation| all.of_user(7).check(7, it).map_err(|it| it.to_string());
        let some = reservation(1, 100, "0");
        assert_eq!(check(&some), Ok(()));
        let long = Reservation {
            period: Span::from_ms(101),
            ..some.clone()
        };
        let see = "; see [requests] in the daemon's configuration";
        let why = format!("period: 101ms is longer than 100ms, the maximum of user 7{see}");
        assert_eq!(check(&long), Err(why));
        let small = Reservation {
            cost: Span::from_us(49),
            ..some.clone()
        };
        let why = format!("cost: 49us is less than 50us, the minimum of user 7{see}");
        assert_eq!(check(&small), Err(why));
        let signalled = Reservation {
            on_overrun: OnOverrun::Signal,
            ..some
        };
        let why = format!("on_overrun: user 7 may request `throttle` or `continue`{see}");
        assert_eq!(check(&signalled), Err(why));
    }

    #[test]
    fn rules_of_named_user_replace_general_ones() {
        let all = rules(
            "[requests]\nperiod-max = '1s'\ncpus = '0-1'\n[requests.users.7]\ncpus = '3'\n\
             on-overrun = ['throttle', 'signal']\n[requests.users.root]\ncost-min = '1ms'",
        );
        let general = RequestRules {
            period_max: Span::from_s(1),
            cost_min: Span::from_us(50),
            cpus: Some("0-1".parse().unwrap()),
            on_overrun: vec![OnOverrun::Throttle, OnOverrun::Continue],
        };
        assert_eq!(*all.of_user(8), general);
        let own = RequestRules {
            cpus: Some("3".parse().unwrap()),
            on_overrun: vec![OnOverrun::Throttle, OnOverrun::Signal],
            ..general.clone()
        };
        assert_eq!(*all.of_user(7), own);
        assert_eq!(all.of_user(0).cost_min, Span::from_ms(1), "by name");
        let elsewhere = reservation(1, 100, "1");
        let refused = own.check(7, &elsewhere).unwrap_err().to_string();
        assert!(
            refused.starts_with("cpus: `1`: user 7 may reserve CPUs 3"),
            "{refused}"
        );
        assert_eq!(general.check(8, &elsewhere), Ok(()));
    }
}
