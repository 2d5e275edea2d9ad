"""Errors of sealed groups, and what a member notices about its hub."""

from __future__ import annotations

from enum import StrEnum


class SealingFault(StrEnum):
    """Reasons to refuse what came, or to send nothing."""

    INVALID = "invalid"
    "It is not formed as it has to be."

    FORGED = "forged"
    "Its signature is not by whom it names, or it was changed on its way."

    REPEATED = "repeated"
    "The same was taken before; an honest hub repeats after a break, too."

    GAP = "gap"
    "An entry of the membership is missing before this one."

    TAKEN = "taken"
    """Another entry has its place: two admins changed members at a time, and the one
    that came later has to sign anew."""

    FORK = "fork"
    "It contradicts what the hub showed before, or showed to others."

    GHOST = "ghost"
    "It is by an agent that no admin made a member."

    NOT_ALLOWED = "not_allowed"
    "It changes members, and is by somebody who may not."

    NOT_MEMBER = "not_member"
    "We are no member (any more)."

    NO_KEY = "no_key"
    "The sender's keys are not here yet."

    OLD = "old"
    "It is of an epoch whose keys are deleted, or behind too many missing messages."


class SealingError(Exception):
    """Something is refused and changes nothing; the text is for people."""

    def __init__(self, code: SealingFault, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class Suspicion(StrEnum):
    """Oddities of an authentic message that honest members and hubs do not cause."""

    GAP = "gap"
    "Messages of this sender before this one are missing."

    REORDERED = "reordered"
    "The message comes after later ones of its sender."

    UNSEEN = "unseen"
    "Its sender has seen messages that were not delivered to us."

    FORK = "fork"
    "Its sender was shown other messages, or another order."

    UNREADABLE = "unreadable"
    "Its sender signed it and did not encrypt it under its own chain key."
