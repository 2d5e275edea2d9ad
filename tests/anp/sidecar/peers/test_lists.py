"""Lists of peers: kept, asked for again, and never more than data."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from anp.channel.links import LinkTarget
from anp.identity.web.fetcher import Fetcher
from anp.identity.web.guard import FetchError, FetchPolicy
from anp.sidecar.peers.lists import (
    LIST_PATH,
    FetchedPage,
    PeerLists,
    document_path,
    peer_getter,
)
from negotiation.consensus.listing import render_listing
from negotiation.consensus.registry import CodeKind, ConsensusProtocol
from negotiation.document.shape import document_hash
from negotiation.need import Capability
from tests.anp.identity.web.https_server import answer, serving
from tests.certificates import Authority
from tests.clauses import clause

PEER = LinkTarget("did:key:zPeer", "ws://127.0.0.1:9/")
PROTOCOL = ConsensusProtocol(
    "urn:x:one", "1.0", "the text", CodeKind.AGREED, published=True
)
LIST = render_listing([(PROTOCOL, [Capability("a.b", "", {}, {})])])


class Port:
    """A peer with fixed answers, which keeps the requests it got."""

    def __init__(self, *answers: FetchedPage | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str]] = []
        self.guarded = 0
        self.now = 0.0

    async def get(self, url: str, max_size: int, etag: str) -> FetchedPage:
        self.asked.append((url, etag))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def guarded_get(self, url: str, max_size: int, etag: str) -> FetchedPage:
        self.guarded += 1
        return await self.get(url, max_size, etag)

    def lists(self) -> PeerLists:
        return PeerLists(
            lifetime=300.0,
            get=self.get,
            guarded_get=self.guarded_get,
            clock=lambda: self.now,
        )


def uris(found: object) -> Sequence[str]:
    protocols = getattr(found, "protocols", ())
    return [one.uri for one in protocols]


async def test_a_list_is_asked_for_once_and_then_by_its_etag() -> None:
    port = Port(FetchedPage(200, LIST, '"1"'), FetchedPage(304, b""))
    lists = port.lists()
    assert uris(await lists.listing(PEER)) == ["urn:x:one"]
    port.now = 299.9
    assert uris(await lists.listing(PEER)) == ["urn:x:one"]
    assert port.asked == [("http://127.0.0.1:9/.well-known/anp/protocols", "")]
    port.now = 300.0
    assert uris(await lists.listing(PEER)) == ["urn:x:one"]
    assert port.asked[1][1] == '"1"'


async def test_calls_at_the_same_time_ask_once() -> None:
    port = Port(FetchedPage(200, LIST))
    lists = port.lists()
    found = await asyncio.gather(*(lists.listing(PEER) for _ in range(5)))
    assert [uris(one) for one in found] == [["urn:x:one"]] * 5
    assert len(port.asked) == 1


@pytest.mark.parametrize(
    "answer",
    [
        FetchedPage(404, b""),
        FetchedPage(200, b"no list"),
        FetchedPage(304, b""),
        FetchError("refused"),
        TimeoutError(),
    ],
)
async def test_a_peer_without_a_list_is_not_asked_at_every_call(
    answer: FetchedPage | Exception,
) -> None:
    port = Port(answer, FetchedPage(200, LIST))
    lists = port.lists()
    assert await lists.listing(PEER) is None
    port.now = 59.0
    assert await lists.listing(PEER) is None
    assert len(port.asked) == 1
    port.now = 60.0
    assert uris(await lists.listing(PEER)) == ["urn:x:one"]


async def test_a_list_that_turned_out_untrue_is_asked_for_again() -> None:
    port = Port(FetchedPage(200, LIST, '"1"'), FetchedPage(304, b""))
    lists = port.lists()
    await lists.listing(PEER)
    lists.forget(PEER)
    assert uris(await lists.listing(PEER)) == ["urn:x:one"]
    assert len(port.asked) == 2


async def test_without_an_address_nobody_is_asked() -> None:
    port = Port()
    assert await port.lists().listing(LinkTarget(PEER.did, None)) is None
    assert await port.lists().listing(PEER, ask=False) is None
    assert port.asked == []


async def test_an_address_that_only_the_peer_named_is_asked_through_the_guard() -> None:
    port = Port(FetchedPage(200, LIST))
    assert await port.lists().listing(LinkTarget(PEER.did, PEER.url, True)) is not None
    assert port.guarded == 1


async def test_a_document_is_what_its_hash_says_or_none() -> None:
    digest = document_hash("the text")
    port = Port(
        FetchedPage(200, b"another text"),
        FetchedPage(404, b""),
        FetchedPage(200, b"\xff\xfe"),
        FetchedPage(200, b"the text"),
    )
    lists = port.lists()
    for _ in range(3):
        assert await lists.document(PEER, digest) is None
    assert await lists.document(PEER, digest) == "the text"
    assert await lists.document(PEER, digest) == "the text"
    assert len(port.asked) == 4
    assert port.asked[0][0].endswith(document_path(digest))


@clause("ANP-95")
async def test_a_list_over_https_is_read_with_the_authorities_of_the_daemon(
    tmp_path: Path,
) -> None:
    authority = Authority(tmp_path)
    fetcher = Fetcher(FetchPolicy(ca_file=str(authority.file)))
    certificate = authority.issue("localhost")
    async with serving(answer(LIST), certificate.context()) as served:
        url = f"https://localhost:{served.port}{LIST_PATH}"
        found = await peer_getter(fetcher.tls)(url, 10_000, "")
        assert (found.status, found.body) == (200, LIST)
        # Whoever is not known to the daemon is not believed, here as on the link.
        with pytest.raises(FetchError):
            await peer_getter(Fetcher().tls)(url, 10_000, "")
