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

        Usually one. Two habits of the official SDK are tolerated: as requester it
        begins with 1, and as provider it answers 2 to any number (WIRE row 37).
        """
        if self._last is None:
            return (0, 1)
        if self._last == 0 and self._role is Role.REQUESTER:
            return (1, 2)
        return (self._last + 1,)

    def receive(self, number: int) -> bool:
        """Note the peer's number; return whether it is an expected one."""
        if number not in self.expected:
            return False
        self._last = number
        return True

    def send(self) -> int:
        """Note and return the number of our next message."""
        if self._last is not None:
            self._last += 1
        else:
            # A provider that refuses an invalid first message answers as if that had 0.
            self._last = 0 if self._role is Role.REQUESTER else 1
        return self._last
