"""Faults at a step of a conversation, apart from those of the two sides' minds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hypothesis import strategies as st

from tests.negotiation.conversations.conversation import Conversation
from tests.negotiation.conversations.forging import CHANGES, LIES, Change, Lie, Raw
from tests.negotiation.conversations.letters import Sort


@dataclass(frozen=True, slots=True)
class Break:
    """The link breaks; see `Conversation.break_link`."""

    silent: bool = True
    towards: int = 0
    last: int = 0
    unaware: int | None = None
    crash: int | None = None
    again: int | None = None
    "Turns of the connection that follows at once, if one does."

    def strike(self, talks: Conversation, index: int) -> None:
        """Break the link, and perhaps connect again."""
        if not talks.up:
            return
        talks.break_link(
            silent=self.silent,
            towards=self.towards,
            last=self.last,
            unaware=self.unaware,
            crash=self.crash,
        )
        if self.again is not None and talks.may_connect:
            talks.connect()
            talks.talk(self.again)


@dataclass(frozen=True, slots=True)
class Move:
    """A letter is lost, repeated, or overtakes others."""

    how: str
    position: int

    def strike(self, talks: Conversation, index: int) -> None:
        """Touch the letters towards a side, if there are any."""
        link = talks.link
        if link.towards[index]:
            talks.tally.count("faults of the link", self.how)
            moves = {"lose": link.lose, "repeat": link.repeat, "reorder": link.reorder}
            moves[self.how](index, self.position)


@dataclass(frozen=True, slots=True)
class Alter:
    """The bytes of a letter change."""

    change: Change
    position: int

    def strike(self, talks: Conversation, index: int) -> None:
        """Change a letter towards a side, if there is one."""
        queue = talks.link.towards[index]
        if not queue:
            return
        letter = queue[self.position % len(queue)]
        if letter.sort is not Sort.CLOSE:
            talks.tally.count("faults of the link", "alter")
            talks.link.alter(index, self.position, self.change.apply(letter.data))


@dataclass(frozen=True, slots=True)
class Inject:
    """Somebody says what a side did not say."""

    lie: Lie | Raw
    times: int = 1

    def strike(self, talks: Conversation, index: int) -> None:
        """Put a letter before all others towards an honest side."""
        if talks.liar in {None, 1 - index}:
            talks.tally.count("faults of the link", "inject")
            for _ in range(self.times):
                talks.link.inject(self.lie.letter(talks.wire), towards=index)


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing moves for a while."""

    seconds: float
    timers: bool = True
    "Whether timers fire; a shell whose timer is late must not change the rules."

    def strike(self, talks: Conversation, index: int) -> None:
        """Let time pass."""
        if self.timers:
            talks.wait(self.seconds)
        else:
            talks.now += self.seconds


@dataclass(frozen=True, slots=True)
class Owner:
    """An owner ends a negotiation, or a mind asks something in words."""

    cancels: bool

    def strike(self, talks: Conversation, index: int) -> None:
        """Let one side do so."""
        side = talks.sides[index]
        if self.cancels:
            side.cancel(talks.now)
        else:
            side.ask(talks.now)
        talks.check()


Fault = Break | Move | Alter | Inject | Wait | Owner
"Anything of these."

SIDES: Final = st.sampled_from([0, 1])
ONE: Final = st.sampled_from([None, None, 0, 1])
POSITIONS: Final = st.sampled_from([0, 0, 1, 2])

BREAKS: Final = st.builds(
    Break,
    silent=st.booleans(),
    towards=SIDES,
    last=st.integers(0, 4),
    unaware=ONE,
    crash=ONE,
    again=st.none() | st.integers(0, 12),
)
MOVES: Final = st.builds(
    Move, st.sampled_from(["lose", "repeat", "repeat", "reorder"]), POSITIONS
)
WAITS: Final = st.builds(
    Wait, st.sampled_from([0.5, 16.0, 50.0, 50.0, 61.0, 130.0]), st.booleans()
)

FAULTS: Final[st.SearchStrategy[Fault]] = st.one_of(
    BREAKS,
    MOVES,
    st.builds(Alter, CHANGES, POSITIONS),
    st.builds(Alter, CHANGES, POSITIONS),
    st.builds(Inject, LIES),
    st.builds(Inject, LIES, st.sampled_from([1, 1, 2, 6])),
    WAITS,
    st.builds(Owner, st.booleans()),
)

STEPS: Final = st.tuples(st.integers(0, 6), FAULTS)
PLANS: Final[st.SearchStrategy[list[tuple[int, Fault]]]] = st.one_of(
    st.just([]),
    st.lists(STEPS, min_size=1, max_size=2),
    st.lists(STEPS, min_size=2, max_size=5),
)
"Faults to come, each so many deliveries after the one before."
