// All agreements, and code that serves any peer.
import { chip, h, page } from "../dom.js";
import { number, peer, short, when } from "../format.js";
import { entries, listing } from "../listing.js";
import { words } from "../peertext.js";
import { t, word } from "../texts.js";

const COLUMNS = [t("protocol"), t("capability"), t("need"), t("state"), t("peer"), t("our_role"), t("calls"), t("last_used"), t("agreed")];

export async function show(_, { watch }) {
  const source = entries("/v1/protocols", "protocols");
  const draw = async () => list.fill((await source.read()).map(row));
  const list = listing(t("protocols"), COLUMNS, { filters: [3, 4, 5], source, refresh: draw, empty: t("there_are_no_agreements_yet_the_first") });
  watch(["negotiation", "call.done", "protocol"], draw);
  await draw();
  return page(t("protocols"), h("p", { class: "lead" }, t("agreements_and_code_for_any_peer_a")), list.element);
}

function row(one) {
  return [
    h("a", { class: "first", href: `#/protocols/${one.hash}` }, short(one.hash)),
    one.capability ? words(one.capability, 80) : one.uris.length ? words(one.uris[0], 80) : "–",
    one.need ? words(one.need, 80) : "–",
    one.quarantined ? chip("quarantined") : chip(one.state),
    one.peer ? peer(one.peer) : t("any_peer"),
    one.origin ? t("role_by_origin", { role: word(one.role), origin: word(one.origin) }) : word(one.role),
    number(one.uses),
    when(one.last_used),
    when(one.created),
  ];
}
