// Tasks that times, events and places start.
import { action } from "../actions.js";
import { get } from "../api.js";
import { chip, facts, h, page, section, table } from "../dom.js";
import { number, peer, short, when } from "../format.js";
import { block, words } from "../peertext.js";

const WATCHERS = { here: "this daemon", peer: "the peer", for_peer: "this daemon, for the peer" };

const state = (one) => (one.ended ? chip(one.ended.replaceAll("_", " "), one.ended === "refused" ? "bad" : "calm") : chip("open", "good"));

const runState = (run) => {
  if (run.problem) return words(run.problem, 300);
  if (!run.session) return "not made yet";
  return h("a", { href: `#/tasks/${run.session}` }, chip(run.state.replace(/^x-/, "")));
};

const party = (text) => (/^did:[^#]+$/.test(text) ? peer(text) : words(text, 80));

export async function show(_, { watch, put }) {
  const draw = async () => {
    const { subscriptions, next } = await get("/v1/subscriptions?limit=100");
    return page(
      "Subscriptions",
      h("p", { class: "lead" }, "Tasks that start whenever a time comes, an event happens, or a place is entered or left."),
      table(
        "Subscriptions",
        ["Task", "State", "Peer", "Watched by", "Runs", "Next due", "Made"],
        subscriptions.map((one) => [
          h("a", { class: "first", href: `#/subscriptions/${one.id}` }, words(one.capability || "in words", 80)),
          state(one),
          party(one.peer),
          WATCHERS[one.watcher],
          number(one.runs),
          when(one.next),
          when(one.created),
        ]),
        "There are no subscriptions yet. Your agent makes one, or you do: anpd subscriptions create PEER CAPABILITY --every 1h",
      ),
      next ? h("p", { class: "note" }, "These are the first 100. ", h("code", null, "anpd subscriptions list"), " shows more.") : null,
    );
  };
  watch(["subscription", "task"], async () => put(await draw()));
  return draw();
}

export async function showOne(id, tools) {
  const path = `/v1/subscriptions/${encodeURIComponent(id)}`;
  const draw = async () => {
    const [found, { runs, next }] = await Promise.all([get(path), get(`${path}/runs`)]);
    return [
      h("p", { class: "crumb" }, h("a", { href: "#/subscriptions" }, "Subscriptions"), " / ", short(found.id, 16)),
      h("div", { class: "title" }, h("h1", { tabindex: "-1" }, words(found.capability || "Task in words")), state(found)),
      facts([
        ["Peer", party(found.peer)],
        ["Watched by", WATCHERS[found.watcher]],
        ["Made by", { agent: "your agent", owner: "you", peer: "the peer" }[found.made_by]],
        ["Made", when(found.created)],
        ["Next due", found.next === null ? null : when(found.next)],
        ["Reason of its end", found.reason ? words(found.reason, 400) : null],
      ]),
      found.ended ? null : h("p", { class: "actions" }, action("Cancel", { id: "cancel-subscription", kind: "danger", path: `${path}/cancel`, done: "The subscription is cancelled; tasks that it started go on.", about: "the subscription" }, tools)),
      section("Triggers and limits", block(JSON.stringify(found.subscription, null, 2), { label: "Triggers and limits" })),
      section(
        "Runs",
        table(
          "Runs",
          ["Run", "When", "Reason", "State"],
          runs.map((one) => [number(one.number), when(one.at), words(one.key, 120), runState(one)]),
          "Nothing started it yet.",
        ),
        next ? h("p", { class: "note" }, "These are the newest. ", h("code", null, `anpd subscriptions runs ${id}`), " shows more.") : null,
      ),
    ];
  };
  tools.watch(["subscription", "task"], async () => tools.put(await draw()));
  return draw();
}
