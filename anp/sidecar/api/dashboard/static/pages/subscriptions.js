// Tasks that times, events and places start: the list, and one with its runs.
import { action } from "../actions.js";
import { get } from "../api.js";
import { chip, facts, h, page, section } from "../dom.js";
import { number, peer, short, when } from "../format.js";
import { entries, listing, table } from "../listing.js";
import { words } from "../peertext.js";
import { t } from "../texts.js";

const WATCHERS = { here: t("this_daemon"), peer: t("the_peer_2"), for_peer: t("this_daemon_for_the_peer") };

const ENDING = { title: t("end_this_subscription"), text: t("it_starts_nothing_more_tasks_that_it"), yes: t("end_it") };

const COLUMNS = [t("task"), t("state"), t("runs"), t("next"), t("watched_by"), t("peer"), t("made_on")];

const what = (one) => words(one.capability || t("in_words"), 80);
const state = (one) => chip(one.ended || "open");
const due = (seconds) => (seconds === null ? t("by_an_event") : when(seconds));

export async function show(_, { watch }) {
  const source = entries("/v1/subscriptions", "subscriptions");
  const draw = async () => list.fill((await source.read()).map((one) => [
    h("a", { href: `#/subscriptions/${one.id}` }, what(one)),
    state(one),
    number(one.runs),
    one.ended ? "" : due(one.next),
    WATCHERS[one.watcher],
    one.peer.startsWith("did:") ? peer(one.peer) : words(one.peer, 80),
    when(one.created),
  ]));
  const list = listing(t("subscriptions"), COLUMNS, { filters: [1, 4, 5], source, refresh: draw, empty: t("there_are_none_they_are_made_by") });
  watch(["subscription"], draw);
  await draw();
  return page(t("subscriptions"), list.element);
}

export async function showOne(id, tools) {
  const { watch, put } = tools;
  const path = `/v1/subscriptions/${encodeURIComponent(id)}`;
  const draw = async () => {
    const [one, { runs }] = await Promise.all([get(path), get(`${path}/runs?limit=100`)]);
    return [
      h("p", { class: "crumb" }, h("a", { href: "#/subscriptions" }, t("subscriptions")), " / ", short(one.id, 16)),
      h("div", { class: "title" }, h("h1", { tabindex: "-1" }, t("subscription")), state(one)),
      one.reason ? h("p", { class: "lead" }, words(one.reason, 300)) : null,
      facts([
        [t("task"), what(one)],
        [t("peer"), one.peer.startsWith("did:") ? peer(one.peer) : words(one.peer, 200)],
        [t("watched_by"), WATCHERS[one.watcher]],
        [t("next"), one.ended ? "" : due(one.next)],
        [t("triggers"), h("code", null, words(JSON.stringify(one.subscription), 1000))],
      ]),
      one.ended
        ? null
        : h("p", { class: "actions" }, action(t("cancel"), { id: "cancel", path: `${path}/cancel`, done: t("it_starts_nothing_more"), ask: ENDING }, tools)),
      section(t("runs"), table(
        t("runs"),
        [t("run"), t("when"), t("because_of"), t("task")],
        runs.map((run) => [
          number(run.number),
          when(run.at),
          words(run.key, 120),
          run.session
            ? h("a", { href: `#/tasks/${run.session}` }, chip(run.state.replace(/^x-/, "")))
            : words(run.problem || t("not_made_yet"), 200),
        ]),
        t("nothing_has_started_it_yet"),
      )),
    ];
  };
  watch(["subscription", "task"], async () => put(await draw()));
  return draw();
}
