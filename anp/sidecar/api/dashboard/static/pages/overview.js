// The first page: things that need the owner, counts, the latest negotiations and the daemon.
import { get } from "../api.js";
import { chip, facts, h, page, section } from "../dom.js";
import { copyable, count, lasting, learnNames, number, peer, short, when } from "../format.js";
import { words } from "../peertext.js";

export async function show(_, { watch, put }) {
  const draw = async () => view(await load());
  watch(["negotiation", "call", "attachment", "peer", "group"], async () => put(await draw()));
  return draw();
}

async function load() {
  const [info, open, all, protocols, spend, peers, calls] = await Promise.all([
    get("/v1/info"),
    get("/v1/approvals"),
    get("/v1/negotiations"),
    get("/v1/protocols"),
    get("/v1/spend?days=1"),
    get("/v1/peers"),
    get("/v1/calls"),
  ]);
  learnNames(peers.peers);
  return { info, open: open.negotiations, invited: open.groups, all: all.negotiations, protocols: protocols.protocols, spend, peers: peers.peers, calls: calls.calls };
}

function view({ info, open, invited, all, protocols, spend, peers, calls }) {
  const waitingPeers = peers.filter((one) => one.state === "waiting" || one.changed_keys.length);
  const sick = info.attachments.filter((one) => !one.healthy);
  const held = protocols.filter((one) => one.quarantined || one.state === "stale");
  const needs = [
    ...open.map((one) => need(why(one), `#/negotiations/${one.id}`, [peer(one.peer), " ", asked(one)], one.waiting ? "waiting" : one.outcome)),
    ...invited.map((one) => need(one.kind === "invitation" ? "invites you into a group" : "wants to join your group", `#/groups/${one.group}`, [peer(one.peer), " ", words(one.name, 60)], "waiting")),
    ...waitingPeers.map((one) => need(one.state === "waiting" ? "is not allowed yet" : "has other keys than before", `#/peers/${encodeURIComponent(one.did)}`, [peer(one.did)], one.state)),
    ...sick.map((one) => need(one.problem || "does not answer", "#/daemon", [h("strong", null, words(one.name))], "down")),
    ...held.map((one) => need(one.quarantined ? "is quarantined" : "is stale", `#/protocols/${one.hash}`, [short(one.hash)], one.quarantined ? "quarantined" : "stale")),
  ];
  const running = all.filter((one) => one.running);
  const active = protocols.filter((one) => one.state === "active");
  const uses = active.reduce((sum, one) => sum + one.uses, 0);
  return page(
    "Overview",
    section(
      "Needs your attention",
      needs.length ? h("ul", { class: "needs" }, needs) : h("p", { class: "empty fine" }, "Nothing needs your attention."),
    ),
    h(
      "div",
      { class: "tiles" },
      tile("Active agreements", number(active.length), `${count(uses, "call")} without a model`, "#/protocols"),
      tile("Negotiations", number(all.length), `${number(running.length)} running`, "#/negotiations"),
      tile("Model calls today", number(spend.total.calls), spend.model ? `${number(spend.total.input_tokens + spend.total.output_tokens)} tokens` : "no model is set", "#/spend"),
      tile("Open connections", number(info.connections), count(peers.length, "known peer"), "#/peers"),
    ),
    calls.length ? section("Latest calls", latestCalls(calls.slice(0, 6))) : null,
    section("Latest negotiations", latest(all.slice(0, 6), uses)),
    section(
      "This daemon",
      facts([
        ["Address for peers", h("span", { class: "copyline" }, h("code", { class: "wrap" }, info.address), copyable(info.address))],
        ["Decided by", info.decided_by],
        ["Peers that may use it", info.peers_policy === "any" ? "any peer that proves its identity" : "listed peers only"],
        ["Sandbox", info.sandbox.level],
        ["Running for", lasting(Date.now() / 1000 - info.started)],
        ["Version", info.version],
      ]),
    ),
  );
}

function why(one) {
  if (one.waiting) return one.about ? "and waits for your decision now" : "waits for your decision now";
  return "– ended without an agreement; you can decide for the next time";
}

function need(why, href, what, state) {
  return h("li", null, chip(state), h("span", { class: "what" }, what, " ", h("span", { class: "why" }, words(why, 160))), h("a", { class: "button", href }, "Open"));
}

function tile(name, value, more, href) {
  return h("a", { class: "tile", href }, h("span", { class: "name" }, name), h("span", { class: "value" }, value), h("span", { class: "more" }, more));
}

function asked(one) {
  return one.about ? h("span", null, "asks for ", h("q", null, words(one.about, 80))) : null;
}

function latestCalls(found) {
  return h("ul", { class: "rows" }, found.map((one) => {
    const did = one.result?.peer_did ?? one.peer;
    const name = words(one.capability ?? one.result?.capability ?? one.need ?? "a call", 80);
    return h("li", null,
      h("a", { href: one.direction === "served" ? "#/calls" : `#/calls/${one.id}` }, name),
      chip(one.outcome ?? one.state), h("span", { class: "who" }, one.direction === "served" ? "from " : "with ", did?.startsWith("did:") || did?.startsWith("local:") ? peer(did) : words(did ?? "–", 60)), h("span", { class: "at" }, when(one.at ?? one.created)));
  }));
}

function latest(found, uses) {
  if (!found.length && uses) return h("p", { class: "empty fine" }, "No call needed a negotiation so far: the protocols that were used are published.");
  if (!found.length) return h("p", { class: "empty" }, "There are no negotiations yet. Make a call with: anpd call PEER NEED");
  return h(
    "ul",
    { class: "rows" },
    found.map((one) =>
      h("li", null,
        h("a", { href: `#/negotiations/${one.id}` }, one.about ? words(one.about, 80) : one.role === "provider" ? "Proposal from a peer" : "A need"),
        chip(one.waiting ? "waiting" : one.outcome), h("span", { class: "who" }, one.role === "requester" ? "with " : "from ", peer(one.peer)), h("span", { class: "at" }, when(one.started))),
    ),
  );
}
