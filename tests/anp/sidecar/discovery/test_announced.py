"""Registries as they are read: honest ones, liars, and those that are away."""

from __future__ import annotations

from typing import Any

from anp.errors import CallError, ErrorKind
from anp.identity.dids import LocalIdentity, did_key
from anp.identity.keys import PrivateKey
from anp.identity.resolver import KeyResolver
from anp.sidecar.calls.call import CallRequest, CallResult
from anp.sidecar.discovery.announced import (
    ASKED_FOR,
    MAX_PAGES,
    MAX_RESOLVED,
    Announced,
)
from anp.sidecar.discovery.announcement import announce
from negotiation.need import Capability
from tests.clauses import clause

NOW = 1_000_000.0


class Hub:
    """A registry that answers what a test wants; None is away."""

    def __init__(self, *pages: Any) -> None:
        self.pages = list(pages)
        self.asked: list[Any] = []
        self.resolved: list[str] = []
        self.now = NOW
        self.announced = Announced(
            ["hub"], call=self.call, resolver=self, clock=lambda: self.now
        )

    async def call(self, request: CallRequest) -> CallResult:
        self.asked.append(request.arguments)
        page = self.pages.pop(0) if self.pages else {}
        if page is None:
            raise CallError(ErrorKind.PEER_UNREACHABLE, "away")
        return CallResult(
            output=page,
            protocol=None,
            source="published",
            peer_did="did:x:y",
            negotiation_id=None,
        )

    async def check_key(self, did: str, key_id: str, public_key: bytes) -> None:
        self.resolved.append(did)
        if did.startswith("did:key:"):
            await KeyResolver().check_key(did, key_id, public_key)

    async def accepted(self, did: str, key_id: str, public_key: bytes) -> None:
        raise AssertionError("there is no handshake here")


def made(
    key: PrivateKey | None = None,
    *,
    did: str = "",
    url: str = "wss://a.example/",
    now: float = NOW,
) -> dict[str, Any]:
    key = key or PrivateKey.generate()
    return announce(
        LocalIdentity(did or did_key(key.public_bytes), key),
        url=url,
        name="a",
        version="1",
        capabilities=[Capability("weather.now", "", {}, {})],
        now=now,
        lifetime=3_600,
    )


@clause("ENV-25", "A2A-20")
async def test_good_announcements_are_kept_and_the_newest_counts() -> None:
    key = PrivateKey.generate()
    old, new = made(key), made(key, url="wss://b.example/", now=NOW + 60)
    forged = {**made(), "url": "wss://evil.example/"}
    hub = Hub(
        {"announcements": [new, old, forged, 1, {}], "next": "x"},
        {"announcements": [made()]},
    )
    await hub.announced.ask("weather.now")
    assert hub.asked[1] == {"capability": "weather.now", "after": "x"}
    assert len(hub.announced.naming("now")) == 2
    assert hub.announced.url_of(new["did"]) == "wss://b.example/"
    assert hub.announced.url_of(forged["did"]) is None
    hub.now = NOW + 3_700
    assert hub.announced.naming("now") == []
    assert hub.announced.url_of(new["did"]) is None


@clause("ENV-25")
async def test_a_registry_that_is_away_or_never_ends_is_left() -> None:
    hub = Hub(None)
    await hub.announced.ask("now")
    await hub.announced.ask("now")
    assert len(hub.asked) == 1
    hub.now += ASKED_FOR
    hub.pages = [{"announcements": "x", "next": "x"}] * 99
    await hub.announced.ask("now")
    assert len(hub.asked) == 1 + MAX_PAGES


@clause("ENV-25")
async def test_few_documents_are_fetched_for_one_answer() -> None:
    listed = [made(did=f"did:web:n{number}.example") for number in range(40)]
    hub = Hub({"announcements": [*listed, made()]})
    await hub.announced.ask("now")
    assert sum(did.startswith("did:web") for did in hub.resolved) == MAX_RESOLVED
    assert len(hub.announced.naming("now")) == MAX_RESOLVED + 1
