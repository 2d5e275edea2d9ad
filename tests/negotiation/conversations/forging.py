"""Messages that nobody sent, and what can happen to those that somebody did."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from hypothesis import strategies as st

from anp.wire.frames import ProtocolType
from tests.negotiation.conversations.letters import Letter, Sort, framed

LARGE: Final = "x" * 300_000
"Over the limit of every text of a message (ANP-Q30)."

HUGE: Final = b"\x00" + b" " * 1_100_000
"Over the limit of a whole message."


@dataclass(slots=True)
class Wire:
    """What somebody who reads along knows."""

    number: int = -1
    "The last `sequenceId`."

    candidate: str = "# Need\nsomething\n"
    "The last candidate."

    name: str = "m0-1"
    "The last message id of an envelope that carried application data."

    def read(self, letter: Letter) -> None:
        """Learn from a letter that a side sends."""
        if letter.encoded_under is not None:
            self.name = letter.name
        elif letter.data.startswith(b'\x00{"action":"protocolNegotiation"'):
            content = json.loads(letter.data[1:])
            self.number = content["sequenceId"]
            self.candidate = content["candidateProtocols"] or self.candidate


@dataclass(frozen=True, slots=True)
class Lie:
    """A message that fits into the conversation, or nearly so."""

    fields: tuple[tuple[str, Any], ...]
    "Its JSON; `{candidate}`, `{name}` and `{large}` stand for what a wire knows."

    step: int | None = None
    "Its `sequenceId` against the last one, if it has one."

    kind: ProtocolType = ProtocolType.META
    "What it is in its header."

    def letter(self, wire: Wire) -> Letter:
        """Return the message as it looks now."""
        content = {name: _filled(value, wire) for name, value in self.fields}
        if self.step is not None:
            content["sequenceId"] = wire.number + self.step
        return framed(self.kind, json.dumps(content).encode(), "forged", None)


@dataclass(frozen=True, slots=True)
class Raw:
    """A message that is no JSON at all."""

    what: str
    "`close`, `huge` or `empty`."

    def letter(self, wire: Wire) -> Letter:
        """Return the message."""
        if self.what == "close":
            return Letter(Sort.CLOSE)
        return Letter(Sort.FRAME, HUGE if self.what == "huge" else b"")


@dataclass(frozen=True, slots=True)
class Change:
    """What happens to the bytes of one frame."""

    how: str
    "`field` changes a field; `cut`, `noise`, `header` and `huge` the bytes."

    which: int = 0
    "The field, counted over those that the message has."

    value: Any = None
    "Which other value it gets, or how much is cut, or what comes in its place."

    def apply(self, data: bytes) -> bytes:
        """Return other bytes."""
        match self.how:
            case "cut":
                return data[: self.value]
            case "noise":
                return data[:1] + bytes(self.value)
            case "header":
                return bytes([self.value]) + data[1:]
            case "huge":
                return HUGE
            case _:
                return self._changed(data)

    def _changed(self, data: bytes) -> bytes:
        try:
            content = json.loads(data[1:])
        except ValueError:
            content = None
        if not isinstance(content, dict) or not content:
            return data + b"!"
        name = sorted(content)[self.which % len(content)]
        values = OTHER_VALUES.get(name, OTHER_TEXTS)
        value = values[self.value % len(values)]
        content[name] = _filled(value, Wire(candidate=str(content[name])))
        return data[:1] + json.dumps(content).encode()


OTHER_TEXTS: Final = ("{candidate}.", "", "# Other\n", "{large}", None, 7)
OTHER_VALUES: Final[dict[str, tuple[Any, ...]]] = {
    "action": ("codeGeneration", "protocolNegotiation", "fixErrorNegotiation", "", 7),
    "status": ("accepted", "rejected", "negotiating", "generated", "error", "", None),
    "sequenceId": (0, 1, 2, 3, -1, True, 10**30, None),
    "call": (2, True, "x"),
    "fits": (False, None, []),
}
"What a field may be instead; `{candidate}` is what it was."


def _filled(value: Any, wire: Wire) -> Any:
    if not isinstance(value, str):
        return value
    text = value.replace("{candidate}", wire.candidate).replace("{name}", wire.name)
    return text.replace("{large}", LARGE)


def _lies(step: st.SearchStrategy[int] | None = None, **fields: Any) -> Any:
    drawn = [
        st.tuples(st.just(name), st.sampled_from(values))
        for name, values in fields.items()
    ]
    return st.builds(Lie, st.tuples(*drawn), step=st.none() if step is None else step)


TURNS: Final = _lies(
    st.sampled_from([1, 1, 1, 1, 0, 2, -1]),
    action=["protocolNegotiation"],
    candidateProtocols=["{candidate}", "", "{candidate}!", "# Other\n", "{large}"],
    modificationSummary=["", "because"],
    status=["accepted", "accepted", "negotiating", "rejected", "timeout"],
)
CODES: Final = _lies(
    action=["codeGeneration"], status=["generated", "generated", "error", "perhaps"]
)
CASES: Final = _lies(
    action=["testCasesNegotiation"],
    testCases=["# Test", "# Test 0.1", "", "{large}"],
    status=["negotiating", "accepted", "rejected"],
)
FIXES: Final = _lies(
    action=["fixErrorNegotiation"],
    errorDescription=["messageId: {name}\nno field", "it is wrong", "{large}"],
    status=["negotiating", "accepted", "rejected"],
)
WORDS: Final = _lies(
    action=["naturalLanguageNegotiation"],
    type=["REQUEST", "RESPONSE"],
    messageId=[f"{1:016d}", f"q{1:015d}", "short"],
    message=["?"],
)
OTHERS: Final = _lies(action=["channelClose", "verificationProtocol"], code=[1000])
DATA: Final = st.builds(
    Lie,
    st.sampled_from([(("call", 1), ("fits", True)), (("call", 1),), (("fits", None),)]),
    kind=st.sampled_from([*ProtocolType, ProtocolType.APPLICATION]),
)

HAGGLING: Final = Lie(
    (
        ("action", "protocolNegotiation"),
        ("candidateProtocols", "{candidate}?"),
        ("modificationSummary", "one more wish"),
        ("status", "negotiating"),
    ),
    step=1,
)
"One more candidate with the right number."

ACCEPTING: Final = Lie(
    (
        ("action", "protocolNegotiation"),
        ("candidateProtocols", "{candidate}"),
        ("status", "accepted"),
    ),
    step=1,
)
"The right answer to the candidate on the table."

GENERATED: Final = Lie((("action", "codeGeneration"), ("status", "generated")))
"Code that does not exist."

LIES: Final[st.SearchStrategy[Lie | Raw]] = st.one_of(
    TURNS,
    TURNS,
    CODES,
    CODES,
    CASES,
    FIXES,
    WORDS,
    DATA,
    OTHERS,
    st.builds(Raw, st.sampled_from(["close", "huge", "empty"])),
)
"A message of any kind and state."

CHANGES: Final[st.SearchStrategy[Change]] = st.one_of(
    st.builds(Change, st.just("field"), st.integers(0, 5), st.integers(0, 7)),
    st.builds(Change, st.just("field"), st.integers(0, 5), st.integers(0, 7)),
    st.builds(Change, st.just("field"), st.just(1), st.sampled_from([0, 1])),
    st.builds(Change, st.just("cut"), value=st.integers(0, 80)),
    st.builds(Change, st.just("noise"), value=st.binary(max_size=40)),
    st.builds(Change, st.just("header"), value=st.integers(0, 255)),
    st.just(Change("huge")),
)
"What happens to the bytes of one frame."

EVERY_CHANGE: Final[tuple[Change, ...]] = (
    *(Change("field", which, value) for which in range(5) for value in range(8)),
    Change("cut", value=0),
    Change("cut", value=30),
    Change("header", value=0x40),
    Change("header", value=0x3F),
    Change("huge"),
)
"Every way in which one message changes into another."

EVERY_LIE: Final[tuple[Lie | Raw, ...]] = (
    *(
        Lie(
            (
                ("action", "protocolNegotiation"),
                ("candidateProtocols", text),
                ("status", status),
            ),
            step,
        )
        for status in ("accepted", "negotiating", "rejected")
        for text in ("{candidate}", "{candidate}!", "")
        for step in (0, 1)
    ),
    GENERATED,
    Lie((("action", "codeGeneration"), ("status", "error"))),
    *(
        Lie(
            (
                ("action", "testCasesNegotiation"),
                ("testCases", text),
                ("status", status),
            )
        )
        for status in ("accepted", "negotiating", "rejected")
        for text in ("# Test", "# Test 0.1", "# Other")
    ),
    *(
        Lie(
            (
                ("action", "fixErrorNegotiation"),
                ("errorDescription", "messageId: {name}\nno such field"),
                ("status", status),
            )
        )
        for status in ("accepted", "negotiating", "rejected")
    ),
    Lie((("call", 1), ("fits", True)), kind=ProtocolType.APPLICATION),
    Raw("close"),
)
"Every message that may come at the wrong time."
