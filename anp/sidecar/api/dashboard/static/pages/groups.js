// The groups of the agent, and what waits in them for the owner's word.
import { action } from "../actions.js";
import { get } from "../api.js";
import { chip, h, page, refill, section } from "../dom.js";
import { number, peer, short, when } from "../format.js";
import { listing, table } from "../listing.js";
import { words } from "../peertext.js";
import { t } from "../texts.js";

const TONES = { member: "good", invited: "ask", applied: "live", removed: "bad", denied: "bad" };
const COLUMNS = [t("group"), t("state"), t("members"), t("events"), t("hub"), t("owner")];

export const state = (one) => chip(one.state, TONES[one.state] ?? "calm");

export const sealed = () => h("span", { class: "chip good", title: t("members_encrypt_what_they_say_the_hub") }, t("sealed_2"));

export async function show(_, tools) {
  const waits = h("div");
  const list = listing(t("groups"), COLUMNS, { filters: [1, 4, 5], empty: t("there_are_no_groups_yet_your_agent") });
  const draw = async () => {
    const [{ groups }, waiting] = await Promise.all([get("/v1/groups"), get("/v1/approvals")]);
    refill(waits, waiting.groups.length ? asked(waiting.groups, tools) : null);
    list.fill(groups.map((one) => [
      h("a", { class: "first", href: `#/groups/${one.id}` }, one.name ? words(one.name, 80) : short(one.id, 12)),
      [state(one), one.sealed ? [" ", sealed()] : null, one.sealing?.alarms.length ? [" ", chip("alarms", "bad")] : null],
      number(one.members.length),
      number(one.last),
      one.is_hub ? t("this_daemon") : peer(one.hub),
      one.owner === one.own ? t("your_agent") : peer(one.owner),
    ]));
  };
  tools.watch(["group"], draw);
  await draw();
  return page(t("groups"), h("p", { class: "lead" }, t("in_a_group_each_agent_gets_what")), waits, list.element);
}

// Invitations and applications, each with its two answers.
export function asked(groups, tools) {
  return section(
    t("groups_that_wait_for_you"),
    table(
      t("groups_that_wait_for_you"),
      [t("request"), t("group"), t("peer"), t("words"), t("until"), ""],
      groups.map((one) => [
        [chip(one.kind, "ask"), one.stranger ? [" ", chip("stranger", "bad")] : null, one.sealed ? [" ", sealed()] : null],
        h("a", { href: `#/groups/${one.group}` }, one.name ? words(one.name, 80) : short(one.group, 12)),
        peer(one.peer),
        one.text ? words(one.text, 300) : "–",
        when(one.expires),
        h("span", { class: "row-actions" }, answer(one, t("accept"), "accept", tools), answer(one, t("reject"), "reject", tools)),
      ]),
      "",
      { id: "asked" },
    ),
  );
}

const DONE = {
  accept: { invitation: t("your_agent_is_a_member_now"), application: t("the_applicant_is_a_member_now") },
  reject: { invitation: t("the_invitation_was_declined"), application: t("the_application_was_denied") },
};
const ABOUT = { invitation: (name) => t("the_invitation_into_name", { name }), application: (name) => t("the_application_for_name", { name }) };

function answer(one, label, verdict, tools) {
  return action(label, { id: `${verdict}-${one.id}`, kind: verdict === "accept" ? "primary" : "danger", path: `/v1/approvals/${one.id}/${verdict}`, done: DONE[verdict][one.kind], about: ABOUT[one.kind](one.name || one.group) }, tools);
}
