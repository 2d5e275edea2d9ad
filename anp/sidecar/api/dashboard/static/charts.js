// Charts over time as pictures made of lines and bars, each with its numbers in a table.
import { h, svg } from "./dom.js";
import { clock } from "./format.js";
import { slug, table } from "./listing.js";
import { t } from "./texts.js";

const [WIDTH, HEIGHT] = [640, 150];
const [LEFT, BOTTOM, TOP] = [52, 20, 8];

// A chart of several rows of numbers over the same times.
// `rows`: each {name, values, look}; a value is null where there is nothing to show.
// `bars` stacks them on each other; else each is a line. `shown` writes a number.
export function chart(title, times, rows, { shown, bars = false, axis = clock, empty }) {
  const sums = times.map((_, at) => rows.reduce((sum, one) => sum + (one.values[at] ?? 0), 0));
  const tops = bars ? sums : rows.flatMap((one) => one.values.filter((value) => value !== null));
  const most = Math.max(...tops, 0);
  const body = most > 0 ? drawn(title, times, rows, { shown, bars, axis, most: round(most) }) : h("p", { class: "empty" }, empty);
  return h(
    "figure",
    { class: "chart" },
    h("figcaption", null, h("h3", null, title), h("ul", { class: "legend" }, rows.map((one) => h("li", { class: one.look }, one.name)))),
    body,
    most > 0 ? h("details", { id: `numbers-${slug(title)}` }, h("summary", { id: `show-${slug(title)}`, "aria-label": t("numbers_title", { title }) }, t("numbers")), numbers(title, times, rows, { shown, axis })) : null,
  );
}

function numbers(title, times, rows, { shown, axis }) {
  const found = times.map((time, at) => [time, at]).filter(([, at]) => rows.some((one) => one.values[at])).reverse();
  return table(title, [t("time"), ...rows.map((one) => one.name)], found.map(([time, at]) => [axis(time), ...rows.map((one) => (one.values[at] === null ? "–" : shown(one.values[at])))]), "");
}

function drawn(title, times, rows, { shown, bars, axis, most }) {
  const across = (at) => LEFT + (at * (WIDTH - LEFT)) / times.length;
  const up = (value) => TOP + (HEIGHT - TOP) * (1 - value / most);
  const wide = (WIDTH - LEFT) / times.length;
  const label = rows.map((one) => `${one.name}${t("colon")}${shown(Math.max(...one.values.map((value) => value ?? 0)))}`).join(t("comma"));
  const steps = [0, 0.5, 1].map((share) => [
    svg("line", { class: "grid", x1: LEFT, x2: WIDTH, y1: up(most * share), y2: up(most * share) }),
    svg("text", { x: LEFT - 6, y: up(most * share) + 4, "text-anchor": "end" }, shown(most * share)),
  ]);
  const marks = times.map((time, at) => [time, at]).filter(([, at]) => at % Math.ceil(times.length / 6) === 0);
  return svg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT + BOTTOM}`, role: "img", "aria-label": t("title_at_most_label", { title, label }) },
    steps,
    marks.map(([time, at]) => svg("text", { x: across(at), y: HEIGHT + 15, "text-anchor": at ? "middle" : "start" }, axis(time))),
    bars ? stacked(rows, across, up, wide) : rows.map((one) => line(one, across, up, wide)),
    times.map((time, at) => svg("rect", { class: "hit", x: across(at), y: TOP, width: wide, height: HEIGHT - TOP }, svg("title", {}, [axis(time), ...rows.map((one) => `${one.name}${t("colon")}${one.values[at] === null ? "–" : shown(one.values[at])}`)].join("\n")))),
  );
}

function stacked(rows, across, up, wide) {
  const base = rows[0].values.map(() => 0);
  return rows.flatMap((one) =>
    one.values.map((value, at) => {
      if (!value) return null;
      const [low, high] = [up(base[at]), up((base[at] += value))];
      return svg("rect", { class: one.look, x: across(at) + wide * 0.1, y: high, width: wide * 0.8, height: Math.max(low - high, 1) });
    }),
  );
}

// Stretches without a value are gaps; a value alone is a dot.
function line(one, across, up, wide) {
  const stretches = [[]];
  one.values.forEach((value, at) => {
    if (value === null) stretches.push([]);
    else stretches.at(-1).push(`${(across(at) + wide / 2).toFixed(1)},${up(value).toFixed(1)}`);
  });
  return stretches.filter((points) => points.length).map((points) => {
    const [x, y] = points[0].split(",");
    return points.length > 1 ? svg("polyline", { class: one.look, points: points.join(" ") }) : svg("circle", { class: one.look, cx: x, cy: y, r: 2.5 });
  });
}

// The next number that is easy to read, as is its half.
function round(value) {
  const size = 10 ** Math.floor(Math.log10(value));
  return [1, 1.6, 2, 3, 4, 5, 6, 8, 10].map((one) => one * size).find((one) => one >= value * 0.999);
}
