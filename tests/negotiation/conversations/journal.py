"""Notes on a conversation of two sides: the facts that rules are checked against."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from negotiation.errors import FailureKind
from tests.negotiation.conversations.letters import Letter


@dataclass(slots=True)
class Tally:
    """Counts over many conversations, for the line that a long run prints."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    "How often, by group and name."

    def count(self, group: str, name: str, by: int = 1) -> None:
        """Count one thing."""
        self.counts[group, name] += by

    def total(self, group: str) -> int:
        """Return the sum of a group."""
        return sum(n for (one, _), n in self.counts.items() if one == group)

    def lines(self) -> list[str]:
        """Return one line for each group, its most frequent names first."""
        groups = sorted({group for group, _ in self.counts})
        return [f"{group}: {self.total(group)} ({self._of(group)})" for group in groups]

    def _of(self, group: str) -> str:
        names = [
            (name, n) for (one, name), n in self.counts.most_common() if one == group
        ]
        return ", ".join(f"{name} {n}" for name, n in names)


class Journal:
    """The facts of one conversation."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        # Of the present connection.
        self.forged_turns = 0
        self.forged_cases = 0
        self.offered: str | None = None
        self.declined = False
        self.agreements: dict[int, str] = {}
        self.cases: dict[int, str | None] = {}
        # Of all.
        self.texts: dict[str, str] = {}
        self.decoded = 0
        self.last_end = "nothing began"

    @property
    def man_in_the_middle(self) -> bool:
        """Whether enough was forged to make both sides believe different things.

        One forged turn never is. Two can be: a candidate and the peer's word on it, and
        who can do that on an encrypted channel is the peer.
        """
        return self.forged_turns > 1

    def connected(self) -> None:
        """Begin a new page for a new connection."""
        self.forged_turns = self.forged_cases = 0
        self.offered, self.declined = None, False
        self.agreements.clear()
        self.cases.clear()
        self.tally.count("connections", "opened")

    def answered(self, offered: str | None, confirmed: str | None) -> None:
        """Note what the provider says to the offered hash (ANP-86, ANP-87)."""
        assert confirmed in {None, offered}
        # A liar's offer is known only here.
        self.offered = offered
        self.declined = offered is not None and confirmed is None
        said = "declined" if self.declined else "confirmed"
        self.tally.count("hellos", "nothing offered" if offered is None else said)

    def bound(self, index: int, digest: str, *, agreed: bool) -> None:
        """Note that a side considers its channel bound to `digest`."""
        if not agreed:
            assert digest == self.offered, "bound to a hash that was not offered"
            assert not self.declined, "bound to a hash that was declined"
        self.tally.count("channels of a side bound by", _way(agreed=agreed))

    def kept(self, index: int, text: str, digest: str) -> None:
        """Note that a side stores an agreement."""
        assert self.texts.setdefault(digest, text) == text, "two texts for one hash"
        self.agreements[index] = digest
        self.tally.count("negotiations of a side", "agreed")
        self.last_end = "agreed"
        both = set(self.agreements.values())
        if self.man_in_the_middle:
            self.tally.count("agreed with two or more forged turns", _same(both))
        else:
            assert len(both) == 1, "two sides agreed on different texts"

    def failed(self, kind: FailureKind) -> None:
        """Note that a side ends a negotiation without an agreement."""
        self.tally.count("negotiations of a side", str(kind))
        self.last_end = str(kind)

    def read(self, digest: str, letter: Letter, *, held_by_both: bool) -> None:
        """Note that a side decodes application data with its half for `digest`."""
        if letter.forged or letter.encoded_under is None:
            return
        self.decoded += 1
        self.tally.count("application messages", "decoded")
        if self.man_in_the_middle:
            return
        assert letter.encoded_under == digest, "decoded under another document"
        assert held_by_both, "decoded under a document that one side does not hold"

    def tested(self, index: int, text: str | None) -> None:
        """Note that test cases were agreed, or that they were skipped."""
        self.cases[index] = text
        self.tally.count("test cases", "skipped" if text is None else "agreed")
        if not self.forged_cases:
            self.compare_cases()

    def compare_cases(self) -> None:
        """Assert that there are not two sets of test cases.

        With one forged message this holds when all was said: test cases have no numbers
        (ANP-Q9), so both sides may agree for a moment before one takes its word back.
        """
        texts = {one for one in self.cases.values() if one is not None}
        assert self.forged_cases > 1 or len(texts) <= 1, "two sets of test cases"


def _same(digests: set[str]) -> str:
    return "same text" if len(digests) == 1 else "different texts"


def _way(*, agreed: bool) -> str:
    return "negotiation" if agreed else "hello"
