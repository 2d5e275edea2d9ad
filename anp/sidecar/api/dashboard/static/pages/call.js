// One call of our agent: how it went, its answer, and what can be done about it.
import { action, block as blockPeer, revoke } from "../actions.js";
import { get } from "../api.js";
import { chip, facts, h, section } from "../dom.js";
import { lasting, number, peer, short, when } from "../format.js";
import { offers } from "../offers.js";
import { block, untrusted, words } from "../peertext.js";
import { t, word } from "../texts.js";

export async function show(id, tools) {
  let over = true;
  const draw = async () => {
    try {
      const found = await get(`/v1/calls/${encodeURIComponent(id)}`);
      over = found.ended !== null;
      return view(found, tools);
    } catch (problem) {
      if (problem.status !== 404) throw problem;
      return [crumb(id), h("h1", { tabindex: "-1" }, t("call")), h("p", { class: "empty" }, t("the_daemon_does_not_keep_this_call"))];
    }
  };
  tools.watch(["call"], async () => {
    // Nothing of an ended call changes, and the form below it may be in use.
    if (!over) tools.put(await draw());
  });
  return draw();
}

function crumb(id) {
  return h("p", { class: "crumb" }, h("a", { href: "#/calls" }, t("calls")), " / ", short(id, 16));
}

function view(one, tools) {
  const result = one.result;
  const did = result?.peer_did ?? /(?:^|#)(did:\S+)$/.exec(one.peer)?.[1];
  const over = one.ended !== null;
  return [
    crumb(one.id),
    h("div", { class: "title" }, h("h1", { tabindex: "-1" }, words(one.need, 120)), chip(one.state)),
    one.problem ? h("p", { class: "wrong" }, words(one.problem.detail, 600)) : null,
    facts([
      [t("peer"), did ? peer(did) : words(one.peer, 200)],
      [t("capability_that_ran"), result ? (result.capability ? h("code", { class: "wrap" }, words(result.capability)) : t("the_peer_did_not_say")) : null],
      [t("protocol"), result?.protocol ? h("a", { href: `#/protocols/${result.protocol}` }, word(result.source), " ", short(result.protocol)) : result ? word(result.source) : null],
      [t("started"), when(one.created)],
      [t("took"), result ? lasting(result.ms / 1000) : over ? lasting(one.ended - one.created) : t("still_running")],
      [t("next_attempt"), one.next_attempt ? when(one.next_attempt) : null],
      [t("our_model_calls"), result ? number(result.llm_calls) : null],
      [t("negotiations"), one.negotiations.length ? one.negotiations.map((id, at) => [at ? t("comma_2") : "", h("a", { href: `#/negotiations/${id}` }, short(id, 10))]) : null],
    ]),
    h("p", { class: "actions" },
      over ? null : action(t("cancel_the_call"), { id: "cancel-call", kind: "danger", path: `/v1/calls/${encodeURIComponent(one.id)}/cancel`, done: t("the_call_is_cancelled") }, tools),
      result?.protocol ? revoke(result.protocol, tools, { label: t("revoke_its_protocol") }) : null,
      did ? blockPeer(did, tools) : null),
    result ? section(t("answer"), h("p", { class: "note" }, untrusted("peer")), block(JSON.stringify(result.output, null, 2), { label: t("answer_of_the_peer") })) : null,
    did && result?.capability ? section(t("call_it_again"), offers(did, { label: t("show_the_form_for_its_arguments"), only: result.capability })) : null,
  ];
}
