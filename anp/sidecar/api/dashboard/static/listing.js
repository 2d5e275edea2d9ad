// Lists that are searched, filtered and turned page by page. The search, the choices and
// the page stand in the address behind `?`, so that they stay and can be kept as a link.
import { get } from "./api.js";
import { button, h, replace } from "./dom.js";
import { number } from "./format.js";
import { t } from "./texts.js";

const PER_PAGE = 25;
const SMALL = 10;
const MAX_CHOICES = 60;

export function remembered() {
  return new URLSearchParams(location.hash.split("?").slice(1).join("?"));
}

export function remember(name, value) {
  const kept = remembered();
  if (value) kept.set(name, value);
  else kept.delete(name);
  const query = kept.toString();
  history.replaceState(null, "", `/${location.hash.split("?")[0] || "#/"}${query ? `?${query}` : ""}`);
}

// The entries of a list of the daemon: its newest ones, and older ones when they are asked for.
export function entries(path, name, size = 200) {
  let stretches = 1;
  const found = {
    more: false,
    older: () => (stretches += 1),
    async read() {
      const rows = [];
      let after = null;
      for (let at = 0; at < stretches; at += 1) {
        const page = await get(`${path}${path.includes("?") ? "&" : "?"}limit=${size}${after ? `&after=${encodeURIComponent(after)}` : ""}`);
        rows.push(...page[name]);
        after = page.next;
        if (!after) break;
      }
      found.more = Boolean(after);
      return rows;
    },
  };
  return found;
}

// A list. `fill(rows)` takes each row as a list of cells, and keeps what the person typed.
// `filters` are numbers of columns whose texts are offered as choices. `id` tells apart the
// lists of a page in the address; the main list of a page has an empty one and always shows
// its search. `source` has older entries.
export function listing(caption, columns, { id = "", filters = [], empty, source, refresh } = {}) {
  const key = (name) => (id ? `${id}.${name}` : name);
  const prefix = `list-${id || "main"}`;
  const kept = remembered();
  const search = h("input", { type: "search", id: `${prefix}-q`, autocomplete: "off", spellcheck: "false", value: kept.get(key("q")) ?? "" });
  const choices = filters.map((column) => h("select", { id: `${prefix}-${column}`, "data-column": column }));
  const clear = button(t("clear"), () => reset());
  const tools = h(
    "div",
    { class: "finder", role: "search", "aria-label": t("search_caption", { caption }) },
    labelled(t("search"), search),
    choices.map((one) => labelled(columns[one.dataset.column], one)),
    clear,
  );
  const count = h("p", { class: "note count", role: "status" });
  const sheet = h("div");
  const turn = h("nav", { class: "pager", "aria-label": t("pages_caption", { caption }) });
  const element = h("div", { class: "listing" }, tools, count, sheet, turn);
  let rows = [];
  let page = Number(kept.get(key("page")) ?? 1) || 1;

  search.addEventListener("input", () => changed("q", search.value));
  for (const one of choices) one.addEventListener("change", () => changed(one.dataset.column, one.value));

  function changed(name, value) {
    remember(key(name), value);
    go(1);
  }

  function go(wanted) {
    page = wanted;
    remember(key("page"), page > 1 ? page : "");
    draw();
  }

  function reset() {
    search.value = "";
    remember(key("q"), "");
    for (const one of choices) {
      one.value = "";
      remember(key(one.dataset.column), "");
    }
    go(1);
    search.focus();
  }

  function fitting() {
    const typed = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    return rows.filter((row) => typed.every((piece) => row.text.includes(piece)) && choices.every((one) => !one.value || row.cells[one.dataset.column] === one.value));
  }

  function draw() {
    const found = fitting();
    const narrowed = found.length < rows.length || Boolean(search.value) || choices.some((one) => one.value);
    const pages = Math.max(1, Math.ceil(found.length / PER_PAGE));
    page = Math.min(page, pages);
    const from = (page - 1) * PER_PAGE;
    const shown = found.slice(from, from + PER_PAGE);
    tools.hidden = count.hidden = !rows.length || (id !== "" && rows.length <= SMALL && !narrowed);
    clear.disabled = !narrowed;
    const told = counted(found.length, rows.length, { narrowed, more: source?.more });
    // Said again only when it is another one.
    if (count.textContent !== told) count.textContent = told;
    const active = element.contains(document.activeElement) ? document.activeElement : null;
    if (shown.length) replace(sheet, framed(caption, columns, shown.map((row) => row.element)));
    else replace(sheet, h("p", { class: "empty" }, rows.length ? t("nothing_fits_the_search") : empty));
    const older = source?.more && page === pages;
    turn.hidden = pages < 2 && !older;
    const at = document.activeElement?.id;
    replace(
      turn,
      step(`${prefix}-first`, t("first"), page > 1, () => go(1)),
      step(`${prefix}-back`, t("previous"), page > 1, () => go(page - 1)),
      h("span", { class: "note" }, t("page_page_of_pages", { page: number(page), pages: number(pages) })),
      step(`${prefix}-next`, t("next_page"), page < pages, () => go(page + 1)),
      older ? step(`${prefix}-older`, t("load_older_ones"), true, async () => (source.older(), await refresh())) : null,
    );
    // Elements that were put back keep the focus; a button of the pages is drawn anew.
    const again = active?.isConnected ? active : active?.id || at ? document.getElementById(active?.id || at) : null;
    if (active && again && document.activeElement !== again) again.focus({ preventScroll: true });
    if (active && (again?.getAttribute("aria-disabled") === "true" || !again)) (sheet.querySelector(".sheet") ?? search).focus({ preventScroll: true });
  }

  function fill(wanted) {
    // A row that did not change stays, with what is open or has the focus in it.
    const before = Map.groupBy(rows, (one) => one.key);
    rows = wanted.map((cells) => {
      const made = row(cells, columns);
      return before.get(made.key)?.shift() ?? made;
    });
    for (const one of choices) offer(one, one.dataset.column);
    draw();
    return element;
  }

  function offer(select, column) {
    const texts = [...new Set(rows.map((one) => one.cells[column]).filter(Boolean))].sort().slice(0, MAX_CHOICES);
    const chosen = select.value || kept.get(key(column)) || "";
    if (chosen && !texts.includes(chosen)) texts.unshift(chosen);
    const wanted = ["", ...texts];
    if (wanted.join("\n") !== [...select.options].map((one) => one.value).join("\n")) {
      replace(select, wanted.map((text) => h("option", { value: text }, text ? text.slice(0, 60) : t("all"))));
    }
    select.value = chosen;
    kept.delete(key(column));
  }

  draw();
  return { element, fill };
}

function counted(fits, all, { narrowed, more }) {
  const values = { n: number(fits), all: number(all) };
  if (more) return narrowed ? t("n_of_newest", values) : t("newest_n", values);
  return narrowed ? t("n_of_all", values) : t("n_entries", values);
}

function step(id, text, can, action) {
  // Not disabled, so that the focus stays on it at the last page.
  const made = button(text, () => can && action(), "");
  made.id = id;
  if (!can) made.setAttribute("aria-disabled", "true");
  return made;
}

function labelled(text, control) {
  return h("div", null, h("label", { for: control.id }, text), control);
}

function row(cells, columns) {
  const element = h("tr", null, cells.map((cell, at) => h("td", { "data-name": columns[at] }, h("div", null, cell))));
  const titles = [...element.querySelectorAll("[title]")].map((one) => one.getAttribute("title"));
  const texts = [...element.children].map((cell) => cell.textContent.trim());
  // What can be chosen is the state alone, without the reason that stands beside it.
  const states = [...element.children].map((cell, at) => cell.querySelector(".chip")?.textContent ?? texts[at]);
  const links = [...element.querySelectorAll("a, [id]")].map((one) => one.id || one.getAttribute("href"));
  return { element, cells: states, key: [...texts, ...links].join("\u0000"), text: [...texts, ...titles].join(" ").toLowerCase() };
}

function framed(caption, columns, rows) {
  return h(
    "div",
    { class: "sheet", tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      null,
      h("caption", { class: "hidden" }, caption),
      h("thead", null, h("tr", null, columns.map((name) => h("th", { scope: "col" }, name || h("span", { class: "hidden" }, t("actions")))))),
      h("tbody", null, rows),
    ),
  );
}

// A table inside a page; it has a search and pages when it is long.
export function table(caption, columns, rows, empty, options = {}) {
  return listing(caption, columns, { id: slug(caption), empty, ...options }).fill(rows);
}

export function slug(caption) {
  return caption.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-");
}
