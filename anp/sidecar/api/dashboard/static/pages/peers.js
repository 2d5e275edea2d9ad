// Who we know, and what the owner said about them.
import { allow, block } from "../actions.js";
import { get } from "../api.js";
import { chip, facts, h, page, section } from "../dom.js";
import { copyable, learnNames, nameOf, number, peer, short, when } from "../format.js";
import { entries, listing, table } from "../listing.js";
import { offers } from "../offers.js";
import { words } from "../peertext.js";
import { parts, t, word } from "../texts.js";

const COLUMNS = [t("peer"), t("state"), t("health"), t("version"), t("latency"), t("failed"), t("address"), t("last_seen")];

// A peer that is on no list; `unknown` alone says of other things that nobody knows.
const standing = (one) => chip(one.state === "unknown" ? "peer_unknown" : one.state);
const health = (one) => chip(one.health, { good: "good", away: "bad", failing: "bad" }[one.health]);
const latency = (one) => (one.latency_ms === null ? "–" : `${number(one.latency_ms)}\u00a0ms`);
const failures = (one) => t("failed_of_all", { failed: number(one.failed), all: number(one.answered + one.failed) });

export async function show(_, { watch }) {
  const source = entries("/v1/peers", "peers");
  const draw = async () => {
    const peers = await source.read();
    learnNames(peers);
    list.fill(peers.map((one) => [
      [peer(one.did), one.changed_keys.length ? [" ", chip("other keys", "bad")] : null],
      standing(one),
      health(one),
      one.version ? words(one.version, 24) : "–",
      latency(one),
      failures(one),
      one.urls.length ? words(one.urls[0], 60) : "–",
      when(one.last_seen),
    ]));
  };
  const list = listing(t("peers"), COLUMNS, { filters: [1, 2, 3], source, refresh: draw, empty: t("there_are_no_known_peers_yet_a") });
  watch(["peer", "call", "negotiation"], draw);
  await draw();
  return page(t("peers"), list.element);
}

export async function showOne(did, tools) {
  const [{ peers }, { protocols }, { negotiations }] = await Promise.all([get("/v1/peers"), get("/v1/protocols"), get("/v1/negotiations")]);
  const found = peers.find((one) => one.did === did || one.aliases.includes(did));
  if (!found) return page(t("peer"), h("p", { class: "empty" }, parts("the_daemon_knows_no_peer_did", { did: short(did, 40) })));
  return [
    h("p", { class: "crumb" }, h("a", { href: "#/peers" }, t("peers"))),
    h("div", { class: "title" }, h("h1", { tabindex: "-1" }, words(nameOf(found) ?? t("unnamed_peer_2"))), standing(found)),
    found.changed_keys.length
      ? h("p", { class: "wrong" }, parts("this_peer_has_other_keys_than_before", { command: h("code", { class: "wrap" }, `anpd peers trust ${found.did}`) }))
      : null,
    facts([
      ["DID", h("span", { class: "copyline" }, h("code", { class: "wrap" }, words(found.did, 2000)), copyable(found.did))],
      [t("also_known_as"), found.aliases.length ? found.aliases.map((one) => h("code", { class: "wrap" }, words(one, 2000))) : null],
      [t("addresses"), found.urls.length ? found.urls.map((one) => h("div", null, h("code", { class: "wrap" }, words(one, 400)))) : null],
      [t("health"), health(found)],
      [t("problem"), found.problem ? [words(found.problem, 300), " ", when(found.problem_at)] : null],
      [t("version"), found.version ? words(found.version, 64) : null],
      [t("latency"), latency(found)],
      [t("failed_of_our_calls_and_tasks"), found.failed_at ? parts("failures_last_when", { failures: failures(found), when: when(found.failed_at) }) : failures(found)],
      [t("not_ended_yet"), number(found.at_work)],
      [t("first_seen"), when(found.first_seen)],
      [t("last_seen"), when(found.last_seen)],
    ]),
    h("p", { class: "actions" },
      found.state === "allowed" ? null : allow(found.did, tools),
      found.state === "blocked" ? null : block(found.did, tools)),
    section(t("capabilities"), h("p", { class: "note" }, t("you_can_call_what_the_peer_offers")), offers(found.did)),
    section(t("agreements"), table(t("agreements"), [t("protocol"), t("need"), t("state"), t("our_role"), t("calls")],
      protocols.filter((one) => one.peer === found.did).map((one) => [h("a", { href: `#/protocols/${one.hash}` }, short(one.hash)), words(one.capability ?? one.need ?? "–", 80), chip(one.state), word(one.role), number(one.uses)]), t("there_are_no_agreements_with_this_peer"))),
    section(t("negotiations"), table(t("negotiations"), [t("negotiation"), t("outcome"), t("our_role"), t("proposals"), t("started")],
      negotiations.filter((one) => one.peer === found.did).map((one) => [h("a", { href: `#/negotiations/${one.id}` }, one.about ? words(one.about, 80) : short(one.id, 10)), chip(one.waiting ? "waiting" : one.outcome), word(one.role), number(one.proposals), when(one.started)]), t("there_are_no_negotiations_with_this_peer"), { filters: [1, 2] })),
  ];
}
