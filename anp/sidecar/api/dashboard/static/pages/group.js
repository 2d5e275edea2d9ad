// A group: a picture of its members around the hub, and what they say, live.
import { act, action } from "../actions.js";
import { follow, get } from "../api.js";
import { button, chip, facts, h, refill, section, svg } from "../dom.js";
import { label, number, peer, short, when } from "../format.js";
import { table } from "../listing.js";
import { block, untrusted, words } from "../peertext.js";
import { asked, sealed, state } from "./groups.js";
import { parts, t, word } from "../texts.js";

const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const MOST = 500;
const MOST_DRAWN = 24;
const MOST_NAMED = 8;
const DONE = { "group.create": t("made_the_group"), "group.accept": t("joined"), "group.approve": t("let_in"), "group.leave": t("left"), "group.remove": t("removed"), "group.close": t("closed_the_group") };
const PROOFS = { hub: [t("the_hub_says_so"), "calm"], forged: [t("forged"), "bad"], repeated: [t("repeated"), "ask"], sealed: [t("sealed"), "good"] };
// The stream of the page in view; a page that is drawn anew ends the one before.
let leaving = null;

export async function show(id, tools) {
  const path = `/v1/groups/${encodeURIComponent(id)}`;
  const found = await get(path);
  const lines = h("ol", { class: "timeline", "aria-live": "polite" });
  const head = h("div");
  const told = new Told(found.own, lines);
  const top = async () => {
    const [now, waiting] = await Promise.all([get(path), get("/v1/approvals")]);
    refill(head, header(now, waiting.groups.filter((one) => one.group === id), tools));
    told.mark(head);
  };
  leaving?.abort();
  leaving = new AbortController();
  const mine = leaving;
  window.addEventListener("hashchange", () => mine.abort(), { once: true });
  const skipped = Math.max(0, found.last - MOST);
  if (found.state !== "invited" && found.state !== "applied") {
    follow(`${path}/events`, {
      signal: mine.signal,
      resumes: true,
      after: skipped,
      onEvent: (event) => {
        told.add(event);
        told.mark(head);
        if (event.type !== "message.send" && event.number > found.last) top();
      },
      onState: () => {},
    });
  }
  tools.watch(["group"], top, (event) => event.data.group === id);
  await top();
  const speaks = found.state === "member";
  return [head, section(t("messages"), skipped ? h("p", { class: "note" }, parts("the_newest_most_command_shows_all", { most: MOST, command: h("code", null, `anpd groups watch ${id}`) })) : null, lines, speaks ? form(path) : null)];
}

function header(found, waiting, tools) {
  return [
    h("p", { class: "crumb" }, h("a", { href: "#/groups" }, t("groups")), " / ", short(found.id, 16)),
    h("div", { class: "title" }, h("h1", { tabindex: "-1" }, found.name ? words(found.name) : t("group")), state(found), found.sealed ? [" ", sealed()] : null),
    waiting.length ? asked(waiting, tools) : null,
    h("div", { class: "group" }, picture(found), facts([
      [t("owner"), found.owner === found.own ? t("your_agent") : peer(found.owner)],
      [t("hub"), found.is_hub ? t("this_daemon") : peer(found.hub)],
      [t("your_agent_2"), short(found.own, 20, 6)],
      [t("joined_by"), word(found.policy.join)],
      [t("history_for_new_members"), word(found.policy.history)],
      [t("changes_of_members"), number(found.epoch)],
    ])),
    alarms(found),
    members(found, tools),
    manages(found) && found.state === "member"
      ? h("p", { class: "actions" }, action(t("close_the_group"), { id: "close-group", kind: "danger", path: `/v1/groups/${found.id}/close`, done: t("the_group_is_closed"), ask: { title: t("close_this_group"), text: t("nothing_can_be_said_in_it_any"), yes: t("yes_close_it") } }, tools))
      : null,
  ];
}

// Signs that the hub of a sealed group, or a member, does what it should not.
function alarms(found) {
  const known = found.sealing?.alarms ?? [];
  if (!known.length) return null;
  const rows = [...known].reverse().map((one) => [when(one.at), chip(one.code, "bad"), peer(one.by), words(one.text, 300)]);
  return section(t("alarms"), table(t("alarms"), [t("time"), t("code"), t("in_the_name_of"), t("words")], rows, ""));
}

const manages = (found) => found.owner === found.own || found.admins.includes(found.own);

function members(found, tools) {
  return table(
    t("members"),
    [t("no"), t("member"), t("since_event"), ""],
    found.members.map((one, at) => [
      String(at + 1),
      one.id === found.own ? t("your_agent") : peer(one.id),
      number(one.since),
      manages(found) && one.id !== found.own && one.id !== found.owner
        ? action(t("remove"), { id: `remove-${at}`, kind: "danger", about: t("member_at", { at: at + 1 }), path: `/v1/groups/${found.id}/remove`, body: { member: one.id }, done: t("the_member_was_removed"), ask: { title: t("remove_this_member"), text: t("it_gets_nothing_of_what_is_said"), yes: t("yes_remove_it") } }, tools)
        : one.id === found.owner ? t("owner_2") : found.admins.includes(one.id) ? t("admin") : "",
    ]),
    t("the_members_are_known_once_your_agent"),
  );
}

// The hub in the middle and its members around it; the table says the same in words.
function picture(found) {
  const drawn = found.members.slice(0, MOST_DRAWN);
  const [size, centre] = [360, 180];
  const named = drawn.length <= MOST_NAMED;
  const places = drawn.map((one, at) => {
    const angle = (2 * Math.PI * at) / Math.max(drawn.length, 1) - Math.PI / 2;
    return [one, at, centre + 125 * Math.cos(angle), centre + 125 * Math.sin(angle)];
  });
  const more = found.members.length - drawn.length;
  return svg(
    "svg",
    { class: "members", viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": found.sealed ? t("n_member_around_the_hub_which_cannot", { n: found.members.length }) : t("n_member_around_the_hub", { n: found.members.length }) },
    places.map(([, , x, y]) => svg("line", { x1: centre, y1: centre, x2: x, y2: y })),
    svg("rect", { class: "hub", x: centre - 32, y: centre - 20, width: 64, height: 40, rx: 9, "stroke-dasharray": found.sealed ? "5 4" : null }),
    svg("text", { x: centre, y: centre + 5 }, found.sealed ? t("hub_2") : t("hub_3")),
    places.map(([one, at, x, y]) => [
      svg("circle", { class: one.id === found.own ? "own" : "", "data-member": one.id, cx: x, cy: y, r: 17 }, svg("title", {}, one.id)),
      svg("text", { x, y: y + 4.5 }, String(at + 1)),
      named ? svg("text", { class: "name", x, y: y + 33 }, one.id === found.own ? t("your_agent") : label(one.id)) : null,
    ]),
    more > 0 ? svg("text", { class: "name", x: centre, y: size - 4 }, t("and_more_more", { more })) : null,
  );
}

function form(path) {
  const field = h("textarea", { class: "line", id: "say", rows: "2", maxlength: "20000" });
  const send = async () => {
    if (!field.value.trim()) return field.focus();
    const said = field.value;
    const tools = { tell: () => {}, reload: async () => {} };
    const text = (found) => (found.number === null ? t("the_hub_is_away_your_message_goes") : t("your_message_was_sent"));
    if (await act(tools, `${path}/messages`, { text: said }, text)) field.value = "";
    field.focus();
  };
  return h("section", { class: "decide" }, h("label", { class: "field" }, h("span", null, t("your_message_in_the_name_of_your")), field), h("p", { class: "actions" }, button(t("send"), send, "primary")));
}

// The lines of the conversation.
class Told {
  constructor(own, list) {
    this.own = own;
    this.list = list;
    this.speaker = null;
  }

  add(event) {
    const { data, at, number: count } = event;
    const ours = data.by === this.own;
    const [proof, tone] = PROOFS[data.proof] ?? [null];
    const marks = [proof && data.message ? [chip(proof, tone), " "] : null, data.replayed ? [chip(t("from_before_you_joined")), " "] : null];
    if (!data.message) {
      const member = data.content?.member?.id;
      const shown = member && member !== data.by ? [" ", peer(member)] : null;
      this.put(h("li", { class: "waiting" }, h("p", null, ours ? t("your_agent_2") : peer(data.by), " ", DONE[event.type] ?? event.type, shown, " ", when(at))));
      return;
    }
    this.speaker = data.by;
    const line = h("li", { class: ours ? "ours" : "theirs", "data-number": count }, h("p", { class: "head" }, h("strong", null, ours ? t("your_agent_2") : peer(data.by)), " ", ours ? null : untrusted("peer"), " ", marks, h("span", { class: "at" }, when(at))));
    for (const part of data.message.parts ?? []) line.append(shownPart(part));
    this.put(line);
  }

  // Marks who spoke last in the picture.
  mark(head) {
    for (const one of head.querySelectorAll("circle[data-member]")) one.classList.toggle("spoke", one.dataset.member === this.speaker);
  }

  put(line) {
    this.list.append(line);
    while (this.list.childElementCount > MOST) this.list.firstElementChild.remove();
  }
}

function shownPart(part) {
  if (part.kind === "text") return block(part.text, { label: t("text") });
  if ("value" in part) return block(JSON.stringify(part.value, null, 2), { label: t("value") });
  if (part.kind === "uri") return h("p", null, parts("content_elsewhere_uri", { uri: words(part.uri, 400) }));
  const about = h("p", null, words(`${part.name ?? t("content")} (${part.media_type})`, 200));
  if (!PICTURES.has(part.media_type)) return about;
  const bytes = Uint8Array.from(atob(part.bytes), (one) => one.charCodeAt(0));
  const image = h("img", { alt: part.name ?? t("picture_of_the_peer"), src: URL.createObjectURL(new Blob([bytes], { type: part.media_type })), class: "picture" });
  image.addEventListener("load", () => URL.revokeObjectURL(image.src), { once: true });
  about.append(h("br"), image);
  return about;
}
