// Times, numbers and names for people.
import { h } from "./dom.js";
import { shown } from "./peertext.js";
import { locale, t } from "./texts.js";

const DAY = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short" });
const CLOCK = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const FULL = new Intl.DateTimeFormat(locale, { dateStyle: "full", timeStyle: "long" });

export function when(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const date = new Date(seconds * 1000);
  const today = new Date().toDateString() === date.toDateString();
  const text = today ? CLOCK.format(date) : `${DAY.format(date)} ${CLOCK.format(date).slice(0, 5)}`;
  return h("time", { datetime: date.toISOString(), title: FULL.format(date) }, text);
}

// The time of day, for the axis of a chart.
export function clock(seconds) {
  return CLOCK.format(new Date(seconds * 1000)).slice(0, 5);
}

export function lasting(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "–";
  if (seconds < 0.01) return `${number(Math.round(seconds * 10_000) / 10)}\u00a0ms`;
  if (seconds < 1) return `${Math.round(seconds * 1000)}\u00a0ms`;
  if (seconds < 60) return `${seconds.toFixed(1)}\u00a0s`;
  if (seconds < 3600) return t("minutes_min_seconds_s", { minutes: Math.floor(seconds / 60), seconds: Math.round(seconds % 60) });
  return t("hours_h_minutes_min", { hours: Math.floor(seconds / 3600), minutes: Math.round((seconds % 3600) / 60) });
}

export function number(value) {
  return Number(value ?? 0).toLocaleString(locale);
}

export function money(value) {
  const amount = Number(value ?? 0);
  return amount.toLocaleString(locale, { minimumFractionDigits: 2, maximumFractionDigits: 4 });
}

// A hash or DID, shortened in the middle; the whole is in its title.
export function short(text, head = 12, tail = 0) {
  const whole = String(text ?? "–");
  if (whole.length <= head + tail + 2) return h("code", null, shown(whole));
  const end = tail ? whole.slice(-tail) : "";
  return h("code", { title: whole }, shown(`${whole.slice(0, head)}…${end}`));
}

let names = new Map();

export function learnNames(peers) {
  names = new Map(peers.flatMap((peer) => (nameOf(peer) ? [peer.did, ...peer.aliases].map((did) => [did, nameOf(peer)]) : [])));
}

// The name that the owner gave a peer, else the place where it was met; null without both.
export function nameOf(peer) {
  return peer.names[0] ?? host(peer.urls[0]) ?? null;
}

function host(url) {
  return /^wss?:\/\/([^/?#]+)/.exec(url ?? "")?.[1];
}

// A peer in plain text, for a picture: its name, else its host or the end of its DID.
export function label(did, most = 14) {
  const name = names.get(did) ?? /^did:wba:([^:]+)/.exec(did)?.[1] ?? `…${String(did).slice(-6)}`;
  return name.length > most ? `${name.slice(0, most - 1)}…` : name;
}

// A peer: the name its owner gave it, else its address, and the beginning of its DID.
export function peer(did) {
  if (!did || did === "-") return "–";
  const local = callerName(did);
  if (local) return h("bdi", { class: "peer", title: did }, ...shown(local));
  const link = h("a", { class: "peer", href: `#/peers/${encodeURIComponent(did)}` });
  const name = names.get(did);
  link.append(name ? h("bdi", null, ...shown(name)) : t("unnamed_peer"), " ");
  link.append(short(did, did.startsWith("did:key:") ? 14 : 32, 6));
  return link;
}

// The name of a caller that is no peer but has a token of ours or of a trusted issuer.
export function callerName(did) {
  const found = /^local:(jwt:)?(.*)$/s.exec(did);
  if (!found) return null;
  return found[1] ? t("name_a2a_by_jwt", { name: decoded(found[2]) }) : `${found[2]} (A2A)`;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function copyable(text) {
  const button = h("button", { type: "button", class: "quiet copy", "aria-label": t("copy_text", { text: text.slice(0, 40) }) }, t("copy"));
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = t("copied");
    setTimeout(() => (button.textContent = t("copy")), 1500);
  });
  return button;
}
