"""Letters between two simulated sides, and the link that carries them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from anp.wire.frames import Frame, ProtocolType, encode_frame

MAX_WAITING: Final = 64
"Letters that a fault may pile up for one side; honest sides never come near."


class Sort(Enum):
    """What a letter is, below the encryption."""

    HELLO = auto()
    "One message of the signed handshake."

    FRAME = auto()
    "The plaintext of one encrypted message."

    CLOSE = auto()
    "The other side closed the channel."


@dataclass(frozen=True, slots=True)
class Letter:
    """One message under way."""

    sort: Sort
    "What it is."

    data: bytes = b""
    "Its bytes, a frame with its header."

    name: str = ""
    "Message id of its envelope."

    encoded_under: str | None = None
    "Hash of the document whose half made application data; test knowledge."

    forged: bool = False
    "Whether it is not, or no longer, what a side has sent; test knowledge."


def framed(kind: ProtocolType, data: bytes, name: str, under: str | None) -> Letter:
    """Return the letter with one frame in it."""
    frame = encode_frame(Frame(kind, data))
    return Letter(Sort.FRAME, frame, name, under)


class Condition(Enum):
    """What becomes of a letter that is sent."""

    UP = auto()
    SILENT = auto()
    "The link is broken, and nobody was told: letters vanish."

    DOWN = auto()
    "The link is broken and sending says so."


class Link:
    """Two queues, one towards each side."""

    def __init__(self) -> None:
        self.condition = Condition.UP
        self.lossy = False
        self.towards: tuple[deque[Letter], deque[Letter]] = (deque(), deque())

    def send(self, letter: Letter, *, towards: int) -> bool:
        """Carry a letter; return False when the sender learns that this failed."""
        if self.condition is Condition.UP:
            self.towards[towards].append(letter)
        return self.condition is not Condition.DOWN

    def lose(self, towards: int, position: int) -> None:
        """Lose one letter without a trace."""
        queue = self.towards[towards]
        if queue:
            self.lossy = True
            del queue[position % len(queue)]

    def repeat(self, towards: int, position: int) -> None:
        """Deliver one letter once more, at the end of the queue."""
        queue = self.towards[towards]
        if queue and len(queue) < MAX_WAITING:
            queue.append(queue[position % len(queue)])

    def reorder(self, towards: int, position: int) -> None:
        """Let one letter overtake all before it."""
        queue = self.towards[towards]
        if queue:
            chosen = queue[position % len(queue)]
            del queue[position % len(queue)]
            queue.appendleft(chosen)

    def alter(self, towards: int, position: int, data: bytes) -> None:
        """Change the bytes of one letter."""
        queue = self.towards[towards]
        if queue:
            position %= len(queue)
            queue[position] = replace(queue[position], data=data, forged=True)

    def inject(self, letter: Letter, *, towards: int) -> None:
        """Deliver a letter that nobody has sent, before all others."""
        if self.condition is Condition.UP and len(self.towards[towards]) < MAX_WAITING:
            self.towards[towards].appendleft(replace(letter, forged=True))
