// The capabilities that a peer offers us, each with a form to call it. The peer is asked
// only when the owner wants it, because that goes over the network.
import { get } from "./api.js";
import { button, h, replace } from "./dom.js";
import { shown } from "./peertext.js";
import { capability } from "./trial.js";
import { t } from "./texts.js";

// Returns a button that shows the offers of a peer, or one capability of them.
export function offers(did, { label, only } = {}) {
  const area = h("div", { role: "region", "aria-label": t("capabilities_of_the_peer") });
  const wrong = h("p", { class: "wrong", role: "alert" });
  const said = h("p", { class: "note", role: "status" });
  const ask = button(label ?? t("ask_the_peer_for_its_capabilities"), async () => {
    replace(wrong);
    replace(said, t("asking"));
    try {
      const found = await get(`/v1/peers/offers?peer=${encodeURIComponent(did)}`);
      const named = found.capabilities.filter((one) => !only || one.name === only);
      replace(area, named.map((one, at) => capability(one, `call-${at}`, { path: "/v1/calls", body: (input) => request(did, one.name, input), whose: "peer" })));
      replace(said, named.length ? t("the_peer_offers_n_capability_here", { n: named.length }) : none(found, only));
      if (only) area.querySelector("details.try")?.setAttribute("open", "");
    } catch (problem) {
      replace(said);
      replace(wrong, shown(problem.message));
    }
  });
  ask.id = "ask-offers";
  return [h("p", { class: "actions" }, ask), wrong, said, area];
}

function none(found, only) {
  if (only && found.publishes) return t("the_peer_does_not_offer_this_capability");
  return found.publishes ? t("the_peer_offers_no_capability_to_us") : t("the_peer_publishes_no_list_of_its");
}

function request(did, name, input) {
  const [peer, capability] = [JSON.stringify(did), JSON.stringify(name)];
  return `{"peer": ${peer}, "need": {"requirement": ${capability}}, "capability": ${capability}, "input": ${input}}`;
}
