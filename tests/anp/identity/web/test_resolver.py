"""Resolving DIDs of the web: the cache, its limits, and keys that change."""

from __future__ import annotations

import asyncio
import json
import logging
from datetime import UTC, datetime
from typing import Any

import pytest

from anp.errors import ErrorCode, PeerError
from anp.identity.keys import PrivateKey
from anp.identity.public_keys import KeyKind
from anp.identity.web.documents import parse_document
from anp.identity.web.fetcher import Fetched, Fetcher
from anp.identity.web.guard import FetchError
from anp.identity.web.key_pins import KeyVerdict, Pinned, judge_key
from anp.identity.web.own_document import make_document, make_web_did
from anp.identity.web.resolver import ResolverLimits, WebResolver
from anp.identity.web_dids import WebDid, parse_web_did

NOW = datetime(2026, 11, 21, tzinfo=UTC)
OLD, NEW = PrivateKey.generate(), PrivateKey.generate()
BINDING = PrivateKey.generate(KeyKind.ED25519)
HOST = make_web_did("agent.example")
BOUND = make_web_did("agent.example", path="alice", binding_key=BINDING.public_key)
KEY_ID = f"{HOST.text}#key-1"


def document(
    did: WebDid = HOST, key: PrivateKey = OLD, binding: PrivateKey | None = None
) -> dict[str, Any]:
    return make_document(
        did,
        hello_key=key.public_key,
        binding_key=binding,
        url="wss://agent.example/",
        created=NOW,
    )


class Web(Fetcher):
    """Serves documents from memory, and counts."""

    def __init__(self, *documents: dict[str, Any]) -> None:
        super().__init__()
        self.pages = {make(d): d for d in documents}
        self.asked: list[str] = []
        self.error: FetchError | None = None
        self.max_age: float | None = None
        self.gate: asyncio.Event | None = None

    async def fetch(
        self,
        url: str,
        *,
        max_size: int,
        deadline: float = 10.0,
        content_types: frozenset[str] | None = None,
        same_host: bool = False,
    ) -> Fetched:
        self.asked.append(url)
        assert same_host
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        if url not in self.pages:
            raise FetchError("404", gone=True)
        body = json.dumps(self.pages[url]).encode()
        return Fetched(url, body, "application/json", self.max_age)

    def serve(self, page: dict[str, Any]) -> None:
        self.pages[make(page)] = page


def make(page: dict[str, Any]) -> str:

    return parse_web_did(page["id"]).document_url


class Pins:
    """Pins in memory."""

    def __init__(self) -> None:
        self.known: dict[str, Pinned] = {}

    def get_keys(self, did: str) -> Pinned | None:
        return self.known.get(did)

    def put_keys(self, did: str, pinned: Pinned) -> None:
        self.known[did] = pinned


class Clock:
    """Stands until a test moves it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def check(
    resolver: WebResolver, key: PrivateKey = OLD, key_id: str = KEY_ID
) -> None:
    did = key_id.partition("#")[0]
    await resolver.check_key(did, key_id, key.public_bytes)


async def meet(
    resolver: WebResolver, key: PrivateKey = OLD, key_id: str = KEY_ID
) -> None:
    """Check a key and complete the handshake that it signed."""
    await check(resolver, key, key_id)
    await resolver.accepted(key_id.partition("#")[0], key_id, key.public_bytes)


async def test_a_key_that_the_document_lists_is_good() -> None:
    await check(WebResolver(Web(document())))
    bound = document(BOUND, OLD, BINDING)
    resolver = WebResolver(Web(bound))
    await check(resolver, OLD, f"{BOUND.text}#key-2")
    await check(resolver, BINDING, f"{BOUND.text}#key-1")


@pytest.mark.parametrize(
    ("key", "key_id"),
    [
        (NEW, KEY_ID),
        (OLD, f"{HOST.text}#key-2"),
        (OLD, f"{HOST.text}#"),
        (BINDING, KEY_ID),
    ],
)
async def test_any_other_key_is_refused(key: PrivateKey, key_id: str) -> None:
    with pytest.raises(PeerError) as caught:
        await check(WebResolver(Web(document())), key, key_id)
    assert caught.value.code is ErrorCode.NOT_ALLOWED


@pytest.mark.parametrize("data", [b"", b"\x04" + bytes(64), bytes(31), b"\x05" * 65])
async def test_what_is_no_key_is_refused_before_anything_is_fetched(
    data: bytes,
) -> None:
    web = Web(document())
    with pytest.raises(PeerError):
        await WebResolver(web).check_key(HOST.text, KEY_ID, data)
    assert web.asked == []


async def test_another_spelling_is_another_did_and_refused() -> None:
    web = Web(document())
    with pytest.raises(PeerError, match=r"is written did:wba:agent\.example"):
        await WebResolver(web).resolve("did:wba:AGENT.example")
    assert web.asked == []


async def test_a_document_is_fetched_once_for_all_who_wait() -> None:
    web = Web(document())
    web.gate = asyncio.Event()
    resolver = WebResolver(web)
    waiting = [asyncio.create_task(check(resolver)) for _ in range(20)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    web.gate.set()
    done = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(done[0], asyncio.CancelledError)
    assert done[1:] == [None] * 19
    assert len(web.asked) == 1


@pytest.mark.parametrize(
    ("max_age", "kept"),
    [(None, 300.0), (60.0, 60.0), (0.0, 10.0), (1e9, 3600.0)],
)
async def test_a_document_is_kept_as_long_as_its_server_says_within_limits(
    max_age: float | None, kept: float
) -> None:
    web, clock = Web(document()), Clock()
    web.max_age = max_age
    resolver = WebResolver(web, clock=clock)
    await check(resolver)
    clock.now = kept - 0.1
    await check(resolver)
    assert len(web.asked) == 1
    clock.now = kept
    await check(resolver)
    assert len(web.asked) == 2


async def test_a_failure_is_kept_for_a_while() -> None:
    web, clock = Web(), Clock()
    resolver = WebResolver(web, clock=clock)
    for _ in range(3):
        with pytest.raises(PeerError) as caught:
            await check(resolver)
        assert caught.value.code is ErrorCode.DID_NOT_FOUND
    assert len(web.asked) == 1
    web.serve(document())
    clock.now = 30.0
    await check(resolver)


async def test_a_new_key_is_looked_for_at_once_but_not_always() -> None:
    web, clock = Web(document()), Clock()
    resolver = WebResolver(web, clock=clock)
    await check(resolver)
    web.serve(document(key=NEW))
    await check(resolver, NEW)
    assert len(web.asked) == 2
    for _ in range(5):
        with pytest.raises(PeerError):
            await check(resolver, OLD)
    assert len(web.asked) == 2
    clock.now = 10.0
    with pytest.raises(PeerError):
        await check(resolver, OLD)
    assert len(web.asked) == 3


async def test_a_stranger_cannot_spoil_what_is_known_of_a_did() -> None:
    web = Web(document())
    resolver = WebResolver(web, clock=Clock())
    await check(resolver)
    web.error = FetchError("down")
    with pytest.raises(PeerError):
        await check(resolver, NEW)
    await check(resolver, OLD)
    # But a document that was taken away is gone.
    resolver.forget(HOST.text)
    web.error = FetchError("404", gone=True)
    with pytest.raises(PeerError):
        await check(resolver)


async def test_one_host_is_asked_only_so_often() -> None:
    web, clock = Web(), Clock()
    limits = ResolverLimits(max_per_host=3)
    resolver = WebResolver(web, limits=limits, clock=clock)
    for number in range(5):
        with pytest.raises(PeerError):
            await resolver.resolve(f"did:wba:victim.example:p{number}")
    assert len(web.asked) == 3
    clock.now = 60.0
    with pytest.raises(PeerError):
        await resolver.resolve("did:wba:victim.example:later")
    assert len(web.asked) == 4


async def test_only_so_many_documents_are_waited_for_and_kept() -> None:
    web = Web()
    web.gate = asyncio.Event()
    limits = ResolverLimits(max_waiting=2, max_documents=2)
    resolver = WebResolver(web, limits=limits)
    waiting = [
        asyncio.create_task(resolver.resolve(f"did:wba:h{number}.example"))
        for number in range(3)
    ]
    await asyncio.sleep(0)
    with pytest.raises(PeerError, match="too many"):
        await waiting[2]
    web.gate.set()
    await asyncio.gather(*waiting, return_exceptions=True)
    for number in range(3, 6):
        with pytest.raises(PeerError):
            await resolver.resolve(f"did:wba:h{number}.example")
    with pytest.raises(PeerError):
        await resolver.resolve("did:wba:h3.example")
    assert web.asked.count("https://h3.example/.well-known/did.json") == 2


async def test_a_did_that_was_given_up_is_not_found() -> None:
    with pytest.raises(PeerError) as caught:
        await check(WebResolver(Web({**document(), "deactivated": True})))
    assert caught.value.code is ErrorCode.DID_NOT_FOUND


async def test_closing_ends_what_is_under_way() -> None:
    web = Web(document())
    web.gate = asyncio.Event()
    resolver = WebResolver(web)
    waiting = asyncio.create_task(check(resolver))
    await asyncio.sleep(0)
    await resolver.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_key_that_was_only_checked_leaves_nothing_behind() -> None:
    web, pins = Web(document()), Pins()
    resolver = WebResolver(web, pins=pins)
    await check(resolver)
    assert pins.known == {}
    # So whoever controls the server for a moment has not decided who is believed.
    resolver.forget(HOST.text)
    web.serve(document(key=NEW))
    await meet(resolver, NEW)
    assert pins.known[HOST.text] == Pinned((NEW.public_key.multibase,))


async def test_of_two_first_keys_the_one_that_completes_first_counts() -> None:
    web, pins = Web(document()), Pins()
    resolver = WebResolver(web, pins=pins)
    await check(resolver, OLD)
    resolver.forget(HOST.text)
    web.serve(document(key=NEW))
    await check(resolver, NEW)
    await resolver.accepted(HOST.text, KEY_ID, NEW.public_bytes)
    # The other is not in the document any more, or is a changed key.
    await resolver.accepted(HOST.text, KEY_ID, OLD.public_bytes)
    assert pins.known[HOST.text] == Pinned((NEW.public_key.multibase,))
    resolver.forget(HOST.text)
    web.serve(document(key=OLD))
    with pytest.raises(PeerError, match="has changed"):
        await resolver.accepted(HOST.text, KEY_ID, OLD.public_bytes)
    assert pins.known[HOST.text] == Pinned((NEW.public_key.multibase,))


async def test_a_changed_key_is_refused_loudly_until_it_is_trusted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    web, pins = Web(document()), Pins()
    resolver = WebResolver(web, pins=pins)
    await meet(resolver)
    assert pins.known[HOST.text] == Pinned((OLD.public_key.multibase,))
    web.serve(document(key=NEW))
    with (
        caplog.at_level(logging.WARNING),
        pytest.raises(PeerError, match=f"anpd peers trust {HOST.text}") as caught,
    ):
        await check(resolver, NEW)
    assert caught.value.code is ErrorCode.NOT_ALLOWED
    assert "KEY OF A DID HAS CHANGED" in caplog.text
    assert pins.known[HOST.text] == Pinned(
        (OLD.public_key.multibase,), (NEW.public_key.multibase,)
    )
    pins.known[HOST.text] = Pinned((NEW.public_key.multibase,))
    await check(resolver, NEW)


async def test_a_key_published_beforehand_needs_no_word() -> None:
    both = document(BOUND, OLD, BINDING)
    plain = document()
    plain["verificationMethod"].append(
        {
            "id": f"{HOST.text}#next",
            "type": "JsonWebKey2020",
            "controller": HOST.text,
            "publicKeyJwk": NEW.public_key.jwk,
        }
    )
    plain["authentication"] = [KEY_ID, f"{HOST.text}#next"]
    resolver = WebResolver(Web(plain, both), pins=Pins())
    await meet(resolver, OLD)
    await meet(resolver, NEW, f"{HOST.text}#next")


async def test_the_key_in_a_path_vouches_for_new_ones(
    caplog: pytest.LogCaptureFixture,
) -> None:
    web, pins = Web(document(BOUND, OLD, BINDING)), Pins()
    resolver = WebResolver(web, pins=pins)
    await meet(resolver, OLD, f"{BOUND.text}#key-2")
    web.serve(document(BOUND, NEW, BINDING))
    with caplog.at_level(logging.WARNING):
        await meet(resolver, NEW, f"{BOUND.text}#key-2")
    assert "vouched for" in caplog.text
    with pytest.raises(PeerError):
        await check(resolver, OLD, f"{BOUND.text}#key-2")


def test_waiting_keys_are_few() -> None:
    pinned = Pinned((OLD.public_key.multibase,))
    for _ in range(20):
        key = PrivateKey.generate()
        page = json.dumps(document(key=key)).encode()
        found = parse_document(page, HOST)
        verdict, pinned = judge_key(pinned, found, key.public_key)
        assert verdict is KeyVerdict.CHANGED
    assert len(pinned.waiting) == 16
    assert pinned.waiting[0] == key.public_key.multibase
    assert pinned.trusted == (OLD.public_key.multibase,)
