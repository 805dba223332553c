//! Push and pull by definition: one list of queued jobs, searched from end to end. It shares
//! nothing with the policy, has no sorted queue and no table, and is slow.

/// What of the rules differs from Linux.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub no_bypass: bool,
    pub push_without_itself: bool,
    /// A job that is replenished while it runs goes first among equal deadlines, unless it is due.
    pub running_goes_on: bool,
}

/// A task. Sets of CPUs are bits.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub cpus: u64,
    /// The CPU in whose queue its job is, was, or will be.
    pub queue: usize,
    /// Of its present job, or the one that it had last.
    pub deadline: u64,
    pub is_ready: bool,
    /// From a deadline to the end of the period.
    pub gap: u64,
    /// In units of 2^-20.
    pub density: u64,
    pub was_throttled: bool,
}

/// A ready job in a queue.
#[derive(Clone, Copy, Debug)]
struct Queued {
    task: usize,
    queue: usize,
    deadline: u64,
    turn: i64,
    is_running: bool,
}

/// A CPU that has to decide, as it was left by a task with this deadline.
#[derive(Clone, Copy, Debug)]
struct Left {
    deadline: u64,
    task: usize,
    cpu: usize,
    pushes: bool,
}

#[derive(Clone, Debug)]
pub struct Oracle {
    pub rules: Rules,
    pub cpus: usize,
    pub online: u64,
    pub domains: Vec<u64>,
    /// In units of 2^-20; empty if all CPUs are alike.
    pub capacities: Vec<u64>,
    pub tasks: Vec<Known>,
    jobs: Vec<Queued>,
    /// Ready tasks without a CPU, as they came.
    homeless: Vec<usize>,
    left: Vec<Left>,
    turns: i64,
}

fn bits(set: u64) -> Vec<usize> {
    (0..64).filter(|bit| set >> bit & 1 == 1).collect()
}

impl Oracle {
    pub fn new(rules: Rules, cpus: usize, domains: Vec<u64>, capacities: Vec<u64>) -> Self {
        Self {
            rules,
            cpus,
            online: (1 << cpus) - 1,
            domains,
            capacities,
            tasks: Vec::new(),
            jobs: Vec::new(),
            homeless: Vec::new(),
            left: Vec::new(),
            turns: 0,
        }
    }

    pub fn running(&self, cpu: usize) -> Option<usize> {
        let mut jobs = self.jobs.iter();
        let job = jobs.find(|job| job.queue == cpu && job.is_running);
        job.map(|job| job.task)
    }

    /// Whether the CPU has not decided yet since its job went.
    pub fn is_undecided(&self, cpu: usize) -> bool {
        self.left.iter().any(|left| left.cpu == cpu)
    }

    pub fn has_undecided(&self) -> bool {
        !self.left.is_empty()
    }

    pub fn is_ready(&self, task: usize) -> bool {
        self.tasks.get(task).is_some_and(|known| known.is_ready)
    }

    pub fn wake(&mut self, task: usize, now: u64, deadline: u64) {
        if task >= self.tasks.len() || self.tasks[task].is_ready {
            return;
        }
        self.decide_all();
        let known = self.tasks[task];
        let has_slept = !known.was_throttled || now > known.deadline + known.gap;
        self.tasks[task].was_throttled = false;
        if has_slept {
            self.select_queue(task);
        }
        self.tasks[task].deadline = deadline;
        self.tasks[task].is_ready = true;
        self.settle(task, has_slept);
    }

    /// The job is ready no more; its CPU decides later.
    pub fn stop(&mut self, task: usize, is_throttled: bool) {
        if !self.is_ready(task) {
            return;
        }
        self.tasks[task].is_ready = false;
        if is_throttled {
            self.tasks[task].was_throttled = true;
        }
        self.homeless.retain(|&other| other != task);
        if self.take(task).is_some_and(|job| job.is_running) {
            let Known {
                deadline, queue, ..
            } = self.tasks[task];
            self.leave_undecided(deadline, task, queue, false);
        }
    }

    pub fn succeed(&mut self, task: usize, now: u64, deadline: u64) -> bool {
        let is_running = |job: &Queued| job.task == task && job.is_running;
        if !self.jobs.iter().any(is_running) {
            return false;
        }
        let cpu = self.tasks[task].queue;
        self.tasks[task].deadline = deadline;
        self.take(task);
        self.put(task, cpu);
        let ready_anew = self.rules.no_bypass;
        let last = self.jobs.len() - 1;
        if !ready_anew {
            self.jobs[last].is_running = true;
            if self.rules.running_goes_on && deadline > now {
                self.jobs[last].turn = -self.turns;
            }
        }
        if ready_anew || self.queue(cpu)[0].task != task {
            self.leave_undecided(deadline, task, cpu, ready_anew);
        }
        true
    }

    pub fn set_deadline(&mut self, task: usize, deadline: u64) {
        if !self.is_ready(task) {
            return;
        }
        self.decide_all();
        self.tasks[task].deadline = deadline;
        if let Some(job) = self.take(task) {
            self.put(task, job.queue);
            let last = self.jobs.len() - 1;
            self.jobs[last].is_running = job.is_running;
            self.decide(job.queue);
        }
    }

    pub fn set_affinity(&mut self, task: usize, cpus: u64) {
        if task >= self.tasks.len() {
            return;
        }
        self.decide_all();
        self.tasks[task].cpus = cpus;
        let Known {
            queue, is_ready, ..
        } = self.tasks[task];
        let may_stay = cpus >> queue & 1 == 1;
        match self.take(task) {
            Some(job) if may_stay => {
                self.jobs.push(job);
                self.push(queue);
            }
            Some(job) => {
                self.settle(task, true);
                if job.is_running {
                    self.decide(queue);
                }
            }
            None if is_ready => {
                self.homeless.retain(|&other| other != task);
                self.settle(task, true);
            }
            None if may_stay => {}
            None => self.tasks[task].queue = bits(cpus)[0],
        }
    }

    /// The task takes part, or takes part anew.
    pub fn enter(&mut self, task: usize, known: Known) {
        self.stop(task, false);
        if task == self.tasks.len() {
            self.tasks.push(known);
        }
        let deadline = self.tasks[task].deadline;
        self.tasks[task] = Known { deadline, ..known };
    }

    pub fn cpu_offline(&mut self, cpu: usize) {
        if self.online >> cpu & 1 == 0 {
            return;
        }
        self.decide_all();
        self.online &= !(1 << cpu);
        let jobs = self.queue(cpu);
        self.jobs.retain(|job| job.queue != cpu);
        for job in jobs {
            self.settle(job.task, true);
        }
    }

    pub fn cpu_online(&mut self, cpu: usize) {
        if self.online >> cpu & 1 == 1 {
            return;
        }
        self.decide_all();
        self.online |= 1 << cpu;
        for task in core::mem::take(&mut self.homeless) {
            self.settle(task, true);
        }
        self.decide(cpu);
    }

    /// First all jobs that became ready where they ran are pushed, then the CPUs decide, the
    /// earliest first.
    pub fn decide_all(&mut self) {
        while let Some(at) = self.earliest_left(|left| left.pushes) {
            self.left[at].pushes = false;
            self.push(self.left[at].cpu);
        }
        while let Some(at) = self.earliest_left(|_| true) {
            let cpu = self.left.remove(at).cpu;
            self.decide(cpu);
        }
    }

    fn earliest_left(&self, which: impl Fn(&Left) -> bool) -> Option<usize> {
        let places = (0..self.left.len()).filter(|&at| which(&self.left[at]));
        places.min_by_key(|&at| {
            let left = self.left[at];
            (left.deadline, left.task, left.cpu, left.pushes)
        })
    }

    fn leave_undecided(&mut self, deadline: u64, task: usize, cpu: usize, pushes: bool) {
        self.left.push(Left {
            deadline,
            task,
            cpu,
            pushes,
        });
    }

    /// The jobs in the queue of the CPU, the first first.
    fn queue(&self, cpu: usize) -> Vec<Queued> {
        let jobs = self.jobs.iter().copied();
        let mut jobs: Vec<Queued> = jobs.filter(|job| job.queue == cpu).collect();
        jobs.sort_by_key(|job| (job.deadline, job.turn, job.task));
        jobs
    }

    fn take(&mut self, task: usize) -> Option<Queued> {
        let at = self.jobs.iter().position(|job| job.task == task)?;
        Some(self.jobs.remove(at))
    }

    /// As the last of its deadline, waiting.
    fn put(&mut self, task: usize, queue: usize) {
        self.turns += 1;
        self.tasks[task].queue = queue;
        self.jobs.push(Queued {
            task,
            queue,
            deadline: self.tasks[task].deadline,
            turn: self.turns,
            is_running: false,
        });
    }

    fn usable(&self, task: usize) -> Vec<usize> {
        bits(self.tasks[task].cpus & self.online)
    }

    /// The deadline of a CPU, this task not counted.
    fn deadline_but(&self, cpu: usize, but: Option<usize>) -> Option<u64> {
        let jobs = self.jobs.iter().filter(|job| job.queue == cpu);
        jobs.filter(|job| Some(job.task) != but)
            .map(|job| job.deadline)
            .min()
    }

    fn decide(&mut self, cpu: usize) {
        if self.online >> cpu & 1 == 0 {
            return;
        }
        self.pull(cpu);
        let before = self.running(cpu);
        let next = self.queue(cpu).first().map(|job| job.task);
        if before == next {
            return;
        }
        for job in &mut self.jobs {
            if job.queue == cpu {
                job.is_running = Some(job.task) == next;
            }
        }
        if next.is_some() {
            self.push(cpu);
        }
    }

    fn pull(&mut self, cpu: usize) {
        for other in (0..self.cpus).filter(|&other| other != cpu) {
            // The first is what runs there next.
            let waiting = self.queue(other).into_iter().skip(1);
            let found = waiting
                .filter(|job| !job.is_running)
                .find(|job| self.tasks[job.task].cpus >> cpu & 1 == 1);
            let Some(found) = found else { continue };
            let here = self.deadline_but(cpu, None);
            if here.is_none_or(|here| found.deadline < here) {
                self.take(found.task);
                self.put(found.task, cpu);
            }
        }
    }

    /// Until one has to stay.
    fn push(&mut self, cpu: usize) {
        if self.queue(cpu).len() >= 2 && self.push_one(cpu) {
            self.push(cpu);
        }
    }

    fn push_one(&mut self, cpu: usize) -> bool {
        let queue = self.queue(cpu);
        let is_movable = |job: &&Queued| self.usable(job.task).len() >= 2;
        let mut waiting = queue.iter().filter(|job| !job.is_running);
        let Some(job) = waiting.find(is_movable) else {
            return false;
        };
        let mut running = queue.iter().filter(|job| job.is_running);
        let preempts =
            running.any(|running| job.deadline < running.deadline && is_movable(&running));
        if preempts && !self.rules.push_without_itself {
            return false;
        }
        let but = self.rules.push_without_itself.then_some(job.task);
        match self.target(cpu, job.task, job.deadline, but) {
            Some(target) if target != cpu => {
                self.take(job.task);
                self.put(job.task, target);
                self.decide(target);
                true
            }
            _ => false,
        }
    }

    fn target(&self, from: usize, task: usize, deadline: u64, but: Option<usize>) -> Option<usize> {
        let usable = self.usable(task);
        let best = |cpus: &[usize]| match cpus.contains(&from) {
            true => Some(from),
            false => cpus.iter().copied().min(),
        };
        let mut free = usable.clone();
        free.retain(|&cpu| self.deadline_but(cpu, but).is_none());
        if !free.is_empty() {
            let fast = free.iter().copied();
            let fast: Vec<usize> = fast.filter(|&cpu| self.is_fast_enough(cpu, task)).collect();
            if !fast.is_empty() {
                return best(&fast);
            }
            let most = free.iter().map(|&cpu| self.capacities[cpu]).max();
            free.retain(|&cpu| Some(self.capacities[cpu]) == most);
            return best(&free);
        }
        let mut domains = self.domains.iter();
        let domain = domains.find(|&domain| domain >> from & 1 == 1)?;
        let others = bits(domain & self.online).into_iter();
        let latest = others.filter_map(|cpu| self.deadline_but(cpu, but)).max()?;
        let mut candidates = usable;
        candidates.retain(|&cpu| self.deadline_but(cpu, but) == Some(latest));
        (latest > deadline).then(|| best(&candidates))?
    }

    fn is_fast_enough(&self, cpu: usize, task: usize) -> bool {
        self.capacities.is_empty() || self.tasks[task].density <= self.capacities[cpu]
    }

    /// Where a task that has slept goes, by the deadline that it had.
    fn select_queue(&mut self, task: usize) {
        let Known {
            cpus,
            queue,
            deadline,
            ..
        } = self.tasks[task];
        let runs_on = self.running(queue).is_some_and(|running| {
            deadline >= self.tasks[running].deadline || self.tasks[running].cpus.count_ones() == 1
        });
        let leaves = runs_on || !self.is_fast_enough(queue, task);
        if self.rules.push_without_itself || !leaves || cpus.count_ones() == 1 {
            return;
        }
        let Some(target) = self.target(queue, task, deadline, Some(task)) else {
            return;
        };
        let there = self.deadline_but(target, None);
        if there.is_none_or(|there| deadline < there) {
            self.tasks[task].queue = target;
        }
    }

    fn settle(&mut self, task: usize, has_slept: bool) {
        let usable = self.usable(task);
        let queue = self.tasks[task].queue;
        let Some(&lowest) = usable.first() else {
            self.homeless.push(task);
            return;
        };
        let queue = if usable.contains(&queue) {
            queue
        } else {
            lowest
        };
        self.put(task, queue);
        let is_first = self.queue(queue)[0].task == task;
        if !has_slept {
            self.push_one(queue);
        } else if self.rules.push_without_itself || !is_first {
            self.push(queue);
        }
        self.decide(queue);
    }
}
