// A session as a conversation: who said what, the states of its tasks, pictures shown.
import { act, action } from "../actions.js";
import { follow, get, getBlob } from "../api.js";
import { button, chip, facts, h, refill, section } from "../dom.js";
import { number, peer, short, when } from "../format.js";
import { table } from "../listing.js";
import { block, untrusted, words } from "../peertext.js";
import { parts, t } from "../texts.js";

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
  const questions = new Questions(tools);
  const top = async () => {
    const now = await get(path);
    told.learn(now);
    refill(head, header(now, tools));
    await questions.show(now);
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
  tools.watch(["task"], top, (event) => event.data.session === id);
  await top();
  return [head, questions.element, section(t("conversation"), lines)];
}

function header(found, tools) {
  const other = found.made_by === "peer" ? found.requester.id : found.participants[0].id;
  return [
    h("p", { class: "crumb" }, h("a", { href: "#/tasks" }, t("tasks")), " / ", short(found.id, 16)),
    h("div", { class: "title" }, h("h1", { tabindex: "-1" }, t("session")), chip(found.open ? "open" : "closed")),
    facts([
      [t("with"), peer(other)],
      [t("began"), when(found.created)],
      [t("events"), number(found.events)],
    ]),
    table(
      t("tasks_of_this_session"),
      [t("task"), t("state"), t("started"), t("reason"), ""],
      found.tasks.map((one) => [
        words(one.capability || t("in_words"), 80),
        chip(one.state.replace(/^x-/, "")),
        when(one.created),
        one.reason ? words(one.reason, 200) : "–",
        one.ended || one.made_by === "peer" ? null : action(t("cancel"), { id: `cancel-${one.id}`, kind: "danger", path: `/v1/tasks/${one.id}/cancel`, done: t("the_task_was_asked_to_end"), about: one.capability }, tools),
      ]),
      t("this_session_has_no_tasks"),
    ),
  ];
}

// The questions of peers that wait for an answer. A form stays as it is until its question
// is another one: somebody may be writing in it.
class Questions {
  constructor(tools) {
    this.tools = tools;
    this.element = h("div");
    this.shown = "";
  }

  async show(found) {
    const open = found.tasks.filter((one) => !one.ended && one.state.startsWith("x-"));
    const tasks = await Promise.all(open.map((one) => get(`/v1/tasks/${one.id}`)));
    const asked = tasks.filter((one) => one.question && one.made_by !== "peer");
    const shown = JSON.stringify(asked.map((one) => [one.id, one.question]));
    if (shown === this.shown) return;
    this.shown = shown;
    refill(this.element, asked.map((one) => answer(one, this.tools)));
  }
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
    return act(tools, path, body, t("the_answer_was_sent"));
  };
  return h(
    "section",
    { class: "decide" },
    h("h2", null, t("the_peer_asks")),
    h("p", null, words(task.question.text, 2_000)),
    task.question.url ? h("p", null, parts("it_wants_you_to_open_a_page", { url: h("code", { class: "wrap" }, words(task.question.url, 2_000)) })) : null,
    task.question.schema ? block(JSON.stringify(task.question.schema, null, 2), { label: t("schema_of_the_answer") }) : null,
    h("label", { class: "field" }, h("span", null, task.question.schema ? t("your_answer_as_json") : t("your_answer")), field),
    h("p", { class: "actions" }, button(t("send"), send, "primary"), button(t("decline"), () => act(tools, path, { action: "decline" }, t("the_question_was_declined")))),
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
    this.names = new Map(session.tasks.map((one) => [one.wire_id, one.capability || t("a_task")]));
    this.tasks = new Map(session.tasks.map((one) => [one.wire_id, one.id]));
  }

  add(event) {
    const { type, data, at } = event;
    if (type === "task.message" || type === "session.message") return this.message(data.message);
    if (type === "task.progress") return this.progress(data);
    if (type === "task.created") {
      // One that waited for others is told again when it is sent.
      if (this.begun.has(data.task)) return this.line(data.by, at, t("it_is_sent_now"));
      this.begun.add(data.task);
      this.names.set(data.task, data.capability || t("a_task"));
      this.line(data.by, at, parts("started_task", { task: words(this.names.get(data.task), 80) }));
      return data.messages.forEach((one) => this.parts(one, this.list.lastElementChild));
    }
    if (type === "task.state") {
      this.bar.delete(data.task);
      const said = [words(this.names.get(data.task) ?? t("a_task"), 80), " ", chip(data.state.replace(/^x-/, "")), data.reason ? [" ", words(data.reason, 400)] : null];
      return this.put(h("li", { class: "waiting" }, h("p", null, said, " ", when(at))));
    }
    if (type === "task.cancel_requested") return this.line(data.by, at, t("asked_for_its_end"));
    if (type === "session.state" && data.state === "closed") return this.line(data.by, at, t("closed_the_session"));
  }

  message(message) {
    const open = this.open.get(message.id);
    if (open) {
      this.parts(message, open);
    } else {
      // Pieces of a stream that follow each other are one line.
      const joins = this.last?.by === message.by && this.last.task === message.task && message.purpose === "result" && this.last.line === this.list.lastElementChild;
      const line = joins ? this.last.line : this.line(message.by, message.at, message.purpose === "result" ? t("result") : null);
      this.parts(message, line);
      this.last = message.purpose === "result" ? { by: message.by, task: message.task, line } : null;
      if (message.chunk !== null) this.open.set(message.id, line);
    }
    if (message.last_chunk) this.open.delete(message.id);
  }

  parts(message, line) {
    for (const part of message.parts) {
      if (part.kind === "text") this.text(line, part.text);
      else if (part.kind === "json") line.append(block(JSON.stringify(part.value, null, 2), { label: t("value") }));
      else if (part.kind === "uri") line.append(h("p", null, parts("content_elsewhere_uri", { uri: words(part.uri, 400) })));
      else if (!part.continued) line.append(this.bytes(message, part));
    }
  }

  text(line, text) {
    const pre = line.lastElementChild?.tagName === "PRE" ? line.lastElementChild : null;
    if (!pre) return line.append(block(text, { label: t("text") }));
    pre.append(...block(text).childNodes);
  }

  bytes(message, part) {
    const about = h("p", null, words(`${part.name ?? t("content")} (${part.media_type})`, 200));
    const task = this.tasks.get(message.task);
    if (!task || !PICTURES.has(part.media_type) || part.size > MAX_PICTURE) return about;
    getBlob(`/v1/tasks/${task}/artifacts/${part.artifact}`)
      .then((blob) => {
        const picture = h("img", { alt: part.name ?? t("picture_of_the_peer"), src: URL.createObjectURL(blob), class: "picture" });
        picture.addEventListener("load", () => URL.revokeObjectURL(picture.src), { once: true });
        about.append(h("br"), picture);
      })
      .catch(() => about.append(" ", t("it_cannot_be_shown")));
    return about;
  }

  progress(data) {
    let bar = this.bar.get(data.task);
    if (!bar) {
      bar = h("li", { class: "waiting" }, h("progress", { "aria-label": t("progress") }), h("p"));
      this.bar.set(data.task, bar);
      this.put(bar);
    }
    const meter = bar.firstElementChild;
    if (data.total) {
      meter.max = data.total;
      meter.value = data.progress ?? 0;
    }
    bar.lastElementChild.replaceChildren(data.total ? t("used_of_limit", { used: data.progress ?? 0, limit: data.total }) : String(data.progress ?? ""), " ", words(data.text, 200));
  }

  line(by, at, content) {
    const ours = by === this.own;
    const line = h("li", { class: ours ? "ours" : "theirs" }, h("p", { class: "head" }, h("strong", null, ours ? t("we") : t("the_peer")), " ", content, " ", ours ? null : untrusted("peer"), h("span", { class: "at" }, when(at))));
    this.put(line);
    return line;
  }

  put(line) {
    this.list.append(line);
    // A long conversation keeps its newest lines in the page.
    while (this.list.childElementCount > MOST) this.list.firstElementChild.remove();
  }
}
