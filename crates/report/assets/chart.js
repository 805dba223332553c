// Draws one schedule on its canvas: a lane per CPU, a lane per task, an overview of the whole run.

// Shifts cross bars, which have the same colours by day and by night.
const SHIFT = "#1746a2", TRIGGER = "#7a3b00", HALO = "#fff";
const AXIS = 24, STRIP = 16, PAD = 6;
const FONT = '"DejaVu Sans", system-ui, sans-serif';

// Space for the names of all charts, so that their time axes are aligned.
const gutter = (width) => {
  const wanted = Math.max(...charts.map((chart) => chart.names)) + 30;
  return Math.round(Math.min(wanted, Math.max(76, width * 0.17)));
};

class Chart {
  constructor(canvas, run, index) {
    Object.assign(this, { canvas, run, index });
    this.context = canvas.getContext("2d");
    this.cpuLane = run.cpus > 64 ? 6 : run.cpus > 32 ? 10 : run.cpus > 16 ? 16 : 24;
    this.tasksTop = AXIS + PAD + run.cpus * this.cpuLane + 10;
    this.show(run.lanes);
  }

  // Gives lanes to these tasks, in this order.
  show(lanes) {
    const { canvas, context: c, run } = this;
    Object.assign(this, { lanes, place: new Map(lanes.map((task, lane) => [task, lane])) });
    // The more lanes, the lower they are: [lane, bar].
    [this.taskLane, this.bar] = lanes.length > 100 ? [12, 5] : lanes.length > 16 ? [21, 9] : [32, 14];
    this.height = this.tasksTop + lanes.length * this.taskLane + PAD + STRIP;
    canvas.style.height = `${this.height}px`;
    c.font = `600 12px ${FONT}`;
    this.names = lanes.reduce((most, task) => Math.max(most, c.measureText(run.tasks[task][0]).width), 60);
  }

  x(ns) { return this.gutter + ((ns - view.from) / (view.to - view.from)) * this.plot; }
  time(x) { return view.from + ((x - this.gutter) / this.plot) * (view.to - view.from); }
  cpuTop(cpu) { return AXIS + PAD + cpu * this.cpuLane; }
  taskTop(task) { return this.tasksTop + this.place.get(task) * this.taskLane; }

  draw(print) {
    const { canvas, context: c, run } = this;
    // For printing the picture is scaled to the page, so that it contains as much as on a screen.
    const width = print ? 900 : canvas.clientWidth || 800;
    // Browsers draw nothing on a canvas that is too large.
    const ratio = Math.min(print ? 3 : (window.devicePixelRatio || 1), 32000 / this.height,
      Math.sqrt(1.2e8 / (width * this.height)));
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(this.height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(this.height * ratio);
    }
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.width = width;
    this.gutter = gutter(width);
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
    this.crossings(run.shifts, (cpu) => this.cpuTop(cpu) + this.cpuLane / 2 - 0.5, SHIFT);
    const triggers = run.triggers.filter((t) => this.place.has(t.source) && this.place.has(t.target));
    this.crossings(triggers, (task) => this.taskTop(task) + this.taskLane - 4 - this.bar / 2, TRIGGER);
    c.font = `11px ${FONT}`;
    c.textAlign = "left";
    c.textBaseline = "middle";
    for (const [text, x, y, ink] of this.captions) {
      // Text on a hatched background needs a margin.
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

  // Fills one bar. Bars narrower than a pixel are merged, so that the cost of a view of the whole run is
  // bounded by its pixels.
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
        this.caption(["", "background", "offline", "taken"][away.kind], "", [left, right - left], top + height / 2, colours.ink);
      }
    });
  }

  // Notes the longer of two texts that fits a box; texts are drawn last.
  caption(long, short, [left, width], y, ink = "#10151c") {
    if (this.cpuLane < 14 && y < this.tasksTop) return;
    const start = Math.max(left, this.gutter), room = Math.min(left + width, this.width) - start - 7;
    if (room < 8) return;
    const { context: c } = this;
    c.font = `11px ${FONT}`;
    const text = [long, short].find((t) => t && c.measureText(t).width <= room);
    if (!text) return;
    this.captions.push([text, start + 4, y + 0.5, ink]);
  }

  tasks() {
    this.lanes.forEach((task) => {
      this.states(task, (kind) => kind === 1);
      this.lives(task);
      this.states(task, (kind) => kind > 1 && kind < 5);
      this.execution(task);
      this.states(task, (kind) => kind === 5);
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
      if (job.end > view.from && job.eligible < job.end) {
        c.fillStyle = colours.chart;
        this.fill(job.eligible, job.end, base - this.bar, this.bar, { painted: -1 });
        c.globalAlpha = 0.28;
        c.fillStyle = own;
        this.fill(job.eligible, job.end, base - this.bar, this.bar, state);
        c.globalAlpha = 1;
      }
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

  states(task, wanted) {
    const { context: c, colours, run } = this;
    const base = this.taskTop(task) + this.taskLane - 4, top = base - this.bar;
    const list = run.states[task];
    const first = search(list, (s) => s.from < view.from - run.longestState[task]);
    for (let i = first; i < list.length && list[i].from < view.to; i++) {
      const { kind, from, to } = list[i];
      if (to <= view.from || !wanted(kind)) continue;
      const left = Math.max(this.x(from), this.gutter - 2);
      const width = Math.min(this.x(to), this.width + 2) - left;
      if (width < 1) continue;
      c.lineWidth = 1;
      if (kind < 5) {
        c.fillStyle = colours.chart;
        c.fillRect(left, top, width, this.bar);
      }
      if (kind === 1) {
        c.setLineDash([3, 2]);
        c.strokeStyle = colours.hatch;
      } else {
        const ink = { 2: colours.hatch, 5: "#10151c" }[kind] ?? colours.other;
        c.fillStyle = hatch(c, ink, ["falling", "rising", "upright", "level"][kind - 2]);
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

  // Releases upwards, deadlines downwards. If they are too close, only misses are drawn.
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
      c.font = `bold ${this.bar > 10 ? 14 : 12}px ${FONT}`;
      c.textAlign = "right";
      c.textBaseline = "top";
      c.strokeStyle = colours.chart;
      c.lineWidth = 3;
      c.strokeText("!", x - 3, top - 2);
      c.fillStyle = colours.bad;
      c.fillText("!", x - 3, top - 2);
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

  // Vertical arrows from one lane to another: shifts between CPUs, triggers between tasks.
  crossings(all, place, tint) {
    const { context: c } = this;
    const first = search(all, (s) => s.at < view.from), last = search(all, (s) => s.at <= view.to);
    const roomy = this.plot / Math.max(1, last - first) > 6;
    let painted = -9;
    for (let i = first; i < last; i++) {
      const { at, source, target } = all[i];
      const x = this.x(at);
      if (!roomy && x - painted < 1.5) continue;
      painted = x;
      const [from, to] = [source, target].map(place);
      const end = to - Math.sign(to - from) * (roomy ? 5 : 0);
      for (const [ink, wide] of roomy ? [[HALO, 3.5], [tint, 1.5]] : [[tint, 1]]) {
        c.strokeStyle = ink;
        c.lineWidth = wide;
        c.beginPath();
        c.moveTo(x, from);
        c.lineTo(x, end);
        c.stroke();
      }
      if (!roomy) continue;
      c.fillStyle = tint;
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

  // The intervals without data.
  missing() {
    const edges = [...this.run.windows.flat(), Math.max(view.full, this.run.horizon)];
    const out = [];
    for (let i = 1; i + 1 < edges.length; i += 2) {
      if (edges[i] < edges[i + 1]) out.push([edges[i], edges[i + 1]]);
    }
    return out;
  }

  // Intervals without data must not look idle.
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
    const every = this.cpuLane < 10 ? 4 : 1;
    for (let cpu = 0; cpu < run.cpus; cpu += every) {
      write(`CPU ${cpu}`, this.cpuTop(cpu) + this.cpuLane / 2, `${size}px ${FONT}`, colours.faint);
    }
    this.lanes.forEach((task) => {
      const [name, cpus] = run.tasks[task];
      const top = this.taskTop(task), own = colour(task, run.tasks.length);
      if (this.bar > 10) {
        write(name, top + 11, `600 12px ${FONT}`, colours.ink, own);
        write(`on ${cpus}`, top + 24, `10px ${FONT}`, colours.faint);
      } else {
        const size = this.bar > 5 ? 11 : 9;
        write(name, top + this.taskLane / 2 + 1, `${size}px ${FONT}`, colours.ink, own);
      }
    });
    c.fillStyle = colours.line;
    c.fillRect(0, this.tasksTop - 6, this.width, 1);
  }

  // The overview: the misses of the whole run, and the visible part.
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

  // The description of the element under a point.
  describe(x, y) {
    const { run } = this;
    const at = this.time(x);
    if (x < this.gutter || at > run.horizon) return "";
    if (y >= this.cpuTop(0) && y < this.cpuTop(run.cpus)) {
      const cpu = Math.floor((y - this.cpuTop(0)) / this.cpuLane);
      const slices = run.slices[cpu], slice = slices[search(slices, (s) => s.to <= at)];
      const away = run.away[cpu].find((a) => a.from <= at && at < a.to);
      if (away) return `CPU ${cpu}: ${["", "background work", "offline", "taken by others"][away.kind]}\n${this.during(away)}`;
      if (!slice || slice.from > at) return `CPU ${cpu}: idle\n${span(at)}`;
      return `${run.tasks[slice.task][0]} #${slice.job} on CPU ${cpu}\n${this.during(slice)}\n${this.job(slice.task, slice.job)}`;
    }
    const task = this.lanes[Math.floor((y - this.tasksTop) / this.taskLane)];
    if (task === undefined) return "";
    const job = this.visibleJobs(task).find((j) => j.release <= at && at < j.end);
    if (!job) return `${run.tasks[task][0]}: no job pending\n${span(at)}`;
    const running = run.executed[task].find((s) => s.from <= at && at < s.to);
    const held = run.states[task].find((s) => s.from <= at && at < s.to);
    const doing = running ? `${held?.kind === 5 ? "spinning for a mutex on" : "on"} CPU ${running.cpu}`
      : held ? ["", "behind its predecessor", "suspended", "throttled", "waiting for a mutex"][held.kind] : "ready, not running";
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
