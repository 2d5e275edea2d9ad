"""Costs of each kind of call on the wire, counted by a proxy; prints the table.

`pytest -s tests/e2e/test_wire_table.py` prints what has to stand in docs/operation.md.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from anp.protocols.envelope import ENVELOPE_URI
from tests.clauses import clause
from tests.e2e.daemons import Anpd
from tests.e2e.proxy import CALLER, Proxy, Seen, round_trips

FUNCTION = '''
def multiply(number: int) -> dict[str, int]:
    """Multiply by seven."""
    return {"product": number * 7}
'''
HANDSHAKE = ["sourceHello", "destinationHello", "finished", "finished"]
CALL = ["message", "message"]
IDLE = {"heartbeat"}
HEAD = (
    "| call | frames sent | received | round trips | pages read |",
    "|---|---|---|---|---|",
)


@dataclass(frozen=True)
class Row:
    """What passed for one call."""

    name: str
    seen: list[Seen]

    @property
    def frames(self) -> list[Seen]:
        """WebSocket frames, without pages that were read."""
        return [one for one in self.seen if one.connection >= 0]

    @property
    def types(self) -> list[str]:
        return sorted(one.type for one in self.frames)

    @property
    def pages(self) -> int:
        return sum(1 for one in self.seen if one.type.startswith("GET"))

    def line(self) -> str:
        sent = sum(one.side == CALLER for one in self.frames)
        received = len(self.frames) - sent
        return (
            f"| {self.name} | {sent} | {received} | {round_trips(self.seen)} | "
            f"{self.pages} |"
        )

    @property
    def size(self) -> int:
        """Characters of all frames."""
        return sum(len(one.frame) for one in self.frames)


class Pair:
    """Two daemons with a proxy between them."""

    def __init__(self, folder: Path, proxy: Proxy, **settings: str) -> None:
        self.proxy = proxy
        self.caller = Anpd(folder / "caller", **settings)
        self.provider = Anpd(folder / "provider", **settings)
        (folder / "made.py").write_text(FUNCTION)
        self.provider.ok(
            *("attach", "python", "made:multiply", "--expose", "*", "--name", "m"),
            cwd=folder,
        )
        self.numbers = itertools.count(1)
        self.ports = [0, 0]

    def start(self) -> None:
        self.provider.start(port=self.ports[0])
        self.caller.start(port=self.ports[1])
        self.ports = [self.provider.port, self.caller.port]
        self.proxy.target = self.provider.url

    def end(self, *, killed: bool = False) -> None:
        for daemon in (self.caller, self.provider):
            if killed:
                daemon.kill()
            else:
                daemon.stop()

    def call(self, name: str, *options: str, source: str) -> Row:
        """Make one call and return what passed for it."""
        before = len(self.proxy.seen)
        number = next(self.numbers)
        address = f"ws://127.0.0.1:{self.proxy.port}/#{self.provider.did}"
        ended = self.caller.ok(
            *("call", address, "multiply", "-d", json.dumps({"number": number})),
            *("--json", *options),
        ).json()
        assert ended["output"] == {"product": number * 7}
        assert ended["source"] == source
        seen = [one for one in self.proxy.seen[before:] if one.type not in IDLE]
        return Row(name, seen)


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with Proxy().running() as proxy:
        yield proxy


@pytest.mark.slow
@pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed"])
@clause("ANP-84", "ANP-88", "ANP-Q20")
def test_with_a_kept_key_the_first_frame_of_a_connection_is_the_call(
    tmp_path: Path, proxy: Proxy, killed: bool
) -> None:
    pair = Pair(tmp_path, proxy, channels__resumption="true")
    pair.start()
    try:
        pair.call("cold", source="negotiated")
        for _ in range(2):
            pair.end(killed=killed)
            pair.start()
            row = pair.call("resumed", source="agreement")
            assert row.types == CALL
            assert row.frames[0].side == CALLER
            assert row.frames[0].connection > 0
            assert row.types == pair.call("next", source="agreement").types
    finally:
        pair.end()
    assert "Traceback" not in pair.caller.log() + pair.provider.log()
    check_counters(proxy)


def check_counters(proxy: Proxy) -> None:
    """No iv was ever used twice under a key and in a direction."""
    ivs = [
        (one.side, envelope.secret_key_id, envelope.iv)
        for one in proxy.seen
        if (envelope := one.envelope) is not None
    ]
    assert len(ivs) == len(set(ivs))


@pytest.mark.slow
@clause("ANP-Q20")
def test_a_call_under_a_key_that_the_provider_gave_up_goes_through_once(
    tmp_path: Path, proxy: Proxy
) -> None:
    pair = Pair(tmp_path, proxy, channels__resumption="true")
    pair.start()
    try:
        pair.call("cold", source="negotiated")
        pair.end()
        pair.provider = Anpd(pair.provider.home, channels__resumption="false")
        pair.start()
        row = pair.call("refused", source="agreement")
        assert row.types == sorted([*HANDSHAKE, *CALL, "message", "response"])
        assert pair.call("next", source="agreement").types == CALL
    finally:
        pair.end()
    assert "Traceback" not in pair.caller.log() + pair.provider.log()
    check_counters(proxy)


@pytest.mark.slow
@clause("ANP-84", "ANP-86", "ANP-88", "ANP-94")
def test_the_table_of_messages_and_round_trips(tmp_path: Path, proxy: Proxy) -> None:
    rows = []
    (tmp_path / "hash").mkdir()
    pair = Pair(tmp_path / "hash", proxy)
    pair.start()
    try:
        rows.append(pair.call("first call: negotiated, tested", source="negotiated"))
        rows.append(pair.call("second call", source="agreement"))
        assert rows[-1].types == CALL
        pair.end()
        pair.start()
        rows.append(pair.call("after both restarted", source="agreement"))
        assert rows[-1].types == sorted(HANDSHAKE + CALL)
    finally:
        pair.end()
    (tmp_path / "key").mkdir()
    pair = Pair(tmp_path / "key", proxy, channels__resumption="true")
    pair.start()
    try:
        pair.call("cold", source="negotiated")
        pair.end()
        pair.start()
        rows.append(pair.call("after both restarted, key kept", source="agreement"))
        assert rows[-1].types == CALL
    finally:
        pair.end()
    (tmp_path / "name").mkdir()
    pair = Pair(tmp_path / "name", proxy, consensus__use="true")
    pair.start()
    try:
        rows.append(pair.call("first call: capability by name", source="published"))
        assert rows[-1].types == sorted(HANDSHAKE + CALL)
        assert pair.call("second call", source="agreement").types == CALL
    finally:
        pair.end()
    (tmp_path / "envelope").mkdir()
    pair = Pair(tmp_path / "envelope", proxy, consensus__use="true")
    pair.start()
    try:
        envelope = "--protocol", ENVELOPE_URI
        row = pair.call("first call: message envelope", *envelope, source="consensus")
        assert row.types == sorted(HANDSHAKE + CALL)
        rows.append(row)
        row = pair.call("second call: message envelope", *envelope, source="consensus")
        assert row.types == CALL
        rows.append(row)
    finally:
        pair.end()
    rows.insert(4, published(tmp_path / "published", proxy))
    lines = [*HEAD, *(row.line() for row in rows)]
    print("", *lines, f"\nbytes: {[row.size for row in rows]}", sep="\n")
    page = Path(__file__).parents[2] / "docs" / "operation.md"
    text = page.read_text("utf-8").split("\n")
    start = text.index(HEAD[0])
    told = text[start : start + len(lines)]
    # In a negotiation both sides also speak at the same time, so frames may cross.
    assert [crossed(line) for line in told] == [crossed(line) for line in lines]
    assert text[start + len(lines)] == ""


def crossed(line: str) -> str:
    """Return a line of the table without what depends on who is faster."""
    cells = line.split("|")
    return "|".join([*cells[:4], *cells[5:]]) if "negotiated" in line else line


def published(folder: Path, proxy: Proxy) -> Row:
    """Return the first call of a stranger to what others negotiated before."""
    folder.mkdir()
    pair = Pair(folder, proxy)
    stranger = Anpd(folder / "stranger", consensus__use="true")
    pair.start()
    try:
        pair.call("cold", source="negotiated")
        [agreed] = pair.provider.ok("protocols", "list", "--json").json()["protocols"]
        uri = "https://protocols.example/multiply/1.0"
        pair.provider.ok("protocols", "publish", agreed["hash"], "--uri", uri)
        met, pair.caller = pair.caller, stranger
        met.stop()
        stranger.start()
        row = pair.call(
            *("first call: published protocol", "--protocol", uri), source="consensus"
        )
        assert row.types == sorted(HANDSHAKE + CALL)
        assert pair.call("second call", source="agreement").types == CALL
        return row
    finally:
        pair.end()
