// Builds elements. Text is always a text node: nothing here, and nothing elsewhere in
// these pages, parses markup (the content security policy forbids it as well).

import { word } from "./texts.js";

export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in PROPERTIES) element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  add(element, children);
  return element;
}

// An element of a picture.
export function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) element.setAttribute(name, value);
  }
  add(element, children);
  return element;
}

const PROPERTIES = { value: true, checked: true, disabled: true, open: true };

function add(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

export function replace(element, ...children) {
  element.replaceChildren();
  add(element, children);
}

// Puts new elements in place of those of an element. The control that is the same in both,
// by its id or else where it leads, keeps the focus, so that who works by keyboard goes on
// from there; where it is gone, the page's title has it. What was open stays open.
export function refill(element, ...children) {
  const active = element.contains(document.activeElement) ? document.activeElement : null;
  const where = active?.getAttribute("href");
  const open = [...element.querySelectorAll("details[id][open]")].map((one) => one.id);
  replace(element, ...children);
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  if (!active || active.isConnected) return active?.focus({ preventScroll: true });
  const same = active.id ? document.getElementById(active.id) : where ? [...element.querySelectorAll("a")].find((one) => one.getAttribute("href") === where) : null;
  (same ?? document.querySelector("h1"))?.focus({ preventScroll: true });
}

export function page(title, ...children) {
  return [h("h1", { tabindex: "-1" }, title), ...children];
}

export function section(title, ...children) {
  return h("section", null, h("h2", null, title), ...children);
}

export function facts(rows) {
  const shown = rows.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return h(
    "dl",
    { class: "facts" },
    shown.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))),
  );
}

const TONES = {
  agreed: "good", done: "good", active: "good", healthy: "good", allowed: "good", ok: "good", passed: "good",
  running: "live", waiting: "ask", "approval-pending": "ask", "peer-approval-pending": "ask", unknown: "calm",
  stale: "ask", revoked: "bad", blocked: "bad", quarantined: "bad", failed: "bad", sick: "bad", down: "bad",
  working: "live", accepted: "live", completed: "good", canceled: "calm", "input-required": "ask", "auth-required": "ask",
  rejected: "bad", negotiation_rejected: "bad", timeout: "bad", degraded: "ask", cancelled: "calm", warning: "ask",
};

// A state of the daemon in the person's language, with a colour that goes with it.
export function chip(state, tone) {
  return h("span", { class: `chip ${tone ?? TONES[state] ?? "calm"}` }, word(state));
}

export function button(text, action, kind) {
  return h("button", { type: "button", class: kind ?? "", onclick: action }, text);
}
