// The shell of the pages: sections, the page in view, the theme, and the live stream.
import { Problem, follow, get, post } from "./api.js";
import { button, h, page, refill, replace } from "./dom.js";
import { learnNames } from "./format.js";
import * as attachment from "./pages/attachment.js";
import * as call from "./pages/call.js";
import * as calls from "./pages/calls.js";
import * as daemon from "./pages/daemon.js";
import * as group from "./pages/group.js";
import * as groups from "./pages/groups.js";
import * as negotiations from "./pages/negotiations.js";
import * as negotiation from "./pages/negotiation.js";
import * as overview from "./pages/overview.js";
import * as peers from "./pages/peers.js";
import * as protocols from "./pages/protocols.js";
import * as protocol from "./pages/protocol.js";
import * as session from "./pages/session.js";
import * as spend from "./pages/spend.js";
import * as subscriptions from "./pages/subscriptions.js";
import * as tasks from "./pages/tasks.js";
import * as traffic from "./pages/traffic.js";
import { NAMES, choose, language, t } from "./texts.js";

const SECTIONS = [
  ["", t("overview")],
  ["approvals", t("approvals")],
  ["negotiations", t("negotiations")],
  ["protocols", t("protocols")],
  ["calls", t("calls")],
  ["tasks", t("tasks")],
  ["groups", t("groups")],
  ["subscriptions", t("subscriptions")],
  ["peers", t("peers")],
  ["traffic", t("traffic")],
  ["spend", t("spend")],
  ["daemon", t("daemon")],
];

const PAGES = [
  [/^$/, overview.show],
  [/^approvals$/, negotiations.showOpen],
  [/^negotiations$/, negotiations.show],
  [/^negotiations\/([\w-]+)$/, negotiation.show],
  [/^protocols$/, protocols.show],
  [/^protocols\/([0-9a-f]+)$/, protocol.show],
  [/^calls$/, calls.show],
  [/^calls\/([\w-]+)$/, call.show],
  [/^tasks$/, tasks.show],
  [/^tasks\/([0-9a-z]+)$/, session.show],
  [/^groups$/, groups.show],
  [/^groups\/([\w-]+)$/, group.show],
  [/^subscriptions$/, subscriptions.show],
  [/^subscriptions\/([0-9a-z]+)$/, subscriptions.showOne],
  [/^peers$/, peers.show],
  [/^peers\/(.+)$/, peers.showOne],
  [/^traffic$/, traffic.show],
  [/^spend$/, spend.show],
  [/^daemon$/, daemon.show],
  [/^daemon\/(.+)$/, attachment.show],
];

const main = document.getElementById("main");
const link = document.getElementById("link");
const said = document.getElementById("said");
let current = null;

export function tell(text) {
  said.textContent = "";
  // Cleared first, so that a screen reader reads the same text again.
  requestAnimationFrame(() => (said.textContent = text));
}

function path() {
  return location.hash.replace(/^#\/?/, "").split("?")[0];
}

async function open({ focus = true } = {}) {
  const wanted = path();
  const [show, found] = find(wanted);
  const mine = { path: wanted, onEvent: null };
  current = mine;
  markSection(wanted);
  main.setAttribute("aria-busy", "true");
  try {
    const view = await show(found, {
      tell,
      reload: () => current === mine && open({ focus: false }),
      // Registers the refresh of a page, run once for many events.
      watch: (types, refresh, about) => (mine.onEvent = gathered(types, refresh, about)),
      put: (...children) => current === mine && refill(main, ...children),
    });
    if (current !== mine) return;
    refill(main, ...view);
    if (focus) window.scrollTo(0, 0);
  } catch (problem) {
    if (current !== mine) return;
    if (problem instanceof Problem && problem.status === 401) return signedOut();
    replace(main, page(t("this_page_cannot_be_shown"), h("p", { class: "wrong", role: "alert" }, problem.message), button(t("try_again"), () => open())));
  } finally {
    main.removeAttribute("aria-busy");
  }
  const heading = main.querySelector("h1");
  document.title = `${heading?.textContent ?? ""} · anpd`;
  if (focus) heading?.focus({ preventScroll: true });
}

function find(wanted) {
  for (const [pattern, show] of PAGES) {
    const match = pattern.exec(wanted);
    if (match) return [show, match[1] === undefined ? null : decoded(match[1])];
  }
  return [async () => page(t("no_such_page"), h("p", null, h("a", { href: "#/" }, t("to_the_overview")))), null];
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// Gathers events of some types, of which `about` may choose, for one refresh.
function gathered(types, refresh, about = () => true) {
  let timer = null;
  let ended = 0;
  return (event) => {
    if (timer !== null || !types.some((type) => event.type.startsWith(type)) || !about(event)) return;
    // The first event is shown at once, a stream of them once in a second.
    timer = setTimeout(async () => {
      timer = null;
      try {
        await refresh();
      } catch (problem) {
        if (problem.status === 401) signedOut();
      }
      ended = Date.now();
    }, Math.max(120, ended + 1_000 - Date.now()));
  };
}

function markSection(wanted) {
  const section = wanted.split("/")[0];
  for (const anchor of document.querySelectorAll("#rail a")) {
    const here = anchor.dataset.section === section;
    if (here) {
      anchor.setAttribute("aria-current", "page");
      // On a narrow screen the sections are a strip that scrolls.
      const strip = anchor.closest("nav");
      strip.scrollLeft = anchor.offsetLeft - (strip.clientWidth - anchor.offsetWidth) / 2;
    } else anchor.removeAttribute("aria-current");
  }
}

function drawRail() {
  const rail = document.getElementById("rail");
  replace(rail, h("ul", null, SECTIONS.map(([name, title]) => h("li", null, h("a", { href: `#/${name}`, "data-section": name }, title, h("span", { class: "badge" }))))));
}

// How many negotiations, invitations and applications wait for the owner, beside the section's name.
async function countOpen() {
  const { negotiations, groups: asked } = await get("/v1/approvals");
  const open = [...negotiations, ...asked];
  const now = negotiations.filter((one) => one.waiting).length + asked.length;
  const badge = document.querySelector('#rail a[data-section="approvals"] .badge');
  replace(badge, open.length ? [String(open.length), h("span", { class: "hidden" }, " ", t("wait_for_your_decision_now_of_them", { now }))] : null);
  badge.classList.toggle("now", now > 0);
}

function signedOut() {
  document.body.classList.add("out");
  link.textContent = "";
  replace(
    main,
    page(
      t("sign_in"),
      h("p", null, t("you_sign_in_with_a_link_that")),
      h("pre", { class: "block command" }, "anpd dashboard"),
      h("p", { class: "note" }, t("a_sign_in_lasts_12_hours_and")),
    ),
  );
  document.title = `${t("sign_in")} · anpd`;
  main.querySelector("h1").focus({ preventScroll: true });
}

async function signOut() {
  await post("/dashboard/session", {}, "DELETE");
  // Loaded anew, so that the stream of events ends as well.
  location.replace("/");
}

async function signIn() {
  const match = /^#code=([\w-]+)$/.exec(location.hash);
  if (!match) return;
  // The code is a key, so it leaves the address and the history before anything else.
  history.replaceState(null, "", "/#/");
  try {
    await post("/dashboard/session", { code: match[1] });
  } catch (problem) {
    // A browser that is signed in already needs no new link.
    tell(problem.message);
  }
}

function theme() {
  const choices = ["auto", "light", "dark"];
  const control = document.getElementById("theme");
  const set = (choice) => {
    if (choice === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = choice;
    control.textContent = { auto: t("theme_auto"), light: t("theme_light"), dark: t("theme_dark") }[choice];
    localStorage.setItem("theme", choice);
  };
  control.addEventListener("click", () => set(choices[(choices.indexOf(localStorage.getItem("theme") ?? "auto") + 1) % 3]));
  const kept = localStorage.getItem("theme");
  set(choices.includes(kept) ? kept : "auto");
}

// The parts of the page that stand in its file, in the person's language.
function languages() {
  document.documentElement.lang = language === "zh" ? "zh-Hans" : language;
  document.querySelector(".skip").textContent = t("skip_to_the_content");
  document.getElementById("rail").setAttribute("aria-label", t("sections"));
  document.getElementById("leave").textContent = t("sign_out");
  const other = Object.keys(NAMES).find((one) => one !== language);
  const control = document.getElementById("language");
  control.textContent = NAMES[other];
  control.lang = other === "zh" ? "zh-Hans" : other;
  control.addEventListener("click", () => choose(other));
}

async function start() {
  languages();
  theme();
  drawRail();
  document.getElementById("leave").addEventListener("click", signOut);
  await signIn();
  try {
    const [info, known] = await Promise.all([get("/v1/info"), get("/v1/peers")]);
    learnNames(known.peers);
    document.getElementById("me").textContent = `${info.did.slice(0, 20)}…${info.did.slice(-6)}`;
    document.getElementById("me").title = info.did;
    await countOpen();
  } catch (problem) {
    if (problem.status === 401) return signedOut();
  }
  window.addEventListener("hashchange", () => {
    if (/^#code=/.test(location.hash)) location.reload();
    else if (location.hash.startsWith("#/")) open();
  });
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  await open({ focus: false });
  follow("/v1/events", {
    onEvent: (event) => {
      countOpenSoon(event);
      current?.onEvent?.(event);
    },
    onState: (state) => {
      link.className = `link ${state === "live" ? "live" : "away"}`;
      link.textContent = state === "live" ? t("live") : state === "away" ? t("reconnecting") : t("signed_out");
      if (state === "live" && link.dataset.was === "away") open({ focus: false });
      if (state === "signed out") signedOut();
      link.dataset.was = state;
    },
  });
}

const countOpenSoon = gathered(["negotiation", "group"], countOpen);

start();
