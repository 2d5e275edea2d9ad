// Text of peers and models. It is shown as text; what could mislead the eye (control,
// zero-width and bidirectional characters) is made visible, and a long text is cut.
import { h } from "./dom.js";
import { t, word } from "./texts.js";

const NAMES = {
  0x00: "NUL", 0x07: "BEL", 0x08: "BS", 0x0d: "CR", 0x1b: "ESC", 0x7f: "DEL", 0x85: "NEL", 0xa0: "NBSP",
  0xad: "SHY", 0x61c: "ALM", 0x180e: "MVS", 0x200b: "ZWSP", 0x200c: "ZWNJ", 0x200d: "ZWJ", 0x200e: "LRM",
  0x200f: "RLM", 0x2028: "LS", 0x2029: "PS", 0x202a: "LRE", 0x202b: "RLE", 0x202c: "PDF", 0x202d: "LRO",
  0x202e: "RLO", 0x2060: "WJ", 0x2066: "LRI", 0x2067: "RLI", 0x2068: "FSI", 0x2069: "PDI", 0xfeff: "BOM",
};
// Other, control, format, surrogate, private use, separators of lines; blanks that are
// wider or narrower than a blank; letters that are drawn as nothing.
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5\ufe00-\ufe0f]/u;
const ALL_HIDDEN = new RegExp(HIDDEN.source, "gu");
const MAX_SHOWN = 20_000;
const MAX_MARKS = 5_000;
const MAX_COMBINING = /(\p{M}{3})\p{M}+/gu;

// Nodes for one text. `\n` and `\t` stay: the styles keep them.
export function shown(text) {
  const plain = String(text ?? "").replace(MAX_COMBINING, "$1…");
  if (!HIDDEN.test(plain.replace(/[\n\t]/g, ""))) return [plain];
  const nodes = [];
  let from = 0;
  for (const match of plain.matchAll(ALL_HIDDEN)) {
    if (match[0] === "\n" || match[0] === "\t") continue;
    if (nodes.length > MAX_MARKS) break;
    if (match.index > from) nodes.push(plain.slice(from, match.index));
    nodes.push(mark(match[0].codePointAt(0)));
    from = match.index + match[0].length;
  }
  const rest = plain.slice(from);
  nodes.push(nodes.length > MAX_MARKS ? rest.replace(ALL_HIDDEN, (c) => (c === "\n" || c === "\t" ? c : "\ufffd")) : rest);
  return nodes;
}

function mark(point) {
  const code = `U+${point.toString(16).toUpperCase().padStart(4, "0")}`;
  return h("span", { class: "mark", title: t("invisible_character_code", { code }) }, NAMES[point] ?? code);
}

// One line of a peer's: inline, apart from the text around it whatever its direction.
export function words(text, most = 300) {
  const plain = String(text ?? "");
  if (plain.length <= most) return h("bdi", { class: "words" }, shown(plain));
  return h(
    "bdi",
    { class: "words" },
    h("span", null, shown(cut(plain, most)), "… "),
    expander(t("show_all_n_characters", { n: plain.length.toLocaleString() }), (from) => from.replaceChildren(...shown(plain)), "inline"),
  );
}

// A whole protocol text, code or message.
export function block(text, { label, most = MAX_SHOWN, numbered = false } = {}) {
  const plain = String(text ?? "");
  const content = plain.length > most ? cut(plain, most) : plain;
  const area = h("pre", { class: numbered ? "block numbered" : "block", tabindex: "0", role: "region", "aria-label": label ?? t("text") });
  fill(area, content, numbered);
  if (plain.length <= most) return area;
  const more = expander(t("show_all_n_characters", { n: plain.length.toLocaleString() }), () => fill(area, plain, numbered));
  return h("div", null, area, h("p", { class: "note" }, t("the_first_n_characters", { n: most.toLocaleString() }), " ", more));
}

function fill(area, text, numbered) {
  if (!numbered) return area.replaceChildren(...shown(text));
  const lines = text.replace(/\n$/, "").split("\n");
  area.replaceChildren(...lines.flatMap((line) => [h("span", { class: "line" }, shown(line)), "\n"]));
}

function expander(text, show, kind = "") {
  const button = h("button", {
    type: "button",
    class: `quiet ${kind}`,
    onclick: () => {
      show(button.closest("bdi"));
      button.remove();
    },
  }, text);
  return button;
}

function cut(text, most) {
  const end = text.slice(0, most);
  // Never half of a character.
  return /[\ud800-\udbff]$/.test(end) ? end.slice(0, -1) : end;
}

export function untrusted(whose) {
  return h("span", { class: "untrusted", title: t("written_by_somebody_else_it_is_shown") }, t("whose_untrusted", { whose: word(whose) }));
}
