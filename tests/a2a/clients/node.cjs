// The client of the JavaScript SDK (`make a2a-js-env`): node node.cjs URL TOKEN FORM, where
// the form is `1.0`, `1.0 HTTP+JSON`, `0.3` (of today's SDK) or `old` (of the old line).
"use strict";

const { createRequire } = require("node:module");
const path = require("node:path");

const [url, token, form] = process.argv.slice(2);
const load = createRequire(path.join(process.env.A2A_JS, "package.json"));
const isOld = form === "old";
const sdk = load(isOld ? "a2a-0.3/client" : "a2a-1/client");

const found = {};
let numbers = 0;

async function take(method, tried) {
  try {
    await tried();
    found[method] = "pass";
  } catch (error) {
    console.error(method, error);
    found[method] = `${error.name}: ${error.message}`.slice(0, 200);
  }
}

function check(holds, shown) {
  if (!holds) throw new Error(`unexpected: ${JSON.stringify(shown)}`);
}

function fetchWith(value) {
  return (input, init) => {
    const headers = new Headers(init?.headers);
    if (value) headers.set("Authorization", `Bearer ${value}`);
    return fetch(input, { ...init, headers });
  };
}

// What differs between the two lines of the SDK; both give plain objects of one shape.

function factoryOf(value) {
  const fetchImpl = fetchWith(value);
  const [version, binding] = isOld ? ["0.3"] : form.split(" ");
  const legacyCompat = { enabled: version === "0.3" };
  const Transport =
    binding === "HTTP+JSON" ? sdk.RestTransportFactory : sdk.JsonRpcTransportFactory;
  const options = isOld ? { fetchImpl } : { fetchImpl, legacyCompat };
  return new sdk.ClientFactory({
    transports: [new Transport(options)],
    cardResolver: new sdk.DefaultAgentCardResolver(options),
  });
}

async function clientOf(value) {
  const factory = factoryOf(value);
  if (isOld) return factory.createFromUrl(url);
  const card = await factory.options.cardResolver.resolve(url);
  const version = form.split(" ")[0];
  card.supportedInterfaces = card.supportedInterfaces.filter(
    (one) => one.protocolVersion === version,
  );
  return factory.createFromAgentCard(card);
}

const STATES = isOld
  ? { done: "completed", asked: "input-required", ended: "canceled" }
  : { done: 3, asked: 6, ended: 5 };
const is = (task, word) => task.status.state === STATES[word];

function params(part, more = {}) {
  const messageId = `node-${process.pid}-${form}-${++numbers}`;
  if (isOld) {
    const kind = part.text === undefined ? "data" : "text";
    const parts = [{ kind, ...part }];
    return { message: { kind: "message", messageId, role: "user", parts, ...more } };
  }
  const content =
    part.text === undefined
      ? { $case: "data", value: part.data }
      : { $case: "text", value: part.text };
  const message = {
    messageId,
    contextId: "",
    taskId: "",
    role: 1,
    parts: [{ content, metadata: undefined, filename: "", mediaType: "" }],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
    ...more,
  };
  return { tenant: "", message, configuration: undefined, metadata: undefined };
}

const call = (skill, args) => params({ data: { skill, arguments: args } });
const named = (id, more = {}) => (isOld ? { id, ...more } : { tenant: "", id, ...more });
const kindOf = (event) => (isOld ? event.kind : event.payload.$case);
const bodyOf = (event) => (isOld ? event : event.payload.value);
const isKind = (event, old, now) => kindOf(event) === (isOld ? old : now);
const dataOf = (part) => (isOld ? part.data : part.content.value);
const textOf = (part) => (isOld ? part.text : part.content.value);

async function all(events) {
  const kept = [];
  for await (const one of events) kept.push(one);
  return kept;
}

async function main() {
  let client;
  let done;
  await take("card", async () => {
    client = await clientOf(token);
    const card = await client.getAgentCard();
    const skills = card.skills.map((one) => one.id);
    check(skills.includes("twice.twice") && skills.includes("story.story"), card);
  });
  await take("send", async () => {
    const task = await client.sendMessage(call("twice.twice", { number: 21 }));
    done = task.id;
    check(is(task, "done"), task);
    check(dataOf(task.artifacts[0].parts[0]).twice === 42, task);
  });
  await take("stream", async () => {
    const sent = call("story.story", { topic: "wire" });
    const events = await all(client.sendMessageStream(sent));
    const words = events
      .filter((one) => isKind(one, "artifact-update", "artifactUpdate"))
      .flatMap((one) => bodyOf(one).artifact.parts.map(textOf));
    check(words.join("") === "Once upon a time: wire", events);
    check(is(bodyOf(events.at(-1)), "done"), events);
  });
  await take("ask back", async () => {
    const asked = await client.sendMessage(call("order.order", { item: "tea" }));
    check(is(asked, "asked"), asked);
    const more = { taskId: asked.id, contextId: asked.contextId };
    const task = await client.sendMessage(params({ text: "two" }, more));
    check(is(task, "done"), task);
    check(dataOf(task.artifacts[0].parts[0]).answer === "two", task);
  });
  await take("get", async () => {
    const task = await client.getTask(named(done, { historyLength: 1 }));
    check(is(task, "done") && task.history.length === 1, task);
  });
  if (form.startsWith("1.0")) {
    await take("list", async () => {
      const page = await client.listTasks({ tenant: "", contextId: "", status: 0, pageToken: "" });
      check(page.tasks.some((one) => one.id === done), page);
    });
  } else {
    found.list = "- 0.3 has no list";
  }
  await take("cancel", async () => {
    const events = client.sendMessageStream(call("slow.slow", { seconds: 60 }));
    const first = bodyOf((await events.next()).value);
    const task = await client.cancelTask(named(first.id));
    check(is(task, "ended"), task);
    const rest = await all(events);
    check(is(bodyOf(rest.at(-1)), "ended"), rest);
  });
  await take("resubscribe", async () => {
    const events = client.sendMessageStream(call("slow.slow", { seconds: 2 }));
    const first = bodyOf((await events.next()).value);
    await events.return();
    const kept = await all(client.resubscribeTask(named(first.id)));
    check(isKind(kept[0], "task", "task"), kept);
    check(is(bodyOf(kept.at(-1)), "done"), kept);
  });
  await take("push", async () => {
    const asked = await client.sendMessage(call("order.order", { item: "tea" }));
    const config = { id: "mine", url: process.env.A2A_PUSH, token: "of this receiver" };
    let kept;
    if (isOld) {
      const set = { taskId: asked.id, pushNotificationConfig: config };
      await client.setTaskPushNotificationConfig(set);
      const wanted = { id: asked.id, pushNotificationConfigId: "mine" };
      kept = (await client.getTaskPushNotificationConfig(wanted)).pushNotificationConfig;
    } else {
      const set = { tenant: "", taskId: asked.id, authentication: undefined, ...config };
      await client.createTaskPushNotificationConfig(set);
      const wanted = { tenant: "", taskId: asked.id, id: "mine" };
      kept = await client.getTaskPushNotificationConfig(wanted);
    }
    check(kept.url === config.url, kept);
    const more = { taskId: asked.id, contextId: asked.contextId };
    await client.sendMessage(params({ text: "two" }, more));
  });
  await take("own errors", async () => {
    try {
      await client.getTask(named("none"));
    } catch (error) {
      check(error.name === "TaskNotFoundError" || error.code === -32001
        || error.constructor.name === "TaskNotFoundError", error.name);
      return;
    }
    throw new Error("no error for an unknown task");
  });
  await take("0.1", async () => {
    const task = await client.sendMessage(call("half.half", { number: 0.2 }));
    check(dataOf(task.artifacts[0].parts[0]).half === 0.1, task);
  });
  found["2^53 + 1"] = "- JavaScript reads JSON in doubles";
  await take("no token", async () => {
    try {
      const stranger = await clientOf("");
      await stranger.sendMessage(call("twice.twice", { number: 21 }));
    } catch (error) {
      check(error.message.includes("401"), error.message);
      return;
    }
    throw new Error("it was let in");
  });
  console.log(JSON.stringify(found));
}

main();
