// The search box: shows the rows, pictures, explanations and lanes of the tasks whose names contain one of the words.

// More lanes would be hard to read.
const LANES_MAX = 60;

// What has the name of a task, and that name. A job is called after its task: `name #3`.
const named = () => [
  ...[...document.querySelectorAll(".of-tasks tbody tr")].map((row) => [row, row.cells[0].textContent.replace(/ #\d+$/, "")]),
  ...[...document.querySelectorAll(".small-multiples figure")].map((figure) =>
    [figure, figure.firstElementChild.firstChild.textContent.trim()]),
  ...[...document.querySelectorAll("details.miss[data-name]")].map((miss) => [miss, miss.dataset.name]),
];

const matches = (words) => (name) => {
  const lower = name.toLowerCase();
  return words.some((word) => lower.includes(word));
};

const listenToFilter = () => {
  const box = document.getElementById("filter");
  if (!box) return;
  const found = document.getElementById("found"), all = found.textContent;
  let elements = null, opened = [];
  const apply = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = words.length ? matches(words) : () => true;
    elements ??= named();
    for (const [element, name] of elements) element.hidden = !fits(name);
    // What is folded up may have what is looked for.
    for (const details of opened) details.open = false;
    opened = words.length ? [...document.querySelectorAll("details.others:not([open])")]
      .filter((details) => details.querySelector("tbody tr:not([hidden]), figure:not([hidden]), .miss:not([hidden])")) : [];
    for (const details of opened) details.open = true;
    let count = 0, cut = false;
    for (const chart of charts) {
      const { tasks, lanes } = chart.run;
      const hits = tasks.map((_, task) => task).filter((task) => fits(tasks[task][0]));
      count = Math.max(count, hits.length);
      cut ||= words.length > 0 && hits.length > LANES_MAX;
      chart.show(words.length ? hits.slice(0, LANES_MAX) : lanes);
    }
    found.textContent = !words.length ? all : count === 0 ? "no task has such a name"
      : `${count} of ${all}${cut ? `; lanes of the first ${LANES_MAX}` : ""}`;
    root.dataset.found = String(count);
    redraw();
  };
  box.addEventListener("input", apply);
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !box.value) return;
    event.preventDefault();
    box.value = "";
    apply();
  });
  addEventListener("keydown", (event) => {
    const typing = /^(input|textarea|select)$/i.test(event.target.tagName ?? "");
    if (event.key !== "/" || typing || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    box.focus();
    box.select();
  });
};
