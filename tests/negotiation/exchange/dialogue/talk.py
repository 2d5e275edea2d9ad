"""Short words for the tests of dialogues: messages, what was sent, what was told."""

from __future__ import annotations

import json
from typing import Any

from negotiation.exchange.dialogue.machine import Dialogue
from negotiation.exchange.events import DialogueEvent
from negotiation.exchange.limits import DialogueLimits
from negotiation.need import Role

ALL = frozenset(
    {"testCasesNegotiation", "fixErrorNegotiation", "naturalLanguageNegotiation"}
)


def written(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False).encode()


GENERATED = written({"action": "codeGeneration", "status": "generated"})
FAILED = written({"action": "codeGeneration", "status": "error"})


def cases(status: str, text: str = "", summary: str = "") -> bytes:
    return written(
        {
            "action": "testCasesNegotiation",
            "testCases": text,
            "modificationSummary": summary,
            "status": status,
        }
    )


def fix(status: str, text: str) -> bytes:
    return written(
        {"action": "fixErrorNegotiation", "errorDescription": text, "status": status}
    )


def asked(kind: str, message_id: str, text: str) -> bytes:
    return written(
        {
            "action": "naturalLanguageNegotiation",
            "type": kind,
            "messageId": message_id,
            "message": text,
        }
    )


def dialogue(
    role: Role = Role.REQUESTER, common: frozenset[str] = ALL, **limits: Any
) -> Dialogue:
    return Dialogue(role, DialogueLimits(**limits), common=common, now=0.0)


def events(machine: Dialogue) -> list[DialogueEvent]:
    return list(iter(machine.next_event, None))


def sent(machine: Dialogue) -> list[dict[str, Any]]:
    return [json.loads(data) for data in machine.messages_to_send()]
