"""The behaviour of a simulated side: its mind, its code and its manners."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from negotiation.mind import Accept, Counter, Reject, Verdict


class Last(StrEnum):
    """What a mind says when it has countered often enough."""

    ACCEPT = "accept"
    REJECT = "reject"
    FAIL = "fail"
    OWN = "own"
    "Counters with its own candidate once more."

    ECHO = "echo"
    "Counters with the peer's candidate, word for word."


@dataclass(frozen=True, slots=True)
class Temper:
    """Everything that a side decides by itself on one connection."""

    proposal: str | None = "# Need\nadd two numbers\n"
    "First candidate; blank is nothing to propose, None is a mind that fails."

    counters: int = 0
    "Candidates of the peer that are countered with a new one first."

    last: Last = Last.ACCEPT
    "What comes then."

    ahead: bool = True
    "Whether a half is ready before its candidate is accepted."

    eager: bool = False
    "Whether a half is even ready for a candidate that is then countered."

    codes: bool = True
    "Whether a half can be made at all."

    flaws: int = 0
    "Application messages that are encoded wrongly until the half is repaired."

    admits: bool = True
    "Whether a fault of ours is admitted."

    repairs: bool = True
    "Whether a repair succeeds."

    pace: float = 0.0
    "Seconds that each thought takes."

    def judge(self, candidate: str, own: str, number: int) -> Verdict | None:
        """Return the verdict on a candidate, or None for a mind that fails.

        Args:
            own: Our newest candidate, or nothing.
            number: How many candidates were judged before.
        """
        if number < self.counters:
            return Counter(f"{candidate[:60]}\n- term {number}\n", "one more term")
        match self.last:
            case Last.ACCEPT:
                return Accept()
            case Last.REJECT:
                return Reject("nothing of ours does this")
            case Last.OWN:
                return Counter(own or "# Need\nour own words\n", "")
            case Last.ECHO:
                return Counter(candidate, "the same again")
            case Last.FAIL:
                return None


WILLING = Temper()
"Accepts the first candidate and makes no mistakes."
