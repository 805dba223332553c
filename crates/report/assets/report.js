// Draws the schedule charts. All charts of a page share one view, so their time axes are linked.
// Times are nanoseconds from the start of the run.
"use strict";
(() => {
  const root = document.documentElement;
  let errors = 0;
  addEventListener("error", () => { root.dataset.errors = String(++errors); });
  root.dataset.errors = "0";

  const GUTTER = 118, AXIS = 24, STRIP = 16, PAD = 6;
  const FONT = '"DejaVu Sans", system-ui, sans-serif';

  // ---- Reading the data ---------------------------------------------------------------------

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
    run.states = run.states.map((flat) => rows(flat, 3, stretch));
    run.away = run.away.map((flat) => rows(flat, 3, stretch));
    run.shifts = rows(run.shifts, 5, (f, i) =>
      ({ at: f[i], task: f[i + 1], job: f[i + 2], source: f[i + 3], target: f[i + 4] }));
    // The slices of each task, with their CPU, and the jobs by number.
    run.executed = run.tasks.map(() => []);
    run.slices.forEach((slices, cpu) => slices.forEach((s) => run.executed[s.task].push({ ...s, cpu })));
    run.executed.forEach((slices) => slices.sort((a, b) => a.from - b.from));
    run.byNumber = run.jobs.map((jobs) => new Map(jobs.map((j) => [j.job, j])));
    // Bars of one lane may overlap in time (a late job and its successor), so ends are not sorted;
    // the longest life bounds how far back a search has to go.
    run.longest = run.jobs.map((jobs) =>
      jobs.reduce((most, j) => Math.max(most, Math.max(j.end, j.deadline) - j.release), 0));
    run.longestState = run.states.map((list) => list.reduce((most, s) => Math.max(most, s.to - s.from), 0));
    run.misses = run.jobs.flatMap((jobs, task) =>
      jobs.filter((j) => j.missed).map((j) => ({ ...j, task }))).sort((a, b) => a.deadline - b.deadline);
    return run;
  };

  // Index of the first element that `before` says no to; `before` holds for a prefix.
  const search = (list, before) => {
    let low = 0, high = list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (before(list[middle])) low = middle + 1; else high = middle;
    }
    return low;
  };

  // ---- Words --------------------------------------------------------------------------------

  const trim = (number, digits) => String(Number(number.toFixed(digits)));
  const span = (ns) => {
    if (ns === 0) return "0";
    const abs = Math.abs(ns);
    const [unit, name] = abs >= 1e9 ? [1e9, "s"] : abs >= 1e6 ? [1e6, "ms"] : abs >= 1e3 ? [1e3, "µs"] : [1, "ns"];
    return `${trim(ns / unit, abs / unit >= 100 ? 1 : 3)} ${name}`;
  };

  // Every chart marks the same instants; the unit follows the distance between marks.
  const ticks = (from, to, room) => {
    const least = (to - from) / Math.max(2, room / 95);
    const power = 10 ** Math.floor(Math.log10(least));
    const step = Math.max(1, power * [1, 2, 5, 10].find((f) => f * power >= least));
    const far = Math.max(step, to / 1000);
    const [unit, name] = far >= 1e9 ? [1e9, "s"] : far >= 1e6 ? [1e6, "ms"] : far >= 1e3 ? [1e3, "µs"] : [1, "ns"];
    const digits = Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9));
    const marks = [];
    for (let n = Math.ceil(from / step); n * step <= to; n++) {
      marks.push([n * step, `${((n * step) / unit).toFixed(digits)} ${name}`]);
    }
    return marks;
  };

  // ---- Colours ------------------------------------------------------------------------------

  const FEW = ["#6fa8dc", "#f2b366", "#7cc48d", "#b79be0", "#e0c94f", "#62c3c6", "#dd9cc3", "#b0a58f", "#9bb83f", "#8fa3ef"];
  // Red is kept for misses: hues go round from orange to magenta only.
  const colour = (task, count) => count <= FEW.length ? FEW[task]
    : `hsl(${Math.round(28 + ((task * 137.508) % 300))} ${task % 2 ? 48 : 62}% ${[66, 58, 74][task % 3]}%)`;

  const theme = () => {
    const style = getComputedStyle(root);
    const names = ["chart", "lane", "grid", "ink", "faint", "bad", "accent", "hatch", "other", "line", "paper"];
    return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  };
  // Printing is on white paper, whatever the screen looks like.
  const PRINT = { chart: "#fff", lane: "#f5f6f8", grid: "#e3e6ea", ink: "#000", faint: "#555", bad: "#c8202f",
    accent: "#2563b8", hatch: "#8a94a3", other: "#c2680c", line: "#ccc", paper: "#fff" };

  const hatch = (context, colour, kind) => {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const pen = tile.getContext("2d");
    pen.strokeStyle = colour;
    pen.lineWidth = 1.3;
    pen.beginPath();
    if (kind === "upright") { pen.moveTo(2, 0); pen.lineTo(2, 6); } else {
      for (const shift of [-6, 0, 6]) {
        const [a, b] = kind === "rising" ? [6, 0] : [0, 6];
        pen.moveTo(shift - 1, a + (kind === "rising" ? 1 : -1));
        pen.lineTo(shift + 7, b + (kind === "rising" ? -1 : 1));
      }
    }
    pen.stroke();
    return context.createPattern(tile, "repeat");
  };

  // ---- The view: one for all charts ---------------------------------------------------------

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

  // ---- One chart ----------------------------------------------------------------------------

  class Chart {
    constructor(canvas, run, index) {
      Object.assign(this, { canvas, run, index });
      this.context = canvas.getContext("2d");
      const many = run.tasks.length > 16;
      this.cpuLane = run.cpus > 16 ? 16 : 24;
      this.taskLane = many ? 21 : 32;
      this.bar = many ? 9 : 14;
      this.tasksTop = AXIS + PAD + run.cpus * this.cpuLane + 10;
      this.height = this.tasksTop + run.tasks.length * this.taskLane + PAD + STRIP;
      canvas.style.height = `${this.height}px`;
    }

    x(ns) { return this.gutter + ((ns - view.from) / (view.to - view.from)) * this.plot; }
    time(x) { return view.from + ((x - this.gutter) / this.plot) * (view.to - view.from); }
    cpuTop(cpu) { return AXIS + PAD + cpu * this.cpuLane; }
    taskTop(task) { return this.tasksTop + task * this.taskLane; }

    draw(print) {
      const { canvas, context: c } = this;
      const ratio = print ? 3 : (window.devicePixelRatio || 1);
      // On paper the picture is scaled to the page, so that it holds as much as on a screen.
      const width = print ? 900 : canvas.clientWidth || 800;
      if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(this.height * ratio)) {
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(this.height * ratio);
      }
      c.setTransform(ratio, 0, 0, ratio, 0, 0);
      this.width = width;
      this.gutter = width < 560 ? 76 : GUTTER;
      this.plot = Math.max(50, width - this.gutter - 10);
      this.colours = print ? PRINT : theme();
      this.drawn = 0;
      this.captions = [];
      c.fillStyle = this.colours.chart;
      c.fillRect(0, 0, width, this.height);
      this.background();
      c.save();
      c.beginPath();
      c.rect(this.gutter, 0, this.plot + 10, this.height - STRIP);
      c.clip();
      this.cpus();
      this.tasks();
      this.shifts();
      c.font = `11px ${FONT}`;
      c.textAlign = "left";
      c.textBaseline = "middle";
      for (const [text, x, y, ink] of this.captions) {
        // On a hatched ground letters need room around them.
        if (ink === this.colours.ink) {
          c.strokeStyle = this.colours.chart;
          c.lineWidth = 4;
          c.strokeText(text, x, y);
        }
        c.fillStyle = ink;
        c.fillText(text, x, y);
      }
      this.gaps();
      this.pointer();
      c.restore();
      this.labels();
      this.strip();
      canvas.dataset.drawn = String(this.drawn);
      canvas.dataset.view = `${Math.round(view.from)}-${Math.round(view.to)}`;
    }

    background() {
      const { context: c, colours } = this;
      for (let cpu = 0; cpu < this.run.cpus; cpu++) {
        c.fillStyle = colours.lane;
        c.fillRect(this.gutter, this.cpuTop(cpu) + 1, this.plot, this.cpuLane - 3);
      }
      c.font = `11px ${FONT}`;
      c.textAlign = "center";
      c.textBaseline = "middle";
      for (const [at, label] of ticks(view.from, view.to, this.plot)) {
        const x = Math.round(this.x(at)) + 0.5;
        c.strokeStyle = colours.grid;
        c.lineWidth = 1;
        c.beginPath();
        c.moveTo(x, AXIS - 4);
        c.lineTo(x, this.height - STRIP);
        c.stroke();
        c.fillStyle = colours.faint;
        const half = c.measureText(label).width / 2;
        c.fillText(label, Math.min(Math.max(x, this.gutter + half), this.width - half - 2), AXIS / 2 + 1);
      }
    }

    // Fills one bar. What is narrower than a pixel is merged with its neighbour, so that a view of
    // the whole run costs no more than its pixels.
    fill(from, to, top, height, state) {
      const left = Math.max(this.x(from), this.gutter - 2), right = Math.min(this.x(to), this.width);
      if (right - left < 0.6 && left < state.painted + 0.4) return null;
      const width = Math.max(right - left, 0.6);
      this.context.fillRect(left, top, width, height);
      state.painted = left + width;
      return [left, width];
    }

    cpus() {
      const { context: c, run, colours } = this;
      run.slices.forEach((slices, cpu) => {
        const top = this.cpuTop(cpu) + 1, height = this.cpuLane - 3;
        const state = { painted: -1 };
        for (let i = search(slices, (s) => s.to <= view.from); i < slices.length && slices[i].from < view.to; i++) {
          const slice = slices[i];
          c.fillStyle = colour(slice.task, run.tasks.length);
          this.drawn++;
          const box = this.fill(slice.from, slice.to, top, height, state);
          if (!box) continue;
          const job = run.byNumber[slice.task].get(slice.job);
          if (job && slice.to > job.deadline) {
            const late = Math.max(this.x(Math.max(slice.from, job.deadline)), box[0]);
            c.fillStyle = colours.bad;
            c.fillRect(late, top + height - 3, Math.max(box[0] + box[1] - late, 1), 3);
          }
          if (box[1] > 3) {
            c.fillStyle = colours.chart;
            c.fillRect(box[0] + box[1] - 0.7, top, 0.7, height);
          }
          this.caption(`${run.tasks[slice.task][0]} #${slice.job}`, run.tasks[slice.task][0], box, top + height / 2);
        }
        for (const away of run.away[cpu]) {
          if (away.to <= view.from || away.from >= view.to) continue;
          c.fillStyle = hatch(c, colours.hatch, away.kind === 1 ? "upright" : "rising");
          const [left, right] = [this.x(away.from), this.x(away.to)];
          c.fillRect(left, top, Math.max(right - left, 1), height);
          this.caption(away.kind === 1 ? "background" : "offline", "", [left, right - left], top + height / 2, colours.ink);
        }
      });
    }

    // Notes the longest of two texts that fits a box; texts are written over everything else.
    caption(long, short, [left, width], y, ink = "#10151c") {
      const start = Math.max(left, this.gutter), room = Math.min(left + width, this.width) - start - 7;
      if (room < 8) return;
      const { context: c } = this;
      c.font = `11px ${FONT}`;
      const text = [long, short].find((t) => t && c.measureText(t).width <= room);
      if (!text) return;
      this.captions.push([text, start + 4, y + 0.5, ink]);
    }

    tasks() {
      this.run.tasks.forEach((_, task) => {
        this.lives(task);
        this.states(task);
        this.execution(task);
        this.arrows(task);
      });
    }

    visibleJobs(task) {
      const jobs = this.run.jobs[task];
      const first = search(jobs, (j) => j.release < view.from - this.run.longest[task]);
      const last = search(jobs, (j) => j.release <= view.to);
      return jobs.slice(first, last);
    }

    lives(task) {
      const { context: c, colours, run } = this;
      const base = this.taskTop(task) + this.taskLane - 4;
      c.strokeStyle = colours.grid;
      c.lineWidth = 1;
      c.beginPath();
      c.moveTo(this.gutter, base + 0.5);
      c.lineTo(this.gutter + this.plot, base + 0.5);
      c.stroke();
      const own = colour(task, run.tasks.length);
      const state = { painted: -1 };
      for (const job of this.visibleJobs(task)) {
        if (job.end <= view.from) continue;
        c.globalAlpha = 0.28;
        c.fillStyle = own;
        this.fill(job.release, job.end, base - this.bar, this.bar, state);
        c.globalAlpha = 1;
        if (this.marked(task, job.job)) {
          c.strokeStyle = colours.accent;
          c.lineWidth = 2;
          const [left, right] = [this.x(job.release), this.x(Math.max(job.end, job.deadline))];
          c.strokeRect(left - 2, this.taskTop(task) + 1, right - left + 4, this.taskLane - 2);
        }
      }
    }

    marked(task, job) {
      const m = view.marked;
      return m && m.run === this.index && m.task === task && m.job === job;
    }

    states(task) {
      const { context: c, colours, run } = this;
      const base = this.taskTop(task) + this.taskLane - 4, top = base - this.bar;
      const list = run.states[task];
      for (const stretch of list) {
        if (stretch.to <= view.from || stretch.from >= view.to) continue;
        const left = Math.max(this.x(stretch.from), this.gutter - 2);
        const width = Math.min(this.x(stretch.to), this.width + 2) - left;
        if (width < 1) continue;
        c.fillStyle = colours.chart;
        c.fillRect(left, top, width, this.bar);
        c.lineWidth = 1;
        if (stretch.kind === 1) {
          c.setLineDash([3, 2]);
          c.strokeStyle = colours.hatch;
        } else {
          const ink = stretch.kind === 2 ? colours.hatch : colours.other;
          c.fillStyle = hatch(c, ink, stretch.kind === 2 ? "falling" : "rising");
          c.fillRect(left, top, width, this.bar);
          c.strokeStyle = ink;
        }
        c.strokeRect(left + 0.5, top + 0.5, Math.max(width - 1, 0.5), this.bar - 1);
        c.setLineDash([]);
      }
    }

    execution(task) {
      const { context: c, colours, run } = this;
      const base = this.taskTop(task) + this.taskLane - 4;
      const slices = run.executed[task];
      const state = { painted: -1 };
      for (let i = search(slices, (s) => s.to <= view.from); i < slices.length && slices[i].from < view.to; i++) {
        const slice = slices[i];
        c.fillStyle = colour(task, run.tasks.length);
        const box = this.fill(slice.from, slice.to, base - this.bar, this.bar, state);
        if (!box) continue;
        if (this.bar > 10) this.caption(`CPU ${slice.cpu}`, String(slice.cpu), box, base - this.bar / 2);
        const job = run.byNumber[task].get(slice.job);
        if (job && slice.to > job.deadline) {
          const late = Math.max(this.x(Math.max(slice.from, job.deadline)), box[0]);
          c.fillStyle = colours.bad;
          c.fillRect(late, base - 3, Math.max(box[0] + box[1] - late, 1), 3);
        }
      }
    }

    // Releases upwards, deadlines downwards. Where they stand too close, only misses are left.
    arrows(task) {
      const { context: c, colours } = this;
      const top = this.taskTop(task) + 3, base = this.taskTop(task) + this.taskLane - 4;
      const jobs = this.visibleJobs(task);
      const apart = this.plot / Math.max(1, jobs.length);
      let bang = -99;
      for (const job of jobs) {
        if (apart > 8) {
          this.arrow(Math.round(this.x(job.release)) + 1.5, base, top, colours.faint, apart > 14);
          if (!job.missed && job.deadline <= this.run.horizon) {
            this.arrow(Math.round(this.x(job.deadline)) - 1.5, top, base, colours.ink, apart > 14);
          }
        }
        if (!job.missed) continue;
        const x = Math.round(this.x(job.deadline)) - 1.5;
        if (x < this.gutter - 12 || x > this.width + 12) continue;
        if (apart > 8) this.arrow(x, top, base, colours.bad, apart > 14);
        if (x - bang < 9) continue;
        bang = x;
        c.font = `bold ${this.bar > 10 ? 13 : 11}px ${FONT}`;
        c.textAlign = "left";
        c.textBaseline = "top";
        c.strokeStyle = colours.chart;
        c.lineWidth = 3;
        c.strokeText("!", x + 3, top - 2);
        c.fillStyle = colours.bad;
        c.fillText("!", x + 3, top - 2);
      }
    }

    arrow(x, from, to, ink, head) {
      if (x < this.gutter - 4 || x > this.width + 4) return;
      const { context: c } = this;
      const size = head ? Math.sign(to - from) * 4.5 : 0;
      c.strokeStyle = c.fillStyle = ink;
      c.lineWidth = 1.3;
      c.beginPath();
      c.moveTo(x, from);
      c.lineTo(x, to - size);
      c.stroke();
      if (!head) return;
      c.beginPath();
      c.moveTo(x, to);
      c.lineTo(x - 3, to - size);
      c.lineTo(x + 3, to - size);
      c.fill();
    }

    shifts() {
      const { context: c, colours, run } = this;
      const first = search(run.shifts, (s) => s.at < view.from), last = search(run.shifts, (s) => s.at <= view.to);
      const roomy = this.plot / Math.max(1, last - first) > 6;
      let painted = -9;
      for (let i = first; i < last; i++) {
        const { at, source, target } = run.shifts[i];
        const x = this.x(at);
        if (!roomy && x - painted < 1.5) continue;
        painted = x;
        const [from, to] = [source, target].map((cpu) => this.cpuTop(cpu) + this.cpuLane / 2 - 0.5);
        const end = to - Math.sign(to - from) * (roomy ? 5 : 0);
        for (const [ink, wide] of roomy ? [[colours.chart, 3.5], [colours.accent, 1.5]] : [[colours.accent, 1]]) {
          c.strokeStyle = ink;
          c.lineWidth = wide;
          c.beginPath();
          c.moveTo(x, from);
          c.lineTo(x, end);
          c.stroke();
        }
        if (!roomy) continue;
        c.fillStyle = colours.accent;
        c.beginPath();
        c.arc(x, from, 2.6, 0, 7);
        c.fill();
        c.beginPath();
        c.moveTo(x, to + Math.sign(to - from) * 2);
        c.lineTo(x - 3.5, end - Math.sign(to - from));
        c.lineTo(x + 3.5, end - Math.sign(to - from));
        c.fill();
      }
    }

    // The stretches of time that the file does not hold.
    missing() {
      const edges = [...this.run.windows.flat(), Math.max(view.full, this.run.horizon)];
      const out = [];
      for (let i = 1; i + 1 < edges.length; i += 2) {
        if (edges[i] < edges[i + 1]) out.push([edges[i], edges[i + 1]]);
      }
      return out;
    }

    // What the file does not hold must not look idle.
    gaps() {
      const { context: c, colours, run } = this;
      for (const [from, to] of this.missing()) {
        if (to <= view.from || from >= view.to) continue;
        const left = Math.max(this.x(from), this.gutter), right = Math.min(this.x(to), this.gutter + this.plot);
        c.fillStyle = colours.lane;
        c.fillRect(left, AXIS, right - left, this.height - AXIS - STRIP);
        c.fillStyle = hatch(c, colours.line, "falling");
        c.fillRect(left, AXIS, right - left, this.height - AXIS - STRIP);
        const text = from >= run.horizon ? "the run ends here" : "not in this file";
        const room = right - left - 8;
        c.font = `11px ${FONT}`;
        if (c.measureText(text).width > room) continue;
        c.fillStyle = colours.faint;
        c.textAlign = "center";
        c.fillText(text, (left + right) / 2, AXIS + PAD + this.cpuLane / 2);
      }
    }

    pointer() {
      if (view.pointer === null || view.pointer < view.from || view.pointer > view.to) return;
      const { context: c, colours } = this;
      const x = this.x(view.pointer);
      c.strokeStyle = colours.accent;
      c.lineWidth = 1;
      c.beginPath();
      c.moveTo(x, AXIS);
      c.lineTo(x, this.height - STRIP);
      c.stroke();
    }

    labels() {
      const { context: c, colours, run } = this;
      c.textAlign = "left";
      c.textBaseline = "middle";
      const write = (text, y, font, ink, swatch) => {
        c.font = font;
        c.fillStyle = ink;
        const left = swatch ? 20 : 8;
        let shown = text;
        while (shown.length > 1 && c.measureText(shown).width > this.gutter - left - 6) {
          shown = `${shown.replace(/…$/, "").slice(0, -1)}…`;
        }
        c.fillText(shown, left, y);
        if (swatch) {
          c.fillStyle = swatch;
          c.fillRect(8, y - 5, 8, 10);
        }
      };
      const size = this.cpuLane < 20 ? 10 : 12;
      for (let cpu = 0; cpu < run.cpus; cpu++) {
        write(`CPU ${cpu}`, this.cpuTop(cpu) + this.cpuLane / 2, `${size}px ${FONT}`, colours.faint);
      }
      run.tasks.forEach(([name, cpus], task) => {
        const top = this.taskTop(task), own = colour(task, run.tasks.length);
        if (this.bar > 10) {
          write(name, top + 11, `600 12px ${FONT}`, colours.ink, own);
          write(`on ${cpus}`, top + 24, `10px ${FONT}`, colours.faint);
        } else {
          write(name, top + this.taskLane / 2 + 1, `11px ${FONT}`, colours.ink, own);
        }
      });
      c.fillStyle = colours.line;
      c.fillRect(0, this.tasksTop - 6, this.width, 1);
    }

    // The whole run in a strip: where the misses are, and which part is in view.
    strip() {
      const { context: c, colours, run } = this;
      const top = this.height - STRIP + 3, height = STRIP - 6;
      const at = (ns) => this.gutter + (ns / view.full) * this.plot;
      c.fillStyle = colours.lane;
      c.fillRect(this.gutter, top, this.plot, height);
      c.fillStyle = hatch(c, colours.hatch, "falling");
      for (const [from, to] of this.missing()) c.fillRect(at(from), top, at(to) - at(from), height);
      c.fillStyle = colours.accent;
      c.globalAlpha = 0.25;
      c.fillRect(at(view.from), top, Math.max(at(view.to) - at(view.from), 2), height);
      c.globalAlpha = 1;
      c.fillStyle = colours.bad;
      let painted = -9;
      for (const m of run.misses) {
        const x = at(Math.min(m.deadline, view.full));
        if (x - painted < 1) continue;
        painted = x;
        c.fillRect(x - 0.75, top, 1.5, height);
      }
      c.font = `10px ${FONT}`;
      c.fillStyle = colours.faint;
      c.textAlign = "left";
      c.textBaseline = "middle";
      c.fillText("whole run", 8, top + height / 2);
    }

    // What is under a point, in words.
    describe(x, y) {
      const { run } = this;
      const at = this.time(x);
      if (x < this.gutter || at > run.horizon) return "";
      if (y >= this.cpuTop(0) && y < this.cpuTop(run.cpus)) {
        const cpu = Math.floor((y - this.cpuTop(0)) / this.cpuLane);
        const slices = run.slices[cpu], slice = slices[search(slices, (s) => s.to <= at)];
        const away = run.away[cpu].find((a) => a.from <= at && at < a.to);
        if (away) return `CPU ${cpu}: ${away.kind === 1 ? "background work" : "offline"}\n${this.during(away)}`;
        if (!slice || slice.from > at) return `CPU ${cpu}: idle\n${span(at)}`;
        return `${run.tasks[slice.task][0]} #${slice.job} on CPU ${cpu}\n${this.during(slice)}\n${this.job(slice.task, slice.job)}`;
      }
      const task = Math.floor((y - this.tasksTop) / this.taskLane);
      if (y < this.tasksTop || task >= run.tasks.length) return "";
      const job = this.visibleJobs(task).find((j) => j.release <= at && at < j.end);
      if (!job) return `${run.tasks[task][0]}: no job pending\n${span(at)}`;
      const running = run.executed[task].find((s) => s.from <= at && at < s.to);
      const held = run.states[task].find((s) => s.from <= at && at < s.to);
      const doing = running ? `on CPU ${running.cpu}`
        : held ? ["", "behind its predecessor", "suspended", "throttled"][held.kind] : "ready, not running";
      const number = running ? running.job : job.job;
      return `${run.tasks[task][0]} #${number}: ${doing}\n${this.job(task, number)}`;
    }

    during({ from, to }) { return `${span(from)} – ${span(to)} (${span(to - from)})`; }

    job(task, number) {
      const job = this.run.byNumber[task].get(number);
      if (!job) return "";
      const end = ["finished", "dropped", "unfinished"][job.how];
      const late = job.missed ? `\n! missed, ${span(Math.max(0, job.end - job.deadline))} late` : "";
      const response = job.how === 0 ? `, response ${span(job.end - job.release)}` : "";
      return `released ${span(job.release)}, due ${span(job.deadline)}\n${end} ${span(job.end)}${response}${late}`;
    }
  }

  // ---- Drawing and input --------------------------------------------------------------------

  const output = document.getElementById("view");
  const drawAll = (print = false) => {
    for (const chart of charts) chart.draw(print);
    if (output) output.textContent = `${span(view.from)} – ${span(view.to)}`;
  };

  const listen = (chart) => {
    const { canvas } = chart;
    const tip = document.getElementById("tip");
    const pointers = new Map();
    let strip = false;
    const local = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener("wheel", (event) => {
      const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
      if (!sideways && document.activeElement !== canvas && !event.ctrlKey) return;
      event.preventDefault();
      if (sideways) pan((event.deltaX || event.deltaY) / chart.plot);
      else zoom(1.0018 ** Math.max(-400, Math.min(400, event.deltaY)), chart.time(local(event)[0]));
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      canvas.focus({ preventScroll: true });
      const [x, y] = local(event);
      pointers.set(event.pointerId, x);
      if (canvas.setPointerCapture && event.isTrusted) canvas.setPointerCapture(event.pointerId);
      canvas.classList.add("dragging");
      strip = y > chart.height - STRIP;
      if (strip) centre(x);
    });
    const centre = (x) => {
      const at = ((x - chart.gutter) / chart.plot) * view.full, half = (view.to - view.from) / 2;
      look(at - half, at + half);
    };
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = local(event);
      const before = pointers.get(event.pointerId);
      if (before !== undefined && strip) centre(x);
      else if (before !== undefined && pointers.size === 1) pan((before - x) / chart.plot);
      else if (before !== undefined) {
        const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
        const factor = Math.max(8, Math.abs(before - other)) / Math.max(8, Math.abs(x - other));
        zoom(factor, chart.time(other));
      }
      if (before !== undefined) pointers.set(event.pointerId, x);
      view.pointer = x >= chart.gutter ? chart.time(x) : null;
      const text = before === undefined ? chart.describe(x, y) : "";
      tip.hidden = !text;
      tip.textContent = text;
      if (text) {
        tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8))}px`;
        tip.style.top = `${Math.max(4, Math.min(event.clientY + 16, innerHeight - tip.offsetHeight - 8))}px`;
      }
      redraw();
    });
    const release = (event) => {
      pointers.delete(event.pointerId);
      if (!pointers.size) canvas.classList.remove("dragging");
    };
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("pointerleave", () => { view.pointer = null; tip.hidden = true; redraw(); });
    canvas.addEventListener("dblclick", (event) => zoom(0.4, chart.time(local(event)[0])));
    const keys = {
      ArrowLeft: () => pan(-0.15), ArrowRight: () => pan(0.15), PageUp: () => pan(-0.9), PageDown: () => pan(0.9),
      "+": actions.in, "=": actions.in, "-": actions.out, 0: actions.fit, Home: () => look(0, view.to - view.from),
      End: () => look(view.full - (view.to - view.from), view.full), n: actions.next, p: actions.previous,
    };
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey || !keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
  };

  const start = () => {
    document.querySelectorAll("script.run").forEach((element, index) => {
      const chart = new Chart(document.getElementById(`gantt${index}`), read(element), index);
      charts.push(chart);
      listen(chart);
    });
    view.full = Math.max(1, ...charts.map((chart) => chart.run.horizon));
    // Long runs open at their beginning, in a width in which single jobs can still be told apart.
    const starts = charts.flatMap((chart) => chart.run.slices.flat().map((s) => s.from)).sort((a, b) => a - b);
    const many = 260 * charts.length;
    view.from = 0;
    view.to = starts.length > 2 * many ? Math.max(starts[many], 1) : view.full;
    document.querySelectorAll(".scripted").forEach((element) => { element.hidden = false; });
    document.querySelectorAll("[data-do]").forEach((button) =>
      button.addEventListener("click", () => actions[button.dataset.do]()));
    document.querySelectorAll(".show").forEach((button) => button.addEventListener("click", () => {
      const { run, task, job, from, to } = button.dataset;
      goTo({ task: Number(task), job: Number(job), release: Number(from), deadline: Number(to), end: Number(to) }, Number(run));
      charts[Number(run)].canvas.scrollIntoView({ block: "center", behavior: "smooth" });
    }));
    document.getElementById("theme").addEventListener("click", () => {
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      redraw();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    addEventListener("resize", redraw);
    addEventListener("beforeprint", () => drawAll(true));
    addEventListener("afterprint", () => drawAll());
    drawAll();
    root.dataset.slices = charts.map((chart) => chart.run.slices.flat().length).join(",");
    root.dataset.misses = charts.map((chart) => chart.run.misses.length).join(",");
    root.dataset.ready = "true";
  };
  start();
})();
