// All negotiations, and those that wait for the owner.
import { get } from "../api.js";
import { chip, h, page, table } from "../dom.js";
import { count, lasting, number, peer, when } from "../format.js";
import { words } from "../peertext.js";
import { asked } from "./groups.js";

const COLUMNS = ["Need", "Outcome", "Peer", "Our role", "Proposals", "Our model calls", "Took", "Started"];

export async function show(_, { watch, put }) {
  const draw = async () => {
    const { negotiations } = await get("/v1/negotiations");
    const running = negotiations.filter((one) => one.running).length;
    return page(
      "Negotiations",
      h("p", { class: "lead" }, negotiations.length ? `${count(negotiations.length, "negotiation")}, ${number(running)} running. Open one to see its messages live.` : ""),
      table("Negotiations", COLUMNS, negotiations.map(row), "There are no negotiations yet. The first call to a peer starts one: anpd call PEER NEED"),
    );
  };
  watch(["negotiation"], async () => put(await draw()));
  return draw();
}

export async function showOpen(_, tools) {
  const { watch, put } = tools;
  const draw = async () => {
    const [{ negotiations, groups }, { decisions }] = await Promise.all([get("/v1/approvals"), get("/v1/decisions")]);
    const made = decisions.filter((one) => one.verdict !== "offer");
    return page(
      "Approvals",
      h("p", { class: "lead" }, "Negotiations that wait for your decision now, and those that ended without an agreement, for which a decision now is used next time."),
      table("Negotiations that wait for you", COLUMNS, negotiations.map(row), "No negotiation waits for your decision."),
      groups.length ? asked(groups, tools) : null,
      h("h2", null, "Your decisions"),
      table(
        "Your decisions",
        ["Decision", "Negotiation", "Peer", "Note", "Made", "State"],
        made.map((one) => [
          chip(one.verdict),
          one.negotiation_id ? h("a", { href: `#/negotiations/${one.negotiation_id}` }, "open") : "–",
          peer(one.peer_did),
          one.note ? words(one.note) : "–",
          when(one.created),
          one.used ? h("span", null, "used ", when(one.used)) : one.expires * 1000 < Date.now() ? "expired, not used" : h("span", null, "stored until ", when(one.expires)),
        ]),
        "You have made no decisions yet.",
      ),
    );
  };
  watch(["negotiation", "group"], async () => put(await draw()));
  return draw();
}

function row(one) {
  const title = one.about ? words(one.about, 100) : one.role === "provider" ? "Proposal from a peer" : one.id;
  return [
    h("a", { class: "first", href: `#/negotiations/${one.id}` }, title),
    [chip(one.waiting ? "waiting" : one.outcome)],
    peer(one.peer),
    one.role,
    number(one.proposals),
    number(one.model_calls),
    one.ended ? lasting(one.ended - one.started) : "running",
    when(one.started),
  ];
}
