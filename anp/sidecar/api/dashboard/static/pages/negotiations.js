// All negotiations, and those that wait for the owner.
import { get } from "../api.js";
import { chip, h, page, table } from "../dom.js";
import { count, lasting, number, peer, when } from "../format.js";
import { words } from "../peertext.js";

const COLUMNS = ["About", "Outcome", "Peer", "Our side", "Rounds", "Model calls", "Took", "Started"];

export async function show(_, { watch, put }) {
  const draw = async () => {
    const { negotiations } = await get("/v1/negotiations");
    const running = negotiations.filter((one) => one.running).length;
    return page(
      "Negotiations",
      h("p", { class: "lead" }, negotiations.length ? `${count(negotiations.length, "negotiation")}, ${number(running)} running. Open one to follow it live.` : ""),
      table("Negotiations", COLUMNS, negotiations.map(row), "No negotiation yet. The first call to a peer starts one: anpd call PEER TASK"),
    );
  };
  watch(["negotiation"], async () => put(await draw()));
  return draw();
}

export async function showOpen(_, { watch, put }) {
  const draw = async () => {
    const [{ negotiations }, { decisions }] = await Promise.all([get("/v1/negotiations?open=1"), get("/v1/decisions")]);
    const words_ = decisions.filter((one) => one.verdict !== "offer");
    return page(
      "Approvals",
      h("p", { class: "lead" }, "Negotiations that wait for your word now, and those that ended without an agreement and that your word can rescue."),
      table("Negotiations that wait for you", COLUMNS, negotiations.map(row), "Nothing waits for you."),
      h("h2", null, "What you said"),
      table(
        "Your decisions",
        ["Word", "About", "Peer", "Note", "Said", "Counts"],
        words_.map((one) => [
          chip(one.verdict),
          one.negotiation_id ? h("a", { href: `#/negotiations/${one.negotiation_id}` }, "its negotiation") : "–",
          peer(one.peer_did),
          one.note ? words(one.note) : "–",
          when(one.created),
          one.used ? h("span", null, "used ", when(one.used)) : one.expires * 1000 < Date.now() ? "lapsed" : h("span", null, "until ", when(one.expires)),
        ]),
        "Nothing yet.",
      ),
    );
  };
  watch(["negotiation"], async () => put(await draw()));
  return draw();
}

function row(one) {
  const title = one.about ? words(one.about, 100) : one.role === "provider" ? "A peer asked" : one.id;
  return [
    h("a", { class: "first", href: `#/negotiations/${one.id}` }, title),
    [chip(one.waiting ? "waiting" : one.outcome)],
    peer(one.peer),
    one.role,
    number(one.rounds),
    number(one.model_calls),
    one.ended ? lasting(one.ended - one.started) : "running",
    when(one.started),
  ];
}
