// The first page: things that need the owner, counts, the latest negotiations and the daemon.
import { get } from "../api.js";
import { chip, facts, h, page, section } from "../dom.js";
import { copyable, lasting, learnNames, number, peer, short, when } from "../format.js";
import { network } from "../network.js";
import { words } from "../peertext.js";
import { parts, t, word } from "../texts.js";
import { callChart, latencyChart } from "./traffic.js";

export async function show(_, { watch, put }) {
  const draw = async () => view(await load());
  watch(["negotiation", "call", "attachment", "peer", "group", "task"], async () => put(await draw()));
  return draw();
}

async function load() {
  const [info, open, all, protocols, spend, peers, calls, history, tasks] = await Promise.all([
    get("/v1/info"),
    get("/v1/approvals"),
    get("/v1/negotiations"),
    get("/v1/protocols"),
    get("/v1/spend?days=1"),
    get("/v1/peers"),
    get("/v1/calls?limit=6"),
    get("/v1/history?window=hour"),
    get("/v1/tasks?open=1"),
  ]);
  const asking = tasks.tasks.filter((one) => one.state === "x-input-required" && one.made_by !== "peer");
  const questions = await Promise.all(asking.map((one) => get(`/v1/tasks/${one.id}`)));
  learnNames(peers.peers);
  return { info, open: open.negotiations, invited: open.groups, all: all.negotiations, protocols: protocols.protocols, spend, peers: peers.peers, calls: calls.calls, history, questions };
}

function view({ info, open, invited, all, protocols, spend, peers, calls, history, questions }) {
  const waitingPeers = peers.filter((one) => one.state === "waiting" || one.changed_keys.length);
  const sick = info.attachments.filter((one) => !one.healthy);
  const held = protocols.filter((one) => one.quarantined || one.state === "stale");
  const needs = [
    ...open.map((one) => need(why(one), `#/negotiations/${one.id}`, [peer(one.peer), " ", asked(one)], one.waiting ? "waiting" : one.outcome)),
    ...invited.map((one) => need(one.kind === "invitation" ? t("invites_you_into_a_group") : t("wants_to_join_your_group"), `#/groups/${one.group}`, [peer(one.peer), " ", words(one.name, 60)], "waiting")),
    ...questions.map((one) => need(one.question?.text || t("the_peer_asks"), `#/tasks/${one.session}`, [peer(one.executor), " ", words(one.capability || t("a_task"), 60)], "input-required")),
    ...waitingPeers.map((one) => need(one.state === "waiting" ? t("is_not_allowed_yet") : t("has_other_keys_than_before"), `#/peers/${encodeURIComponent(one.did)}`, [peer(one.did)], one.state)),
    ...sick.map((one) => need(one.problem || t("does_not_answer"), "#/daemon", [h("strong", null, words(one.name))], "down")),
    ...held.map((one) => need(one.quarantined ? t("is_quarantined") : t("is_stale"), `#/protocols/${one.hash}`, [short(one.hash)], one.quarantined ? "quarantined" : "stale")),
  ];
  const running = all.filter((one) => one.running);
  const active = protocols.filter((one) => one.state === "active");
  const uses = active.reduce((sum, one) => sum + one.uses, 0);
  return page(
    t("overview"),
    section(
      t("needs_your_attention"),
      needs.length ? h("ul", { class: "needs" }, needs) : h("p", { class: "empty fine" }, t("nothing_needs_your_attention")),
    ),
    h(
      "div",
      { class: "tiles" },
      tile(t("active_agreements"), number(active.length), t("n_call_without_a_model", { n: number(uses) }), "#/protocols"),
      tile(t("negotiations"), number(all.length), t("n_running", { n: number(running.length) }), "#/negotiations"),
      tile(t("model_calls_today"), number(spend.total.calls), spend.model ? t("n_tokens", { n: number(spend.total.input_tokens + spend.total.output_tokens) }) : t("no_model_is_set"), "#/spend"),
      tile(t("open_connections"), number(info.connections), t("n_known_peer", { n: number(peers.length) }), "#/peers"),
    ),
    history.peers.length ? h("section", { class: "lately" }, h("h2", null, h("a", { href: "#/traffic" }, t("traffic_of_the_last_hour"))), h("div", { class: "pair" }, network(history.peers, 60), h("div", null, callChart(history), latencyChart(history)))) : null,
    calls.length ? section(t("latest_calls"), latestCalls(calls.slice(0, 6))) : null,
    section(t("latest_negotiations"), latest(all.slice(0, 6), uses)),
    section(
      t("this_daemon_2"),
      facts([
        [t("address_for_peers"), h("span", { class: "copyline" }, h("code", { class: "wrap" }, info.address), copyable(info.address))],
        [t("decided_by"), word(info.decided_by)],
        [t("peers_that_may_use_it"), info.peers_policy === "any" ? t("any_peer_that_proves_its_identity") : t("listed_peers_only")],
        [t("sandbox"), word(info.sandbox.level)],
        [t("running_for"), lasting(Date.now() / 1000 - info.started)],
        [t("version"), info.version],
      ]),
    ),
  );
}

function why(one) {
  if (one.waiting) return one.about ? t("and_waits_for_your_decision_now") : t("waits_for_your_decision_now");
  return t("ended_without_an_agreement_you_can_decide");
}

function need(why, href, what, state) {
  return h("li", null, chip(state), h("span", { class: "what" }, what, " ", h("span", { class: "why" }, words(why, 160))), h("a", { class: "button", href }, t("open")));
}

function tile(name, value, more, href) {
  return h("a", { class: "tile", href }, h("span", { class: "name" }, name), h("span", { class: "value" }, value), h("span", { class: "more" }, more));
}

function asked(one) {
  return one.about ? h("span", null, parts("asks_for_need", { need: h("q", null, words(one.about, 80)) })) : null;
}

const whom = (from, values) => (from ? parts("from_peer", values) : parts("with_peer", values));

function latestCalls(found) {
  return h("ul", { class: "rows" }, found.map((one) => {
    const did = one.result?.peer_did ?? one.peer;
    const name = words(one.capability || one.result?.capability || one.need || t("a_call"), 80);
    return h("li", null,
      h("a", { href: one.direction === "served" ? "#/calls" : `#/calls/${one.id}` }, name),
      chip(one.outcome ?? one.state), h("span", { class: "who" }, whom(one.direction === "served", { peer: did?.startsWith("did:") || did?.startsWith("local:") ? peer(did) : words(did ?? "–", 60) })), h("span", { class: "at" }, when(one.at ?? one.created)));
  }));
}

function latest(found, uses) {
  if (!found.length && uses) return h("p", { class: "empty fine" }, t("no_call_needed_a_negotiation_so_far"));
  if (!found.length) return h("p", { class: "empty" }, t("there_are_no_negotiations_yet_make_a"));
  return h(
    "ul",
    { class: "rows" },
    found.map((one) =>
      h("li", null,
        h("a", { href: `#/negotiations/${one.id}` }, one.about ? words(one.about, 80) : one.role === "provider" ? t("proposal_from_a_peer") : t("a_need")),
        chip(one.waiting ? "waiting" : one.outcome), h("span", { class: "who" }, whom(one.role !== "requester", { peer: peer(one.peer) })), h("span", { class: "at" }, when(one.started))),
    ),
  );
}
