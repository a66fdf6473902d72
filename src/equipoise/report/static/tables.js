// Tables that sort by a click on a heading and filter by a word.

function sortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  const words = new Intl.Collator(undefined, { numeric: true });
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const falling = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", falling ? "descending" : "ascending");
      sortRows(table, column, falling ? -1 : 1, words);
    });
  });
}

function sortRows(table, column, direction, words) {
  const keyed = [...table.tBodies[0].rows].map((row) => ({ row, key: sortKey(row.cells[column]) }));
  keyed.sort((a, b) => compareKeys(a.key, b.key, direction, words));
  table.tBodies[0].append(...keyed.map((item) => item.row));
}

function sortKey(cell) {
  if (cell.dataset.order !== undefined) return Number(cell.dataset.order);
  const text = cell.textContent.trim();
  return text === "–" ? null : text;
}

// What is missing stays last, whichever way the others run.
function compareKeys(a, b, direction, words) {
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a === "number" && typeof b === "number") return direction * (a - b);
  return direction * words.compare(String(a), String(b));
}

function filterable(box) {
  const table = box.querySelector("table");
  const input = box.querySelector("input");
  const count = box.querySelector(".count");
  const rows = [...table.tBodies[0].rows];
  const texts = rows.map((row) => rowText(row));
  const say = (shown) => { count.textContent = `${shown} of ${rows.length} rows`; };
  input.addEventListener("input", () => {
    const wanted = input.value.trim().toLocaleLowerCase();
    let shown = 0;
    rows.forEach((row, i) => {
      row.hidden = !texts[i].includes(wanted);
      shown += !row.hidden;
    });
    say(shown);
  });
  box.querySelector(".tools").hidden = false;
  say(rows.length);
}

function rowText(row) {
  const parts = [...row.cells].map((cell) => cell.querySelector("[title]")?.title ?? cell.textContent);
  return parts.join(" ").toLocaleLowerCase();
}

// A word that a spreadsheet would take for a formula is made text.
function csvCell(cell) {
  const whole = cell.querySelector?.("[title]")?.title ?? cell.textContent.trim();
  const text = cell.dataset?.order ?? whole.replace(/ ↕$/, "");
  const safe = cell.dataset?.order === undefined && /^[=+\-@\t]/.test(text) ? `'${text}` : text;
  return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function downloadable(box) {
  const table = box.querySelector("table");
  box.querySelector(".download").addEventListener("click", () => {
    const lines = [...table.rows].map((row) => [...row.cells].map(csvCell).join(","));
    const blob = new Blob(["\ufeff", lines.join("\r\n"), "\r\n"], { type: "text/csv" });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = `${table.id}.csv`;
    link.click();
    URL.revokeObjectURL(link.href);
  });
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("[data-table]").forEach((box) => {
    downloadable(box);
    sortable(box.querySelector("table"));
    filterable(box);
  });
});
