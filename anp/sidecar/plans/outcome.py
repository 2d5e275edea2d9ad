"""Candidates for the parts of a plan, and how a part ended at one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anp.interaction.chunks import join_parts
from anp.interaction.elements import Message, Part
from anp.interaction.states import TaskState
from anp.sidecar.plans.group_offer import GroupOffer
from anp.sidecar.tasks.known import KnownTask


@dataclass(frozen=True, slots=True)
class PartOffer:
    """One candidate of a part."""

    address: str
    capability: str


@dataclass(frozen=True, slots=True)
class PartOutcome:
    """The end of one part."""

    state: str
    code: str = ""
    reason: str = ""
    known: KnownTask | None = None
    "The last task for it; None when none was begun."

    offer: GroupOffer | None = None
    "The offer to a group, if that is how it was done."

    passed: tuple[dict[str, str], ...] = ()
    "The candidates before that did not take it, with their reasons."

    @property
    def may_have_run(self) -> bool:
        """True if the last candidate, or a member of the group, may have done it."""
        if self.offer is not None:
            change = self.offer.change
            return change is not None and (
                change.may_have_run or change.state == TaskState.COMPLETED
            )
        if self.known is None:
            return False
        return self.state == TaskState.COMPLETED or self.known.task.may_have_run

    @property
    def is_handed_back(self) -> bool:
        """True if no peer did the part and one of them handed the part back."""
        said = self.known is not None or self.offer is not None
        asked = said or any(one["executor"] for one in self.passed)
        return self.state == TaskState.REJECTED and asked

    def passed_by(self, offer: PartOffer) -> dict[str, str]:
        """Return it as that of a candidate after which another one is asked."""
        return {
            "peer": offer.address,
            "executor": "" if self.known is None else self.known.task.executor,
            "state": self.state,
            "code": self.code,
            "reason": self.reason[:500],
        }


# The contents that one part of a plan gave, put together for the whole.


def contents_of(messages: Sequence[Message]) -> list[Part]:
    """Return the contents of a part's results, without the files.

    A file stays with the task that it came for, whose id the message about it has.

    Args:
        messages: The results in the order in which they came, chunks in any.
    """
    by_message: dict[str, list[Message]] = {}
    for message in messages:
        by_message.setdefault(message.id, []).append(message)
    found: list[Part] = []
    for chunks in by_message.values():
        chunks.sort(key=lambda one: 0 if one.chunk is None else one.chunk.index)
        found += join_parts(part for one in chunks for part in one.parts)
    return [part for part in found if not part.is_file]
