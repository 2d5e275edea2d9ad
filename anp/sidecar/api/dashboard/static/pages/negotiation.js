// One negotiation: its messages live, its proposals compared, and the owner's decision.
import { act } from "../actions.js";
import { get } from "../api.js";
import { comparison, rows, totals } from "../diff.js";
import { button, chip, facts, h, page, replace, section, table } from "../dom.js";
import { count, lasting, number, peer, short, when } from "../format.js";
import { block, untrusted, words } from "../peertext.js";

export async function show(id, { tell, watch, put, reload }) {
  // The choices and texts of the person stay while new messages arrive.
  const kept = { left: null, right: null, verdict: null, note: "", document: null, hint: "", open: new Set() };
  let turns = -1;
  const draw = async () => {
    const found = await get(`/v1/negotiations/${encodeURIComponent(id)}`);
    const more = turns >= 0 && found.turns.length > turns;
    if (more) tell(`${count(found.turns.length - turns, "new message")}; outcome: ${found.waiting ? "waits for your decision" : found.outcome}`);
    turns = found.turns.length;
    return view(found, kept, { tell, reload });
  };
  watch(["negotiation"], async (event) => {
    if (event.data?.id && event.data.id !== id && !event.data.id.startsWith(id)) return;
    const focused = document.activeElement?.id;
    const scrolled = window.scrollY;
    put(await draw());
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    window.scrollTo(0, scrolled);
  });
  return draw();
}

function view(found, kept, tools) {
  const documents = documentsOf(found);
  const title = found.about ? words(found.about, 120) : found.role === "provider" ? "A peer's proposal" : "Negotiation";
  const took = found.ended ? `took ${lasting(found.ended - found.started)}` : "running";
  return [
    h("p", { class: "crumb" }, h("a", { href: "#/negotiations" }, "Negotiations"), " / ", short(found.id, 16)),
    h("div", { class: "title" }, h("h1", { tabindex: "-1" }, title), chip(found.waiting ? "waiting" : found.outcome)),
    found.reason ? h("p", { class: found.outcome === "agreed" ? "lead" : "wrong" }, words(found.reason, 600)) : null,
    facts([
      ["Peer", peer(found.peer)],
      ["Our role", found.role],
      ["Started", h("span", null, when(found.started), `, ${took}`)],
      ["Proposals", number(found.proposals)],
      ["Our model calls", number(found.model_calls)],
      ["Agreed protocol", found.hash ? h("a", { href: `#/protocols/${found.hash}` }, short(found.hash)) : null],
      ["Tests", found.agreement || found.tests ? testLine(found.agreement?.tests ?? found.tests) : null],
    ]),
    decide(found, documents, kept, tools),
    section("Messages", timeline(found, documents, kept)),
    documents.length ? section("Proposals", compare(documents, kept)) : null,
    found.model_requests.length ? section("Our model calls", exchanges(found.model_requests)) : null,
    said(found),
  ];
}

function testLine(tests) {
  return Object.entries(tests).filter(([, value]) => typeof value !== "object").map(([name, value]) => `${name}: ${value}`).join(", ");
}

// Every proposal in order, each text once.
function documentsOf(found) {
  const made = [];
  const put = (text, label, whose, turn) => {
    if (text && text !== made.at(-1)?.text) made.push({ text, label, whose, turn });
  };
  found.turns.forEach((turn, at) => {
    const ours = turn.direction === "sent";
    put(turn.candidate, `Proposal ${turn.sequence_id} · ${ours ? "ours" : "the peer's"}`, ours ? "ours" : "peer", at);
  });
  if (found.pending) put(found.pending.document, `For your approval · ${found.pending.ours ? "ours" : "the peer's"}`, found.pending.ours ? "ours" : "peer", null);
  return made;
}

function timeline(found, documents, kept) {
  const entries = inOrder(found);
  if (!entries.length) return h("p", { class: "empty" }, found.running ? "No messages yet." : "No messages were sent.");
  const lines = entries.map(({ verdict, turn, at, seconds }, place) => (verdict ? thought(verdict, seconds, entries[place + 1]?.turn) : message(turn, at, documents, kept)));
  if (found.running) lines.push(h("li", { class: "waiting" }, h("span", { class: "dot" }), h("p", null, found.waiting ? "Waits for your decision." : "Running…")));
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
  const who = verdict.by === "owner" ? "You" : verdict.by === "tests" ? "Earlier test cases" : "Our side";
  const did = { propose: "wrote a proposal", accept: "accepted", counter: "wants changes", reject: "rejected" }[verdict.verdict] ?? verdict.verdict;
  return h(
    "li",
    { class: "thought" },
    h("p", { class: "head" }, h("strong", null, who), ` ${did} `, short(verdict.hash, 8), h("span", { class: "at" }, lasting(seconds))),
    verdict.reason && !told ? h("p", { class: "reason" }, words(verdict.reason)) : null,
  );
}

function message(turn, at, documents, kept) {
  const ours = turn.direction === "sent";
  const place = documents.findIndex((one) => one.turn === at);
  const change = place > 0 ? totalsOf(documents[place - 1].text, documents[place].text) : null;
  const raw = h("details", { open: kept.open.has(at), ontoggle: (event) => (event.target.open ? kept.open.add(at) : kept.open.delete(at)) },
    h("summary", null, "Raw message"),
    block(JSON.stringify(turn, null, 2), { label: `Raw message ${turn.sequence_id}` }));
  return h(
    "li",
    { class: ours ? "ours" : "theirs" },
    h(
      "p",
      { class: "head" },
      h("strong", null, ours ? "We" : "The peer"),
      ` ${turn.status === "negotiating" ? (place < 0 ? "answered" : at ? "made another proposal" : "made a proposal") : ""} `,
      turn.status === "negotiating" ? null : chip(turn.status, { accepted: "good", rejected: "bad" }[turn.status]),
      change ? h("span", { class: "change" }, h("span", { class: "plus" }, `+${change.added}`), " ", h("span", { class: "minus" }, `−${change.removed}`), h("span", { class: "hidden" }, " lines")) : null,
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
      none ? h("option", { value: "-1" }, "nothing (show the whole text)") : null,
      documents.map((one, at) => {
        const option = h("option", { value: at }, one.label);
        option.selected = at === chosen;
        return option;
      })));
  const left = pick("compare-left", "From", Math.min(kept.left ?? Math.max(0, last - 1), last), true);
  const right = pick("compare-right", "To", Math.min(kept.right ?? last, last), false);
  if (kept.left === -1 || last === 0) left.querySelector("select").value = "-1";
  function draw(event) {
    const [from, to] = [left, right].map((one) => Number(one.querySelector("select").value));
    if (event) [kept.left, kept.right] = [from, to];
    const target = documents[to];
    const label = target.whose === "peer" ? h("p", { class: "note" }, untrusted("from the peer")) : null;
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
  const stop = found.running ? button("Cancel the negotiation", () => act(tools, `/v1/negotiations/${found.id}/cancel`, { reason: "" }, "The negotiation is being ended."), "danger") : null;
  if (!open && !hint) return null;
  const known = found.pending || received;
  return h(
    "section",
    { class: `decide ${found.waiting ? "now" : ""}` },
    h("h2", null, found.waiting ? "Waits for your decision" : open ? "Your decision for the next negotiation" : "Actions"),
    open ? [
      h("p", null, found.waiting
        ? `${found.pending?.ours ? "Our proposal" : "The peer's proposal"} needs your decision. Read it below first.`
        : question ? `The peer wants to call ${words(question)} by ${words(found.pending.way)}, without a protocol text. ${found.pending.read_only ? "It is read-only." : "It may have side effects."} Your decision counts for seven days.`
        : "This negotiation has ended. Your decision is stored for seven days and used once, by the next such negotiation with this peer."),
      found.pending?.half ? half(found.pending.half) : null,
      decisionForm(found, documents, kept, tools, known),
    ] : null,
    hint,
    stop ? h("p", null, stop) : null,
  );
}

function half(pending) {
  const may = pending.capabilities ?? [];
  return h("div", null,
    h("p", null, "Our code for it may call these capabilities: ", may.length ? may.map((name, at) => [at ? ", " : "", h("code", null, words(name))]) : "nothing", "."),
    h("details", null, h("summary", null, `Our code, written by: ${pending.origin}`), block(pending.text, { label: "Our code", numbered: true })));
}

function decisionForm(found, documents, kept, tools, known) {
  const question = found.pending?.capability;
  const choices = question ? [["accept", "Accept"], ["reject", "Reject"]] : known ? [["accept", "Accept"], ["reject", "Reject"], ["edit", "Edit and send"]] : [["edit", "Edit and send"]];
  kept.document ??= found.pending?.document ?? documents.at(-1)?.text ?? "";
  const note = h("textarea", { id: "decide-note", rows: "2", maxlength: "4000", value: kept.note, oninput: (event) => (kept.note = event.target.value) });
  const text = h("textarea", { id: "decide-document", rows: "16", spellcheck: "false", class: "code", value: kept.document, oninput: (event) => (kept.document = event.target.value) });
  const edited = h("label", { class: "field" }, h("span", null, "Your protocol text"), text);
  const send = h("button", { type: "submit", class: "primary" }, "Decide");
  const explain = h("span", { class: "note", id: "decide-explain" });
  const set = (verdict) => {
    kept.verdict = verdict;
    edited.hidden = verdict !== "edit";
    send.textContent = { accept: question ? "Accept the calls" : "Accept the proposal", reject: question ? "Reject the calls" : "Reject the proposal", edit: "Send your text" }[verdict] ?? "Decide";
    send.disabled = !verdict;
    explain.textContent = { accept: question ? "Nothing but this capability is allowed to this peer." : "The code is still checked, and limited to the capabilities that you expose.", reject: "The peer reads your note as the reason.", edit: "Your text is sent in place of the proposal." }[verdict] ?? "";
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
        const done = await act(tools, `/v1/negotiations/${found.id}/decision`, body, "Your decision was stored.");
        if (done) [kept.note, kept.verdict, kept.document] = ["", null, null];
        send.disabled = false;
      },
    },
    h("fieldset", null, h("legend", null, "Your decision"), radios),
    edited,
    h("label", { class: "field" }, h("span", null, "Note (optional)"), note),
    h("p", { class: "actions" }, send, " ", explain),
  );
}

function hintForm(found, kept, tools) {
  const field = h("input", { type: "text", id: "hint-text", maxlength: "4000", value: kept.hint, oninput: (event) => (kept.hint = event.target.value) });
  return h(
    "details",
    { class: "hint", open: kept.asksHint || Boolean(kept.hint), ontoggle: (event) => (kept.asksHint = event.target.open) },
    h("summary", null, "Give a hint to our side"),
    h(
      "form",
      {
        class: "inline",
        onsubmit: async (event) => {
          event.preventDefault();
          if (await act(tools, `/v1/negotiations/${found.id}/hint`, { text: field.value }, "The hint was stored.")) kept.hint = "";
        },
      },
      h("label", { class: "field" }, h("span", null, "For our rules or model; never sent to the peer"), field),
      h("button", { type: "submit" }, "Give the hint"),
    ),
  );
}

function exchanges(found) {
  return found.map((one, at) =>
    h("details", { class: "exchange" },
      h("summary", null, `${at + 1}. ${one.step.replaceAll("_", " ")} `, chip(one.outcome), h("span", { class: "at" }, `${number(one.input_tokens)} + ${number(one.output_tokens)} tokens, ${lasting(one.ms / 1000)}`)),
      one.messages.map((message) => [h("h3", null, message.role), block(message.content, { label: `${message.role} message` })]),
      h("h3", null, "Answer ", untrusted("model")),
      block(one.answer, { label: "Answer of the model" })));
}

function said(found) {
  const all = [...found.hints.map((text) => ["hint", words(text), "–", "given to our rules or model"]),
    ...(found.decisions ?? []).map((one) => [one.verdict, one.note ? words(one.note) : "–", when(one.created), one.used_by ? "used" : h("span", null, "stored until ", when(one.expires))])];
  if (!all.length) return null;
  return section("Your decisions", table("Your decisions", ["Decision", "Note", "Made", "State"], all.map(([word, ...rest]) => [chip(word), ...rest]), ""));
}
