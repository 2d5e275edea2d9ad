// The words of the pages: a table for each language, and the one that this browser shows.
import en from "./texts/en.js";
import zh from "./texts/zh.js";

const TABLES = { en, zh };
export const NAMES = { en: "English", zh: "中文" };

// The choice of the person, else the first language of the browser that there is a table for.
export const language = chosen();
export const locale = { en: "en-GB", zh: "zh-CN" }[language];

function chosen() {
  const kept = localStorage.getItem("language");
  if (kept in TABLES) return kept;
  return navigator.languages.map((one) => one.slice(0, 2)).find((one) => one in TABLES) ?? "en";
}

export function choose(wanted) {
  localStorage.setItem("language", wanted);
  location.reload();
}

// A text with its values as plain text. `{n}` chooses between "one|many".
export function t(key, values = {}) {
  return parts(key, values).join("");
}

// The same, with values that may be elements, as a list of texts and elements.
export function parts(key, values = {}) {
  const [one, many] = (TABLES[language][key] ?? key).split("|");
  const text = many === undefined || String(values.n) === "1" ? one : many;
  return text.split(/\{(\w+)\}/).map((piece, at) => (at % 2 ? values[piece] : piece)).flat(Infinity).filter((piece) => piece !== "" && piece !== null && piece !== undefined && piece !== false);
}

// A word of the daemon, such as a state; one that is in no table is shown as it came.
export function word(value) {
  const plain = String(value);
  return TABLES[language][`word_${plain.replace(/[ -]/g, "_")}`] ?? plain.replaceAll("_", " ").replaceAll("-", " ");
}
