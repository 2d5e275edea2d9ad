// Model calls and tokens by day, peer and purpose, and the limits.
import { get } from "../api.js";
import { chip, h, page, section, svg, table } from "../dom.js";
import { lasting, money, number, peer, when } from "../format.js";
import { words } from "../peertext.js";

const DAYS = [7, 30, 90];

export async function show(_, { reload }) {
  const days = Number(sessionStorage.getItem("days") ?? 7);
  const found = await get(`/v1/spend?days=${days}`);
  const picker = h("select", { id: "spend-days", onchange: (event) => { sessionStorage.setItem("days", event.target.value); reload(); } },
    DAYS.map((one) => {
      const option = h("option", { value: one }, `last ${one} days`);
      option.selected = one === days;
      return option;
    }));
  const amounts = (one) => [number(one.calls), number(one.input_tokens), number(one.output_tokens), ...(found.priced ? [money(one.cost)] : [])];
  const columns = ["Model calls", "Tokens in", "Tokens out", ...(found.priced ? ["Cost"] : [])];
  return page(
    "Spend",
    h("div", { class: "pickers" }, h("div", null, h("label", { for: "spend-days" }, "Show"), picker)),
    h("p", { class: "lead" }, found.model ? ["Model ", h("code", null, words(found.model)), ". "] : "No model is set, so nothing is spent: rules cost nothing. ", `${number(found.total.calls)} model calls and ${number(found.total.input_tokens + found.total.output_tokens)} tokens since ${found.since}${found.priced ? `, ${money(found.total.cost)} in all` : ""}.`),
    section("By day", chart(found.days), table("Spend by day", ["Day", ...columns], sumByDay(found.days).map((one) => [one.day, ...amounts(one)]), "No model was called in these days.")),
    section("By peer", table("Spend by peer", ["Peer", ...columns], found.peers.map((one) => [one.peer === "-" ? "no peer" : peer(one.peer), ...amounts(one)]), "No model was called in these days.")),
    section("By purpose", table("Spend by purpose", ["Purpose", ...columns], found.steps.map((one) => [one.step.replaceAll("_", " "), ...amounts(one)]), "No model was called in these days.")),
    section("Limits today", h("p", { class: "note" }, `The counts of today end at ${found.until}.`), table("Limits", ["Budget", "Model calls", "Tokens"],
      found.accounts.map((one) => [account(one.account), bar(one.calls, one.calls_limit, "model calls"), bar(one.input_tokens + one.output_tokens + one.held_tokens, one.tokens_limit, "tokens")]), "No model was called today.")),
    section("Latest model calls", table("Latest model calls", ["When", "Purpose", "Peer", "Outcome", "Tokens", "Took"],
      found.calls.slice(0, 50).map((one) => [when(one.at), one.step.replaceAll("_", " "), one.peer ? peer(one.peer) : "–", chip(one.outcome), `${number(one.input_tokens)} + ${number(one.output_tokens)}${one.estimated ? " (estimated)" : ""}`, lasting(one.ms / 1000)]), "No model was called.")),
  );
}

function account(name) {
  return { owner: "Your own calls", unlisted: "All unlisted peers together" }[name] ?? peer(name);
}

function bar(used, limit, what) {
  return h("span", { class: "bar-line" }, h("meter", { min: 0, max: Math.max(limit, 1), value: Math.min(used, limit), high: limit * 0.8, "aria-label": `${what} used` }), h("span", null, `${number(used)} of ${number(limit)}`));
}

function sumByDay(days) {
  const sums = new Map();
  for (const one of days) {
    const sum = sums.get(one.day) ?? { day: one.day, calls: 0, input_tokens: 0, output_tokens: 0, cost: 0 };
    for (const name of ["calls", "input_tokens", "output_tokens", "cost"]) sum[name] += one[name];
    sums.set(one.day, sum);
  }
  return [...sums.values()].sort((a, b) => (a.day < b.day ? 1 : -1));
}

// Bars of tokens by day; the table below says the same in numbers.
function chart(days) {
  const sums = sumByDay(days).reverse();
  if (sums.length < 2) return null;
  const most = Math.max(...sums.map((one) => one.input_tokens + one.output_tokens), 1);
  const [width, height] = [Math.max(sums.length * 40, 200), 120];
  const image = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height + 18}`, preserveAspectRatio: "xMinYMid meet", role: "img", "aria-label": "Tokens by day" });
  sums.forEach((one, at) => {
    const tall = ((one.input_tokens + one.output_tokens) / most) * height;
    image.append(svg("rect", { x: at * 40 + 6, y: height - tall, width: 28, height: Math.max(tall, 1), rx: 3 }), svg("text", { x: at * 40 + 20, y: height + 14, "text-anchor": "middle" }, one.day.slice(5)));
  });
  return image;
}
