// Talks to the daemon: requests, problems, and the stream of events.
import { t } from "./texts.js";

const PAGE = { "X-Anpd-Page": "1" };

export class Problem extends Error {
  constructor(status, detail, mayHaveRun = false) {
    super(mayHaveRun ? t("detail_it_may_have_run", { detail }) : detail);
    this.status = status;
  }
}

export async function get(path) {
  return read(await send(path, { headers: PAGE }));
}

// Says how the daemon is doing also when it is not well, which is a 503.
export async function getHealth() {
  return (await send("/readyz", { headers: PAGE })).json();
}

export async function getText(path) {
  const answer = await send(path, { headers: PAGE });
  if (!answer.ok) await read(answer);
  return answer.text();
}

// Bytes that a page shows, such as a picture.
export async function getBlob(path) {
  const answer = await send(path, { headers: PAGE });
  if (!answer.ok) await read(answer);
  return answer.blob();
}

export async function post(path, body = {}, method = "POST") {
  return read(
    await send(path, {
      method,
      headers: { ...PAGE, "Content-Type": "application/json" },
      body: JSON.stringify(body),
    }),
  );
}

// Sends a body that is JSON text already and returns the answer's text, so that numbers
// keep digits that a number of JavaScript has no room for.
export async function postText(path, body, signal) {
  return textOf(await send(path, { method: "POST", headers: { ...PAGE, "Content-Type": "application/json" }, body, signal }));
}

async function send(path, options) {
  try {
    return await fetch(path, { ...options, credentials: "same-origin", cache: "no-store", redirect: "error" });
  } catch (problem) {
    if (problem.name === "AbortError") throw new Problem(0, t("you_cancelled_it"), true);
    throw new Problem(0, t("the_daemon_cannot_be_reached_is_it"));
  }
}

async function read(answer) {
  const text = await textOf(answer);
  return text ? JSON.parse(text) : null;
}

async function textOf(answer) {
  const text = await answer.text();
  if (answer.ok) return text;
  let problem = { detail: text };
  try {
    problem = JSON.parse(text);
  } catch {
    // Not a problem document; the text is what there is to show.
  }
  throw new Problem(answer.status, problem.detail || t("the_daemon_answered_status", { status: answer.status }), problem.may_have_run);
}

// Follows the daemon's events for as long as the page is open. `EventSource` cannot send
// the header that tells our page from others, and needs each event's name beforehand.
// With `signal` it ends; with `resumes` each attempt goes on behind the newest
// number, the first one behind `after`.
export async function follow(path, { onEvent, onState, signal, resumes = false, after = 0 }) {
  let last = after;
  const take = (event) => {
    last = event.number;
    onEvent(event);
  };
  for (let wait = 500; !signal?.aborted; wait = Math.min(wait * 2, 10_000)) {
    try {
      const from = resumes && last ? { "Last-Event-ID": String(last) } : {};
      const answer = await fetch(path, { headers: { ...PAGE, ...from, Accept: "text/event-stream" }, credentials: "same-origin", cache: "no-store", signal });
      if (answer.status === 401) return onState("signed out");
      if (!answer.ok) throw new Problem(answer.status, "no events");
      onState("live");
      wait = 500;
      await readFrames(answer.body, take);
    } catch {
      // Tried again below, and said in the page.
    }
    if (signal?.aborted) return;
    onState("away");
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

async function readFrames(body, onEvent) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const frames = (rest + value).split("\n\n");
    rest = frames.pop();
    for (const frame of frames) {
      const data = frame.split("\n").find((line) => line.startsWith("data: "));
      if (data) onEvent(JSON.parse(data.slice(6)));
    }
  }
}
