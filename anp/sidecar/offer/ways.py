"""The ways by which a peer can reach a capability, and the decision on each. Pure.

A way that is built later adds its member to `WayIn` and its row to `WAYS`; every call
of a capability names its way, and `tests/anp/sidecar/offer` walks the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import Final


class WayIn(StrEnum):
    """A way by which a capability can be reached."""

    AGREEMENT = "agreement"
    "A call under an agreement, or by the hash of its protocol text."

    URI = "uri"
    "A call by the URI of a protocol whose code is a half."

    ENVELOPE = "envelope"
    "A message of the envelope, or of another protocol that has no half."

    NATURAL_LANGUAGE = "natural_language"
    "A text in words (PT=10)."

    VERIFICATION = "verification"
    "A test request (PT=11), or the recording of a fixture for one."

    REPAIR = "repair"
    "A call that a repaired half makes while it answers a former request again."

    TASK = "task"
    "A task of a session, whatever protocol carries it."

    A2A = "a2a"
    "A task of a caller of the A2A face."

    GROUP = "group"
    "A message in a group."

    OWNER = "owner"
    "The owner's own trial of an exposed capability; there is no peer."


class Approval(Enum):
    """The subject of the owner's approval, where the setting asks for one."""

    NONE = "nothing"
    PROTOCOL = "the protocol text, once for the agreement"
    CAPABILITY = "this capability for this peer"


class Passage(StrEnum):
    """The result of the gate's decision."""

    OPEN = "runs"
    ASK = "asks the owner"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class WayRule:
    """The row of one way in the table."""

    approval: Approval
    "The subject of the owner's approval, where `negotiation.approve` asks for one."

    read_only: bool = False
    "True when only a capability that is marked read-only may run."

    repeatable: bool = False
    "True when only a capability that is read-only or idempotent may run."


WAYS: Final[Mapping[WayIn, WayRule]] = MappingProxyType(
    {
        WayIn.AGREEMENT: WayRule(approval=Approval.PROTOCOL),
        WayIn.URI: WayRule(approval=Approval.PROTOCOL),
        WayIn.ENVELOPE: WayRule(approval=Approval.CAPABILITY),
        WayIn.NATURAL_LANGUAGE: WayRule(approval=Approval.CAPABILITY),
        WayIn.VERIFICATION: WayRule(approval=Approval.PROTOCOL, read_only=True),
        WayIn.REPAIR: WayRule(approval=Approval.PROTOCOL, repeatable=True),
        WayIn.TASK: WayRule(approval=Approval.CAPABILITY),
        WayIn.A2A: WayRule(approval=Approval.CAPABILITY),
        WayIn.GROUP: WayRule(approval=Approval.CAPABILITY),
        WayIn.OWNER: WayRule(approval=Approval.NONE),
    }
)
"The rule of each way."


def asks_owner(approve: str, *, side_effects: bool) -> bool:
    """Tell whether the setting asks the owner about something not approved so far.

    Args:
        approve: `negotiation.approve`.
        side_effects: A capability that is not marked read-only may run.
    """
    return approve in {"first-use", "always"} or (
        approve == "side-effects" and side_effects
    )


def decide(
    way: WayIn,
    approve: str,
    *,
    admitted: bool,
    exposed: bool,
    read_only: bool,
    repeatable: bool,
    approved: bool,
    named: bool = True,
    withdrawn: bool = False,
) -> Passage:
    """Decide about one call of a capability.

    Args:
        approve: `negotiation.approve`.
        admitted: The owner's policy lets this peer use us.
        exposed: The capability is exposed to this peer, attached and healthy.
        read_only: The capability is marked so.
        repeatable: It is marked read-only or idempotent.
        approved: The owner's word for it is there; on a way with a protocol it was
            asked for before the channel was bound.
        named: The peer named it, or the owner confirmed it for this need. Without that
            side effects wait for the owner, whatever the setting says.
        withdrawn: The owner revoked a protocol that called it, and is asked anew.
    """
    rule = WAYS[way]
    fits = (read_only or not rule.read_only) and (repeatable or not rule.repeatable)
    if not (admitted and exposed and fits):
        return Passage.REFUSED
    if way is WayIn.OWNER:
        return Passage.OPEN
    asks = asks_owner(approve, side_effects=not read_only) and not approved
    asks = asks or withdrawn or not (named or read_only)
    return Passage.ASK if asks else Passage.OPEN
