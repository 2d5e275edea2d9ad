// What changed between two texts, line by line, and inside a line word by word.
import { h } from "./dom.js";
import { shown } from "./peertext.js";
import { t } from "./texts.js";

const MAX_LINES = 4_000;
const MAX_EDITS = 1_500;
const MAX_WORDS = 400;
const CONTEXT = 3;

// The shortest edit between two lists (Myers 1986), as [kind, a, b]; null when it would
// take more than `most` edits.
export function edits(before, after, most = MAX_EDITS) {
  const [n, m] = [before.length, after.length];
  const limit = Math.min(n + m, most);
  const furthest = new Map([[1, 0]]);
  const trace = [];
  for (let d = 0; d <= limit; d += 1) {
    trace.push(new Map(furthest));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (furthest.get(k - 1) ?? -1) < (furthest.get(k + 1) ?? -1));
      let x = down ? furthest.get(k + 1) : furthest.get(k - 1) + 1;
      let y = x - k;
      while (x < n && y < m && before[x] === after[y]) [x, y] = [x + 1, y + 1];
      furthest.set(k, x);
      if (x >= n && y >= m) return walk(before, after, trace, d);
    }
  }
  return null;
}

function walk(before, after, trace, steps) {
  const found = [];
  let [x, y] = [before.length, after.length];
  for (let d = steps; d >= 0; d -= 1) {
    const furthest = trace[d];
    const k = x - y;
    const down = k === -d || (k !== d && (furthest.get(k - 1) ?? -1) < (furthest.get(k + 1) ?? -1));
    const from = down ? k + 1 : k - 1;
    const [px, py] = d === 0 ? [0, 0] : [furthest.get(from), furthest.get(from) - from];
    while (x > px && y > py) found.push(["same", (x -= 1), (y -= 1)]);
    if (d > 0) found.push(down ? ["new", px, (y -= 1)] : ["old", (x -= 1), py]);
  }
  return found.reverse();
}

// Rows for two columns: [left line or null, right line or null], each {number, text, parts}.
export function rows(before, after) {
  const [left, right] = [lines(before), lines(after)];
  const script = left.length + right.length > MAX_LINES ? null : edits(left, right);
  if (script === null) return null;
  const made = [];
  let olds = [];
  let news = [];
  const flush = () => {
    for (let i = 0; i < Math.max(olds.length, news.length); i += 1) {
      const [a, b] = [olds[i] ?? null, news[i] ?? null];
      if (a && b) [a.parts, b.parts] = inside(a.text, b.text);
      made.push({ kind: "changed", left: a, right: b });
    }
    [olds, news] = [[], []];
  };
  for (const [kind, a, b] of script) {
    if (kind === "old") olds.push({ number: a + 1, text: left[a] });
    else if (kind === "new") news.push({ number: b + 1, text: right[b] });
    else {
      flush();
      made.push({ kind: "same", left: { number: a + 1, text: left[a] }, right: { number: b + 1, text: right[b] } });
    }
  }
  flush();
  return made;
}

function lines(text) {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}

function inside(before, after) {
  const [a, b] = [before, after].map((text) => text.match(/[\p{L}\p{N}_]+|\s+|./gsu) ?? []);
  const script = a.length + b.length > MAX_WORDS ? null : edits(a, b);
  // Lines with little in common are easier to read as a whole.
  const same = script?.filter(([kind]) => kind === "same").length ?? 0;
  if (script === null || same * 2 < Math.max(a.length, b.length) * 0.8) return [null, null];
  const left = [];
  const right = [];
  for (const [kind, i, j] of script) {
    if (kind !== "new") left.push([kind, a[i]]);
    if (kind !== "old") right.push([kind, b[j]]);
  }
  return [left, right];
}

export function totals(made) {
  const changed = made.filter((row) => row.kind === "changed");
  return { added: changed.filter((row) => row.right).length, removed: changed.filter((row) => row.left).length };
}

// The table of a comparison. Stretches without a change are folded.
export function comparison(before, after, { left, right }) {
  const made = rows(before, after);
  if (made === null) {
    return h("p", { class: "note" }, t("these_two_texts_are_too_long_or"));
  }
  const { added, removed } = totals(made);
  if (!added && !removed) return h("p", { class: "empty" }, t("no_difference_both_protocol_texts_are_the"));
  const body = h("tbody");
  for (const stretch of stretches(made)) {
    if (stretch.folded) body.append(fold(stretch.rows));
    else body.append(...stretch.rows.map(line));
  }
  return h(
    "div",
    { class: "diff", tabindex: "0", role: "region", "aria-label": t("difference_between_left_and_right", { left, right }) },
    h(
      "table",
      null,
      h("caption", null, t("n_line_removed_added_added", { n: removed, added })),
      h("colgroup", null, h("col", { class: "number" }), h("col"), h("col", { class: "number" }), h("col")),
      h("thead", null, h("tr", null, h("th", { colspan: "2", scope: "colgroup" }, left), h("th", { colspan: "2", scope: "colgroup" }, right))),
      body,
    ),
  );
}

function stretches(made) {
  const near = new Set();
  made.forEach((row, at) => {
    if (row.kind === "changed") for (let i = at - CONTEXT; i <= at + CONTEXT; i += 1) near.add(i);
  });
  const found = [];
  made.forEach((row, at) => {
    const folded = !near.has(at);
    const last = found.at(-1);
    if (last && last.folded === folded) last.rows.push(row);
    else found.push({ folded, rows: [row] });
  });
  for (const stretch of found) if (stretch.rows.length < 3) stretch.folded = false;
  return found;
}

function fold(hidden) {
  const row = h("tr", { class: "fold" });
  const open = h("button", {
    type: "button",
    class: "quiet",
    onclick: () => row.replaceWith(...hidden.map(line)),
  }, t("show_n_unchanged_lines", { n: hidden.length }));
  row.append(h("td", { colspan: "4" }, open));
  return row;
}

function line(row) {
  return h("tr", { class: row.kind }, side(row.left, row.kind, "old"), side(row.right, row.kind, "new"));
}

function side(part, kind, which) {
  if (part === null) return [h("td", { class: `number none ${which}` }), h("td", { class: `none ${which}` })];
  const changed = kind === "changed";
  const tag = which === "old" ? "del" : "ins";
  const text = part.parts
    ? part.parts.map(([what, word]) => (what === "same" ? shown(word) : h("mark", null, shown(word))))
    : shown(part.text);
  return [
    h("td", { class: `number ${changed ? which : ""} side-${which}` }, part.number),
    h("td", { class: `text ${changed ? which : ""} side-${which}` }, changed ? h(tag, null, text) : text),
  ];
}
