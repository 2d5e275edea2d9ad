// The tasks that were given to peers and those of peers, newest first.
import { get } from "../api.js";
import { chip, h, page, refill, section } from "../dom.js";
import { peer, when } from "../format.js";
import { entries, listing } from "../listing.js";
import { words } from "../peertext.js";
import { t } from "../texts.js";

const BY = { agent: t("your_agent"), owner: t("you_2"), peer: t("the_peer_2") };
const COLUMNS = [t("task"), t("state"), t("begun_by"), t("peer"), t("started"), t("changed")];
const MOST_LIVE = 12;

const name = (one) => words(one.capability || t("in_words"), 80);
const state = (one) => chip(one.state.replace(/^x-/, ""));
const other = (one) => peer(one.made_by === "peer" ? one.requester : one.executor);

export async function show(_, { watch }) {
  const source = entries("/v1/tasks", "tasks");
  const live = h("div");
  const draw = async () => {
    const [tasks, { sessions }] = await Promise.all([source.read(), get("/v1/sessions?limit=200")]);
    list.fill(tasks.map((one) => [
      h("a", { href: `#/tasks/${one.session}` }, name(one)),
      [state(one), one.reason ? [" ", words(one.reason, 120)] : null],
      BY[one.made_by], other(one), when(one.created), when(one.changed),
    ]));
    refill(live, underWay(sessions, tasks));
  };
  const list = listing(t("tasks"), COLUMNS, { filters: [1, 2, 3], source, refresh: draw, empty: t("there_are_no_tasks_yet_work_that") });
  watch(["task"], draw);
  await draw();
  return page(t("tasks"), live, section(t("all_tasks"), list.element));
}

// The sessions in which something goes on, each with its newest task.
function underWay(sessions, tasks) {
  const busy = sessions.filter((one) => one.open && (one.busy || tasks.some((task) => task.session === one.id && !task.ended)));
  return section(
    t("sessions_under_way"),
    busy.length
      ? h("ul", { class: "rows" }, busy.slice(0, MOST_LIVE).map((one) => {
          const own = tasks.filter((task) => task.session === one.id);
          const newest = own.find((task) => !task.ended) ?? own[0];
          return h("li", null,
            h("a", { href: `#/tasks/${one.id}` }, newest ? name(newest) : t("a_session")),
            newest ? state(newest) : chip("open"),
            newest ? h("span", { class: "who" }, other(newest)) : null,
            h("span", { class: "who" }, t("n_task", { n: own.length }), t("comma"), t("n_event", { n: one.events })),
            h("span", { class: "at" }, when(one.changed)));
        }))
      : h("p", { class: "empty fine" }, t("no_session_is_under_way")),
  );
}
