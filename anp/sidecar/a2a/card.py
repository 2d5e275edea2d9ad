"""The card of this daemon, or of one attachment, for callers (A2A-8 to A2A-10). Pure.

One object has the fields of both versions: each reads its own and no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from anp.protocols.a2a.intents import is_object_schema
from anp.protocols.a2a.modes import BINARY, JSON, TEXT, input_modes, output_modes
from anp.protocols.a2a.words import INTENT_URI, A2aError, A2aFault, A2aVersion
from anp.sidecar.a2a.door.callers import A2aCaller
from anp.sidecar.a2a.schemes import Schemes
from anp.sidecar.config.a2a import A2aConfig
from anp.sidecar.offer.gate import Gate
from anp.sidecar.offer.ways import WayIn
from anp.sidecar.tasks.choice import Reach
from anp.version import daemon_version
from negotiation.need import Capability

AGENTS: Final = "/agents/"
"Path below which each attachment is an agent of its own."

JSON_RPC: Final = "JSONRPC"
_INTERFACES: Final = (
    (JSON_RPC, str(A2aVersion.V10)),
    ("HTTP+JSON", str(A2aVersion.V10)),
    (JSON_RPC, str(A2aVersion.V03)),
)
MODES: Final = (JSON, TEXT, BINARY)


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFacts:
    """The facts on a card besides its skills."""

    name: str
    description: str

    url: str
    "Address of the daemon's agent, for both versions, without a slash at the end."

    schemes: Schemes = field(default_factory=Schemes)
    "Ways to say who calls; with none everybody is let in."

    provider: tuple[str, str] | None = None
    "Name and URL of the organisation that runs it."

    documentation_url: str | None = None
    icon_url: str | None = None

    extended: bool = True
    "A caller that is known may ask for a card of its own."


def make_card(
    facts: CardFacts, capabilities: Sequence[Capability], *, agent: str = ""
) -> dict[str, Any]:
    """Return a card.

    The schemas of the skills stand in the intent extension (INT-3 to INT-5).

    Args:
        agent: The attachment whose card it is; empty for the daemon's.
    """
    url = f"{facts.url}{AGENTS}{agent}" if agent else facts.url
    return {
        "name": f"{facts.name}: {agent}" if agent else facts.name,
        "description": facts.description,
        "version": daemon_version(),
        # Read by 1.0.
        "supportedInterfaces": [
            {"url": url, "protocolBinding": binding, "protocolVersion": version}
            for binding, version in _INTERFACES
        ],
        # Read by 0.3.
        "protocolVersion": "0.3.0",
        "url": url,
        "preferredTransport": JSON_RPC,
        "supportsAuthenticatedExtendedCard": facts.extended,
        "capabilities": {
            "streaming": True,
            "pushNotifications": True,
            "extendedAgentCard": facts.extended,
            "extensions": [_intents(capabilities)],
        },
        "defaultInputModes": list(MODES),
        "defaultOutputModes": list(MODES),
        "skills": [_skill(one, facts.schemes) for one in capabilities],
        **facts.schemes.to_card(),
        **_words(facts),
    }


def _words(facts: CardFacts) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if facts.provider is not None:
        organization, url = facts.provider
        found["provider"] = {"organization": organization, "url": url}
    if facts.documentation_url is not None:
        found["documentationUrl"] = facts.documentation_url
    if facts.icon_url is not None:
        found["iconUrl"] = facts.icon_url
    return found


def _skill(capability: Capability, schemes: Schemes) -> dict[str, Any]:
    attachment, _, short = capability.name.partition(".")
    return {
        "id": capability.name,
        "name": short or capability.name,
        "description": capability.description or short,
        "tags": list(dict.fromkeys((attachment, *capability.tags))),
        "examples": list(capability.examples),
        "inputModes": list(input_modes(capability)),
        "outputModes": list(output_modes(capability)),
        **schemes.to_skill(capability.name),
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


def card_faults(card: dict[str, Any]) -> list[str]:
    """Return what is wrong with a card of ours, one line each (INT-Q7).

    A card of others is read as it is; see the attachments of kind `a2a`.
    """
    skills = [one["id"] for one in card["skills"]]
    faults = [f"{name}: missing" for name in _NEEDED if not card.get(name)]
    faults += [f"skill {name}: listed twice" for name in _twice(skills)]
    faults += [
        f"skill {one['id']}: no {name}"
        for one in card["skills"]
        for name in ("name", "description", "tags")
        if not one.get(name)
    ]
    extensions = card["capabilities"]["extensions"]
    uris = [one["uri"] for one in extensions]
    faults += [f"extension {uri}: listed twice" for uri in _twice(uris)]
    for one in extensions:
        if one["uri"] == INTENT_URI:
            faults += _intent_faults(one.get("params"), skills)
    return faults + _scheme_faults(card)


_NEEDED: Final = (
    *("name", "description", "version", "url", "protocolVersion", "capabilities"),
    *("supportedInterfaces", "defaultInputModes", "defaultOutputModes"),
)
"Fields that 0.3 or 1.0 demands, besides skills, of which there may be none yet."


def _intent_faults(params: Any, skills: Sequence[str]) -> list[str]:
    if params is None:
        return []
    if not isinstance(params, dict) or not isinstance(params.get("skills"), list):
        return ["intents: params without skills"]
    named = [one["id"] for one in params["skills"]]
    faults = [
        f"intents: {name} is no skill of the card"
        for name in named
        if name not in skills
    ]
    faults += [f"intents: {name} is listed twice" for name in _twice(named)]
    faults += [
        f"intents: {one['id']} has no schema of an object"
        for one in params["skills"]
        if not is_object_schema(one.get("inputSchema"))
    ]
    return faults


def _scheme_faults(card: dict[str, Any]) -> list[str]:
    schemes = card.get("securitySchemes", {})
    used = {name for one in card.get("security", ()) for name in one}
    return [f"security: there is no scheme {name}" for name in used - schemes.keys()]


def _twice(names: Sequence[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


# The cards of this daemon: its own, one per attachment, and those of known callers.


class A2aCards:
    """Makes the cards of what is exposed at the moment."""

    def __init__(self, facts: CardFacts, gate: Gate) -> None:
        self._facts = facts
        self._gate = gate

    async def card(self, caller: A2aCaller | None, agent: str) -> dict[str, Any] | None:
        """Return the card that a caller may see; of an agent, None if there is none.

        Args:
            caller: None for everybody.
            agent: Name of an attachment; empty for the daemon.
        """
        peer = None if caller is None else caller.id
        reach = Reach() if caller is None else caller.reach
        skills = [
            one
            for one in self._gate.offered(WayIn.A2A, peer)
            if reach.has(one.name) and Reach(agent=agent).has(one.name)
        ]
        # Whether one is attached from which nothing is exposed is nobody's business.
        if agent and not skills:
            return None
        return make_card(self._facts, skills, agent=agent)

    async def extended(self, caller: A2aCaller) -> dict[str, Any]:
        """Return the card of a known caller.

        Raises:
            A2aError: Everybody is let in here, so that there is only one card.
        """
        found = await self.card(caller, caller.agent) if self._facts.extended else None
        if found is None:
            raise A2aError(A2aFault.EXTENDED_AGENT_CARD_NOT_CONFIGURED)
        return found


def facts_of(config: A2aConfig, url: str) -> CardFacts:
    """Return what the owner says in the card.

    Args:
        url: Where the face listens.
    """
    provider = None
    if config.provider is not None and config.provider_url is not None:
        provider = config.provider, config.provider_url
    return CardFacts(
        name=config.name,
        description=config.description,
        url=(config.public_url or url).rstrip("/"),
        schemes=Schemes(
            token=not config.open,
            scopes=None if config.issuer is None or config.open else config.scopes,
            token_url=config.token_url,
            authorization_url=config.authorization_url,
            openid_url=config.openid_url,
        ),
        provider=provider,
        documentation_url=config.documentation_url,
        icon_url=config.icon_url,
        extended=not config.open,
    )
