// Interaction of the charts of a page: drawing, pointer, keys, buttons, printing.

const root = document.documentElement;
let errors = 0;
addEventListener("error", () => { root.dataset.errors = String(++errors); });
root.dataset.errors = "0";

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
  // Long runs open at their beginning, with a width in which single jobs are distinguishable.
  const starts = charts.flatMap((chart) => chart.run.slices.flat().map((s) => s.from)).sort((a, b) => a - b);
  const many = Math.max(60, 30 * charts.reduce((cpus, chart) => cpus + chart.run.cpus, 0));
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
  listenToFilter();
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
