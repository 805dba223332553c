//! The tests as they are published, executed term by term in exact fractions. Slow, and therefore
//! believable. Times are small enough for fractions of 128 bits.

use num_rational::Ratio;
use shiftwork_analysis::Sporadic;

pub type Fraction = Ratio<i128>;

/// A task in whole numbers.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    pub cost: i128,
    pub period: i128,
    pub deadline: i128,
}

impl Task {
    pub fn of(task: &Sporadic) -> Self {
        let [cost, period, deadline] =
            [task.cost, task.period, task.deadline].map(|span| i128::from(span.as_ns()));
        Self {
            cost,
            period,
            deadline,
        }
    }

    fn utilization(&self) -> Fraction {
        Fraction::new(self.cost, self.period)
    }

    fn density(&self) -> Fraction {
        Fraction::new(self.cost, self.period.min(self.deadline))
    }

    /// The cost of what is due within `t`.
    fn dbf(&self, t: i128) -> i128 {
        match t >= self.deadline {
            true => ((t - self.deadline) / self.period + 1) * self.cost,
            false => 0,
        }
    }

    /// All instants up to `end` at which a job is due.
    fn due(&self, end: i128) -> impl Iterator<Item = i128> {
        let (deadline, period) = (self.deadline, self.period);
        (0..)
            .map(move |job| deadline + job * period)
            .take_while(move |&due| due <= end)
    }
}

fn whole(number: i128) -> Fraction {
    Fraction::from_integer(number)
}

fn utilization(tasks: &[Task]) -> Fraction {
    tasks.iter().map(Task::utilization).sum()
}

fn density_max(tasks: &[Task]) -> Fraction {
    let densities = tasks.iter().map(Task::density);
    densities.max().unwrap_or(whole(0))
}

/// All tasks can be in time alone.
fn feasible_alone(tasks: &[Task]) -> bool {
    let alone = |task: &Task| 0 < task.cost && task.cost <= task.period.min(task.deadline);
    tasks.iter().all(alone)
}

fn constrained(tasks: &[Task]) -> bool {
    feasible_alone(tasks) && tasks.iter().all(|task| task.deadline <= task.period)
}

/// After this, demand repeats itself.
fn repetition(tasks: &[Task]) -> i128 {
    let gcd = |mut a: i128, mut b: i128| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let common = tasks.iter().fold(1, |common, task| {
        common / gcd(common, task.period) * task.period
    });
    common + tasks.iter().map(|task| task.deadline).max().unwrap_or(0)
}

pub fn gfb(tasks: &[Task], m: i128) -> bool {
    let densities: Fraction = tasks.iter().map(Task::density).sum();
    feasible_alone(tasks) && densities <= whole(m) - whole(m - 1) * density_max(tasks)
}

pub fn bak(tasks: &[Task], m: i128) -> bool {
    let shown = |k: &Task| {
        let l = k.density();
        let terms = tasks.iter().map(|i| {
            let u = i.utilization();
            let mut beta = u * (whole(1) + Fraction::new(i.period - i.deadline, k.deadline));
            if u > l {
                beta += (whole(i.cost) - l * i.period) / k.deadline;
            }
            beta.min(whole(1))
        });
        terms.sum::<Fraction>() <= whole(m) - whole(m - 1) * l
    };
    constrained(tasks) && tasks.iter().all(shown)
}

fn others(tasks: &[Task], k: usize) -> impl Iterator<Item = (usize, &Task)> {
    let places = tasks.iter().enumerate();
    places.filter(move |&(place, _)| place != k)
}

pub fn bcl(tasks: &[Task], m: i128) -> bool {
    let shown = |(place, k): (usize, &Task)| {
        let l = k.density();
        let (mut sum, mut some) = (whole(0), false);
        for (_, i) in others(tasks, place) {
            let n = (k.deadline - i.deadline).div_euclid(i.period) + 1;
            let work = n * i.cost + i.cost.min((k.deadline - n * i.period).max(0));
            let beta = Fraction::new(work, k.deadline);
            sum += beta.min(whole(1) - l);
            some |= whole(0) < beta && beta <= whole(1) - l;
        }
        let room = (whole(1) - l) * m;
        sum < room || sum == room && some
    };
    constrained(tasks) && tasks.iter().enumerate().all(shown)
}

/// Goes round the tasks until all are in time or nothing is learnt; the response times.
fn rounds(tasks: &[Task], response: impl Fn(usize, &[i128]) -> Option<i128>) -> Option<Vec<i128>> {
    if !constrained(tasks) {
        return None;
    }
    let mut slack = vec![0; tasks.len()];
    loop {
        let (mut shown, before) = (true, slack.clone());
        for (place, task) in tasks.iter().enumerate() {
            match response(place, &slack) {
                Some(response) => slack[place] = slack[place].max(task.deadline - response),
                None => shown = false,
            }
        }
        if shown {
            let all = tasks.iter().zip(&slack);
            return Some(all.map(|(task, slack)| task.deadline - slack).collect());
        }
        if slack == before {
            return None;
        }
    }
}

fn interference(k: &Task, i: &Task, slack: i128) -> i128 {
    let rest = k.deadline % i.period;
    k.deadline / i.period * i.cost + i.cost.min((rest - slack).max(0))
}

pub fn bcli(tasks: &[Task], m: i128) -> Option<Vec<i128>> {
    rounds(tasks, |place, slack| {
        let k = &tasks[place];
        let sum: i128 = others(tasks, place)
            .map(|(other, i)| interference(k, i, slack[other]).min(k.deadline - k.cost + 1))
            .sum();
        let response = k.cost + sum / m;
        (response <= k.deadline).then_some(response)
    })
}

pub fn rta(tasks: &[Task], m: i128) -> Option<Vec<i128>> {
    rounds(tasks, |place, slack| {
        let k = &tasks[place];
        let mut response = k.cost;
        loop {
            let sum: i128 = others(tasks, place)
                .map(|(other, i)| {
                    let reach = response + i.deadline - i.cost - slack[other];
                    let jobs = reach / i.period;
                    let work = jobs * i.cost + i.cost.min(reach - jobs * i.period);
                    let most = interference(k, i, slack[other]);
                    work.min(most).min(response - k.cost + 1)
                })
                .sum();
            let next = k.cost + sum / m;
            if next == response {
                return Some(response);
            }
            response = next;
            if response > k.deadline {
                return None;
            }
        }
    })
}

fn largest(mut numbers: Vec<i128>, count: i128) -> i128 {
    numbers.sort_unstable_by(|one, other| other.cmp(one));
    numbers.iter().take(count as usize).sum()
}

pub fn bar(tasks: &[Task], m: i128) -> bool {
    let idle = whole(m) - utilization(tasks);
    if !constrained(tasks) || idle <= whole(0) {
        return tasks.is_empty();
    }
    let carried_in = largest(tasks.iter().map(|task| task.cost).collect(), m - 1);
    let gaps: Fraction = tasks
        .iter()
        .map(|task| task.utilization() * (task.period - task.deadline))
        .sum();
    tasks.iter().enumerate().all(|(place, k)| {
        let most = (whole(carried_in + m * k.cost) + gaps - idle * k.deadline) / idle;
        let end = most.floor().to_integer().max(0) + k.deadline;
        let mut lengths: Vec<i128> = tasks.iter().flat_map(|task| task.due(end)).collect();
        lengths.retain(|&length| length >= k.deadline);
        lengths
            .into_iter()
            .all(|length| bar_at(tasks, place, length, m))
    })
}

/// The condition for a task and an interval that begins A before its release and ends when it is due.
fn bar_at(tasks: &[Task], place: usize, length: i128, m: i128) -> bool {
    let k = &tasks[place];
    let ahead = length - k.deadline;
    let (mut sum, mut differences) = (0, Vec::new());
    for (other, i) in tasks.iter().enumerate() {
        let carried = length / i.period * i.cost + i.cost.min(length % i.period);
        let [without, with] = [i.dbf(length), carried].map(|demand| match other == place {
            true => (demand - k.cost).min(ahead),
            false => demand.min(length - k.cost + 1),
        });
        sum += without;
        differences.push(with - without);
    }
    sum + largest(differences, m - 1) <= m * (length - k.cost)
}

pub fn load(tasks: &[Task], m: i128) -> bool {
    if tasks.is_empty() || !feasible_alone(tasks) {
        return tasks.is_empty();
    }
    let density = density_max(tasks);
    let mu = whole(m) - density * (m - 1);
    let ceil = mu.ceil();
    let one = mu - (ceil - 1) * density;
    let other = (ceil - 1) - (ceil - 2) * density;
    let bound = one.max(other);
    let dbf = |t: i128| tasks.iter().map(|task| task.dbf(t)).sum::<i128>();
    utilization(tasks) <= bound && (1..=repetition(tasks)).all(|t| whole(dbf(t)) <= bound * t)
}

/// The published forced-forward demand, and its extension to deadlines beyond the period.
fn forward_demand(task: &Task, t: i128, speed: Fraction) -> Fraction {
    if task.deadline > task.period {
        let jobs = task.dbf(t) / task.cost;
        let next = task.deadline + jobs * task.period - t;
        return whole(jobs * task.cost) + (whole(task.cost) - speed * next).max(whole(0));
    }
    let (jobs, rest) = (whole(t / task.period), whole(t % task.period));
    let (cost, deadline) = (whole(task.cost), whole(task.deadline));
    let more = if rest >= deadline {
        cost
    } else if rest >= deadline - cost / speed {
        cost - (deadline - rest) * speed
    } else {
        whole(0)
    };
    jobs * cost + more
}

fn holds_at(tasks: &[Task], m: i128, speed: Fraction, t: i128) -> bool {
    let demand: Fraction = tasks
        .iter()
        .map(|task| forward_demand(task, t, speed))
        .sum();
    demand <= (whole(m) - speed * (m - 1)) * t
}

/// Whether the condition holds for some speed: the least that can do is the greatest density, or one
/// at which both sides are equal for some interval.
pub fn ffdbf(tasks: &[Task], m: i128) -> bool {
    if tasks.is_empty() || !feasible_alone(tasks) {
        return tasks.is_empty();
    }
    let end = repetition(tasks);
    let mut lengths: Vec<i128> = tasks.iter().flat_map(|task| task.due(end)).collect();
    lengths.sort_unstable();
    lengths.dedup();
    if m == 1 {
        let dbf = |t: i128| tasks.iter().map(|task| task.dbf(t)).sum::<i128>();
        return utilization(tasks) <= whole(1) && lengths.iter().all(|&t| dbf(t) <= t);
    }
    let (least, most) = (
        density_max(tasks),
        (whole(m) - utilization(tasks)) / (m - 1),
    );
    let mut speeds = vec![least];
    lengths
        .iter()
        .for_each(|&t| equalities(tasks, m, t, &mut speeds));
    speeds.sort_unstable();
    speeds.dedup();
    speeds
        .into_iter()
        .filter(|&speed| least <= speed && speed <= most)
        .any(|speed| lengths.iter().all(|&t| holds_at(tasks, m, speed, t)))
}

/// The same with no speed but the greatest density.
pub fn ffdbf_at_density(tasks: &[Task], m: i128) -> bool {
    let end = repetition(tasks);
    let mut lengths = tasks.iter().flat_map(|task| task.due(end));
    lengths.all(|t| holds_at(tasks, m, density_max(tasks), t))
}

/// Adds the speeds at which both sides could be equal for intervals of length `t`: for any number of
/// jobs that have work left, those which do at the greatest speeds.
fn equalities(tasks: &[Task], m: i128, t: i128, speeds: &mut Vec<Fraction>) {
    let due: i128 = tasks.iter().map(|task| task.dbf(t)).sum();
    let mut left: Vec<(Fraction, i128, i128)> = tasks
        .iter()
        .map(|task| {
            let next = task.deadline + task.dbf(t) / task.cost * task.period - t;
            (Fraction::new(task.cost, next), task.cost, next)
        })
        .collect();
    left.sort_unstable();
    let (mut costs, mut nexts) = (due - m * t, (1 - m) * t);
    for (_, cost, next) in left.into_iter().rev() {
        if nexts != 0 {
            speeds.push(Fraction::new(costs, nexts));
        }
        costs += cost;
        nexts += next;
    }
    if nexts != 0 {
        speeds.push(Fraction::new(costs, nexts));
    }
}

/// The algorithm as published: speeds by steps of a fiftieth, up to a tenth below the limit, and
/// intervals up to ten times the sum of all costs.
pub fn ffdbf_by_steps(tasks: &[Task], m: i128) -> bool {
    let least = density_max(tasks);
    let most = ((whole(m) - utilization(tasks)) / (m - 1) - Fraction::new(1, 10)).min(whole(1));
    let end = 10 * tasks.iter().map(|task| task.cost).sum::<i128>();
    let lengths: Vec<i128> = tasks.iter().flat_map(|task| task.due(end)).collect();
    let steps = (1..).map(|step| Fraction::new(step, 50));
    let speeds = [least]
        .into_iter()
        .chain(steps.skip_while(move |&speed| speed <= least));
    constrained(tasks)
        && speeds
            .take_while(|&speed| speed <= most)
            .any(|speed| lengths.iter().all(|&t| holds_at(tasks, m, speed, t)))
}
