// Everything known about one agreed protocol.
import { action, revoke } from "../actions.js";
import { get, getText } from "../api.js";
import { chip, facts, h, section, table } from "../dom.js";
import { copyable, number, peer, short, when } from "../format.js";
import { callRow } from "./calls.js";
import { block, untrusted, words } from "../peertext.js";

export async function show(hash, tools) {
  const found = await get(`/v1/protocols/${hash}`);
  const { calls } = await get(`/v1/calls?limit=20&protocol=${found.hash}`);
  const text = await getText(`/v1/protocols/${found.hash}/text`);
  const quarantined = found.quarantined;
  const origins = [...new Set(found.agreements.map((one) => one.negotiation_id).filter(Boolean))];
  const state = quarantined ? "quarantined" : (found.agreements[0] ?? found.code[0])?.state ?? "unknown";
  const need = found.agreements.find((one) => one.need)?.need ?? /^#+ Requirement\s+>?\s*(\S.*)$/m.exec(text)?.[1];
  return [
    h("p", { class: "crumb" }, h("a", { href: "#/protocols" }, "Protocols"), " / ", short(found.hash, 16)),
    h("div", { class: "title" }, h("h1", { tabindex: "-1" }, need ? words(need, 120) : ["Protocol ", short(found.hash, 16)]), chip(state)),
    quarantined ? h("p", { class: "wrong" }, "Its code failed and is not run any more. Reason: ", words(String(quarantined), 400)) : null,
    facts([
      ["Hash", h("span", { class: "copyline" }, h("code", { class: "wrap" }, found.hash), copyable(found.hash))],
      ["URI", found.uris.length ? found.uris.map((one) => h("div", null, h("code", { class: "wrap" }, words(one, 400)))) : null],
      ["Origin", origins.length ? origins.map((id, at) => [at ? ", " : "", h("a", { href: `#/negotiations/${id}` }, "negotiation ", short(id, 8))]) : origin(found)],
    ]),
    h("p", { class: "actions" }, actions(found, tools)),
    section(
      "Agreements",
      table(
        "Agreements",
        ["Peer", "Our role", "Capability", "State", "Revision", "Samples", "Calls", "Last used", "Agreed", "Actions"],
        found.agreements.map((one, at) => [one.peer ? peer(one.peer) : "any peer", one.role, one.capability ? words(one.capability, 80) : "–", chip(one.state), number(one.revision), one.samples ?? "–", number(one.uses), when(one.last_used), when(one.created), ofPeer(found, one, at, tools)]),
        found.code.some((one) => one.role === "provider") ? "Any peer that may use the capability may use this protocol; there is no agreement with one peer alone." : "There is no agreement about it yet.",
      ),
    ),
    section("Latest calls", table("Latest calls", ["Direction", "Capability", "Outcome", "Peer", "Protocol", "Took", "Model calls", "Began", "Answer"], calls.map(callRow), "No calls through it are kept.")),
    section("Protocol text", h("p", { class: "note" }, untrusted("agreed with a peer"), " Both sides have this text, byte for byte."), block(text, { label: "Protocol text", numbered: true })),
    section("Our code", found.code.length
      ? found.code.map(half)
      : h("p", { class: "empty" }, "There is no generated code for it, because it is a built-in protocol.")),
    section("Tests", tests(found)),
    section("Runs since the daemon started", runs(found.runs, "Calls"), runs(found.trials, "Trials", "Trials are checks with broken messages; errors among them are expected.")),
  ];
}

function origin(found) {
  const tests = found.tests.filter((one) => one.consensus || one.capability);
  if (found.uris.length) return ["known under ", found.uris.map((uri, at) => [at ? ", " : "", words(uri, 200)])];
  if (tests.length || (found.code.length && found.code.every((one) => one.origin === "rules"))) return "published for a capability by its provider; nothing was negotiated";
  return "an import, or code of the owner";
}

function actions(found, tools) {
  const path = `/v1/protocols/${found.hash}`;
  const forAll = found.revocations.some((one) => one.peer === null);
  const failed = found.quarantined || found.agreements.some((one) => one.quarantined || one.state === "failed");
  return [
    found.code.length ? action("Test", { id: "test", path: `${path}/test`, done: tested }, tools) : null,
    failed ? action("Release", { id: "release", kind: "primary", path: `${path}/release`, done: (said) => (said.released ? "The protocol is released, and used again." : "There was nothing to release.") }, tools) : null,
    forAll || failed ? action("Approve", { id: "revoke", kind: "primary", path: `${path}/approve`, done: "The protocol is approved, and may be used again." }, tools) : null,
    forAll ? null : revoke(found.hash, tools, { id: failed ? "revoke-all" : "revoke" }),
  ];
}

// The same for one peer alone.
function ofPeer(found, one, at, tools) {
  const path = `/v1/protocols/${found.hash}`;
  const body = { peer: one.peer };
  const about = `for ${one.peer}`;
  const revoked = found.revocations.some((other) => other.peer === one.peer);
  const forAll = found.revocations.some((other) => other.peer === null);
  return h("span", { class: "row-actions" },
    one.role === "requester" ? action("Test with it", { id: `test-${at}`, about, path: `${path}/test`, body, done: tested }, tools) : null,
    revoked ? action("Approve", { id: `revoke-${at}`, about, path: `${path}/approve`, body, done: "The protocol is approved for this peer." }, tools) : null,
    revoked || forAll ? null : revoke(found.hash, tools, { peer: one.peer, label: "Revoke", id: `revoke-${at}`, about }),
    one.role === "requester" ? h("a", { href: `#/peers/${encodeURIComponent(one.peer)}`, "aria-label": `Call ${one.peer}` }, "Call") : null);
}

function tested(said) {
  const lines = said.runs.map((run) => `our code for the ${run.role}: ${run.outcome}`);
  return `${said.passed ? "The tests passed" : "The tests failed"}${lines.length ? ` (${lines.join("; ")})` : ""}.`;
}

function half(one, at) {
  const may = Object.keys(one.capabilities);
  return h(
    "details",
    { class: "exchange", open: at === 0 },
    h("summary", null, `Code for the ${one.role}, revision ${one.revision} `, chip(one.state), h("span", { class: "at" }, `by ${one.origin}, `, when(one.created))),
    h("p", null, "Capabilities that it may call: ", may.length ? may.map((name, index) => [index ? ", " : "", h("a", { href: `#/daemon/${encodeURIComponent(name.split(".")[0])}` }, h("code", null, words(name)))]) : "nothing", ". It runs in the sandbox."),
    one.source_hash ? h("p", { class: "note" }, "SHA-256 of this code: ", h("code", { class: "wrap" }, one.source_hash)) : digest(one.source),
    block(one.source, { label: `Code for the ${one.role}`, numbered: true }),
  );
}

function digest(source) {
  const place = h("code", { class: "wrap" }, "…");
  crypto.subtle
    ?.digest("SHA-256", new TextEncoder().encode(source))
    .then((bytes) => (place.textContent = [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("")));
  return h("p", { class: "note" }, "SHA-256 of this code: ", place);
}

function tests(found) {
  const shown = found.agreements.map((one, at) => [one, found.tests[at] ?? {}]);
  if (!shown.length) return h("p", { class: "empty" }, "No tests are recorded.");
  return shown.map(([one, results]) => {
    const plain = Object.entries(results).filter(([, value]) => typeof value !== "object" || value === null);
    const deep = Object.entries(results).filter(([, value]) => typeof value === "object" && value !== null);
    return h("div", { class: "card" },
      h("p", null, h("strong", null, `Our code for the ${one.role}`), one.peer ? [" with ", peer(one.peer)] : ""),
      plain.length ? facts(plain.map(([name, value]) => [name.replaceAll("_", " "), typeof value === "string" ? chip(value) : String(value)])) : h("p", { class: "empty" }, "No results are recorded."),
      deep.map(([name, value]) => h("details", null, h("summary", null, name.replaceAll("_", " ")), block(JSON.stringify(value, null, 2), { label: name }))));
  });
}

function runs(run, title, note) {
  const outcomes = Object.entries(run.outcomes);
  if (!outcomes.length && !run.failures.length && !run.log) return h("p", { class: "empty" }, `${title}: none.`);
  return h("div", { class: "card" },
    h("p", null, h("strong", null, title), " ", outcomes.map(([name, value]) => [chip(name, name === "ok" ? "good" : note ? "calm" : "bad"), ` ${number(value)} `])),
    note ? h("p", { class: "note" }, note) : null,
    run.failures.length ? h("details", null, h("summary", null, `Latest failures (${run.failures.length})`), block(JSON.stringify(run.failures, null, 2), { label: "Failures" })) : null,
    run.log ? h("details", null, h("summary", null, "Output of the code"), block(run.log, { label: "Output" })) : null);
}
