// Calls of this daemon's agent to peers that were made through the API lately.
import { get } from "../api.js";
import { chip, h, page, table } from "../dom.js";
import { lasting, peer, short, when } from "../format.js";
import { block, words } from "../peertext.js";

export async function show(_, { watch, put }) {
  const draw = async () => {
    const { calls } = await get("/v1/calls");
    return page(
      "Calls",
      h("p", { class: "lead" }, "The latest calls of your agent to peers. A result is kept in memory for an hour."),
      table("Calls", ["Need", "Ran", "State", "Peer", "Protocol", "Took", "Started", "Answer"], calls.map(row), "No calls in the last hour. Make one with: anpd call PEER NEED -d JSON"),
    );
  };
  watch(["call"], async () => put(await draw()));
  return draw();
}

function called(one) {
  const did = one.result?.peer_did ?? /(?:^|#)(did:\S+)$/.exec(one.peer)?.[1];
  return did ? peer(did) : words(one.peer, 60);
}

function row(one) {
  const result = one.result;
  return [
    words(one.need, 100),
    result?.capability ? words(result.capability, 100) : "–",
    chip(one.state),
    called(one),
    [result ? (result.protocol ? h("a", { href: `#/protocols/${result.protocol}` }, result.source.replaceAll("_", " "), " ", short(result.protocol, 8)) : result.source.replaceAll("_", " ")) : "–",
      ...one.negotiations.slice(-1).map((id) => h("div", null, h("a", { href: `#/negotiations/${id}` }, "negotiation")))],
    result ? lasting(result.ms / 1000) : one.ended ? lasting(one.ended - one.created) : "running",
    when(one.created),
    result
      ? h("details", null, h("summary", null, "Show"), block(JSON.stringify(result.output, null, 2), { label: "Answer of the peer" }))
      : one.problem ? words(one.problem.detail, 200) : "–",
  ];
}
