// Charts: drawn as SVG once in light colours, which print needs too, and once in dark when wanted.

const DARK = {
  "#3b6ea5": "#7db4ee", "#b2432f": "#f08f78", "#8a8a8a": "#a9aeb6", "#333333": "#e8eaed",
  "#777777": "#a0a6b0", "#e6e6e6": "#343a44", "#c4c4c4": "#5b626d", "#f4f4f4": "#2a2f38",
  "#f7f7f7": "#2a2f38", "#555555": "#b4bac4", "white": "#15181d",
  "#000000": "#15181d",
};
const INKS = {
  light: { ink: "#1c2026", soft: "#4d5560", line: "#c9ced6", grid: "#e6e6e6" },
  dark: { ink: "#e8eaed", soft: "#b4bac4", line: "#5b626d", grid: "#343a44" },
};

// These hold data and names, one of which might be spelled like a colour.
const NO_COLOURS = new Set(["datasets", "values", "domain", "sort", "field"]);
// These hold words, or an object that holds them beside the colours they are set in.
const WORDS = new Set(["title", "text", "subtitle"]);

// The same chart with every colour of the light palette replaced by its dark partner.
function darkened(value, name) {
  if (NO_COLOURS.has(name)) return value;
  if (WORDS.has(name) && (typeof value === "string" || Array.isArray(value))) return value;
  if (typeof value === "string") return DARK[value] ?? value;
  if (Array.isArray(value)) return value.map((item) => darkened(item));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, darkened(item, key)]));
}

function configOf(mode) {
  const { ink, soft, line, grid } = INKS[mode];
  return {
    background: "transparent",
    font: "system-ui, 'Liberation Sans', sans-serif",
    axis: { labelColor: ink, titleColor: ink, domainColor: line, tickColor: line, gridColor: grid, titleLimit: 520, labelLimit: 320 },
    legend: { labelColor: ink, titleColor: ink, labelLimit: 320 },
    title: { color: ink, subtitleColor: soft, limit: 760 },
    header: { labelColor: ink, titleColor: ink, labelLimit: 320 },
  };
}

function merged(base, over) {
  const out = { ...base };
  for (const [key, value] of Object.entries(over)) {
    const both = typeof value === "object" && value !== null && typeof out[key] === "object";
    out[key] = both ? merged(out[key], value) : value;
  }
  return out;
}

// On a narrow screen the names give way to the marks; wide pictures are scrolled instead.
function fitted(spec, room) {
  if (room >= 700) return spec;
  const names = Math.min(150, room / 2);
  const config = merged(spec.config ?? {}, { axis: { labelLimit: names }, legend: { columns: 1 } });
  return { ...narrowed(spec, Math.max(140, room - names - 30)), config };
}

function narrowed(view, width) {
  if (view.vconcat) return { ...view, vconcat: view.vconcat.map((part) => narrowed(part, width)) };
  return view.layer && view.width <= 600 ? { ...view, width } : view;
}

function themed(spec, mode) {
  const coloured = mode === "dark" ? darkened(spec) : spec;
  return { ...coloured, config: merged(configOf(mode), coloured.config ?? {}) };
}

async function draw(holder, spec, mode) {
  if (holder.querySelector(`.${mode}`)) return;
  const box = document.createElement("div");
  box.className = mode;
  // what assistive technology needs is the label of the holder, not every mark
  box.setAttribute("aria-hidden", "true");
  holder.append(box);
  // expressions are interpreted, so that the page may forbid code made from text
  await window.vegaEmbed(box, themed(fitted(spec, holder.clientWidth), mode), { ast: true, renderer: "svg", actions: false });
  holder.dataset.drawn = [...holder.children].map((child) => child.className.split(" ")[0]).join(" ");
}

document.addEventListener("DOMContentLoaded", () => {
  // charts of groups are part of the page, and need none of this
  const charts = [...document.querySelectorAll("script[data-chart]")].map((script) => ({
    holder: document.getElementById(script.dataset.chart),
    spec: dataOf(script),
  }));
  const all = (mode) => charts.forEach(({ holder, spec }) => draw(holder, spec, mode));
  all(theme.now);
  all("light");
  theme.listeners.push(all);
});
