// All negotiations, and those that wait for the owner.
import { get } from "../api.js";
import { chip, h, page } from "../dom.js";
import { lasting, number, peer, when } from "../format.js";
import { entries, listing, table } from "../listing.js";
import { words } from "../peertext.js";
import { parts, t, word } from "../texts.js";
import { asked } from "./groups.js";

const COLUMNS = [t("need"), t("outcome"), t("peer"), t("our_role"), t("proposals"), t("our_model_calls"), t("took"), t("started")];

export async function show(_, { watch }) {
  const source = entries("/v1/negotiations", "negotiations");
  const draw = async () => list.fill((await source.read()).map(row));
  const list = listing(t("negotiations"), COLUMNS, { filters: [1, 2, 3], source, refresh: draw, empty: t("there_are_no_negotiations_yet_the_first") });
  watch(["negotiation"], draw);
  await draw();
  return page(t("negotiations"), h("p", { class: "lead" }, t("open_one_to_see_its_messages_live")), list.element);
}

export async function showOpen(_, tools) {
  const { watch, put } = tools;
  const draw = async () => {
    const [{ negotiations, groups }, { decisions }] = await Promise.all([get("/v1/approvals"), get("/v1/decisions")]);
    const made = decisions.filter((one) => one.verdict !== "offer");
    return page(
      t("approvals"),
      h("p", { class: "lead" }, t("negotiations_that_wait_for_your_decision_now")),
      table(t("negotiations_that_wait_for_you"), COLUMNS, negotiations.map(row), t("no_negotiation_waits_for_your_decision"), { id: "open", filters: [1, 2] }),
      groups.length ? asked(groups, tools) : null,
      h("h2", null, t("your_decisions")),
      table(
        t("your_decisions"),
        [t("decision"), t("negotiation"), t("peer"), t("note"), t("made_on"), t("state")],
        made.map((one) => [
          chip(one.verdict),
          one.negotiation_id ? h("a", { href: `#/negotiations/${one.negotiation_id}` }, t("open_it")) : "–",
          peer(one.peer_did),
          one.note ? words(one.note) : "–",
          when(one.created),
          one.used ? h("span", null, parts("used_when", { when: when(one.used) })) : one.expires * 1000 < Date.now() ? t("expired_not_used") : h("span", null, parts("stored_until_when", { when: when(one.expires) })),
        ]),
        t("you_have_made_no_decisions_yet"),
        { id: "made", filters: [0, 2] },
      ),
    );
  };
  watch(["negotiation", "group"], async () => put(await draw()));
  return draw();
}

function row(one) {
  const title = one.about ? words(one.about, 100) : one.role === "provider" ? t("proposal_from_a_peer") : one.id;
  return [
    h("a", { class: "first", href: `#/negotiations/${one.id}` }, title),
    [chip(one.waiting ? "waiting" : one.outcome)],
    peer(one.peer),
    word(one.role),
    number(one.proposals),
    number(one.model_calls),
    one.ended ? lasting(one.ended - one.started) : word("running"),
    when(one.started),
  ];
}
