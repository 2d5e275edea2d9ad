// One attachment: its state, and its capabilities to expose, hide and try.
import { action } from "../actions.js";
import { get } from "../api.js";
import { chip, facts, h, section } from "../dom.js";
import { words } from "../peertext.js";
import { capability } from "../trial.js";
import { t } from "../texts.js";

export async function show(name, tools) {
  const draw = async () => view(name, tools, await Promise.all([get("/v1/info"), get("/v1/capabilities")]));
  tools.watch(["attachment"], async () => {
    // A form that somebody fills in is not taken away.
    if (!document.querySelector(".try[open]")) tools.put(await draw());
  });
  return draw();
}

function view(name, tools, [info, { capabilities }]) {
  const crumb = h("p", { class: "crumb" }, h("a", { href: "#/daemon" }, t("daemon")), " / ", t("attachment"));
  const found = info.attachments.find((one) => one.name === name);
  if (!found) return [crumb, h("h1", { tabindex: "-1" }, t("attachment_2")), h("p", { class: "empty" }, t("nothing_is_attached_under_this_name"))];
  const own = capabilities.filter((one) => one.name.startsWith(`${name}.`));
  const shown = own.filter((one) => one.exposed).length;
  return [
    crumb,
    h("div", { class: "title" }, h("h1", { tabindex: "-1" }, words(name)), chip(found.healthy ? "healthy" : "down")),
    found.problem ? h("p", { class: "wrong" }, words(found.problem, 400)) : null,
    facts([
      [t("kind"), h("bdi", null, found.kind)],
      [t("exposed_to_peers"), t("shown_of_n_capability", { shown, n: own.length })],
      [t("left_out_2"), found.skipped.length ? found.skipped.map((one) => h("div", null, words(one, 200))) : null],
    ]),
    section(t("capabilities"), own.length ? own.map((one, at) => card(one, at, tools)) : h("p", { class: "empty" }, t("it_offers_no_capability_now"))),
  ];
}

function card(one, at, tools) {
  const path = `/v1/capabilities/${encodeURIComponent(one.name)}`;
  const chips = [chip(one.exposed ? "exposed" : "not exposed", one.exposed ? "good" : "calm"), one.exposed_to.length ? [" ", chip(t("exposed_to_peers_2", { peers: one.exposed_to.join(t("comma_2")) }), "good")] : null, " "];
  const toggle = one.exposed
    ? action(t("hide"), { id: `toggle-${one.name}`, about: one.name, path: `${path}/hide`, done: t("name_is_hidden_from_peers", { name: one.name }) }, tools)
    : action(t("expose"), { id: `toggle-${one.name}`, about: one.name, path: `${path}/expose`, done: t("name_is_exposed_to_peers", { name: one.name }) }, tools);
  return capability(one, `try-${at}`, { chips, more: h("p", { class: "actions" }, toggle), path: `${path}/test`, body: (input) => `{"input": ${input}}` });
}
