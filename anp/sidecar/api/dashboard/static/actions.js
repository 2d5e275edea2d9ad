// Actions of the owner: buttons that ask first where it matters, and say what came of it.
import { post } from "./api.js";
import { button, h } from "./dom.js";
import { shown } from "./peertext.js";
import { t } from "./texts.js";

// Sends one POST, draws the page anew, and says what came of it.
export async function act({ tell, reload }, path, body, done) {
  try {
    const said = await post(path, body);
    const later = said?.applied === "next negotiation" ? ` ${t("it_is_used_in_the_next_negotiation")}` : "";
    const text = (typeof done === "function" ? done(said) : done) + later;
    await reload();
    notice(text, "fine");
    tell(text);
    return true;
  } catch (problem) {
    notice(problem.message, "wrong");
    return false;
  }
}

export function notice(text, kind) {
  document.querySelectorAll(".toast").forEach((one) => one.remove());
  const toast = h("p", { class: `toast ${kind}`, role: kind === "wrong" ? "alert" : null }, shown(text), " ", button(t("close"), () => toast.remove(), "quiet"));
  document.body.append(toast);
}

// A button for one POST. Its `id` stays the same in the page that is drawn afterwards, so
// that the focus stays; `ask` is the question before it, if it is a dangerous one.
export function action(label, { id, path, body = {}, done, ask, kind, about }, tools) {
  let running = false;
  const control = button(label, async () => {
    if (running) return;
    const more = ask ? await asked(ask) : {};
    control.focus({ preventScroll: true });
    if (more === null) return;
    running = true;
    control.setAttribute("aria-busy", "true");
    await act(tools, path, { ...body, ...more }, done);
    control.removeAttribute("aria-busy");
    running = false;
  }, kind);
  control.id = id;
  if (about) control.setAttribute("aria-label", `${label} ${about}`);
  return control;
}

// Asks once. Returns null for no, else the fields to send.
function asked({ title, text, yes, reason }) {
  return new Promise((resolve) => {
    const field = reason ? h("input", { type: "text", id: "ask-reason", maxlength: "400" }) : null;
    const dialog = h(
      "dialog",
      { class: "ask", "aria-labelledby": "ask-title", "aria-describedby": "ask-text", onclose: () => (dialog.remove(), resolve(dialog.returnValue === "yes" ? (field ? { reason: field.value } : {}) : null)) },
      h("h2", { id: "ask-title" }, shown(title)),
      h("p", { id: "ask-text" }, text),
      field ? h("label", { class: "field" }, h("span", null, reason), field) : null,
      h("p", { class: "actions" }, h("button", { type: "button", autofocus: true, onclick: () => dialog.close() }, t("no_go_back")), button(yes, () => dialog.close("yes"), "danger")),
    );
    document.body.append(dialog);
    dialog.showModal();
  });
}

const NOTE = t("reason_for_your_own_records_optional");

export function revoke(hash, tools, { peer, label = t("revoke"), id = "revoke", about } = {}) {
  return action(label, {
    id,
    about,
    kind: "danger",
    path: `/v1/protocols/${hash}/revoke`,
    body: peer ? { peer } : {},
    ask: {
      title: peer ? t("revoke_this_protocol_for_this_peer") : t("revoke_this_protocol"),
      text: peer ? t("its_channels_with_this_peer_close_at") : t("its_channels_with_all_peers_close_at"),
      yes: t("yes_revoke_it"),
      reason: NOTE,
    },
    done: (said) => said.peer ? t("the_protocol_is_revoked_for_this_peer", { n: said.channels_closed }) : t("the_protocol_is_revoked_n_channel_was", { n: said.channels_closed }),
  }, tools);
}

export function block(did, tools) {
  return action(t("block_the_peer"), {
    id: "block-peer",
    kind: "danger",
    path: "/v1/peers/block",
    body: { peer: did },
    ask: {
      title: t("block_this_peer"),
      text: t("its_connections_close_at_once_calls_from"),
      yes: t("yes_block_it"),
    },
    done: t("the_peer_is_blocked"),
  }, tools);
}

export function allow(did, tools) {
  return action(t("allow_the_peer"), { id: "allow-peer", kind: "primary", path: "/v1/peers/allow", body: { peer: did }, done: t("the_peer_is_allowed") }, tools);
}
