// A form that tries a capability once, with the answer or the error below it.
import { Problem, postText } from "./api.js";
import { button, chip, h, replace } from "./dom.js";
import { fieldsOf } from "./form.js";
import { lasting, short } from "./format.js";
import { block, shown, untrusted, words } from "./peertext.js";
import { parts, t, word } from "./texts.js";

// One capability: its name, its description, whatever `more` says, and the form.
export function capability(one, id, { chips, more, path, body, whose }) {
  return h(
    "article",
    { class: "card capability", "aria-label": one.name },
    h("p", { class: "head" }, h("code", { class: "wrap" }, h("strong", null, shown(one.name))), " ", chips, h("span", { class: "note" }, hints(one))),
    one.description ? h("p", null, words(one.description, 400), whose ? [" ", untrusted(whose)] : null) : null,
    more,
    h("details", { class: "try" }, h("summary", { "aria-label": t("try_name", { name: one.name }) }, t("try_it")), form(one, id, path, body)),
    h("details", null, h("summary", { "aria-label": t("schemas_of_name", { name: one.name }) }, t("schemas")), block(JSON.stringify({ input: one.input_schema, output: one.output_schema }, null, 2), { label: t("schemas_of_name", { name: one.name }) })),
  );
}

function form(one, id, path, body) {
  const { area, read } = fieldsOf(one.input_schema ?? {}, id);
  const state = h("p", { class: "answer", role: "status" });
  const output = h("div");
  const wrong = h("p", { class: "wrong", role: "alert" });
  const send = h("button", { type: "submit", class: "primary" }, parts("call_name", { name: h("bdi", null, shown(one.name)) }));
  let running = null;
  const stop = button(t("cancel"), () => running?.abort());
  stop.hidden = true;
  const submit = async (event) => {
    event.preventDefault();
    if (running) return;
    replace(wrong);
    replace(state);
    replace(output);
    const input = read();
    if (input === null) return;
    running = new AbortController();
    stop.hidden = false;
    replace(state, t("calling"));
    try {
      const text = await postText(path, body(input), running.signal);
      replace(state, told(JSON.parse(text)));
      // Long outputs are read when somebody goes there, and not announced.
      replace(output, outputOf(text));
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      replace(state);
      replace(wrong, shown(problem.message));
    } finally {
      if (document.activeElement === stop) send.focus();
      stop.hidden = true;
      running = null;
    }
  };
  return h("form", { onsubmit: submit }, area, h("p", { class: "actions" }, send, stop), wrong, state, output);
}

// The hints of a capability, in words.
export function hints(one) {
  const effects = one.read_only ? t("read_only") : t("may_have_side_effects");
  return one.idempotent ? t("effects_idempotent", { effects }) : effects;
}

// The answer, and the capability that gave it: that is not left to be guessed.
function told(said) {
  if (said.state) return [chip(said.state), " ", parts("the_call_goes_on_link", { link: h("a", { href: `#/calls/${said.id}` }, t("see_its_page")) })];
  const way = said.source ? word(said.source) : null;
  const by = said.protocol ? h("a", { href: `#/protocols/${said.protocol}` }, way, " ", short(said.protocol, 8)) : way;
  const values = { capability: h("code", { class: "wrap" }, shown(said.capability ?? t("the_peer_did_not_say_which_capability"))), time: lasting(said.ms / 1000), way: by };
  return [chip("done"), " ", by ? parts("capability_answered_in_time_by_way", values) : parts("capability_answered_in_time", values)];
}

function outputOf(text) {
  const said = exact(text);
  return said.state ? null : block(JSON.stringify(said.output, null, 2), { label: t("answer") });
}

// The same JSON, with numbers written as they came.
function exact(text) {
  if (!JSON.rawJSON) return JSON.parse(text);
  return JSON.parse(text, (_, value, source) => (typeof value === "number" && source?.source !== String(value) ? JSON.rawJSON(source.source) : value));
}
