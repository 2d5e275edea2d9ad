// Calls in both directions: what this daemon's agent called, and what peers called.
import { get } from "../api.js";
import { button, chip, h, page, table } from "../dom.js";
import { lasting, number, peer, short, when } from "../format.js";
import { block, words } from "../peertext.js";

const VIEWS = [["", "All"], ["direction=made", "Made"], ["direction=served", "Served"], ["outcome=failed", "Failed"]];

export async function show(_, { watch, put }) {
  let view = "";
  const draw = async () => {
    const { calls, next } = await get(`/v1/calls${view ? `?${view}` : ""}`);
    const choose = (wanted) => async () => {
      view = wanted;
      put(await draw());
    };
    return page(
      "Calls",
      h("p", { class: "lead" }, "The latest calls that your agent made and that it served for peers, refused ones too."),
      h("p", { class: "actions" }, VIEWS.map(([wanted, name]) => [button(name, choose(wanted), wanted === view ? "primary" : ""), " "])),
      table("Calls", ["Direction", "Capability", "Outcome", "Peer", "Protocol", "Took", "Model calls", "Began", "Answer"], calls.map(callRow), "No calls are kept. Make one with: anpd call PEER NEED -d JSON"),
      next ? h("p", { class: "note" }, "Older ones: ", h("code", null, "anpd calls list")) : null,
    );
  };
  watch(["call"], async () => put(await draw()));
  return draw();
}

// One call, made or served.
export function callRow(one) {
  return [
    chip(one.direction),
    one.direction === "made" ? h("a", { class: "first", href: `#/calls/${one.id}` }, words(one.capability || one.need || "a call", 100)) : words(one.capability || one.need || "–", 100),
    [chip(one.outcome, one.outcome === "ok" ? "good" : one.outcome === "running" ? "live" : one.outcome.endsWith("waiting") || one.outcome.endsWith("pending") ? "ask" : "bad"), one.count > 1 ? ` × ${number(one.count)}` : ""],
    one.peer ? peer(one.peer) : one.asked ? words(one.asked, 60) : "–",
    [
      one.protocol ? h("a", { href: `#/protocols/${one.protocol}` }, one.source.replaceAll("_", " "), " ", short(one.protocol, 8)) : one.source === "none" ? "–" : one.source.replaceAll("_", " "),
      one.negotiation_id ? h("div", null, h("a", { href: `#/negotiations/${one.negotiation_id}` }, "negotiation")) : null,
    ],
    one.outcome === "running" ? "running" : lasting(one.ms / 1000),
    one.peer_llm_calls === null ? number(one.llm_calls) : `${number(one.llm_calls)} + ${number(one.peer_llm_calls)}`,
    when(one.at),
    one.reason ? words(one.reason, 200) : one.direction === "made" && one.outcome === "ok" ? answer(one.id) : "–",
  ];
}

// The answer is kept for an hour at most, and read only when somebody looks.
function answer(id) {
  const place = h("div", null, "…");
  const details = h("details", null, h("summary", null, "Show"), place);
  details.addEventListener("toggle", async () => {
    if (!details.open) return;
    try {
      const { result } = await get(`/v1/calls/${encodeURIComponent(id)}`);
      place.replaceChildren(block(JSON.stringify(result?.output ?? null, null, 2), { label: "Answer of the peer" }));
    } catch {
      place.textContent = "The answer is no longer kept.";
    }
  });
  return details;
}
