"""The card of this daemon: what it can do, for callers of A2A (A2A-8 to A2A-10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from anp.protocols.a2a.words import INTENT_URI, A2aVersion
from anp.version import daemon_version
from negotiation.need import Capability

__all__ = ["CardFacts", "make_card"]

JSON_RPC: Final = "JSONRPC"
_INTERFACES: Final = (
    (JSON_RPC, str(A2aVersion.V10)),
    ("HTTP+JSON", str(A2aVersion.V10)),
    (JSON_RPC, str(A2aVersion.V03)),
)
MODES: Final = ("application/json", "text/plain")
MORE_MODES: Final = (*MODES, "application/octet-stream")


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFacts:
    """What a card says besides its skills."""

    name: str
    description: str

    url: str
    "Address of the JSON-RPC binding, for both versions."

    is_open: bool = False
    "No token is asked for."


def make_card(facts: CardFacts, capabilities: Sequence[Capability]) -> dict[str, Any]:
    """Return the card of both versions: each reads its own fields and no others.

    The schemas of the skills stand in the intent extension (INT-3 to INT-5).
    """
    return {
        "name": facts.name,
        "description": facts.description,
        "version": daemon_version(),
        # Read by 1.0.
        "supportedInterfaces": [
            {"url": facts.url, "protocolBinding": binding, "protocolVersion": version}
            for binding, version in _INTERFACES
        ],
        # Read by 0.3.
        "protocolVersion": "0.3.0",
        "url": facts.url,
        "preferredTransport": JSON_RPC,
        "capabilities": {
            "streaming": True,
            "pushNotifications": True,
            "extensions": [_intents(capabilities)],
        },
        "defaultInputModes": list(MORE_MODES),
        "defaultOutputModes": list(MORE_MODES),
        "skills": [_skill(one) for one in capabilities],
        **_security(facts),
    }


def _security(facts: CardFacts) -> dict[str, Any]:
    if facts.is_open:
        return {}
    scheme = {"scheme": "bearer"}
    return {
        # 1.0 puts a scheme under the name of its kind, 0.3 has a type.
        "securitySchemes": {
            "token": {
                "type": "http",
                **scheme,
                "httpAuthSecurityScheme": scheme,
            }
        },
        "securityRequirements": [{"schemes": {"token": {"list": []}}}],
        "security": [{"token": []}],
    }


def _skill(capability: Capability) -> dict[str, Any]:
    attachment, _, short = capability.name.partition(".")
    return {
        "id": capability.name,
        "name": short or capability.name,
        "description": capability.description or short,
        "tags": [attachment],
        "examples": [],
    }


def _intents(capabilities: Sequence[Capability]) -> dict[str, Any]:
    return {
        "uri": INTENT_URI,
        "description": "Calls a skill by name with its arguments.",
        "required": False,
        "params": {
            "skills": [
                {"id": one.name, "inputSchema": one.input_schema}
                for one in capabilities
                if isinstance(one.input_schema, dict)
            ]
        },
    }
