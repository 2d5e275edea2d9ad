// Fields for the arguments of a capability, made from its JSON Schema. They give JSON text
// and not values, so that a number arrives with all the digits that a person typed.
import { button, h, replace } from "./dom.js";
import { shown, words } from "./peertext.js";
import { t } from "./texts.js";

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const MAX_REFERENCES = 16;

// Returns the element and `read`, which gives the JSON text of an object, or null after it
// has shown what is wrong.
export function fieldsOf(schema, id) {
  const area = h("div");
  const root = plain(schema, schema);
  const required = new Set(listed(root.required));
  // Required ones first; else in the order of the schema.
  const entries = Object.entries(object(root.properties)).sort(([a], [b]) => required.has(b) - required.has(a));
  const parts = entries.map(([name, part], at) => field(name, plain(part, schema), `${id}-${at}`, required.has(name)));
  const open = parts.length === 0 && root.additionalProperties !== false;
  let whole = null;
  const asJson = () => {
    const text = joined(parts.map((part) => [part.name, quiet(part)]));
    whole = field(t("all_arguments"), { type: "object", description: t("one_json_object") }, `${id}-json`, true, text === "{}" ? text : pretty(text));
    replace(area, whole.element, parts.length ? button(t("back_to_single_fields"), asFields, "quiet inline") : null);
  };
  const asFields = () => {
    whole = null;
    replace(area, parts.map((part) => part.element), parts.length ? button(t("write_all_as_json"), () => (asJson(), whole.focus()), "quiet inline") : h("p", { class: "note" }, t("it_takes_no_arguments")));
  };
  if (open) asJson();
  else asFields();
  const read = () => {
    const texts = (whole ? [whole] : parts).map((part) => [part, part.check()]);
    const wrong = texts.find(([, text]) => text === null);
    if (wrong) wrong[0].focus();
    if (wrong) return null;
    return whole ? texts[0][1] : joined(texts.map(([part, text]) => [part.name, text]));
  };
  return { area, read };
}

function joined(entries) {
  return `{${entries.filter(([, text]) => text).map(([name, text]) => `${JSON.stringify(name)}: ${text}`).join(", ")}}`;
}

function quiet(part) {
  try {
    return part.text();
  } catch {
    return "";
  }
}

function pretty(text) {
  // Digits of long numbers would be lost, so such a text stays as it is.
  return /\d{16}/.test(text) ? text : JSON.stringify(JSON.parse(text), null, 2);
}

// One argument. `text` gives its JSON, or "" when it is left out, and throws what is wrong.
function field(name, schema, id, required, start) {
  const [control, text, kind] = widget(schema, required, start);
  const wrong = h("span", { class: "wrong", id: `${id}-wrong` });
  control.id = id;
  control.setAttribute("aria-describedby", `${id}-about ${id}-wrong`);
  if (required) control.setAttribute("aria-required", "true");
  const about = h("span", { class: "note", id: `${id}-about` }, kind, schema.description ? [t("full_stop"), words(schema.description, 400)] : null);
  const element = h("div", { class: "field" }, h("label", { for: id }, h("bdi", null, shown(name)), required ? h("span", { class: "note" }, [" ", t("required")]) : null), control, about, wrong);
  const check = () => {
    try {
      const found = text();
      if (required && !found) throw new Error(t("it_is_required_write_a_value"));
      wrong.textContent = "";
      control.removeAttribute("aria-invalid");
      return found;
    } catch (problem) {
      wrong.textContent = problem.message;
      control.setAttribute("aria-invalid", "true");
      return null;
    }
  };
  return { name, element, text, check, focus: () => control.focus() };
}

function widget(schema, required, start) {
  if (schema.const !== undefined) return chosen([schema.const], true, schema.const);
  if (Array.isArray(schema.enum)) return chosen(schema.enum, required, schema.default);
  if (schema.type === "boolean") return chosen([true, false], required, schema.default, t("true_or_false"));
  if (schema.type === "integer" || schema.type === "number") return figure(schema);
  if (schema.type === "string") return sentence(schema);
  return json(schema, start);
}

function chosen(values, required, initial, kind = t("one_of_these")) {
  const texts = values.map((value) => JSON.stringify(value));
  const none = required ? t("choose_one") : t("left_out");
  const control = h("select", null, initial === undefined || !required ? h("option", { value: "" }, none) : null,
    values.map((value, at) => h("option", { value: String(at) }, shownPlain(typeof value === "string" ? value : texts[at]))));
  const at = initial === undefined ? -1 : texts.indexOf(JSON.stringify(initial));
  if (at >= 0) control.value = String(at);
  return [control, () => (control.value === "" ? "" : texts[Number(control.value)]), kind];
}

// An option holds text only, so what could mislead in it is made visible as text.
function shownPlain(text) {
  return h("span", null, shown(text)).textContent;
}

function figure(schema) {
  const control = h("input", { type: "text", inputmode: "decimal", autocomplete: "off", value: schema.default === undefined ? "" : JSON.stringify(schema.default) });
  const whole = schema.type === "integer";
  const text = () => {
    const typed = control.value.trim();
    if (typed && !(NUMBER.test(typed) && (!whole || /^-?\d+$/.test(typed)))) throw new Error(whole ? t("write_a_whole_number_such_as_42") : t("write_a_number_such_as_4_2"));
    return typed;
  };
  return [control, text, whole ? t("a_whole_number") : t("a_number")];
}

function sentence(schema) {
  const control = h("textarea", { rows: "1", class: "line", spellcheck: "false", value: typeof schema.default === "string" ? schema.default : "" });
  return [control, () => (control.value ? JSON.stringify(control.value) : ""), schema.format ? t("text_format", { format: schema.format }) : "text"];
}

const KINDS = { object: t("an_object_as_json"), array: t("a_list_as_json") };

function json(schema, start) {
  const given = start ?? (schema.default === undefined ? "" : JSON.stringify(schema.default, null, 2));
  const control = h("textarea", { rows: "3", class: "code", spellcheck: "false", value: given });
  const text = () => {
    const typed = control.value.trim();
    if (!typed) return "";
    let value;
    try {
      value = JSON.parse(typed);
    } catch {
      throw new Error(t("this_is_no_json_text_needs_double"));
    }
    if (schema.type === "object" && (value === null || typeof value !== "object" || Array.isArray(value))) throw new Error(t("write_a_json_object_as_in_name"));
    if (schema.type === "array" && !Array.isArray(value)) throw new Error(t("write_a_json_list_as_in_1"));
    return typed;
  };
  return [control, text, KINDS[schema.type] ?? t("any_value_as_json")];
}

// A schema without what stands for another one: local references, and "or null".
function plain(schema, root) {
  let found = object(schema);
  for (let step = 0; step < MAX_REFERENCES; step += 1) {
    const { $ref, anyOf, oneOf, ...rest } = found;
    const some = listed(anyOf ?? oneOf).filter((one) => one?.type !== "null");
    if (typeof $ref === "string") found = { ...at(root, $ref), ...rest };
    else if (some.length === 1) found = { ...object(some[0]), ...rest };
    else break;
  }
  if (Array.isArray(found.type)) {
    const types = found.type.filter((one) => one !== "null");
    found = { ...found, type: types.length === 1 ? types[0] : undefined };
  }
  return found;
}

function at(root, reference) {
  let found = root;
  for (const part of reference.replace(/^#\/?/, "").split("/").filter(Boolean)) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    found = found && Object.hasOwn(found, name) ? found[name] : undefined;
  }
  return object(found);
}

// A schema may come from a peer, so no part of it need have the form that it should.
function object(value) {
  return typeof value === "object" && value !== null ? value : {};
}

function listed(value) {
  return Array.isArray(value) ? value : [];
}
