"""The finder gives the peer and the address for a DID of the web."""

from __future__ import annotations

import pytest

from anp.channel.dialler import Dialler
from anp.channel.links import LinkTarget
from anp.errors import CallError, ErrorCode, ErrorKind, PeerError
from anp.identity.address import PeerAddress
from anp.identity.book import AddressBook
from anp.identity.web.fetcher import Fetcher
from anp.sidecar.peers.contacts import Contacts
from anp.sidecar.peers.finder import PeerFinder
from tests.anp.identity.names import AddedNames

DID = "did:wba:shop.example"
KEY_DID = "did:key:zDnaerDc47pNyXc7bdXLzrLGTWdejR6HUJN2xtHHZJBBjX7af"


class Pins(AddedNames):
    """Pins in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[str, str] = {}

    def get_pin(self, url: str) -> str | None:
        return self.known.get(url)

    def put_pin(self, url: str, did: str) -> None:
        self.known[url] = did

    def url_of(self, agent: str) -> str | None:
        return next((url for url, did in self.known.items() if did == agent), None)


class Web:
    """Documents that name some URLs."""

    def __init__(self, *urls: str) -> None:
        self._urls = urls
        self.asked: list[str] = []

    async def urls(self, did: str) -> tuple[str, ...]:
        self.asked.append(did)
        if not self._urls:
            raise PeerError(ErrorCode.DID_NOT_FOUND, f"{did}: 404")
        return self._urls


def finder(web: Web, *entries: PeerAddress, blocked: str = "") -> PeerFinder:
    book = AddressBook(entries, Pins())
    return PeerFinder(book, lambda did: did == blocked, web=web)


async def test_a_did_alone_is_found_by_its_document() -> None:
    web = Web("wss://shop.example/", "wss://other.example/")
    found = await finder(web).find("did:wba:SHOP.example", trust_first_use=False)
    assert found == LinkTarget(DID, "wss://shop.example/", guarded=True)
    assert web.asked == [DID]


async def test_a_name_may_stand_for_such_a_did() -> None:
    entry = PeerAddress("shop", DID, None)
    found = await finder(Web("wss://shop.example/"), entry).find(
        "shop", trust_first_use=False
    )
    assert found.guarded


async def test_the_owners_address_comes_before_the_document() -> None:
    web = Web("wss://elsewhere.example/")
    entry = PeerAddress("shop", DID, "wss://10.0.0.7/")
    found = await finder(web, entry).find(DID, trust_first_use=False)
    assert found == LinkTarget(DID, "wss://10.0.0.7/")
    assert web.asked == []


@pytest.mark.parametrize(
    ("web", "peer", "blocked", "kind"),
    [
        (Web(), DID, "", ErrorKind.PEER_UNREACHABLE),
        (Web("wss://shop.example/"), DID, DID, ErrorKind.POLICY),
        (Web("wss://shop.example/"), "nobody", "", ErrorKind.USAGE),
        (Web("wss://shop.example/"), "did:example:a", "", ErrorKind.USAGE),
    ],
)
async def test_who_cannot_be_found_is_an_error(
    web: Web, peer: str, blocked: str, kind: ErrorKind
) -> None:
    with pytest.raises(CallError) as caught:
        await finder(web, blocked=blocked).find(peer, trust_first_use=False)
    assert caught.value.kind is kind


@pytest.mark.parametrize(
    "url",
    ["ws://169.254.169.254/", "wss://127.0.0.1:8765/", "wss://[::ffff:10.0.0.1]/"],
)
@pytest.mark.parametrize("has_guard", [True, False])
async def test_a_document_cannot_send_us_where_it_likes(
    url: str, has_guard: bool
) -> None:
    dialler = Dialler(addresses=Fetcher().addresses if has_guard else None)
    with pytest.raises(CallError) as caught:
        await dialler.dial(
            url, guarded=True, open_timeout=1.0, ping_interval=20.0, max_size=1000
        )
    assert caught.value.kind is ErrorKind.PEER_UNREACHABLE


async def test_a_did_that_the_owner_named_is_pinned_when_it_is_proved() -> None:
    pins = Pins()
    found = PeerFinder(AddressBook([], pins), lambda did: False)
    target = await found.find(f"ws://127.0.0.1:1/#{KEY_DID}", trust_first_use=False)
    # Nobody has shown that this DID is at home there.
    assert pins.known == {}
    await found.proved(target)
    assert pins.known == {"ws://127.0.0.1:1/": KEY_DID}


async def test_the_daemon_is_told_of_a_url_where_nobody_answers() -> None:
    contacts = Contacts()
    found = PeerFinder(
        AddressBook([], Pins()), lambda did: False, on_problem=contacts.note_url
    )
    with pytest.raises(CallError, match="nothing listens there"):
        await found.find("ws://127.0.0.1:1/", trust_first_use=False)
    trouble = contacts.trouble("ws://127.0.0.1:1/")
    assert trouble is not None
    assert "connection refused" in trouble.detail
    contacts.note(LinkTarget(KEY_DID, "ws://127.0.0.1:1/"), None)
    assert contacts.trouble("ws://127.0.0.1:1/") is None
