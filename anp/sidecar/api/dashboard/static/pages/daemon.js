// This daemon: attachments and their health, capabilities, the sandbox, the doctor.
import { get, getHealth } from "../api.js";
import { chip, facts, h, page, section, table } from "../dom.js";
import { copyable, number, when } from "../format.js";
import { block, words } from "../peertext.js";

export async function show(_, { watch, put }) {
  const draw = async () => {
    const [info, { capabilities }] = await Promise.all([get("/v1/info"), get("/v1/capabilities")]);
    const health = await getHealth();
    return page(
      "Daemon",
      facts([
        ["Address for peers", h("span", { class: "copyline" }, h("code", { class: "wrap" }, info.address), copyable(info.address))],
        ["Home", h("code", { class: "wrap" }, info.home)],
        ["Started", when(info.started)],
        ["Version", info.version],
        ["Decided by", info.decided_by],
      ]),
      section("Health", parts(health)),
      section("Attachments", h("p", { class: "note" }, "On the page of an attachment you expose, hide and try its capabilities."), table("Attachments", ["Name", "Kind", "Health", "Capabilities", "Exposed"],
        info.attachments.map((one) => [
          h("a", { class: "first", href: `#/daemon/${encodeURIComponent(one.name)}` }, words(one.name)), one.kind,
          [chip(one.healthy ? "healthy" : "down"), one.problem ? h("div", { class: "note" }, words(one.problem)) : null],
          number(one.capabilities), one.expose.length ? one.expose.map((name) => [name === "*" ? "all" : h("code", null, words(name)), " "]) : "nothing",
        ]), "Nothing is attached. Attach your agent with: anpd attach mcp -- COMMAND")),
      section("Capabilities", table("Capabilities", ["Name", "Description", "Exposed to peers", "Hints", "Schemas"],
        capabilities.map((one) => [
          h("code", null, words(one.name)), words(one.description, 160), one.exposed ? chip("exposed", "good") : one.exposed_to.length ? chip(`exposed to ${one.exposed_to.join(", ")}`, "good") : chip("not exposed"),
          [one.read_only ? "read-only" : "may have side effects", one.idempotent ? ", idempotent" : ""],
          h("details", null, h("summary", null, "Show"), block(JSON.stringify({ input: one.input_schema, output: one.output_schema }, null, 2), { label: `Schemas of ${one.name}` })),
        ]), "There are no capabilities, because nothing is attached.")),
      section(`Sandbox: ${info.sandbox.level}`, table("Layers of the sandbox", ["Layer", "State", "Reason"],
        info.sandbox.layers.map((one) => [one.name, one.active ? chip("active") : chip("off", "calm"), one.reason ? words(one.reason) : "–"]), "")),
    );
  };
  watch(["attachment"], async () => put(await draw()));
  return draw();
}

function parts(health) {
  const rows = Object.entries(health.parts ?? {}).map(([name, part]) => [name, chip(part.state), words(part.text)]);
  return [
    table("Parts of the daemon", ["Part", "State", "Finding"], rows, "The daemon reported no parts."),
    h("p", { class: "note" }, "Type ", h("code", null, "anpd doctor"), " in a terminal for all checks, each with the command that repairs a fault."),
  ];
}
