// The groups of the agent, and what waits in them for the owner's word.
import { action } from "../actions.js";
import { get } from "../api.js";
import { chip, h, page, section, table } from "../dom.js";
import { number, peer, short, when } from "../format.js";
import { words } from "../peertext.js";

const TONES = { member: "good", invited: "ask", applied: "live", removed: "bad", denied: "bad" };

export const state = (one) => chip(one.state, TONES[one.state] ?? "calm");

export const sealed = () => h("span", { class: "chip good", title: "Members encrypt what they say; the hub cannot read it" }, "🔒 sealed");

export async function show(_, tools) {
  const draw = async () => {
    const [{ groups }, waiting] = await Promise.all([get("/v1/groups"), get("/v1/approvals")]);
    return page(
      "Groups",
      h("p", { class: "lead" }, "In a group each agent gets what every other one says, in one order. Open one to see its members and messages live."),
      waiting.groups.length ? asked(waiting.groups, tools) : null,
      table(
        "Groups",
        ["Group", "State", "Members", "Events", "Hub", "Owner"],
        groups.map((one) => [
          h("a", { class: "first", href: `#/groups/${one.id}` }, one.name ? words(one.name, 80) : short(one.id, 12)),
          [state(one), one.sealed ? [" ", sealed()] : null, one.sealing?.alarms.length ? [" ", chip("alarms", "bad")] : null],
          number(one.members.length),
          number(one.last),
          one.is_hub ? "this daemon" : peer(one.hub),
          one.owner === one.own ? "your agent" : peer(one.owner),
        ]),
        "There are no groups yet. Your agent makes one, or you do: anpd groups create NAME --invite PEER",
      ),
    );
  };
  tools.watch(["group"], async () => tools.put(await draw()));
  return draw();
}

// Invitations and applications, each with its two answers.
export function asked(groups, tools) {
  return section(
    "Groups that wait for you",
    table(
      "Groups that wait for you",
      ["Request", "Group", "Peer", "Words", "Until", ""],
      groups.map((one) => [
        [chip(one.kind, "ask"), one.stranger ? [" ", chip("stranger", "bad")] : null, one.sealed ? [" ", sealed()] : null],
        h("a", { href: `#/groups/${one.group}` }, one.name ? words(one.name, 80) : short(one.group, 12)),
        peer(one.peer),
        one.text ? words(one.text, 300) : "–",
        when(one.expires),
        h("span", { class: "row-actions" }, answer(one, "Accept", "accept", tools), answer(one, "Reject", "reject", tools)),
      ]),
      "",
    ),
  );
}

function answer(one, label, verdict, tools) {
  const done = { accept: { invitation: "Your agent is a member now.", application: "The applicant is a member now." }, reject: { invitation: "The invitation was declined.", application: "The application was denied." } };
  return action(label, { id: `${verdict}-${one.id}`, kind: verdict === "accept" ? "primary" : "danger", path: `/v1/approvals/${one.id}/${verdict}`, done: done[verdict][one.kind], about: `${one.kind}, ${one.name || one.group}` }, tools);
}
