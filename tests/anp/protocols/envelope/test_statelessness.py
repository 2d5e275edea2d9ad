"""Each message of the envelope is handled without memory of those before it (ENV-3).

One thing is remembered: ids, so that nothing is processed twice (ENV-Q11). It makes no
difference to a message with an id of its own.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from anp.protocols.envelope import EnvelopeCode
from negotiation.consensus.written import CallCapability, WrittenLimits
from negotiation.need import Role
from tests.anp.protocols.envelope.talk import SHARED, Agent, message, without
from tests.clauses import clause

PAYLOADS: list[tuple[str, Any]] = [
    ("request", {"action": "shop.lookup", "parameters": {"sku": "A-1"}}),
    ("request", {"action": "shop.order", "parameters": {}}),
    ("request", {"action": "shop.unknown", "parameters": {}}),
    ("request", {"action": "discover", "parameters": {}}),
    ("request", {"action": "register", "parameters": {"capabilities": []}}),
    ("request", {"action": "unregister", "parameters": {}}),
    ("request", {"parameters": {}}),
    ("event", {"event_name": "restocked", "event_data": {"n": 1}}),
    ("event", {"event_name": ""}),
    ("error", {"code": "timeout", "message": "late"}),
    ("response", {"status": "success", "result": {}}),
    ("beat", {}),
]
MESSAGES = [
    message(kind, payload, message_id=f"m-{number}")
    for number, (kind, payload) in enumerate(PAYLOADS)
]


def provider(code: EnvelopeCode | None = None, seed: int = 0) -> Agent:
    limits = WrittenLimits(max_faults=1000, max_errors=1000)
    return Agent(Role.PROVIDER, code=code, limits=limits, offered=SHARED, seed=seed)


def outcome(agent: Agent, value: dict[str, Any]) -> list[Any]:
    """Return all that comes of a message, without the ids and times of answers."""
    agent.receive(value)
    found: list[Any] = []
    for event in agent.told():
        if isinstance(event, CallCapability):
            found.append((event.name, event.arguments))
            agent.answered(event.call_id, {"done": event.name})
        else:
            found.append(event)
    said = (without(one, "message_id") for one in agent.said())
    return found + [without(one, "timestamp") for one in said]


ALONE = {one["message_id"]: outcome(provider(), one) for one in MESSAGES}
"""The outcome of each for a side that has seen nothing before."""


@clause("ENV-3")
@given(st.lists(st.sampled_from(MESSAGES), unique_by=json.dumps))
def test_what_comes_of_a_message_does_not_depend_on_those_before_it(
    before: list[dict[str, Any]],
) -> None:
    agent = provider()
    for value in before:
        assert outcome(agent, value) == ALONE[value["message_id"]]


@clause("ENV-3")
def test_the_next_message_may_go_to_another_daemon_of_the_same_agent() -> None:
    # No memory is common: each has code of its own, as two daemons of a fleet have.
    for number, value in enumerate(MESSAGES):
        other = provider(EnvelopeCode(), seed=1000 * number)
        assert outcome(other, value) == ALONE[value["message_id"]]
