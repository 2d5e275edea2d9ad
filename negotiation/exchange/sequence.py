"""The counter of `sequenceId` that both directions share (ANP-21, ANP-22, ANP-Q4)."""

from __future__ import annotations

from negotiation.need import Role

__all__ = ["SequenceCounter"]


class SequenceCounter:
    """Gives our numbers and checks the peer's; a refused number changes nothing."""

    def __init__(self, role: Role) -> None:
        self._role = role
        self._last: int | None = None

    @property
    def expected(self) -> tuple[int, ...]:
        """The numbers that the peer's next message may have.

        One, but for two habits of the official SDK: as requester it opens with 1, and
        as provider it answers 2 whatever number came in (WIRE row 37).
        """
        if self._last is None:
            return (0, 1)
        if self._last == 0 and self._role is Role.REQUESTER:
            return (1, 2)
        return (self._last + 1,)

    def receive(self, number: int) -> bool:
        """Take the peer's number; tell whether it is one of the expected."""
        if number not in self.expected:
            return False
        self._last = number
        return True

    def send(self) -> int:
        """Take and return the number of our next message."""
        if self._last is not None:
            self._last += 1
        else:
            # A provider that refuses a bad first message answers the 0 it should be.
            self._last = 0 if self._role is Role.REQUESTER else 1
        return self._last
