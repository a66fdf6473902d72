// Ask: the simultaneous bound of any group of the audited collection, worked out in the page.

const OWN_TARGET = "the group is its own target";
const TOO_SMALL = "too small to exclude anything";

// --- choices: for each attribute a level, a run of points, or null for "any" -----------------

function isInCollection(asked, choice) {
  const bound = choice.filter((one) => one !== null).length;
  return bound > 0 && bound <= asked.depth && asked.axes.every((axis, i) => fits(axis, choice[i]));
}

function fits(axis, one) {
  if (axis.form === "bins") return one !== null;
  if (axis.form === "levels" || one === null) return true;
  const [first, last] = one;
  const whole = [first === 0, last === axis.ends.length - 1];
  return first <= last && (axis.form === "ranges" || whole[0] !== whole[1]);
}

function contains(one, code) {
  if (one === null) return true;
  return Array.isArray(one) ? one[0] <= code && code <= one[1] : one === code;
}

function groupText(asked, choice) {
  const texts = asked.axes.map((axis, i) => (choice[i] === null ? null : choiceText(axis, choice[i])));
  return texts.filter((text) => text !== null).join(", ");
}

function choiceText(axis, one) {
  if (!Array.isArray(one)) return axis.texts[one];
  const [low, high] = [axis.texts[one[0]], axis.ends[one[1]]];
  if (!axis.closed[one[1]]) return `${axis.name} ${low} to under ${high}`;
  return low === high ? `${axis.name} ${low}` : `${axis.name} ${low} to ${high}`;
}

// --- parts: counts summed over the atoms of the group and of its target ----------------------

function partsOf(asked, choice) {
  const { codes, rows, ones, inside, against } = asked.cells;
  const sums = { group: [0, 0], rest: [0, 0], both: [0, 0], other: [0, 0] };
  let atoms = 0;
  rows.forEach((n, atom) => {
    const member = asked.axes.every((axis, i) => contains(choice[i], codes[i][atom]));
    atoms += member;
    const where = member ? (inside?.[atom] ? "both" : "group") : inside?.[atom] ? "other" : "rest";
    sums[where][0] += n;
    sums[where][1] += ones[atom];
  });
  if (atoms === 0) return null;
  const pieces = { known: ["group"], reference: ["group", "both", "other"] }[against] ?? ["group", "rest"];
  return {
    ...asked.cells,
    rows: pieces.map((name) => sums[name][0]),
    ones: pieces.map((name) => sums[name][1]),
    sample: total(rows),
    hits: total(ones),
  };
}

// What is known of a group before any bound: size, value, target, disparity, and why not.
function estimateOf(parts) {
  const [group, target] = MEMBERS[parts.against];
  const n = dot(parts.rows, group);
  const value = n > 0 ? dot(parts.ones, group) / n : null;
  const targetRows = dot(parts.rows, target);
  let goal = null;
  if (parts.against === "known") goal = parts.scale * parts.value;
  else if (targetRows > 0) goal = (parts.scale * dot(parts.ones, target)) / targetRows;
  const noRatio = parts.relative && !(goal > 0);
  const compared = value === null || goal === null || noRatio ? null : parts.relative ? value / goal : value - goal;
  return { n, value, target: goal, disparity: compared, note: statusNote(parts, n, goal === null || noRatio) };
}

function statusNote(parts, n, noTarget) {
  if (n === 0) return "no row on which the metric counts";
  if (noTarget) return "the target has no row to compare with";
  if (parts.hits === 0 || parts.hits === parts.sample) {
    return "the metric does not vary, so its uncertainty cannot be estimated";
  }
  if (isOwnTarget(parts, n)) return OWN_TARGET;
  return n === 1 ? "one row only" : "";
}

function isOwnTarget(parts, n) {
  if (parts.scale !== 1) return false;
  if (parts.against === "overall") return n === parts.sample;
  return parts.against === "reference" && parts.rows[0] === 0 && parts.rows[2] === 0;
}

// A group that moves with its target leaves nothing to bound.
function isStill(parts, n) {
  const c = parts.relative ? 1 : parts.scale;
  if (parts.against === "known") return false;
  if (parts.against === "complement") return n === parts.sample;
  if (parts.against === "overall") return 1 / n + (c * c - 2 * c) / parts.sample <= 1e-12 / n;
  const there = parts.rows[1] + parts.rows[2];
  return 1 / n + (c * c) / there - (2 * c * parts.rows[1]) / (n * there) <= 1e-12 / n;
}

// --- bounds -----------------------------------------------------------------------------------

function criticalAt(asked, level) {
  if (level === asked.level) return asked.critical;
  if (asked.family) return normalCritical(level, asked.family, asked.groupsAudited, asked.side === "both");
  const place = Math.ceil(level * asked.draws.length - 1e-9) - 1;
  return asked.draws[Math.min(Math.max(place, 0), asked.draws.length - 1)];
}

// Both ends at a critical value, before they are cut to what is possible.
function endsOf(asked, group, critical) {
  if (group.parts) return band(group.parts, critical);
  return [group.disparity - critical * group.reach, group.disparity + critical * group.reach];
}

function clamp(asked, bound) {
  if (bound === null || !Number.isFinite(bound)) return null;
  const [low, high] = asked.limits;
  const above = low === null ? bound : Math.max(bound, low);
  return high === null ? above : Math.min(above, high);
}

function lookUp(asked, choice) {
  if (asked.groups) return asked.groups.get(JSON.stringify(choice)) ?? null;
  if (!isInCollection(asked, choice)) return null;
  const parts = partsOf(asked, choice);
  return parts === null ? null : bounded(asked, parts);
}

// A group at the level of the audit, from its counts.
function bounded(asked, parts) {
  const row = estimateOf(parts);
  if (row.note === OWN_TARGET) {
    const same = clamp(asked, row.disparity);
    return judged(asked, { ...row, parts, lower: same, upper: same, reach: 0 });
  }
  const none = row.disparity === null || isStill(parts, row.n);
  const [low, high] = none ? [NaN, NaN] : band(parts, asked.critical);
  const half = (high - low) / 2 / Math.max(asked.critical, 1e-9);
  return judged(asked, { ...row, parts, ...sided(asked, low, high), reach: Number.isNaN(half) ? null : half });
}

function sided(asked, low, high) {
  return {
    lower: asked.side === "upper" ? null : clamp(asked, low),
    upper: asked.side === "lower" ? null : clamp(asked, high),
  };
}

// The group at another level; one without bounds, or certain, stays as it is.
function rebounded(asked, row, level) {
  if (level === asked.level || row.reach === null || row.disparity === null || row.reach === 0) return row;
  const [low, high] = endsOf(asked, row, criticalAt(asked, level));
  return judged(asked, { ...row, ...sided(asked, low, high) });
}

function judged(asked, row) {
  return { ...row, verdict: verdictOf(asked, row), note: noteOf(asked, row) };
}

function verdictOf(asked, row) {
  if (asked.tolerance === null) return null;
  const [low, high] = tolerated(asked);
  if (row.n === 1 && row.reach !== 0) return "undetermined";
  const insideLow = low === null || (row.lower !== null && row.lower > low);
  const insideHigh = high === null || (row.upper !== null && row.upper < high);
  if (insideLow && insideHigh) return "shown";
  const beyondHigh = high !== null && row.lower !== null && row.lower >= high;
  const beyondLow = low !== null && row.upper !== null && row.upper <= low;
  return beyondHigh || beyondLow ? "shown not" : "undetermined";
}

function tolerated(asked) {
  if (asked.side === "lower") return [asked.tolerance, null];
  if (asked.side === "upper") return [null, asked.tolerance];
  return asked.relative ? [asked.tolerance, 1 / asked.tolerance] : [-asked.tolerance, asked.tolerance];
}

function noteOf(asked, row) {
  if (row.reach === 0) return row.note;
  const [low, high] = asked.limits;
  const saysLow = row.lower !== null && (low === null || row.lower > low);
  const saysHigh = row.upper !== null && (high === null || row.upper < high);
  if ((saysLow || saysHigh) && row.n !== 1) return "";
  return row.note || `n = ${row.n.toLocaleString("en")} is ${TOO_SMALL}`;
}

// The answer for a choice at a level; null if the collection has no such group.
function answerOf(asked, choice, level) {
  const row = lookUp(asked, choice);
  return row === null ? null : rebounded(asked, row, level);
}

// --- words ------------------------------------------------------------------------------------

function amountText(asked, value) {
  const sign = value < 0 ? "-" : "+";
  if (asked.relative) return value.toFixed(2);
  const size = Math.abs(value);
  return asked.share ? `${sign}${(100 * size).toFixed(1)} points` : `${sign}${Number(size.toPrecision(4))}`;
}

function levelText(level) {
  return `${Number((100 * level).toPrecision(10))} %`;
}

function boundText(asked, row) {
  const ends = [];
  if (row.lower !== null) ends.push(`at least ${amountText(asked, row.lower)}`);
  if (row.upper !== null) ends.push(`at most ${amountText(asked, row.upper)}`);
  return ends.length ? `${ends.join(" and ")} against ${asked.against}` : "no bound";
}

function estimateText(asked, row) {
  if (row.disparity === null) return `n = ${row.n.toLocaleString("en")}; there is no estimate`;
  return `n = ${row.n.toLocaleString("en")}; estimated ${amountText(asked, row.disparity)}`;
}

function verdictText(asked, verdict) {
  if (verdict === null) return "";
  const claim = `That it is ${asked.claimed}`;
  return {
    shown: `✓ ${claim} is shown.`,
    "shown not": `✕ ${claim} is shown not to hold.`,
    undetermined: `? ${claim} is undetermined.`,
  }[verdict];
}

function scopeText(asked, level) {
  return `${asked.guarantee.split(levelText(asked.level)).join(levelText(level))}.`;
}

function linesOf(asked, choice, level) {
  const name = groupText(asked, choice);
  const row = answerOf(asked, choice, level);
  if (row === null) {
    const none = name ? `There is no ${asked.noun} “${name}” in this audit.` : "Choose at least one attribute.";
    return [["bound", none], ["scope", `This report answers for ${asked.scope}; the guarantee covers only what was audited.`]];
  }
  return [
    ["bound", `${name}: ${boundText(asked, row)}.`],
    ["estimate", `${estimateText(asked, row)}.${row.note ? ` Note: ${row.note}.` : ""}`],
    ["judged", verdictText(asked, row.verdict)],
    ["scope", scopeText(asked, level)],
  ].filter(([, text]) => text);
}

// --- the form -----------------------------------------------------------------------------------

function opened(data) {
  if (!data.groups) return data;
  const groups = new Map(data.groups.map(([choice, ...row]) => {
    const [n, value, target, disparity, lower, upper, reach, verdict, note, counts] = row;
    const parts = counts && { ...data.shape, rows: counts[0], ones: counts[1] };
    return [JSON.stringify(choice), { n, value, target, disparity, lower, upper, reach, verdict, note, parts }];
  }));
  return { ...data, groups };
}

function choiceIn(form, asked) {
  return asked.axes.map((axis, i) => {
    const fields = [...form.querySelectorAll(`[data-axis="${i}"]`)];
    if (fields.length === 1) return fields[0].value === "" ? null : Number(fields[0].value);
    return fields.map((field) => Number(field.value));
  });
}

function levelIn(form, asked) {
  const field = form.querySelector("[data-level]");
  const level = field && field.value !== "" && field.validity.valid ? Number(field.value) / 100 : asked.level;
  return Math.abs(level - asked.level) < 1e-12 ? asked.level : level;
}

// Sliders run over the points of the data; the ends they stand for are told in words.
function tellEnds(form, asked) {
  asked.axes.forEach((axis, i) => {
    const [from, to] = form.querySelectorAll(`input[data-axis="${i}"]`);
    if (!from) return;
    from.setAttribute("aria-valuetext", axis.texts[from.value]);
    to.setAttribute("aria-valuetext", axis.ends[to.value]);
    form.querySelector(`[data-ends="${i}"]`).textContent = choiceText(axis, [Number(from.value), Number(to.value)]);
  });
}

function heldInOrder(form, moved) {
  const pair = [...form.querySelectorAll(`input[data-axis="${moved.dataset.axis}"]`)];
  if (pair.length !== 2 || Number(pair[0].value) <= Number(pair[1].value)) return;
  pair.forEach((field) => { field.value = moved.value; });
}

function wire(script) {
  const asked = opened(dataOf(script));
  const form = document.getElementById(script.dataset.ask);
  const answer = form.querySelector(".answer");
  const show = () => {
    tellEnds(form, asked);
    const lines = linesOf(asked, choiceIn(form, asked), levelIn(form, asked)).map(([name, text]) => {
      const line = document.createElement("p");
      line.className = name;
      line.textContent = text;
      return line;
    });
    answer.replaceChildren(...lines);
  };
  form.addEventListener("input", (event) => {
    if (event.target.type === "range") heldInOrder(form, event.target);
    show();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  show();
  return asked;
}

// Every form's data by its name, for whoever wants to ask by script.
const questions = new Map();

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("script[data-ask]").forEach((script) => {
    questions.set(script.dataset.ask, wire(script));
  });
});
