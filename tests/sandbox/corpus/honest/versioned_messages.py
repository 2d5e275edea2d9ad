# kind: versioned messages with upgrade steps
"""Messages of versions 1 to 3; older ones are upgraded step by step."""

from __future__ import annotations

import json
from typing import Any, Callable

CURRENT = 3
Message = dict[str, Any]
Upgrade = Callable[[Message], Message]
_UPGRADES: dict[int, Upgrade] = {}


class VersionError(Exception):
    def __init__(self, version: Any, supported: range = range(1, CURRENT + 1)) -> None:
        first, *_, last = supported
        super().__init__(f"version {version} is not in {first}..{last}")


def upgrades(version: int) -> Callable[[Upgrade], Upgrade]:
    """Register a function that upgrades from `version` to the next."""

    def register(function: Upgrade) -> Upgrade:
        _UPGRADES[version] = function
        return function

    return register


@upgrades(1)
def _split_name(message: Message) -> Message:
    first, _, last = message.pop("name", "").partition(" ")
    return message | {"firstName": first, "lastName": last}


@upgrades(2)
def _nest_contact(message: Message) -> Message:
    contact = {key: message.pop(key) for key in ("email", "phone") if key in message}
    return {**message, "contact": contact}


def decode(data: bytes) -> Message:
    message: Message = json.loads(data)
    version = message.pop("version", 1)
    if type(version) is not int or not 1 <= version <= CURRENT:
        raise VersionError(version)
    while version < CURRENT:
        message = _UPGRADES[version](message)
        version += 1
    return message


def encode(message: Message, peer_version: int = CURRENT) -> bytes:
    body = dict(message)
    if peer_version < 3:
        body.update(body.pop("contact", {}))
    if peer_version < 2:
        body["name"] = f"{body.pop('firstName')} {body.pop('lastName')}".strip()
    return json.dumps({"version": peer_version, **body}).encode()
