// Who we know, and what the owner said about them.
import { allow, block } from "../actions.js";
import { get } from "../api.js";
import { chip, facts, h, page, section, table } from "../dom.js";
import { copyable, learnNames, nameOf, number, peer, short, when } from "../format.js";
import { offers } from "../offers.js";
import { words } from "../peertext.js";

const health = (one) => chip(one.health, { good: "good", away: "bad", failing: "bad" }[one.health]);
const latency = (one) => (one.latency_ms === null ? "–" : `${number(one.latency_ms)} ms`);
const failures = (one) => `${number(one.failed)} of ${number(one.answered + one.failed)}`;

export async function show(_, { watch, put }) {
  const draw = async () => {
    const { peers } = await get("/v1/peers");
    learnNames(peers);
    return page(
      "Peers",
      table(
        "Peers",
        ["Peer", "State", "Health", "Version", "Latency", "Failed", "Address", "Last seen"],
        peers.map((one) => [
          [peer(one.did), one.changed_keys.length ? [" ", chip("other keys", "bad")] : null],
          chip(one.state),
          health(one),
          one.version ? words(one.version, 24) : "–",
          latency(one),
          failures(one),
          one.urls.length ? words(one.urls[0], 60) : "–",
          when(one.last_seen),
        ]),
        "There are no known peers yet. A peer is known after it proved its identity here, or after you called it.",
      ),
    );
  };
  watch(["peer", "call", "negotiation"], async () => put(await draw()));
  return draw();
}

export async function showOne(did, tools) {
  const [{ peers }, { protocols }, { negotiations }] = await Promise.all([get("/v1/peers"), get("/v1/protocols"), get("/v1/negotiations")]);
  const found = peers.find((one) => one.did === did || one.aliases.includes(did));
  if (!found) return page("Peer", h("p", { class: "empty" }, "The daemon knows no peer ", short(did, 40), "."));
  return [
    h("p", { class: "crumb" }, h("a", { href: "#/peers" }, "Peers")),
    h("div", { class: "title" }, h("h1", { tabindex: "-1" }, words(nameOf(found) ?? "Unnamed peer")), chip(found.state)),
    found.changed_keys.length
      ? h("p", { class: "wrong" }, "This peer has other keys than before and is refused until you trust them. Ask its owner first, then type: ", h("code", { class: "wrap" }, `anpd peers trust ${found.did}`))
      : null,
    facts([
      ["DID", h("span", { class: "copyline" }, h("code", { class: "wrap" }, words(found.did, 2000)), copyable(found.did))],
      ["Also known as", found.aliases.length ? found.aliases.map((one) => h("code", { class: "wrap" }, words(one, 2000))) : null],
      ["Addresses", found.urls.length ? found.urls.map((one) => h("div", null, h("code", { class: "wrap" }, words(one, 400)))) : null],
      ["Health", health(found)],
      ["Problem", found.problem ? [words(found.problem, 300), " ", when(found.problem_at)] : null],
      ["Version", found.version ? words(found.version, 64) : null],
      ["Latency", latency(found)],
      ["Failed of our calls and tasks", [failures(found), found.failed_at ? [", last ", when(found.failed_at)] : null]],
      ["Not ended yet", number(found.at_work)],
      ["First seen", when(found.first_seen)],
      ["Last seen", when(found.last_seen)],
    ]),
    h("p", { class: "actions" },
      found.state === "allowed" ? null : allow(found.did, tools),
      found.state === "blocked" ? null : block(found.did, tools)),
    section("Capabilities", h("p", { class: "note" }, "You can call what the peer offers with a form. The daemon asks the peer for its list when you say so."), offers(found.did)),
    section("Agreements", table("Agreements", ["Protocol", "Need", "State", "Our role", "Calls"],
      protocols.filter((one) => one.peer === found.did).map((one) => [h("a", { href: `#/protocols/${one.hash}` }, short(one.hash)), words(one.capability ?? one.need ?? "–", 80), chip(one.state), one.role, number(one.uses)]), "There are no agreements with this peer.")),
    section("Negotiations", table("Negotiations", ["Negotiation", "Outcome", "Our role", "Proposals", "Started"],
      negotiations.filter((one) => one.peer === found.did).slice(0, 50).map((one) => [h("a", { href: `#/negotiations/${one.id}` }, one.about ? words(one.about, 80) : short(one.id, 10)), chip(one.waiting ? "waiting" : one.outcome), one.role, number(one.proposals), when(one.started)]), "There are no negotiations with this peer.")),
  ];
}
