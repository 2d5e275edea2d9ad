// Model calls and tokens by day, peer and purpose, and the limits.
import { get } from "../api.js";
import { chip, h, page, section } from "../dom.js";
import { lasting, money, number, peer, when } from "../format.js";
import { chart } from "../charts.js";
import { table } from "../listing.js";
import { words } from "../peertext.js";
import { parts, t, word } from "../texts.js";

const DAYS = [7, 30, 90];

export async function show(_, { reload }) {
  const days = Number(sessionStorage.getItem("days") ?? 7);
  const found = await get(`/v1/spend?days=${days}`);
  const picker = h("select", { id: "spend-days", onchange: (event) => { sessionStorage.setItem("days", event.target.value); reload(); } },
    DAYS.map((one) => {
      const option = h("option", { value: one }, t("last_days_days", { days: one }));
      option.selected = one === days;
      return option;
    }));
  const amounts = (one) => [number(one.calls), number(one.input_tokens), number(one.output_tokens), ...(found.priced ? [money(one.cost)] : [])];
  const columns = [t("model_calls"), t("tokens_in"), t("tokens_out"), ...(found.priced ? [t("cost")] : [])];
  return page(
    t("spend"),
    h("div", { class: "pickers" }, h("div", null, h("label", { for: "spend-days" }, t("show")), picker)),
    h("p", { class: "lead" }, found.model ? [parts("model_name", { name: h("code", null, words(found.model)) }), " "] : [t("no_model_is_set_so_nothing_is"), " "], t("calls_model_calls_and_tokens_tokens_since", { calls: number(found.total.calls), tokens: number(found.total.input_tokens + found.total.output_tokens), since: found.since }), found.priced ? [" ", t("they_cost_money", { money: money(found.total.cost) })] : null),
    section(t("by_day"), byDay(found.days), table(t("spend_by_day"), [t("day"), ...columns], sumByDay(found.days).map((one) => [one.day, ...amounts(one)]), t("no_model_was_called_in_these_days"))),
    section(t("by_peer"), table(t("spend_by_peer"), [t("peer"), ...columns], found.peers.map((one) => [one.peer === "-" ? t("no_peer") : peer(one.peer), ...amounts(one)]), t("no_model_was_called_in_these_days"))),
    section(t("by_purpose"), table(t("spend_by_purpose"), [t("purpose"), ...columns], found.steps.map((one) => [word(one.step), ...amounts(one)]), t("no_model_was_called_in_these_days"))),
    section(t("limits_today"), h("p", { class: "note" }, t("the_counts_of_today_end_at_until", { until: found.until })), table(t("limits"), [t("budget"), t("model_calls"), t("tokens")],
      found.accounts.map((one) => [account(one.account), bar(one.calls, one.calls_limit, t("model_calls_used")), bar(one.input_tokens + one.output_tokens + one.held_tokens, one.tokens_limit, t("tokens_used"))]), t("no_model_was_called_today"))),
    section(t("latest_model_calls"), table(t("latest_model_calls"), [t("when"), t("purpose"), t("peer"), t("outcome"), t("tokens"), t("took")],
      found.calls.map((one) => [when(one.at), word(one.step), one.peer ? peer(one.peer) : "–", chip(one.outcome), one.estimated ? t("tokens_estimated", { tokens: `${number(one.input_tokens)} + ${number(one.output_tokens)}` }) : `${number(one.input_tokens)} + ${number(one.output_tokens)}`, lasting(one.ms / 1000)]), t("no_model_was_called"), { filters: [1, 2, 3] })),
  );
}

function account(name) {
  return { owner: t("your_own_calls"), unlisted: t("all_unlisted_peers_together") }[name] ?? peer(name);
}

function bar(used, limit, what) {
  return h("span", { class: "bar-line" }, h("meter", { min: 0, max: Math.max(limit, 1), value: Math.min(used, limit), high: limit * 0.8, "aria-label": what }), h("span", null, t("used_of_limit", { used: number(used), limit: number(limit) })));
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

function byDay(days) {
  const sums = sumByDay(days).reverse();
  if (sums.length < 2) return null;
  return chart(t("tokens_by_day"), sums.map((one) => Date.parse(`${one.day}T00:00Z`) / 1000), [
    { name: t("in"), look: "made", values: sums.map((one) => one.input_tokens) },
    { name: t("out"), look: "ask", values: sums.map((one) => one.output_tokens) },
  ], { bars: true, shown: number, axis: (at) => new Date(at * 1000).toISOString().slice(5, 10), empty: "" });
}
