// A group: a picture of its members around the hub, and what they say, live.
import { act, action } from "../actions.js";
import { follow, get } from "../api.js";
import { button, chip, facts, h, section, svg, table } from "../dom.js";
import { label, number, peer, short, when } from "../format.js";
import { block, untrusted, words } from "../peertext.js";
import { asked, sealed, state } from "./groups.js";

const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const MOST = 500;
const MOST_DRAWN = 24;
const MOST_NAMED = 8;
const DONE = { "group.create": "made the group", "group.accept": "joined", "group.approve": "let in", "group.leave": "left", "group.remove": "removed", "group.close": "closed the group" };
const PROOFS = { hub: ["the hub says so", "calm"], forged: ["forged", "bad"], repeated: ["repeated", "ask"], sealed: ["sealed", "good"] };
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
    head.replaceChildren(...header(now, waiting.groups.filter((one) => one.group === id), tools).filter(Boolean));
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
  tools.watch(["group"], async (event) => {
    if (event.data.group === id) await top();
  });
  await top();
  const speaks = found.state === "member";
  return [head, section("Messages", skipped ? h("p", { class: "note" }, `The newest ${MOST}; `, h("code", null, `anpd groups watch ${id}`), " shows all.") : null, lines, speaks ? form(path) : null)];
}

function header(found, waiting, tools) {
  return [
    h("p", { class: "crumb" }, h("a", { href: "#/groups" }, "Groups"), " / ", short(found.id, 16)),
    h("div", { class: "title" }, h("h1", { tabindex: "-1" }, found.name ? words(found.name) : "Group"), state(found), found.sealed ? [" ", sealed()] : null),
    waiting.length ? asked(waiting, tools) : null,
    h("div", { class: "group" }, picture(found), facts([
      ["Owner", found.owner === found.own ? "your agent" : peer(found.owner)],
      ["Hub", found.is_hub ? "this daemon" : peer(found.hub)],
      ["Your agent", short(found.own, 20, 6)],
      ["Joined by", found.policy.join],
      ["History for new members", String(found.policy.history)],
      ["Changes of members", number(found.epoch)],
    ])),
    alarms(found),
    members(found, tools),
    manages(found) && found.state === "member"
      ? h("p", { class: "actions" }, action("Close the group", { id: "close-group", kind: "danger", path: `/v1/groups/${found.id}/close`, done: "The group is closed.", ask: { title: "Close this group?", text: "Nothing can be said in it any more.", yes: "Yes, close it" } }, tools))
      : null,
  ];
}

// Signs that the hub of a sealed group, or a member, does what it should not.
function alarms(found) {
  const known = found.sealing?.alarms ?? [];
  if (!known.length) return null;
  const rows = [...known].reverse().map((one) => [when(one.at), chip(one.code, "bad"), peer(one.by), words(one.text, 300)]);
  return section("Alarms", table("Alarms", ["Time", "Code", "In the name of", "Words"], rows, ""));
}

const manages = (found) => found.owner === found.own || found.admins.includes(found.own);

function members(found, tools) {
  return table(
    "Members",
    ["No.", "Member", "Since event", ""],
    found.members.map((one, at) => [
      String(at + 1),
      one.id === found.own ? "your agent" : peer(one.id),
      number(one.since),
      manages(found) && one.id !== found.own && one.id !== found.owner
        ? action("Remove", { id: `remove-${at}`, kind: "danger", about: `member ${at + 1}`, path: `/v1/groups/${found.id}/remove`, body: { member: one.id }, done: "The member was removed.", ask: { title: "Remove this member?", text: "It gets nothing of what is said from now on.", yes: "Yes, remove it" } }, tools)
        : one.id === found.owner ? "owner" : found.admins.includes(one.id) ? "admin" : "",
    ]),
    "The members are known once your agent is one.",
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
    { class: "members", viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": `${found.members.length} members around the hub${found.sealed ? ", which cannot read what they say" : ""}` },
    places.map(([, , x, y]) => svg("line", { x1: centre, y1: centre, x2: x, y2: y })),
    svg("rect", { class: "hub", x: centre - 32, y: centre - 20, width: 64, height: 40, rx: 9, "stroke-dasharray": found.sealed ? "5 4" : null }),
    svg("text", { x: centre, y: centre + 5 }, found.sealed ? "🔒 hub" : "hub"),
    places.map(([one, at, x, y]) => [
      svg("circle", { class: one.id === found.own ? "own" : "", "data-member": one.id, cx: x, cy: y, r: 17 }, svg("title", {}, one.id)),
      svg("text", { x, y: y + 4.5 }, String(at + 1)),
      named ? svg("text", { class: "name", x, y: y + 33 }, one.id === found.own ? "your agent" : label(one.id)) : null,
    ]),
    more > 0 ? svg("text", { class: "name", x: centre, y: size - 4 }, `and ${more} more`) : null,
  );
}

function form(path) {
  const field = h("textarea", { class: "line", id: "say", rows: "2", maxlength: "20000" });
  const send = async () => {
    if (!field.value.trim()) return field.focus();
    const said = field.value;
    const tools = { tell: () => {}, reload: async () => {} };
    const text = (found) => (found.number === null ? "The hub is away; your message goes out when it is back." : "Your message was sent.");
    if (await act(tools, `${path}/messages`, { text: said }, text)) field.value = "";
    field.focus();
  };
  return h("section", { class: "decide" }, h("label", { class: "field" }, h("span", null, "Your message, in the name of your agent"), field), h("p", { class: "actions" }, button("Send", send, "primary")));
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
    const marks = [proof && data.message ? [chip(proof, tone), " "] : null, data.replayed ? [chip("from before you joined"), " "] : null];
    if (!data.message) {
      const member = data.content?.member?.id;
      const shown = member && member !== data.by ? [" ", peer(member)] : null;
      this.put(h("li", { class: "waiting" }, h("p", null, ours ? "Your agent" : peer(data.by), " ", DONE[event.type] ?? event.type, shown, " ", when(at))));
      return;
    }
    this.speaker = data.by;
    const line = h("li", { class: ours ? "ours" : "theirs", "data-number": count }, h("p", { class: "head" }, h("strong", null, ours ? "Your agent" : peer(data.by)), " ", ours ? null : untrusted("peer"), " ", marks, h("span", { class: "at" }, when(at))));
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
  if (part.kind === "text") return block(part.text, { label: "Text" });
  if ("value" in part) return block(JSON.stringify(part.value, null, 2), { label: "Value" });
  if (part.kind === "uri") return h("p", null, "content elsewhere: ", words(part.uri, 400));
  const about = h("p", null, words(`${part.name ?? "content"} (${part.media_type})`, 200));
  if (!PICTURES.has(part.media_type)) return about;
  const bytes = Uint8Array.from(atob(part.bytes), (one) => one.charCodeAt(0));
  const image = h("img", { alt: part.name ?? "picture of the peer", src: URL.createObjectURL(new Blob([bytes], { type: part.media_type })), class: "picture" });
  image.addEventListener("load", () => URL.revokeObjectURL(image.src), { once: true });
  about.append(h("br"), image);
  return about;
}
