// All agreements, and code that serves any peer.
import { get } from "../api.js";
import { chip, h, page, table } from "../dom.js";
import { count, number, peer, short, when } from "../format.js";
import { words } from "../peertext.js";

export async function show(_, { watch, put }) {
  const draw = async () => {
    const { protocols } = await get("/v1/protocols");
    return page(
      "Protocols",
      h("p", { class: "lead" }, protocols.length ? `${count(protocols.length, "agreement")}. A call under an agreement needs no model.` : ""),
      table(
        "Protocols",
        ["Protocol", "Capability", "Need", "State", "Peer", "Our role", "Calls", "Last used", "Agreed"],
        protocols.map((one) => [
          h("a", { class: "first", href: `#/protocols/${one.hash}` }, short(one.hash)),
          one.capability ? words(one.capability, 80) : one.uris.length ? words(one.uris[0], 80) : "–",
          one.need ? words(one.need, 80) : "–",
          one.quarantined ? chip("quarantined") : chip(one.state),
          one.peer ? peer(one.peer) : "any peer",
          `${one.role}${one.origin ? `, by ${one.origin}` : ""}`,
          number(one.uses),
          when(one.last_used),
          when(one.created),
        ]),
        "There are no agreements yet. The first call to a peer negotiates one: anpd call PEER NEED",
      ),
    );
  };
  watch(["negotiation", "call.done", "protocol"], async () => put(await draw()));
  return draw();
}
