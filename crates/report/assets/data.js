// Reads the data of a run in the page. Times are nanoseconds from the start of the run.
// The scripts of this folder are concatenated into one function, in the order of `page/mod.rs`.

// Splits a flat column list into objects, `width` numbers each.
const rows = (flat, width, make) => {
  const out = [];
  for (let i = 0; i < flat.length; i += width) out.push(make(flat, i));
  return out;
};

const read = (element) => {
  const run = JSON.parse(element.textContent);
  run.slices = run.slices.map((flat) => {
    let end = 0;
    return rows(flat, 4, (f, i) => {
      const from = end + f[i + 2];
      end = from + f[i + 3];
      return { task: f[i], job: f[i + 1], from, to: end };
    });
  });
  run.jobs = run.jobs.map((flat) => {
    let release = 0;
    return rows(flat, 5, (f, i) => {
      release += f[i + 1];
      return { job: f[i], release, deadline: release + f[i + 2], end: release + f[i + 3],
        how: f[i + 4] & 3, missed: f[i + 4] >= 4 };
    });
  });
  const stretch = (f, i) => ({ kind: f[i], from: f[i + 1], to: f[i + 1] + f[i + 2] });
  run.states = run.states.map((flat) => rows(flat, 3, stretch).sort((a, b) => a.from - b.from));
  run.away = run.away.map((flat) => rows(flat, 3, stretch));
  run.shifts = rows(run.shifts, 5, (f, i) =>
    ({ at: f[i], task: f[i + 1], job: f[i + 2], source: f[i + 3], target: f[i + 4] }));
  run.triggers = rows(run.triggers, 4, (f, i) => ({ at: f[i], source: f[i + 1], target: f[i + 3] }));
  // The slices of each task, with their CPU, and the jobs by number.
  run.executed = run.tasks.map(() => []);
  run.slices.forEach((slices, cpu) => slices.forEach((s) => run.executed[s.task].push({ ...s, cpu })));
  run.executed.forEach((slices) => slices.sort((a, b) => a.from - b.from));
  // A job that is released while the one before it is pending queues first.
  run.jobs.forEach((jobs, task) => {
    const queued = new Map(run.states[task].filter((s) => s.kind === 1).map((s) => [s.from, s.to]));
    for (const job of jobs) job.eligible = queued.get(job.release) ?? job.release;
  });
  run.byNumber = run.jobs.map((jobs) => new Map(jobs.map((j) => [j.job, j])));
  // Bars of one lane may overlap in time (a late job and its successor), so ends are not sorted;
  // the longest bar bounds how far back a search has to go.
  run.longest = run.jobs.map((jobs) =>
    jobs.reduce((most, j) => Math.max(most, Math.max(j.end, j.deadline) - j.release), 0));
  run.longestState = run.states.map((list) => list.reduce((most, s) => Math.max(most, s.to - s.from), 0));
  run.misses = run.jobs.flatMap((jobs, task) =>
    jobs.filter((j) => j.missed).map((j) => ({ ...j, task }))).sort((a, b) => a.deadline - b.deadline);
  return run;
};

// Index of the first element for which `before` is false; `before` holds for a prefix.
const search = (list, before) => {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (before(list[middle])) low = middle + 1; else high = middle;
  }
  return low;
};
