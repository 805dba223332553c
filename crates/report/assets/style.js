// Formats and styles: times as text, marks on an axis, colours, hatches.

const trim = (number, digits) => String(Number(number.toFixed(digits)));
const span = (ns) => {
  if (ns === 0) return "0";
  const abs = Math.abs(ns);
  const [unit, name] = abs >= 1e9 ? [1e9, "s"] : abs >= 1e6 ? [1e6, "ms"] : abs >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  return `${trim(ns / unit, abs / unit >= 100 ? 1 : 3)} ${name}`;
};

// All charts mark the same instants; the unit depends on the distance between marks.
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

const FEW = ["#6fa8dc", "#f2b366", "#7cc48d", "#b79be0", "#e0c94f", "#62c3c6", "#dd9cc3", "#b0a58f", "#9bb83f", "#8fa3ef"];
// Red is reserved for misses: hues range from orange to magenta.
const colour = (task, count) => count <= FEW.length ? FEW[task]
  : `hsl(${Math.round(28 + ((task * 137.508) % 300))} ${task % 2 ? 48 : 62}% ${[66, 58, 74][task % 3]}%)`;

const theme = () => {
  const style = getComputedStyle(root);
  const names = ["chart", "lane", "grid", "ink", "faint", "bad", "accent", "hatch", "other", "line", "paper"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
};
// Printing uses the light style.
const PRINT = { chart: "#fff", lane: "#f5f6f8", grid: "#e3e6ea", ink: "#000", faint: "#555", bad: "#c8202f",
  accent: "#2563b8", hatch: "#8a94a3", other: "#c2680c", line: "#ccc", paper: "#fff" };

// Tiles are kept: a view may hold thousands of hatched bars.
const tiles = new Map();
const hatch = (context, colour, kind) => {
  const key = `${colour} ${kind}`;
  if (!tiles.has(key)) tiles.set(key, tileOf(colour, kind));
  return context.createPattern(tiles.get(key), "repeat");
};
const tileOf = (colour, kind) => {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const pen = tile.getContext("2d");
  pen.strokeStyle = colour;
  pen.lineWidth = 1.3;
  pen.beginPath();
  if (kind === "upright") { pen.moveTo(2, 0); pen.lineTo(2, 6); }
  else if (kind === "level") { pen.moveTo(0, 2); pen.lineTo(6, 2); } else {
    for (const shift of [-6, 0, 6]) {
      const [a, b] = kind === "rising" ? [6, 0] : [0, 6];
      pen.moveTo(shift - 1, a + (kind === "rising" ? 1 : -1));
      pen.lineTo(shift + 7, b + (kind === "rising" ? -1 : 1));
    }
  }
  pen.stroke();
  return tile;
};
