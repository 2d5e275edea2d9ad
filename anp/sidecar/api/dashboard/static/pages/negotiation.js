// One negotiation: its messages live, its proposals compared, and the owner's decision.
import { act } from "../actions.js";
import { get } from "../api.js";
import { comparison, rows, totals } from "../diff.js";
import { button, chip, facts, h, replace, section } from "../dom.js";
import { lasting, number, peer, short, when } from "../format.js";
import { table } from "../listing.js";
import { block, untrusted, words } from "../peertext.js";
import { parts, t, word } from "../texts.js";

export async function show(id, { tell, watch, put, reload }) {
  // The choices and texts of the person stay while new messages arrive.
  const kept = { left: null, right: null, verdict: null, note: "", document: null, hint: "", open: new Set() };
  let turns = -1;
  const draw = async () => {
    const found = await get(`/v1/negotiations/${encodeURIComponent(id)}`);
    const more = turns >= 0 && found.turns.length > turns;
    if (more) tell(t("n_new_message_outcome_outcome", { n: found.turns.length - turns, outcome: found.waiting ? t("waits_for_your_decision") : word(found.outcome) }));
    turns = found.turns.length;
    return view(found, kept, { tell, reload });
  };
  const about = (event) => !event.data?.id || event.data.id.startsWith(id);
  watch(["negotiation"], async () => {
    const focused = document.activeElement?.id;
    const scrolled = window.scrollY;
    put(await draw());
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    window.scrollTo(0, scrolled);
  }, about);
  return draw();
}

function view(found, kept, tools) {
  const documents = documentsOf(found);
  const title = found.about ? words(found.about, 120) : found.role === "provider" ? t("a_peers_proposal") : t("negotiation");
  const took = found.ended ? t("took_time", { time: lasting(found.ended - found.started) }) : word("running");
  return [
    h("p", { class: "crumb" }, h("a", { href: "#/negotiations" }, t("negotiations")), " / ", short(found.id, 16)),
    h("div", { class: "title" }, h("h1", { tabindex: "-1" }, title), chip(found.waiting ? "waiting" : found.outcome)),
    found.reason ? h("p", { class: found.outcome === "agreed" ? "lead" : "wrong" }, words(found.reason, 600)) : null,
    facts([
      [t("peer"), peer(found.peer)],
      [t("our_role"), word(found.role)],
      [t("started"), h("span", null, when(found.started), `, ${took}`)],
      [t("proposals"), number(found.proposals)],
      [t("our_model_calls"), number(found.model_calls)],
      [t("agreed_protocol"), found.hash ? h("a", { href: `#/protocols/${found.hash}` }, short(found.hash)) : null],
      [t("tests"), found.agreement || found.tests ? testLine(found.agreement?.tests ?? found.tests) : null],
    ]),
    decide(found, documents, kept, tools),
    section(t("messages"), timeline(found, documents, kept)),
    documents.length ? section(t("proposals"), compare(documents, kept)) : null,
    found.model_requests.length ? section(t("our_model_calls"), exchanges(found.model_requests)) : null,
    said(found),
  ];
}

function testLine(tests) {
  return Object.entries(tests).filter(([, value]) => typeof value !== "object").map(([name, value]) => `${word(name)}${t("colon")}${word(value)}`).join(t("comma"));
}

// Every proposal in order, each text once.
function documentsOf(found) {
  const made = [];
  const put = (text, label, whose, turn) => {
    if (text && text !== made.at(-1)?.text) made.push({ text, label, whose, turn });
  };
  found.turns.forEach((turn, at) => {
    const ours = turn.direction === "sent";
    put(turn.candidate, ours ? t("proposal_number_ours", { number: turn.sequence_id + 1 }) : t("proposal_number_the_peers", { number: turn.sequence_id + 1 }), ours ? "ours" : "peer", at);
  });
  if (found.pending) put(found.pending.document, found.pending.ours ? t("for_your_approval_ours") : t("for_your_approval_the_peers"), found.pending.ours ? "ours" : "peer", null);
  return made;
}

function timeline(found, documents, kept) {
  const entries = inOrder(found);
  if (!entries.length) return h("p", { class: "empty" }, found.running ? t("no_messages_yet") : t("no_messages_were_sent"));
  const lines = entries.map(({ verdict, turn, at, seconds }, place) => (verdict ? thought(verdict, seconds, entries[place + 1]?.turn) : message(turn, at, documents, kept)));
  if (found.running) lines.push(h("li", { class: "waiting" }, h("span", { class: "dot" }), h("p", null, found.waiting ? t("waits_for_your_decision_2") : t("running"))));
  return h("ol", { class: "timeline" }, lines);
}

function inOrder(found) {
  const verdicts = [...found.verdicts];
  const entries = [];
  [...found.turns, null].forEach((turn, at) => {
    while (verdicts.length && (turn === null || verdicts[0].turn <= at)) {
      const verdict = verdicts.shift();
      entries.push({ verdict, seconds: verdict.seconds });
    }
    if (turn) entries.push({ turn, at });
  });
  return entries;
}

function thought(verdict, seconds, next) {
  // Our next message to the peer has the same reason already.
  const told = next?.direction === "sent" && next.summary.includes(verdict.reason);
  const who = verdict.by === "owner" ? t("you") : verdict.by === "tests" ? t("earlier_test_cases") : t("our_side");
  const did = { propose: t("wrote_a_proposal"), accept: t("accepted"), counter: t("wants_changes"), reject: t("rejected") }[verdict.verdict] ?? verdict.verdict;
  return h(
    "li",
    { class: "thought" },
    h("p", { class: "head" }, h("strong", null, who), " ", did, " ", short(verdict.hash, 8), h("span", { class: "at" }, lasting(seconds))),
    verdict.reason && !told ? h("p", { class: "reason" }, words(verdict.reason)) : null,
  );
}

function message(turn, at, documents, kept) {
  const ours = turn.direction === "sent";
  const place = documents.findIndex((one) => one.turn === at);
  const change = place > 0 ? totalsOf(documents[place - 1].text, documents[place].text) : null;
  const raw = h("details", { open: kept.open.has(at), ontoggle: (event) => (event.target.open ? kept.open.add(at) : kept.open.delete(at)) },
    h("summary", null, t("raw_message")),
    block(JSON.stringify(turn, null, 2), { label: t("raw_message_number", { number: turn.sequence_id + 1 }) }));
  return h(
    "li",
    { class: ours ? "ours" : "theirs" },
    h(
      "p",
      { class: "head" },
      h("strong", null, ours ? t("we") : t("the_peer")),
      " ", turn.status === "negotiating" ? (place < 0 ? t("answered") : at ? t("made_another_proposal") : t("made_a_proposal")) : "", " ",
      turn.status === "negotiating" ? null : chip(turn.status, { accepted: "good", rejected: "bad" }[turn.status]),
      change ? h("span", { class: "change" }, h("span", { class: "plus" }, `+${change.added}`), " ", h("span", { class: "minus" }, `−${change.removed}`), h("span", { class: "hidden" }, " ", t("lines"))) : null,
      h("span", { class: "at" }, lasting(turn.seconds)),
    ),
    turn.summary ? h("p", { class: "reason" }, words(turn.summary), ours ? null : [" ", untrusted("peer")]) : null,
    raw,
  );
}

function totalsOf(before, after) {
  const made = rows(before, after);
  return made === null ? null : totals(made);
}

function compare(documents, kept) {
  const last = documents.length - 1;
  const area = h("div");
  const pick = (id, label, chosen, none) =>
    h("div", null, h("label", { for: id }, label), h("select", { id, onchange: draw },
      none ? h("option", { value: "-1" }, t("nothing_show_the_whole_text")) : null,
      documents.map((one, at) => {
        const option = h("option", { value: at }, one.label);
        option.selected = at === chosen;
        return option;
      })));
  const left = pick("compare-left", t("from"), Math.min(kept.left ?? Math.max(0, last - 1), last), true);
  const right = pick("compare-right", t("to"), Math.min(kept.right ?? last, last), false);
  if (kept.left === -1 || last === 0) left.querySelector("select").value = "-1";
  function draw(event) {
    const [from, to] = [left, right].map((one) => Number(one.querySelector("select").value));
    if (event) [kept.left, kept.right] = [from, to];
    const target = documents[to];
    const label = target.whose === "peer" ? h("p", { class: "note" }, untrusted(t("from_the_peer"))) : null;
    if (from < 0) replace(area, label, block(target.text, { label: target.label, numbered: true }));
    else replace(area, label, comparison(documents[from].text, target.text, { left: documents[from].label, right: target.label }));
  }
  draw();
  return [h("div", { class: "pickers" }, left, right), area];
}

function decide(found, documents, kept, tools) {
  const received = found.turns.some((turn) => turn.direction === "received" && turn.candidate);
  const ask = found.role === "requester";
  const open = found.waiting || (!found.running && found.outcome !== "agreed" && (found.pending || received || ask));
  const question = found.pending?.capability;
  const hint = !question && (found.running || found.outcome !== "agreed") ? hintForm(found, kept, tools) : null;
  const stop = found.running ? button(t("cancel_the_negotiation"), () => act(tools, `/v1/negotiations/${found.id}/cancel`, { reason: "" }, t("the_negotiation_is_being_ended")), "danger") : null;
  if (!open && !hint) return null;
  const known = found.pending || received;
  return h(
    "section",
    { class: `decide ${found.waiting ? "now" : ""}` },
    h("h2", null, found.waiting ? t("waits_for_your_decision_3") : open ? t("your_decision_for_the_next_negotiation") : t("actions")),
    open ? [
      h("p", null, found.waiting
        ? found.pending?.ours ? t("our_proposal_needs_your_decision_read_it") : t("the_peers_proposal_needs_your_decision_read")
        : question ? wish(question, found.pending)
        : t("this_negotiation_has_ended_your_decision_is")),
      found.pending?.half ? half(found.pending.half) : null,
      decisionForm(found, documents, kept, tools, known),
    ] : null,
    hint,
    stop ? h("p", null, stop) : null,
  );
}

function wish(name, { way, read_only: harmless }) {
  const values = { name: words(name), way: words(way) };
  return harmless
    ? parts("the_peer_wants_to_call_name_by", values)
    : parts("the_peer_wants_to_call_name_by_2", values);
}

function half(pending) {
  const may = pending.capabilities ?? [];
  return h("div", null,
    h("p", null, parts("our_code_for_it_may_call_these", { names: may.length ? may.map((name, at) => [at ? t("comma_2") : "", h("code", null, words(name))]) : t("nothing") })),
    h("details", null, h("summary", null, t("our_code_written_by_origin", { origin: word(pending.origin) })), block(pending.text, { label: t("our_code"), numbered: true })));
}

function decisionForm(found, documents, kept, tools, known) {
  const question = found.pending?.capability;
  const choices = question ? [["accept", t("accept")], ["reject", t("reject")]] : known ? [["accept", t("accept")], ["reject", t("reject")], ["edit", t("edit_and_send")]] : [["edit", t("edit_and_send")]];
  kept.document ??= found.pending?.document ?? documents.at(-1)?.text ?? "";
  const note = h("textarea", { id: "decide-note", rows: "2", maxlength: "4000", value: kept.note, oninput: (event) => (kept.note = event.target.value) });
  const text = h("textarea", { id: "decide-document", rows: "16", spellcheck: "false", class: "code", value: kept.document, oninput: (event) => (kept.document = event.target.value) });
  const edited = h("label", { class: "field" }, h("span", null, t("your_protocol_text")), text);
  const send = h("button", { type: "submit", class: "primary" }, t("decide"));
  const explain = h("span", { class: "note", id: "decide-explain" });
  const set = (verdict) => {
    kept.verdict = verdict;
    edited.hidden = verdict !== "edit";
    send.textContent = { accept: question ? t("accept_the_calls") : t("accept_the_proposal"), reject: question ? t("reject_the_calls") : t("reject_the_proposal"), edit: t("send_your_text") }[verdict] ?? t("decide");
    send.disabled = !verdict;
    explain.textContent = { accept: question ? t("nothing_but_this_capability_is_allowed_to") : t("the_code_is_still_checked_and_limited"), reject: t("the_peer_reads_your_note_as_the"), edit: t("your_text_is_sent_in_place_of") }[verdict] ?? "";
  };
  const radios = choices.map(([value, label]) =>
    h("label", { class: "choice" }, h("input", { type: "radio", name: "verdict", id: `decide-${value}`, value, checked: kept.verdict === value, onchange: () => set(value) }), h("span", null, label)));
  set(kept.verdict && choices.some(([value]) => value === kept.verdict) ? kept.verdict : null);
  return h(
    "form",
    {
      onsubmit: async (event) => {
        event.preventDefault();
        const body = { verdict: kept.verdict, note: kept.note };
        if (kept.verdict === "edit") body.document = text.value;
        send.disabled = true;
        const done = await act(tools, `/v1/negotiations/${found.id}/decision`, body, t("your_decision_was_stored"));
        if (done) [kept.note, kept.verdict, kept.document] = ["", null, null];
        send.disabled = false;
      },
    },
    h("fieldset", null, h("legend", null, t("your_decision")), radios),
    edited,
    h("label", { class: "field" }, h("span", null, t("note_optional")), note),
    h("p", { class: "actions" }, send, " ", explain),
  );
}

function hintForm(found, kept, tools) {
  const field = h("input", { type: "text", id: "hint-text", maxlength: "4000", value: kept.hint, oninput: (event) => (kept.hint = event.target.value) });
  return h(
    "details",
    { class: "hint", open: kept.asksHint || Boolean(kept.hint), ontoggle: (event) => (kept.asksHint = event.target.open) },
    h("summary", null, t("give_a_hint_to_our_side")),
    h(
      "form",
      {
        class: "inline",
        onsubmit: async (event) => {
          event.preventDefault();
          if (await act(tools, `/v1/negotiations/${found.id}/hint`, { text: field.value }, t("the_hint_was_stored"))) kept.hint = "";
        },
      },
      h("label", { class: "field" }, h("span", null, t("for_our_rules_or_model_never_sent")), field),
      h("button", { type: "submit" }, t("give_the_hint")),
    ),
  );
}

function exchanges(found) {
  return found.map((one, at) =>
    h("details", { class: "exchange" },
      h("summary", null, `${at + 1}. ${word(one.step)} `, chip(one.outcome), h("span", { class: "at" }, t("in_out_tokens_time", { in: number(one.input_tokens), out: number(one.output_tokens), time: lasting(one.ms / 1000) }))),
      one.messages.map((message) => [h("h3", null, word(message.role)), block(message.content, { label: t("message_of_role", { role: word(message.role) }) })]),
      h("h3", null, t("answer"), " ", untrusted("model")),
      block(one.answer, { label: t("answer_of_the_model") })));
}

function said(found) {
  const all = [...found.hints.map((text) => ["hint", words(text), "–", t("given_to_our_rules_or_model")]),
    ...(found.decisions ?? []).map((one) => [one.verdict, one.note ? words(one.note) : "–", when(one.created), one.used_by ? t("used") : h("span", null, parts("stored_until_when", { when: when(one.expires) }))])];
  if (!all.length) return null;
  return section(t("your_decisions"), table(t("your_decisions"), [t("decision"), t("note"), t("made"), t("state")], all.map(([word, ...rest]) => [chip(word), ...rest]), ""));
}
