"""Two cores of a link wired back to back; no socket and no clock."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from anp.channel.core.events import (
    LinkEvent,
    LinkFault,
    NeedHelloAnswer,
    NeedPeerKeyCheck,
)
from anp.channel.core.limits import LinkConfig
from anp.channel.core.link_core import (
    LinkCore,
)
from anp.errors import ErrorCode, PeerError
from anp.wire.envelopes import is_binary
from anp.wire.frames import Frame, ProtocolType
from anp.wire.meta_protocol import MetaProtocol
from anp.wire.moment import Moment
from anp.wire.replay import HelloMemory
from tests.anp.wire.peers import ALICE, BOB, WALL_NOW, FixedIdentity, fixed_random

PLAIN = MetaProtocol()
CLOSING = MetaProtocol(extensions=("close",))
HELLO = Frame(ProtocolType.APPLICATION, b"hello")


class End:
    """One core, its events, and what it said that was not delivered yet."""

    def __init__(
        self,
        identity: FixedIdentity,
        *,
        meta: MetaProtocol = PLAIN,
        config: LinkConfig | None = None,
        seed: str = "",
    ) -> None:
        self.identity = identity
        self.meta = meta
        self.now = 0.0
        self.key_error: PeerError | None = None
        self.refusal: PeerError | None = None
        self.events: list[LinkEvent] = []
        self.core = LinkCore(
            config or LinkConfig(),
            identity_for=lambda did: identity if did == identity.did else None,
            hellos=HelloMemory(),
            random_bytes=fixed_random(f"{identity.did} {seed}"),
            now=0.0,
        )

    @property
    def moment(self) -> Moment:
        """The time as the core wants it."""
        return Moment.at(self.now, WALL_NOW + timedelta(seconds=self.now))

    def open(self, peer: FixedIdentity, meta: MetaProtocol | None = None) -> str:
        return self.core.open_channel(
            self.identity, peer.did, meta or self.meta, now=self.moment
        )

    def act(self) -> None:
        """Do what the shell does: answer questions, keep the other events."""
        while (event := self.core.next_event()) is not None:
            self.events.append(event)
            match event:
                case NeedPeerKeyCheck(session_id):
                    self.core.key_checked(session_id, self.key_error, now=self.moment)
                case NeedHelloAnswer(session_id) if self.refusal is not None:
                    self.core.refuse_hello(
                        session_id,
                        self.refusal.code,
                        self.refusal.detail,
                        now=self.moment,
                    )
                case NeedHelloAnswer(session_id):
                    self.core.answer_hello(session_id, self.meta, now=self.moment)

    def give(self, *texts: str | bytes) -> list[dict[str, Any]]:
        """Give messages to the core and return what it says to them."""
        for text in texts:
            self.core.receive_text(text, now=self.moment)
            self.act()
        return [json.loads(text) for text in self.core.messages_to_send()]

    def send(self, channel_id: str, frame: Frame = HELLO) -> str:
        """Return one sealed frame as text."""
        self.core.send_frame(channel_id, frame, now=self.moment)
        [text] = self.core.messages_to_send()
        assert isinstance(text, bytes)
        assert not is_binary(text)
        return text.decode()

    def wait(self, seconds: float) -> list[dict[str, Any]]:
        """Let time pass and fire the timer; return what the core says."""
        self.now += seconds
        self.core.handle_timer(now=self.moment)
        self.act()
        return [json.loads(text) for text in self.core.messages_to_send()]

    def of(self, kind: type[Any]) -> list[Any]:
        """Return the events of one kind so far."""
        return [event for event in self.events if isinstance(event, kind)]


def exchange(one: End, other: End) -> None:
    """Carry messages both ways until nobody has anything to say."""
    while True:
        moved = False
        for end, peer in ((one, other), (other, one)):
            end.act()
            for text in end.core.messages_to_send():
                peer.core.receive_text(text, now=peer.moment)
                peer.act()
                moved = True
        if not moved:
            return


def ends(*, meta: MetaProtocol = PLAIN, config: LinkConfig | None = None) -> list[End]:
    """Return Alice's and Bob's ends of one link."""
    return [End(who, meta=meta, config=config) for who in (ALICE, BOB)]


def opened(
    *, meta: MetaProtocol = PLAIN, config: LinkConfig | None = None
) -> tuple[End, End, str]:
    """Return both ends with one channel from Alice to Bob, and its id."""
    alice, bob = ends(meta=meta, config=config)
    alice.open(BOB)
    exchange(alice, bob)
    [channel_id] = alice.core.channels
    assert bob.core.channels == {channel_id}
    return alice, bob, channel_id


def fault_of(end: End, code: ErrorCode) -> LinkFault:
    """Return the one fault that was counted."""
    [fault] = end.of(LinkFault)
    assert fault.code is code
    assert isinstance(fault, LinkFault)
    return fault


def refused(said: list[dict[str, Any]], code: ErrorCode) -> dict[str, Any]:
    """Return the one `response` that was said."""
    [response] = said
    assert (response["type"], response["code"]) == ("response", int(code))
    return response


def changed(text: str, **changes: Any) -> str:
    return json.dumps({**json.loads(text), **changes})
