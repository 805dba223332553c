// The visible interval of time. All charts of a page share it, so their time axes are linked.

const charts = [];
const view = { from: 0, to: 1, full: 1, pointer: null, marked: null };
let wanted = 0;
const redraw = () => {
  if (!wanted) wanted = requestAnimationFrame(() => { wanted = 0; drawAll(); });
};

const look = (from, to) => {
  const width = Math.min(view.full, Math.max(20, to - from));
  const start = Math.min(Math.max(0, from), view.full - width);
  view.from = start;
  view.to = start + width;
  redraw();
};
const zoom = (factor, at = (view.from + view.to) / 2) =>
  look(at - (at - view.from) * factor, at + (view.to - at) * factor);
const pan = (share) => look(view.from + (view.to - view.from) * share, view.to + (view.to - view.from) * share);

const goTo = (job, run) => {
  const chart = charts[run];
  if (!chart.place.has(job.task)) chart.show([job.task, ...chart.lanes]);
  view.marked = { run, task: job.task, job: job.job };
  const end = Math.max(job.end, job.deadline);
  const width = Math.max((end - job.release) * 1.5, 1);
  const middle = (job.release + end) / 2;
  look(middle - width / 2, middle + width / 2);
};
const miss = (direction) => {
  const all = charts.flatMap((chart, run) => chart.run.misses.map((m) => ({ ...m, run })))
    .sort((a, b) => a.deadline - b.deadline || a.run - b.run || a.task - b.task);
  if (!all.length) return;
  const current = view.marked && all.findIndex((m) =>
    m.run === view.marked.run && m.task === view.marked.task && m.job === view.marked.job);
  const next = current === null || current < 0 ? (direction > 0 ? 0 : all.length - 1)
    : (current + direction + all.length) % all.length;
  goTo(all[next], all[next].run);
};
const actions = {
  in: () => zoom(0.5), out: () => zoom(2), fit: () => { view.marked = null; look(0, view.full); },
  next: () => miss(1), previous: () => miss(-1),
};
