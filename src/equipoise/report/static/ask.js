// Ask: the simultaneous bounds of any group of the audited collection, looked up at a level.

// --- choices: for each attribute a level, the two ends of a range, or null for "any" ---------

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

// --- answers ----------------------------------------------------------------------------------

function opened(data) {
  const groups = new Map(data.groups.map(([choice, n, disparity, answers]) =>
    [JSON.stringify(choice), { n, disparity, answers }]));
  return { ...data, groups };
}

// The answer for a choice at one of the levels; null if the collection has no such group.
function answerOf(asked, choice, place) {
  const group = asked.groups.get(JSON.stringify(choice));
  if (group === undefined) return null;
  const { n, disparity } = group;
  const [lower, upper, verdict, note] = group.answers[place];
  return { n, disparity, lower, upper, verdict: asked.verdicts[verdict] ?? null, note: asked.notes[note] };
}

// --- words ------------------------------------------------------------------------------------

function amountText(asked, value) {
  if (asked.relative) return value.toFixed(2);
  const size = asked.share ? Number((100 * value).toFixed(1)) : Number(value.toPrecision(4));
  const digits = asked.share ? `${Math.abs(size).toFixed(1)} points` : `${Math.abs(size)}`;
  return `${size < 0 ? "-" : "+"}${digits}`;
}

// What is known of the group; the reason if nothing is.
function boundText(asked, row) {
  const ends = [];
  if (row.lower !== null) ends.push(`at least ${amountText(asked, row.lower)}`);
  if (row.upper !== null) ends.push(`at most ${amountText(asked, row.upper)}`);
  return ends.length ? `${ends.join(" and ")} against ${asked.against}` : row.note || "no bound";
}

function estimateText(asked, row) {
  const size = `n = ${row.n.toLocaleString("en")}`;
  const bounded = row.lower !== null || row.upper !== null;
  const note = bounded && row.note ? ` Note: ${row.note}.` : "";
  if (row.disparity === null) return `${size}; there is no estimate.${note}`;
  return `${size}; estimated ${amountText(asked, row.disparity)}.${note}`;
}

function verdictText(asked, verdict) {
  if (verdict === null) return "";
  const claim = `that it is ${asked.claimed}`;
  return {
    kept: `✓ Kept: ${claim} is shown.`,
    exceeded: `✕ Exceeded: ${claim} is shown not to hold.`,
    undetermined: `? Undetermined: ${claim} is shown neither way.`,
  }[verdict];
}

function linesOf(asked, choice, place) {
  const name = groupText(asked, choice);
  const row = answerOf(asked, choice, place);
  if (row === null) {
    const none = name ? `There is no ${asked.noun} “${name}” in this audit.` : "Choose at least one attribute.";
    return [["bound", none], ["scope", `This report answers for ${asked.scope}; the guarantee covers only what was audited.`]];
  }
  return [
    ["bound", `${name}: ${boundText(asked, row)}.`],
    ["estimate", estimateText(asked, row)],
    ["judged", verdictText(asked, row.verdict)],
    ["scope", `${asked.levels[place].scope}.`],
  ].filter(([, text]) => text);
}

// --- the form -----------------------------------------------------------------------------------

function choiceIn(form, asked) {
  return asked.axes.map((axis, i) => {
    const fields = [...form.querySelectorAll(`[data-axis="${i}"]`)];
    if (fields.length === 1) return fields[0].value === "" ? null : Number(fields[0].value);
    return fields.map((field) => Number(field.value));
  });
}

function levelIn(form, asked) {
  const field = form.querySelector("[data-level]");
  return field ? Number(field.value) : asked.audited;
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

// The slider that was not moved gives way, to the nearest end with which there is a range.
function heldInOrder(form, asked, moved) {
  const [from, to] = form.querySelectorAll(`input[data-axis="${moved.dataset.axis}"]`);
  const { nearest } = asked.axes[moved.dataset.axis];
  const fits = (first) => nearest[first] <= Number(to.value);
  if (fits(from.value)) return;
  if (moved === from) to.value = nearest[from.value];
  else from.value = nearest.findLastIndex((_, first) => first < Number(from.value) && fits(first));
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
    if (event.target.type === "range") heldInOrder(form, asked, event.target);
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
