// Who talks to whom, and calls, errors, latencies and model spend over time.
import { get } from "../api.js";
import { chart } from "../charts.js";
import { button, h, page, refill, section } from "../dom.js";
import { lasting, learnNames, money, number, peer, when } from "../format.js";
import { listing, remember, remembered } from "../listing.js";
import { network, rate, share } from "../network.js";
import { t } from "../texts.js";

const WINDOWS = { hour: t("last_hour"), day: t("last_day") };
const MINUTES = { hour: 60, day: 24 * 60 };
// Calls come in hundreds a second; the picture is drawn anew at this pace, in milliseconds.
const PACE = 3_000;

export async function show(_, { watch, tell }) {
  let span = remembered().get("window") === "day" ? "day" : "hour";
  const picture = h("div");
  const charts = h("div", { class: "charts" });
  const list = listing(t("calls_by_peer"), [t("peer"), t("made"), t("made_failed"), t("served"), t("served_failed"), t("latest")], { empty: t("there_were_no_calls_in_this_time") });
  const choices = h("p", { class: "actions", role: "group", "aria-label": t("stretch_of_time") }, Object.entries(WINDOWS).map(([name, text]) => {
    const one = button(text, () => choose(name));
    one.id = `window-${name}`;
    return one;
  }));
  let drawn = 0;
  let waiting = null;
  const draw = async () => {
    drawn = Date.now();
    const [found, { peers }] = await Promise.all([get(`/v1/history?window=${span}`), get("/v1/peers?limit=200")]);
    learnNames(peers);
    for (const name of Object.keys(WINDOWS)) choices.querySelector(`#window-${name}`).setAttribute("aria-pressed", String(name === span));
    const minutes = MINUTES[span];
    refill(picture, found.peers.length ? network(found.peers, minutes) : h("p", { class: "empty" }, t("there_were_no_calls_in_this_time")));
    list.fill(found.peers.map((one) => [
      one.peer.startsWith("did:") || one.peer.startsWith("local:") ? peer(one.peer) : t("other_or_no_peer"),
      counted(one.made, minutes), failures(one.made_failed, one.made),
      counted(one.served, minutes), failures(one.served_failed, one.served),
      [when(one.last), one.peer === "-" ? null : [" ", h("a", { href: `#/calls?q=${encodeURIComponent(one.peer)}` }, t("calls"))]],
    ]));
    refill(charts, drawnCharts(found));
  };
  async function choose(name) {
    span = name;
    remember("window", name === "day" ? name : "");
    await draw();
    tell(WINDOWS[name]);
  }
  watch(["call", "negotiation"], () => {
    if (waiting !== null) return;
    waiting = setTimeout(() => {
      waiting = null;
      if (picture.isConnected) draw().catch(() => {});
    }, Math.max(0, drawn + PACE - Date.now()));
  });
  await draw();
  return page(
    t("traffic"),
    h("p", { class: "lead" }, t("calls_that_your_agent_made_and_served")),
    choices,
    section(t("who_talks_to_whom"), picture, list.element),
    section(t("over_time"), charts),
  );
}

const counted = (calls, minutes) => (calls ? `${number(calls)} · ${rate(calls, minutes)}` : "–");
const failures = (failed, all) => (failed ? `${number(failed)} (${share(failed, all)})` : "–");

export function callChart(found) {
  const times = found.points.map((one) => one.at);
  const of = (read) => found.points.map(read);
  return chart(t("calls"), times, [
    { name: t("made_2"), look: "made", values: of((one) => one.made - one.made_failed) },
    { name: t("served_2"), look: "served", values: of((one) => one.served - one.served_failed) },
    { name: t("failed_2"), look: "bad", values: of((one) => one.made_failed + one.served_failed) },
  ], { bars: true, shown: number, empty: t("there_were_no_calls_in_this_time") });
}

export function latencyChart(found) {
  return chart(t("latency_of_good_calls"), found.points.map((one) => one.at), [
    { name: t("half_of_them_within"), look: "made", values: found.points.map((one) => one.p50_ms) },
    { name: t("95_of_them_within"), look: "ask", values: found.points.map((one) => one.p95_ms) },
  ], { shown: (value) => lasting(value / 1000), empty: t("no_call_went_well_in_this_time") });
}

function drawnCharts(found) {
  const times = found.points.map((one) => one.at);
  const of = (read) => found.points.map(read);
  return [
    callChart(found),
    latencyChart(found),
    chart(t("share_of_failed_calls"), times, [
      { name: t("failed_2"), look: "bad", values: of((one) => (one.made + one.served ? (100 * (one.made_failed + one.served_failed)) / (one.made + one.served) : null)) },
    ], { shown: (value) => `${number(Math.round(value * 10) / 10)}\u00a0%`, empty: t("no_call_failed_in_this_time") }),
    chart(t("tokens_of_models"), times, [
      { name: t("in"), look: "made", values: of((one) => one.input_tokens) },
      { name: t("out"), look: "ask", values: of((one) => one.output_tokens) },
    ], { bars: true, shown: number, empty: t("no_model_was_called_in_this_time") }),
    found.priced ? chart(t("cost_of_models"), times, [{ name: t("cost"), look: "made", values: of((one) => one.cost) }], { bars: true, shown: money, empty: t("no_model_was_called_in_this_time") }) : null,
  ];
}
