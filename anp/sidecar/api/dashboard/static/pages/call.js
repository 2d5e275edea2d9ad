// One call of our agent: how it went, its answer, and what can be done about it.
import { action, block as blockPeer, revoke } from "../actions.js";
import { get } from "../api.js";
import { chip, facts, h, section } from "../dom.js";
import { lasting, number, peer, short, when } from "../format.js";
import { offers } from "../offers.js";
import { block, untrusted, words } from "../peertext.js";

export async function show(id, tools) {
  let over = true;
  const draw = async () => {
    try {
      const found = await get(`/v1/calls/${encodeURIComponent(id)}`);
      over = found.ended !== null;
      return view(found, tools);
    } catch (problem) {
      if (problem.status !== 404) throw problem;
      return [crumb(id), h("h1", { tabindex: "-1" }, "Call"), h("p", { class: "empty" }, "The daemon does not keep this call any more. A result is kept in memory for an hour.")];
    }
  };
  tools.watch(["call"], async () => {
    // Nothing of an ended call changes, and the form below it may be in use.
    if (!over) tools.put(await draw());
  });
  return draw();
}

function crumb(id) {
  return h("p", { class: "crumb" }, h("a", { href: "#/calls" }, "Calls"), " / ", short(id, 16));
}

function view(one, tools) {
  const result = one.result;
  const did = result?.peer_did ?? /(?:^|#)(did:\S+)$/.exec(one.peer)?.[1];
  const over = one.ended !== null;
  return [
    crumb(one.id),
    h("div", { class: "title" }, h("h1", { tabindex: "-1" }, words(one.need, 120)), chip(one.state)),
    one.problem ? h("p", { class: "wrong" }, words(one.problem.detail, 600)) : null,
    facts([
      ["Peer", did ? peer(did) : words(one.peer, 200)],
      ["Capability that ran", result ? (result.capability ? h("code", { class: "wrap" }, words(result.capability)) : "the peer did not say") : null],
      ["Protocol", result?.protocol ? h("a", { href: `#/protocols/${result.protocol}` }, result.source.replaceAll("_", " "), " ", short(result.protocol)) : result?.source.replaceAll("_", " ")],
      ["Started", when(one.created)],
      ["Took", result ? lasting(result.ms / 1000) : over ? lasting(one.ended - one.created) : "still running"],
      ["Next attempt", one.next_attempt ? when(one.next_attempt) : null],
      ["Our model calls", result ? number(result.llm_calls) : null],
      ["Negotiations", one.negotiations.length ? one.negotiations.map((id, at) => [at ? ", " : "", h("a", { href: `#/negotiations/${id}` }, short(id, 10))]) : null],
    ]),
    h("p", { class: "actions" },
      over ? null : action("Cancel the call", { id: "cancel-call", kind: "danger", path: `/v1/calls/${encodeURIComponent(one.id)}/cancel`, done: "The call is cancelled." }, tools),
      result?.protocol ? revoke(result.protocol, tools, { label: "Revoke its protocol" }) : null,
      did ? blockPeer(did, tools) : null),
    result ? section("Answer", h("p", { class: "note" }, untrusted("peer")), block(JSON.stringify(result.output, null, 2), { label: "Answer of the peer" })) : null,
    did && result?.capability ? section("Call it again", offers(did, { label: "Show the form for its arguments", only: result.capability })) : null,
  ];
}
