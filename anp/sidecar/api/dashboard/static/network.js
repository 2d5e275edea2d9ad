// A picture of who talks to whom: the agent in the middle, and around it its peers, each
// with the calls in both directions and those of them that failed.
import { svg } from "./dom.js";
import { label, number } from "./format.js";
import { shown } from "./peertext.js";
import { t } from "./texts.js";

const MOST = 16;
const MOST_NARROW = 8;

// `peers` as /v1/history gives them; `minutes` turns counts into rates.
export function network(peers, minutes) {
  const narrow = window.innerWidth < 640;
  const met = peers.filter((one) => one.peer.startsWith("did:"));
  const drawn = met.slice(0, narrow ? MOST_NARROW : MOST);
  const [width, height] = narrow ? [360, 440] : [760, Math.min(430, 250 + 22 * drawn.length)];
  const [x, y] = [width / 2, height / 2];
  const [far, high] = narrow ? [108, 140] : [265, height / 2 - 66];
  const most = Math.max(...drawn.map((one) => Math.max(one.made, one.served)), 1);
  const places = drawn.map((one, at) => {
    // Two peers stand left and right of the agent; more of them go around it.
    const angle = (2 * Math.PI * at) / drawn.length + (narrow ? -Math.PI / 2 : 0);
    return [one, x + far * Math.cos(angle), y + high * Math.sin(angle)];
  });
  const left = met.length - drawn.length;
  return svg(
    "svg",
    { class: "network", viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": t("who_talks_to_whom_n_peer", { n: met.length }) },
    svg("defs", {}, ["made", "served", "bad"].map((look) => svg("marker", { id: `arrow-${look}`, class: look, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto" }, svg("path", { d: "M0,0 L8,4 L0,8 z" })))),
    places.map(([one, px, py]) => [
      edge([x, y], [px, py], one.made, one.made_failed, most, "made"),
      edge([px, py], [x, y], one.served, one.served_failed, most, "served"),
    ]),
    svg("circle", { class: "own", cx: x, cy: y, r: 42 }),
    svg("text", { class: "name", x, y: y + 4.5 }, t("your_agent")),
    places.map(([one, px, py]) => peerOf(one, px, py, { minutes, narrow, above: py < y - 20 })),
    left > 0 ? svg("text", { class: "more", x, y: height - 4 }, t("and_more_more", { more: number(left) })) : null,
  );
}

function peerOf(one, x, y, { minutes, narrow, above }) {
  const failed = one.made_failed + one.served_failed;
  const name = label(one.peer, narrow ? 14 : 22);
  const told = rates(one, minutes, narrow);
  return svg(
    "a",
    { href: `#/peers/${encodeURIComponent(one.peer)}`, "aria-label": `${label(one.peer, 60)}${t("colon")}${said(one, minutes)}` },
    svg("circle", { class: failed ? "bad" : "fine", cx: x, cy: y, r: 17 }),
    // A sign beside the colour.
    svg("text", { class: "sign", x, y: y + 5 }, failed ? "!" : "✓"),
    // The words stand on the side that the edge does not come from.
    svg("text", { class: "name", x, y: above ? y - 25 - 14 * told.length : y + 33 }, shown(name).map((piece) => piece.textContent ?? piece)),
    told.map((text, at, all) => svg("text", { class: "more", x, y: above ? y - 24 - 14 * (all.length - 1 - at) : y + 48 + 14 * at }, text)),
    svg("title", {}, said(one, minutes)),
  );
}

// Two edges between the same two stand beside each other, each with its arrow.
function edge([ax, ay], [bx, by], calls, failed, most, look) {
  if (!calls) return null;
  const long = Math.hypot(bx - ax, by - ay);
  const [ux, uy] = [(bx - ax) / long, (by - ay) / long];
  const [sx, sy] = [-uy * 6, ux * 6];
  const from = look === "made" ? 46 : 20;
  const to = look === "made" ? 20 : 46;
  const wide = 1.5 + 3.5 * (Math.log1p(calls) / Math.log1p(most));
  const way = failed ? "bad" : look;
  return svg("line", {
    class: `${look} ${failed ? "bad" : ""}`, "stroke-width": wide.toFixed(1), "marker-end": `url(#arrow-${way})`,
    "stroke-dasharray": failed ? "7 4" : null,
    x1: ax + ux * from + sx, y1: ay + uy * from + sy, x2: bx - ux * to + sx, y2: by - uy * to + sy,
  });
}

// The rates and the share of failures: in one line, or in one for each where it is narrow.
function rates(one, minutes, narrow) {
  const failed = one.made_failed + one.served_failed;
  const made = one.made ? `→ ${rate(one.made, minutes)}` : "";
  const served = one.served ? `← ${rate(one.served, minutes)}` : "";
  const lines = [made, served, failed ? t("share_failed", { share: share(failed, one.made + one.served) }) : ""].filter(Boolean);
  return narrow ? lines : [lines.join(" · ")];
}

function said(one, minutes) {
  return t("made_made_made_rate_made_failed_failed", {
    made: number(one.made), made_rate: rate(one.made, minutes), made_failed: number(one.made_failed),
    served: number(one.served), served_rate: rate(one.served, minutes), served_failed: number(one.served_failed),
  });
}

export function rate(calls, minutes) {
  const each = calls / minutes;
  return each >= 0.95 || !calls ? t("rate_a_minute", { rate: number(Math.round(each * 10) / 10) }) : t("rate_an_hour", { rate: number(Math.ceil(each * 60)) });
}

export function share(failed, all) {
  return all ? `${number(Math.ceil((1000 * failed) / all) / 10)}\u00a0%` : "–";
}
