// Tasks that times, events and places start: the list, and one with its runs.
import { action } from "../actions.js";
import { get } from "../api.js";
import { chip, facts, h, page, table } from "../dom.js";
import { peer, short, when } from "../format.js";
import { words } from "../peertext.js";

const WATCHERS = { here: "this daemon", peer: "the peer", for_peer: "this daemon, for the peer" };

const ENDING = { title: "End this subscription?", text: "It starts nothing more; tasks that it started go on.", yes: "End it" };

const what = (one) => words(one.capability || "in words", 80);
const state = (one) => chip(one.ended.replace("_", " ") || "open");
const due = (seconds) => (seconds === null ? "by an event" : when(seconds));

export async function show(_, { watch, put }) {
  const draw = async () => {
    const { subscriptions, next } = await get("/v1/subscriptions?limit=100");
    return page(
      "Subscriptions",
      table(
        "Subscriptions",
        ["Task", "State", "Runs", "Next", "Watched by", "Peer", "Made"],
        subscriptions.map((one) => [
          h("a", { href: `#/subscriptions/${one.id}` }, what(one)),
          state(one),
          String(one.runs),
          one.ended ? "" : due(one.next),
          WATCHERS[one.watcher],
          one.peer.startsWith("did:") ? peer(one.peer) : words(one.peer, 80),
          when(one.created),
        ]),
        "There are none. They are made by your agent, or with anpd subscriptions create.",
      ),
      next ? h("p", { class: "note" }, "These are the newest 100.") : null,
    );
  };
  watch(["subscription"], async () => put(await draw()));
  return draw();
}

export async function showOne(id, tools) {
  const { watch, put } = tools;
  const path = `/v1/subscriptions/${encodeURIComponent(id)}`;
  const draw = async () => {
    const [one, { runs }] = await Promise.all([get(path), get(`${path}/runs?limit=100`)]);
    return page(
      "Subscription",
      h("p", { class: "crumb" }, h("a", { href: "#/subscriptions" }, "Subscriptions"), " / ", short(one.id, 16)),
      facts([
        ["Task", what(one)],
        ["Peer", one.peer.startsWith("did:") ? peer(one.peer) : words(one.peer, 200)],
        ["State", [state(one), one.reason ? [" ", words(one.reason, 300)] : null]],
        ["Watched by", WATCHERS[one.watcher]],
        ["Next", one.ended ? "" : due(one.next)],
        ["Triggers", h("code", null, words(JSON.stringify(one.subscription), 1000))],
      ]),
      one.ended
        ? null
        : action("Cancel", { id: "cancel", path: `${path}/cancel`, done: "It starts nothing more.", ask: ENDING }, tools),
      table(
        "Runs",
        ["Run", "When", "Because of", "Task"],
        runs.map((run) => [
          String(run.number),
          when(run.at),
          words(run.key, 120),
          run.session
            ? h("a", { href: `#/tasks/${run.session}` }, chip(run.state.replace(/^x-/, "")))
            : words(run.problem || "not made yet", 200),
        ]),
        "Nothing has started it yet.",
      ),
    );
  };
  watch(["subscription", "task"], async () => put(await draw()));
  return draw();
}
