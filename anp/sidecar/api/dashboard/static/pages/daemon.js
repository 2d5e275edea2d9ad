// This daemon: attachments and their health, capabilities, the sandbox, the doctor.
import { get, getHealth } from "../api.js";
import { chip, facts, h, page, section } from "../dom.js";
import { copyable, number, when } from "../format.js";
import { table } from "../listing.js";
import { block, words } from "../peertext.js";
import { parts, t, word } from "../texts.js";
import { hints } from "../trial.js";

export async function show(_, { watch, put }) {
  const draw = async () => {
    const [info, { capabilities }] = await Promise.all([get("/v1/info"), get("/v1/capabilities")]);
    const health = await getHealth();
    return page(
      t("daemon"),
      facts([
        [t("address_for_peers"), h("span", { class: "copyline" }, h("code", { class: "wrap" }, info.address), copyable(info.address))],
        [t("home"), h("code", { class: "wrap" }, info.home)],
        [t("started"), when(info.started)],
        [t("version"), info.version],
        [t("decided_by"), word(info.decided_by)],
      ]),
      section(t("health"), partsOf(health)),
      section(t("attachments"), h("p", { class: "note" }, t("on_the_page_of_an_attachment_you")), table(t("attachments"), [t("name"), t("kind"), t("health"), t("capabilities"), t("exposed")],
        info.attachments.map((one) => [
          h("a", { class: "first", href: `#/daemon/${encodeURIComponent(one.name)}` }, words(one.name)), h("bdi", null, one.kind),
          [chip(one.healthy ? "healthy" : "down"), one.problem ? h("div", { class: "note" }, words(one.problem)) : null],
          number(one.capabilities), one.expose.length ? one.expose.map((name) => [name === "*" ? t("all_2") : h("code", null, words(name)), " "]) : t("nothing"),
        ]), t("nothing_is_attached_attach_your_agent_with"), { id: "attachments", filters: [1, 2] })),
      section(t("capabilities"), table(t("capabilities"), [t("name"), t("description"), t("exposed_to_peers"), t("hints"), t("schemas")],
        capabilities.map((one) => [
          h("code", null, words(one.name)), words(one.description, 160), one.exposed ? chip("exposed", "good") : one.exposed_to.length ? h("span", { class: "chip good" }, t("exposed_to_peers_2", { peers: one.exposed_to.join(t("comma_2")) })) : chip("not exposed"),
          hints(one),
          h("details", null, h("summary", null, t("show")), block(JSON.stringify({ input: one.input_schema, output: one.output_schema }, null, 2), { label: t("schemas_of_name", { name: one.name }) })),
        ]), t("there_are_no_capabilities_because_nothing_is"), { id: "capabilities", filters: [2] })),
      section(t("sandbox_level", { level: word(info.sandbox.level) }), table(t("layers_of_the_sandbox"), [t("layer"), t("state"), t("reason")],
        info.sandbox.layers.map((one) => [h("bdi", null, one.name), one.active ? chip("layer_active", "good") : chip("off", "calm"), one.reason ? words(one.reason) : "–"]), "")),
    );
  };
  watch(["attachment"], async () => put(await draw()));
  return draw();
}

function partsOf(health) {
  const rows = Object.entries(health.parts ?? {}).map(([name, part]) => [word(name), chip(part.state === "ok" ? "part_ok" : part.state, part.state === "ok" ? "good" : undefined), words(part.text)]);
  return [
    table(t("parts_of_the_daemon"), [t("part"), t("state"), t("finding")], rows, t("the_daemon_reported_no_parts")),
    h("p", { class: "note" }, parts("type_command_in_a_terminal_for_all", { command: h("code", null, "anpd doctor") })),
  ];
}
