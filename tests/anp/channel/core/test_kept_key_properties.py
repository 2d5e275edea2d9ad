"""Two cores whose keys outlive them: any order of losses, restarts and replays."""

from __future__ import annotations

import json
import random
from base64 import b64decode
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from anp.channel.core.events import (
    ChannelEnded,
    ChannelOpened,
    ChannelRole,
    FrameReceived,
    NeedClaim,
    NeedHelloAnswer,
    NeedKey,
    NeedPeerKeyCheck,
)
from anp.channel.core.limits import LinkConfig
from anp.channel.core.link_core import LinkCore
from anp.channel.core.traffic import Before, OpenChannel
from anp.errors import ErrorCode, PeerError
from anp.wire.frames import Frame, ProtocolType
from anp.wire.keys import SessionKeys
from anp.wire.meta_protocol import MetaProtocol
from anp.wire.moment import Moment
from anp.wire.replay import BLOCK, HelloMemory, block_end, counter_of
from tests.anp.wire.peers import ALICE, BOB, HASH, WALL_NOW, FixedIdentity
from tests.clauses import clause

META = MetaProtocol(
    used_protocol_hash=HASH, extensions=("close", "counter", "maxMessage", "resume")
)
CONFIG = LinkConfig(resumption=True)


@dataclass(slots=True)
class Row:
    """What a store has of a key; it outlives everything."""

    opened: ChannelOpened
    keys: SessionKeys
    reserved: int
    mark: int
    ended: bool = False

    def reserve(self) -> tuple[int, int]:
        first = -(-self.reserved // BLOCK) * BLOCK
        self.reserved = first + BLOCK
        return first, first + BLOCK

    def claim(self, counter: int) -> int | None:
        last = block_end(counter)
        if self.ended or last - BLOCK + 1 <= self.mark:
            return None
        self.mark = last
        return last


class Side:
    """A daemon: its store lasts, its core comes and goes."""

    def __init__(self, identity: FixedIdentity, randomness: random.Random) -> None:
        self.identity = identity
        self.random = randomness
        self.rows: dict[str, Row] = {}
        self.received: list[bytes] = []
        self.now = 0.0
        # The claim is on disk, and the daemon dies before it acts on the message.
        self.dies_in_claim = False
        self.dead = False
        self.start()

    def start(self) -> None:
        self.dead = False
        self.held_open: set[str] = set()
        self.core = LinkCore(
            CONFIG,
            identity_for=lambda did: (
                self.identity if did == self.identity.did else None
            ),
            hellos=HelloMemory(),
            random_bytes=self.random.randbytes,
            now=self.now,
        )

    @property
    def moment(self) -> Moment:
        return Moment.at(self.now, WALL_NOW + timedelta(seconds=self.now))

    def act(self) -> None:
        """Do what the shell does, the store's part included."""
        while not self.dead and (event := self.core.next_event()) is not None:
            match event:
                case NeedPeerKeyCheck(session_id):
                    self.core.key_checked(session_id, None, now=self.moment)
                case NeedHelloAnswer(session_id):
                    self.core.answer_hello(session_id, META, now=self.moment)
                case ChannelOpened():
                    self._opened(event)
                case ChannelEnded(channel_id, kept=kept):
                    self.held_open.discard(channel_id)
                    if not kept and channel_id in self.rows:
                        self.rows[channel_id].ended = True
                case NeedClaim(channel_id, counter):
                    last = self.rows[channel_id].claim(counter)
                    if self.dies_in_claim:
                        self.dead, self.dies_in_claim = True, False
                        return
                    self.core.claimed(channel_id, last, now=self.moment)
                case NeedKey(channel_id):
                    self._take_up(channel_id)
                case FrameReceived(channel_id, frame):
                    self._received(channel_id, frame.data)

    def send(self, channel_id: str, data: bytes) -> None:
        """Send as `Link.send_frame` does."""
        frame = Frame(ProtocolType.APPLICATION, data)
        while (before := self.core.may_send(channel_id, frame)) is not None:
            assert before is Before.BLOCK
            self.core.keys.reserved(channel_id, *self.rows[channel_id].reserve())
        self.core.send_frame(channel_id, frame, now=self.moment)

    def resume(self, channel_id: str) -> bool:
        """Take up a key of ours, as the requester does."""
        row = self.rows[channel_id]
        if row.ended or channel_id in self.core.channels:
            return False
        first, end = row.reserve()
        channel = self._channel(row, first, end, row.mark, row.mark)
        assert self.core.resume(channel, now=self.moment)
        return True

    def _channel(
        self, row: Row, first: int, end: int, mark: int, claimed: int
    ) -> OpenChannel:
        opened = row.opened._replace(session_id="", began=self.now)
        return OpenChannel.resumed(
            opened,
            row.keys,
            CONFIG,
            first=first,
            end=end,
            mark=mark,
            claimed=claimed,
            random_bytes=self.random.randbytes,
            now=self.now,
        )

    def _opened(self, event: ChannelOpened) -> None:
        self.held_open.add(event.channel_id)
        if event.began is None:
            found = self.core.keys.keep_key(event.channel_id)
            assert found is not None
            keys, reserved, mark = found
            self.rows[event.channel_id] = Row(event, keys, reserved, mark)

    def _take_up(self, channel_id: str) -> None:
        """Answer `NeedKey` as `LinkKeys` does, in the same order."""
        row = self.rows.get(channel_id)
        refusal = PeerError(ErrorCode.INVALID_DECRYPTION_KEY, "unknown key id")
        if row is None or row.ended or row.opened.role is not ChannelRole.PROVIDER:
            self.core.refuse_key(channel_id, refusal, now=self.moment)
            return
        mark = row.mark
        try:
            proved = self.core.keys.prove_key(self._channel(row, 0, 0, mark, 0))
            claimed = row.claim(proved)
            if claimed is None:
                raise PeerError(ErrorCode.NOT_ALLOWED, "a replay")
        except PeerError as exc:
            self.core.refuse_key(channel_id, exc, now=self.moment)
            return
        if self.dies_in_claim:
            self.dead, self.dies_in_claim = True, False
            return
        channel = self._channel(row, *row.reserve(), mark, claimed)
        self.core.resume(channel, now=self.moment)

    def _received(self, channel_id: str, data: bytes) -> None:
        self.received.append(data)
        row = self.rows[channel_id]
        if row.opened.role is ChannelRole.PROVIDER:
            self.send(channel_id, b"answer to " + data)


class World:
    """Both sides, the wire between them, and everything that was ever on it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.alice = Side(ALICE, self.random)
        self.bob = Side(BOB, self.random)
        self.flying: dict[bool, list[str | bytes]] = {True: [], False: []}
        self.recorded: dict[bool, list[str | bytes]] = {True: [], False: []}
        self.calls = 0

    def collect(self) -> None:
        for is_alice, side in ((True, self.alice), (False, self.bob)):
            side.act()
            for text in side.core.messages_to_send():
                if not side.dead:
                    self.flying[is_alice].append(text)
                    self.recorded[is_alice].append(text)
        if self.alice.dead or self.bob.dead:
            self.lose()

    def deliver(self, from_alice: bool, text: str | bytes) -> None:
        side = self.bob if from_alice else self.alice
        # A shell reads nothing while something waits for it.
        assert not side.core.waits
        side.core.receive_text(text, now=side.moment)
        self.collect()

    def move(self, count: int = 10**6) -> None:
        """Carry at most so many messages."""
        self.collect()
        while count and any(self.flying.values()):
            ways = [way for way, texts in self.flying.items() if texts]
            way = self.random.choice(ways)
            self.deliver(way, self.flying[way].pop(0))
            count -= 1

    def lose(self) -> None:
        """Lose the link with all that flies; who died starts again."""
        self.flying = {True: [], False: []}
        for side in (self.alice, self.bob):
            if not side.dead:
                side.core.link_lost("lost")
                side.act()
            side.start()

    def call(self) -> None:
        """Call on every channel that is up."""
        for channel_id in sorted(self.alice.core.channels):
            self.calls += 1
            self.alice.send(channel_id, b"call %d" % self.calls)
        self.collect()

    def do(self, what: str) -> None:
        match what:
            case "open or renew":
                if len(self.alice.core.channels) < 3:
                    self.alice.core.open_channel(
                        ALICE, BOB.did, META, now=self.alice.moment
                    )
            case "call":
                self.call()
            case "carry one":
                self.move(1)
            case "carry all":
                self.move()
            case "lose":
                self.lose()
            case "kill alice":
                self.alice.dead = True
                self.collect()
            case "kill bob":
                self.bob.dead = True
                self.collect()
            case "bob dies in his next claim":
                self.bob.dies_in_claim = True
            case "alice dies in her next claim":
                self.alice.dies_in_claim = True
            case "resume":
                for channel_id in sorted(self.alice.rows):
                    self.alice.resume(channel_id)
                self.call()
            case "replay to bob" | "replay to alice":
                way = what.endswith("bob")
                if self.recorded[way]:
                    self.deliver(way, self.random.choice(self.recorded[way]))
            case _:
                raise AssertionError(what)
        self.collect()


OPERATIONS = (
    # What takes a world on comes more often than what throws it back.
    *("call", "carry all", "resume") * 3,
    *("carry one", "replay to bob", "replay to alice") * 2,
    *("open or renew", "lose", "kill alice", "kill bob"),
    *("bob dies in his next claim", "alice dies in her next claim"),
)
MET = ("open or renew", "carry all", "call", "carry all")


@clause("ANP-Q20", "WIRE row 26")
@settings(max_examples=150)
@given(st.lists(st.sampled_from(OPERATIONS), max_size=40), st.integers(0, 2**32))
def test_no_call_is_heard_twice_and_no_counter_is_used_twice(
    operations: list[str], seed: int
) -> None:
    world = World(seed)
    for what in (*MET, *operations):
        world.do(what)
    for side in (world.alice, world.bob):
        assert max(Counter(side.received).values(), default=0) <= 1
    sent = {b"call %d" % number for number in range(1, world.calls + 1)}
    assert set(world.bob.received) <= sent
    assert set(world.alice.received) <= {
        b"answer to " + data for data in world.bob.received
    }
    counters = [
        (way, message["secretKeyId"], counter_of(b64decode(iv)))
        for way, texts in world.recorded.items()
        for message in map(json.loads, texts)
        if message["type"] == "message"
        for iv in [message["encryptedData"]["iv"]]
    ]
    assert len(counters) == len(set(counters))
    # Whatever happened, both find each other again.
    world.alice.dies_in_claim = world.bob.dies_in_claim = False
    world.lose()
    world.do("open or renew")
    world.do("carry all")
    heard = len(world.alice.received)
    world.do("call")
    world.do("carry all")
    assert len(world.alice.received) == heard + 1


def test_a_kept_key_carries_calls_over_a_restart_of_both() -> None:
    world = World(1)
    for what in (*MET, "kill alice", "kill bob", "resume", "carry all"):
        world.do(what)
    assert world.bob.received == [b"call 1", b"call 2"]
    assert world.alice.received == [b"answer to call 1", b"answer to call 2"]
    # No second hello was needed for it.
    types = [json.loads(text)["type"] for text in world.recorded[True]]
    assert types.count("sourceHello") == 1
