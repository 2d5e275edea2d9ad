// A session as a conversation: who said what, the states of its tasks, pictures shown.
import { act, action } from "../actions.js";
import { follow, get, getBlob } from "../api.js";
import { button, chip, facts, h, section, table } from "../dom.js";
import { number, peer, short, when } from "../format.js";
import { block, untrusted, words } from "../peertext.js";

const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const MAX_PICTURE = 16 * 1024 * 1024;
const MOST = 2_000;
// The stream of the page in view; a page that is drawn anew ends the one before.
let leaving = null;

export async function show(id, tools) {
  const path = `/v1/sessions/${encodeURIComponent(id)}`;
  const found = await get(path);
  const lines = h("ol", { class: "timeline" });
  const told = new Told(found, lines);
  const head = h("div");
  const top = async () => {
    const now = await get(path);
    told.learn(now);
    head.replaceChildren(...(await header(now, tools)).filter(Boolean));
  };
  leaving?.abort();
  leaving = new AbortController();
  const mine = leaving;
  window.addEventListener("hashchange", () => mine.abort(), { once: true });
  follow(`${path}/events`, {
    signal: mine.signal,
    resumes: true,
    onEvent: (event) => told.add(event),
    onState: () => {},
  });
  tools.watch(["task"], async (event) => {
    if (event.data.session === id) await top();
  });
  await top();
  return [head, section("Conversation", lines)];
}

async function header(found, tools) {
  const other = found.made_by === "peer" ? found.requester.id : found.participants[0].id;
  const open = found.tasks.filter((one) => !one.ended);
  const waiting = await Promise.all(open.filter((one) => one.state.startsWith("x-")).map((one) => get(`/v1/tasks/${one.id}`)));
  return [
    h("p", { class: "crumb" }, h("a", { href: "#/tasks" }, "Tasks"), " / ", short(found.id, 16)),
    h("div", { class: "title" }, h("h1", { tabindex: "-1" }, "Session"), chip(found.open ? "open" : "closed")),
    facts([
      ["With", peer(other)],
      ["Began", when(found.created)],
      ["Events", number(found.events)],
    ]),
    table(
      "Tasks of this session",
      ["Task", "State", "Started", "Reason", ""],
      found.tasks.map((one) => [
        words(one.capability || "in words", 80),
        chip(one.state.replace(/^x-/, "")),
        when(one.created),
        one.reason ? words(one.reason, 200) : "–",
        one.ended || one.made_by === "peer" ? null : action("Cancel", { id: `cancel-${one.id}`, kind: "danger", path: `/v1/tasks/${one.id}/cancel`, done: "The task was asked to end.", about: one.capability }, tools),
      ]),
      "This session has no tasks.",
    ),
    ...waiting.filter((one) => one.question && one.made_by !== "peer").map((one) => answer(one, tools)),
  ];
}

// A form for a question in words; one with a schema is shown with it.
function answer(task, tools) {
  const field = h("input", { type: "text", id: `answer-${task.id}`, maxlength: "20000" });
  const path = `/v1/tasks/${task.id}/messages`;
  const send = () => {
    let body = { text: field.value };
    if (task.question.schema) {
      try {
        body = { value: JSON.parse(field.value) };
      } catch {
        // A text is an answer, too; the peer says what is wrong with it.
      }
    }
    return act(tools, path, body, "The answer was sent.");
  };
  return h(
    "section",
    { class: "decide" },
    h("h2", null, "The peer asks"),
    h("p", null, words(task.question.text, 2_000)),
    task.question.url ? h("p", null, "It wants you to open a page; nothing opens it for you: ", h("code", { class: "wrap" }, words(task.question.url, 2_000))) : null,
    task.question.schema ? block(JSON.stringify(task.question.schema, null, 2), { label: "Schema of the answer" }) : null,
    h("label", { class: "field" }, h("span", null, task.question.schema ? "Your answer, as JSON" : "Your answer"), field),
    h("p", { class: "actions" }, button("Send", send, "primary"), button("Decline", () => act(tools, path, { action: "decline" }, "The question was declined."))),
  );
}

// The lines of the conversation; chunks of one message grow its line.
class Told {
  constructor(session, list) {
    this.own = session.own;
    this.list = list;
    this.learn(session);
    this.begun = new Set();
    this.open = new Map();
    this.bar = new Map();
  }

  learn(session) {
    this.names = new Map(session.tasks.map((one) => [one.wire_id, one.capability || "a task"]));
    this.tasks = new Map(session.tasks.map((one) => [one.wire_id, one.id]));
  }

  add(event) {
    const { type, data, at } = event;
    if (type === "task.message" || type === "session.message") return this.message(data.message);
    if (type === "task.progress") return this.progress(data);
    if (type === "task.created") {
      // One that waited for others is told again when it is sent.
      if (this.begun.has(data.task)) return this.line(data.by, at, "– it is sent now");
      this.begun.add(data.task);
      this.names.set(data.task, data.capability || "a task");
      this.line(data.by, at, ["started ", words(this.names.get(data.task), 80)]);
      return data.messages.forEach((one) => this.parts(one, this.list.lastElementChild));
    }
    if (type === "task.state") {
      this.bar.delete(data.task);
      const said = [words(this.names.get(data.task) ?? "a task", 80), " ", chip(data.state.replace(/^x-/, "")), data.reason ? [" ", words(data.reason, 400)] : null];
      return this.put(h("li", { class: "waiting" }, h("p", null, said, " ", when(at))));
    }
    if (type === "task.cancel_requested") return this.line(data.by, at, "asked for its end");
    if (type === "session.state" && data.state === "closed") return this.line(data.by, at, "closed the session");
  }

  message(message) {
    const open = this.open.get(message.id);
    if (open) {
      this.parts(message, open);
    } else {
      // Pieces of a stream that follow each other are one line.
      const joins = this.last?.by === message.by && this.last.task === message.task && message.purpose === "result" && this.last.line === this.list.lastElementChild;
      const line = joins ? this.last.line : this.line(message.by, message.at, message.purpose === "result" ? "· result" : null);
      this.parts(message, line);
      this.last = message.purpose === "result" ? { by: message.by, task: message.task, line } : null;
      if (message.chunk !== null) this.open.set(message.id, line);
    }
    if (message.last_chunk) this.open.delete(message.id);
  }

  parts(message, line) {
    for (const part of message.parts) {
      if (part.kind === "text") this.text(line, part.text);
      else if (part.kind === "json") line.append(block(JSON.stringify(part.value, null, 2), { label: "Value" }));
      else if (part.kind === "uri") line.append(h("p", null, "content elsewhere: ", words(part.uri, 400)));
      else if (!part.continued) line.append(this.bytes(message, part));
    }
  }

  text(line, text) {
    const pre = line.lastElementChild?.tagName === "PRE" ? line.lastElementChild : null;
    if (!pre) return line.append(block(text, { label: "Text" }));
    pre.append(...block(text).childNodes);
  }

  bytes(message, part) {
    const about = h("p", null, words(`${part.name ?? "content"} (${part.media_type})`, 200));
    const task = this.tasks.get(message.task);
    if (!task || !PICTURES.has(part.media_type) || part.size > MAX_PICTURE) return about;
    getBlob(`/v1/tasks/${task}/artifacts/${part.artifact}`)
      .then((blob) => {
        const picture = h("img", { alt: part.name ?? "picture of the peer", src: URL.createObjectURL(blob), class: "picture" });
        picture.addEventListener("load", () => URL.revokeObjectURL(picture.src), { once: true });
        about.append(h("br"), picture);
      })
      .catch(() => about.append(" – it cannot be shown"));
    return about;
  }

  progress(data) {
    let bar = this.bar.get(data.task);
    if (!bar) {
      bar = h("li", { class: "waiting" }, h("progress", { "aria-label": "Progress" }), h("p"));
      this.bar.set(data.task, bar);
      this.put(bar);
    }
    const meter = bar.firstElementChild;
    if (data.total) {
      meter.max = data.total;
      meter.value = data.progress ?? 0;
    }
    bar.lastElementChild.replaceChildren(words([data.progress, data.total].filter((one) => one !== null).join(" of "), 60), " ", words(data.text, 200));
  }

  line(by, at, content) {
    const ours = by === this.own;
    const line = h("li", { class: ours ? "ours" : "theirs" }, h("p", { class: "head" }, h("strong", null, ours ? "We" : "The peer"), " ", content, " ", ours ? null : untrusted("peer"), h("span", { class: "at" }, when(at))));
    this.put(line);
    return line;
  }

  put(line) {
    this.list.append(line);
    // A long conversation keeps its newest lines in the page.
    while (this.list.childElementCount > MOST) this.list.firstElementChild.remove();
  }
}
