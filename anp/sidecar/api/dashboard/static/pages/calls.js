// Calls in both directions: what this daemon's agent called, and what peers called.
import { get } from "../api.js";
import { chip, h, page } from "../dom.js";
import { lasting, number, peer, short, when } from "../format.js";
import { entries, listing } from "../listing.js";
import { block, words } from "../peertext.js";
import { t, word } from "../texts.js";

export const COLUMNS = [t("capability"), t("direction"), t("outcome"), t("peer"), t("protocol"), t("took"), t("model_calls"), t("began"), t("answer")];

export async function show(_, { watch }) {
  const source = entries("/v1/calls", "calls");
  const draw = async () => list.fill((await source.read()).map(callRow));
  const list = listing(t("calls"), COLUMNS, { filters: [1, 2, 3], source, refresh: draw, empty: t("no_calls_are_kept_make_one_with") });
  watch(["call"], draw);
  await draw();
  return page(t("calls"), h("p", { class: "lead" }, t("the_latest_calls_that_your_agent_made")), list.element);
}

const TONES = { ok: "good", running: "live" };

// One call, made or served.
export function callRow(one) {
  const name = words(one.capability || one.need || (one.direction === "made" ? t("a_call") : "–"), 100);
  return [
    [one.direction === "made" ? h("a", { class: "first", href: `#/calls/${one.id}` }, name) : name, one.count > 1 ? ` × ${number(one.count)}` : "", one.reason ? h("div", { class: "note" }, words(one.reason, 90)) : null],
    chip(one.direction),
    chip(one.outcome, TONES[one.outcome] ?? (/(waiting|pending)$/.test(one.outcome) ? "ask" : "bad")),
    one.peer ? peer(one.peer) : one.asked ? words(one.asked, 60) : "–",
    [
      one.protocol ? h("a", { href: `#/protocols/${one.protocol}` }, word(one.source), " ", short(one.protocol, 8)) : one.source === "none" ? "–" : word(one.source),
      one.negotiation_id ? h("div", null, h("a", { href: `#/negotiations/${one.negotiation_id}` }, word("negotiation"))) : null,
    ],
    one.outcome === "running" ? word("running") : lasting(one.ms / 1000),
    one.peer_llm_calls === null ? number(one.llm_calls) : `${number(one.llm_calls)} + ${number(one.peer_llm_calls)}`,
    when(one.at),
    one.direction === "made" && one.outcome === "ok" ? answer(one.id) : "–",
  ];
}

// The answer is kept for an hour at most, and read only when somebody looks.
function answer(id) {
  const place = h("div", null, "…");
  const details = h("details", { id: `answer-${id}` }, h("summary", null, t("show")), place);
  details.addEventListener("toggle", async () => {
    if (!details.open) return;
    try {
      const { result } = await get(`/v1/calls/${encodeURIComponent(id)}`);
      place.replaceChildren(block(JSON.stringify(result?.output ?? null, null, 2), { label: t("answer_of_the_peer") }));
    } catch {
      place.textContent = t("the_answer_is_no_longer_kept");
    }
  });
  return details;
}
