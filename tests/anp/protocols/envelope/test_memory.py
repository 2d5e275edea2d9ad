"""The envelope's memory of a peer's messages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from anp.protocols.envelope import MAX_PEERS, EnvelopeCode
from anp.protocols.envelope.memory import MessageMemory, Seen
from negotiation.consensus.written import Parties, WrittenLimits
from negotiation.need import Role
from tests.anp.protocols.envelope.talk import (
    BOB,
    SHARED,
    Agent,
    calls_in,
    counting,
    message,
)
from tests.clauses import clause


@clause("ENV-Q11")
def test_the_oldest_ids_leave_at_the_limit_and_not_before() -> None:
    memory = MessageMemory(max_ids=3)
    for name in "abc":
        memory.take(name)
    assert memory.find("a") is not None
    memory.take("d")
    assert memory.find("a") is None
    assert len(memory) == 3


def test_what_is_worked_on_is_never_forgotten() -> None:
    memory = MessageMemory(max_ids=2)
    memory.open("work", "me")
    for number in range(10):
        memory.take(str(number))
    assert memory.find("work") is not None
    memory.answered("work", b"x", last=True)
    memory.take("a")
    memory.take("b")
    assert memory.find("work") is None


def test_answers_leave_before_their_ids() -> None:
    memory = MessageMemory(max_bytes=10)
    for name in "ab":
        memory.open(name, "me")
        memory.answered(name, b"12345", last=True)
    memory.open("c", "me")
    memory.answered("c", b"1", last=True)
    found = [memory.find(name) for name in "abc"]
    assert [one and one.answer for one in found] == [None, b"12345", b"1"]


def test_room_for_an_answer_costs_the_same_however_many_ids_are_kept() -> None:
    memory = MessageMemory(max_bytes=100)

    def answer(number: int) -> int:
        memory.open(str(number), "me")
        return calls_in(lambda: memory.answered(str(number), b"x" * 50, last=True))

    counts = [answer(number) for number in range(1_000)]
    assert counts[-1] <= counts[5] + 5


def test_an_answer_to_nothing_is_not_kept() -> None:
    memory = MessageMemory()
    memory.answered("x", b"1", last=True)
    memory.take("y")
    memory.answered("y", b"1", last=True)
    assert memory.find("x") is None
    found = memory.find("y")
    assert found is not None
    assert (found.seen, found.answer) == (Seen.TAKEN, None)


def test_the_end_of_a_channel_cuts_off_its_own_work_only() -> None:
    memory = MessageMemory()
    memory.open("a", "one")
    memory.open("b", "two")
    memory.end("one")
    states = [one.seen for name in "ab" if (one := memory.find(name))]
    assert states == [Seen.CUT_OFF, Seen.OPEN]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["take", "open", "work", "last"]),
            st.sampled_from("abcdefgh"),
            st.binary(max_size=8),
        ),
        max_size=60,
    )
)
def test_limits_hold_whatever_comes(steps: list[tuple[str, str, bytes]]) -> None:
    memory = MessageMemory(max_ids=4, max_bytes=16)
    open_now: set[str] = set()
    for step, name, data in steps:
        if step in ("take", "open"):
            if memory.find(name) is None and (step == "take" or len(open_now) < 3):
                memory.take(name) if step == "take" else memory.open(name, "me")
                open_now |= {name} if step == "open" else set()
        else:
            memory.answered(name, data, last=step == "last")
            open_now -= {name} if step == "last" else set()
        found = [one for key in "abcdefgh" if (one := memory.find(key))]
        assert len(memory) == len(found) <= 4
        assert sum(len(one.answer or b"") for one in found) <= 16
        assert all(memory.find(key) is not None for key in open_now)


def test_the_peers_that_are_remembered_are_limited() -> None:
    code = EnvelopeCode()
    first = Agent(Role.PROVIDER, code=code, offered=SHARED)
    first.receive(message())
    first.answered("1", {})
    for number in range(MAX_PEERS):
        code(
            Role.PROVIDER,
            Parties(own_id=BOB, peer_id=f"did:example:{number}"),
            limits=WrittenLimits(),
            random_bytes=counting(),
        )
    again = Agent(Role.PROVIDER, code=code, offered=SHARED, seed=500)
    again.receive(message())
    assert len(again.told()) == 1
    # The channel that is still open forgets nothing.
    first.receive(message())
    assert len(first.told()) == 1
