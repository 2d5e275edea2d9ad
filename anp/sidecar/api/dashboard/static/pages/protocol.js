// Everything known about one agreed protocol.
import { action, revoke } from "../actions.js";
import { get, getText } from "../api.js";
import { chip, facts, h, section } from "../dom.js";
import { copyable, number, peer, short, when } from "../format.js";
import { COLUMNS, callRow } from "./calls.js";
import { table } from "../listing.js";
import { block, untrusted, words } from "../peertext.js";
import { parts, t, word } from "../texts.js";

export async function show(hash, tools) {
  const found = await get(`/v1/protocols/${hash}`);
  const { calls } = await get(`/v1/calls?limit=20&protocol=${found.hash}`);
  const text = await getText(`/v1/protocols/${found.hash}/text`);
  const quarantined = found.quarantined;
  const origins = [...new Set(found.agreements.map((one) => one.negotiation_id).filter(Boolean))];
  const state = quarantined ? "quarantined" : (found.agreements[0] ?? found.code[0])?.state ?? "unknown";
  const need = found.agreements.find((one) => one.need)?.need ?? /^#+ Requirement\s+>?\s*(\S.*)$/m.exec(text)?.[1];
  return [
    h("p", { class: "crumb" }, h("a", { href: "#/protocols" }, t("protocols")), " / ", short(found.hash, 16)),
    h("div", { class: "title" }, h("h1", { tabindex: "-1" }, need ? words(need, 120) : parts("protocol_hash", { hash: short(found.hash, 16) })), chip(state)),
    quarantined ? h("p", { class: "wrong" }, parts("its_code_failed_and_is_not_run", { reason: words(String(quarantined), 400) })) : null,
    facts([
      [t("hash"), h("span", { class: "copyline" }, h("code", { class: "wrap" }, found.hash), copyable(found.hash))],
      ["URI", found.uris.length ? found.uris.map((one) => h("div", null, h("code", { class: "wrap" }, words(one, 400)))) : null],
      [t("origin"), origins.length ? origins.map((id, at) => [at ? t("comma_2") : "", h("a", { href: `#/negotiations/${id}` }, parts("negotiation_id", { id: short(id, 8) }))]) : origin(found)],
    ]),
    h("p", { class: "actions" }, actions(found, tools)),
    section(
      t("agreements"),
      table(
        t("agreements"),
        [t("peer"), t("our_role"), t("capability"), t("state"), t("revision"), t("samples"), t("calls"), t("last_used"), t("agreed"), t("actions")],
        found.agreements.map((one, at) => [one.peer ? peer(one.peer) : t("any_peer"), word(one.role), one.capability ? words(one.capability, 80) : "–", chip(one.state), number(one.revision), one.samples ? word(one.samples) : "–", number(one.uses), when(one.last_used), when(one.created), ofPeer(found, one, at, tools)]),
        found.code.some((one) => one.role === "provider") ? t("any_peer_that_may_use_the_capability") : t("there_is_no_agreement_about_it_yet"),
      ),
      [...new Set(found.agreements.flatMap((one) => one.notes))].map((note) => h("p", { class: "note" }, words(note, 300))),
    ),
    section(t("latest_calls"), table(t("latest_calls"), COLUMNS, calls.map(callRow), t("no_calls_through_it_are_kept"))),
    section(t("protocol_text"), h("p", { class: "note" }, untrusted(t("agreed_with_a_peer")), " ", t("both_sides_have_this_text_byte_for")), block(text, { label: t("protocol_text"), numbered: true })),
    section(t("our_code"), found.code.length
      ? found.code.map(half)
      : h("p", { class: "empty" }, t("there_is_no_generated_code_for_it"))),
    section(t("tests"), tests(found)),
    section(t("runs_since_the_daemon_started"), runs(found.runs, t("calls")), runs(found.trials, t("trials"), t("trials_are_checks_with_broken_messages_errors"))),
  ];
}

function origin(found) {
  const tests = found.tests.filter((one) => one.consensus || one.capability);
  if (found.uris.length) return parts("known_under_uris", { uris: found.uris.map((uri, at) => [at ? t("comma_2") : "", words(uri, 200)]) });
  if (tests.length || (found.code.length && found.code.every((one) => one.origin === "rules"))) return t("published_for_a_capability_by_its_provider");
  return t("an_import_or_code_of_the_owner");
}

function actions(found, tools) {
  const path = `/v1/protocols/${found.hash}`;
  const forAll = found.revocations.some((one) => one.peer === null);
  const failed = found.quarantined || found.agreements.some((one) => one.quarantined || one.state === "failed");
  return [
    found.code.length ? action(t("test"), { id: "test", path: `${path}/test`, done: tested }, tools) : null,
    failed ? action(t("release"), { id: "release", kind: "primary", path: `${path}/release`, done: (said) => (said.released ? t("the_protocol_is_released_and_used_again") : t("there_was_nothing_to_release")) }, tools) : null,
    forAll || failed ? action(t("approve"), { id: "revoke", kind: "primary", path: `${path}/approve`, done: t("the_protocol_is_approved_and_may_be") }, tools) : null,
    forAll ? null : revoke(found.hash, tools, { id: failed ? "revoke-all" : "revoke" }),
  ];
}

// The same for one peer alone.
function ofPeer(found, one, at, tools) {
  const path = `/v1/protocols/${found.hash}`;
  const body = { peer: one.peer };
  const about = t("for_peer", { peer: one.peer });
  const revoked = found.revocations.some((other) => other.peer === one.peer);
  const forAll = found.revocations.some((other) => other.peer === null);
  return h("span", { class: "row-actions" },
    one.role === "requester" ? action(t("test_with_it"), { id: `test-${at}`, about, path: `${path}/test`, body, done: tested }, tools) : null,
    revoked ? action(t("approve"), { id: `revoke-${at}`, about, path: `${path}/approve`, body, done: t("the_protocol_is_approved_for_this_peer") }, tools) : null,
    revoked || forAll ? null : revoke(found.hash, tools, { peer: one.peer, label: t("revoke"), id: `revoke-${at}`, about }),
    one.role === "requester" ? h("a", { href: `#/peers/${encodeURIComponent(one.peer)}`, "aria-label": t("call_peer", { peer: one.peer }) }, t("call")) : null);
}

function tested(said) {
  const lines = said.runs.map((run) => t("our_code_for_the_role_outcome", { role: word(run.role), outcome: word(run.outcome) }));
  const verdict = said.passed ? t("the_tests_passed") : t("the_tests_failed");
  return lines.length ? t("verdict_lines", { verdict, lines: lines.join(t("semicolon")) }) : `${verdict}${t("full_stop").trim()}`;
}

function half(one, at) {
  const may = Object.keys(one.capabilities);
  return h(
    "details",
    { class: "exchange", open: at === 0 },
    h("summary", null, t("code_for_the_role_revision_revision", { role: word(one.role), revision: one.revision }), " ", chip(one.state), h("span", { class: "at" }, parts("by_origin_when", { origin: word(one.origin), when: when(one.created) }))),
    h("p", null, parts("capabilities_that_it_may_call_names_it", { names: may.length ? may.map((name, index) => [index ? t("comma_2") : "", h("a", { href: `#/daemon/${encodeURIComponent(name.split(".")[0])}` }, h("code", null, words(name)))]) : t("nothing") })),
    one.source_hash ? h("p", { class: "note" }, t("sha_256_of_this_code"), h("code", { class: "wrap" }, one.source_hash)) : digest(one.source),
    block(one.source, { label: t("code_for_the_role", { role: word(one.role) }), numbered: true }),
  );
}

function digest(source) {
  const place = h("code", { class: "wrap" }, "…");
  crypto.subtle
    ?.digest("SHA-256", new TextEncoder().encode(source))
    .then((bytes) => (place.textContent = [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("")));
  return h("p", { class: "note" }, t("sha_256_of_this_code"), place);
}

function tests(found) {
  const shown = found.agreements.map((one, at) => [one, found.tests[at] ?? {}]);
  if (!shown.length) return h("p", { class: "empty" }, t("no_tests_are_recorded"));
  return shown.map(([one, results]) => {
    const plain = Object.entries(results).filter(([, value]) => typeof value !== "object" || value === null);
    const deep = Object.entries(results).filter(([, value]) => typeof value === "object" && value !== null);
    return h("div", { class: "card" },
      h("p", null, h("strong", null, t("our_code_for_the_role", { role: word(one.role) })), one.peer ? [" ", parts("with_peer", { peer: peer(one.peer) })] : ""),
      plain.length ? facts(plain.map(([name, value]) => [word(name), typeof value !== "string" ? String(value) : /^[a-z_]+$/.test(value) ? chip(value) : words(value, 200)])) : h("p", { class: "empty" }, t("no_results_are_recorded")),
      deep.map(([name, value]) => h("details", null, h("summary", null, word(name)), block(JSON.stringify(value, null, 2), { label: name }))));
  });
}

function runs(run, title, note) {
  const outcomes = Object.entries(run.outcomes);
  if (!outcomes.length && !run.failures.length && !run.log) return h("p", { class: "empty" }, t("title_none", { title }));
  return h("div", { class: "card" },
    h("p", null, h("strong", null, title), " ", outcomes.map(([name, value]) => [chip(name, name === "ok" ? "good" : note ? "calm" : "bad"), ` ${number(value)} `])),
    note ? h("p", { class: "note" }, note) : null,
    run.failures.length ? h("details", null, h("summary", null, t("latest_failures_n", { n: run.failures.length })), block(JSON.stringify(run.failures, null, 2), { label: t("failures") })) : null,
    run.log ? h("details", null, h("summary", null, t("output_of_the_code")), block(run.log, { label: t("output") })) : null);
}
