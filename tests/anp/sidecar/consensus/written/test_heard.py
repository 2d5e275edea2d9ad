"""Unasked messages of peers, as the owner finds them."""

from __future__ import annotations

import pytest

from anp.sidecar.consensus.written.heard import MAX_KEPT, MAX_KEPT_BYTES, Heard
from negotiation.consensus.written import (
    PeerAnnouncement,
    PeerEvent,
    PeerMessage,
    PeerNotice,
    PeerSaid,
    PeerWithdrawal,
)

URI = "urn:anpd:message-envelope:1.0"


def event(size: int = 0) -> PeerEvent:
    return PeerEvent("e", {"x": "y" * size}, True, {})


@pytest.mark.parametrize(
    ("said", "kind", "name"),
    [
        (event(), "event", "e"),
        (PeerNotice("c", "m", {}), "notice", "c"),
        (PeerMessage("beat", {}, {}), "message", "beat"),
        (PeerAnnouncement(({"name": "a.b"},)), "announcement", ""),
        (PeerWithdrawal(), "withdrawal", ""),
    ],
)
def test_each_kind_is_kept_with_its_name(said: PeerSaid, kind: str, name: str) -> None:
    heard = Heard(clock=lambda: 7.0)
    heard.said("did:key:z", URI, said)
    (entry,) = heard.entries()
    assert (entry.kind, entry.name, entry.at) == (kind, name, 7.0)
    assert entry.data is not None


def test_the_newest_are_kept_and_can_be_asked_for_by_number() -> None:
    heard = Heard()
    for _ in range(MAX_KEPT + 3):
        heard.said("did:key:z", URI, event())
    numbers = [entry.number for entry in heard.entries()]
    assert numbers == list(range(4, MAX_KEPT + 4))
    assert len(heard.entries(after=MAX_KEPT + 1)) == 2


def test_large_data_is_left_out_and_much_of_it_pushes_the_old_out() -> None:
    heard = Heard()
    heard.said("did:key:z", URI, event(100_000))
    (entry,) = heard.entries()
    assert entry.data is None
    assert entry.size > 100_000
    for _ in range(50):
        heard.said("did:key:z", URI, event(60_000))
    assert sum(entry.size for entry in heard.entries()) <= MAX_KEPT_BYTES
