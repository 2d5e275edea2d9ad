// The tasks that were given to peers and those of peers, newest first.
import { get } from "../api.js";
import { chip, h, page, table } from "../dom.js";
import { peer, when } from "../format.js";
import { words } from "../peertext.js";

const BY = { agent: "your agent", owner: "you", peer: "the peer" };

export async function show(_, { watch, put }) {
  const draw = async () => {
    const { tasks, next } = await get("/v1/tasks?limit=100");
    return page(
      "Tasks",
      table(
        "Tasks",
        ["Task", "State", "Begun by", "Peer", "Started", "Changed"],
        tasks.map((one) => [
          h("a", { href: `#/tasks/${one.session}` }, words(one.capability || "in words", 80)),
          [chip(one.state.replace(/^x-/, "")), one.reason ? [" ", words(one.reason, 120)] : null],
          BY[one.made_by],
          peer(one.made_by === "peer" ? one.requester : one.executor),
          when(one.created),
          when(one.changed),
        ]),
        "There are no tasks yet. Work that lasts is started by your agent, or with anpd tasks start.",
      ),
      next ? h("p", { class: "note" }, "These are the newest 100. ", h("code", null, "anpd tasks list"), " shows more.") : null,
    );
  };
  watch(["task"], async () => put(await draw()));
  return draw();
}
