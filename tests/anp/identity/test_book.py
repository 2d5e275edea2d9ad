"""The address book: finding peers, trust on first use, refusal of change."""

from __future__ import annotations

from contextlib import suppress

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from anp.errors import (
    CallError,
    ConfigError,
    ConflictError,
    ErrorKind,
    PeerError,
    UnknownError,
)
from anp.identity.address import PeerAddress, parse_peer
from anp.identity.book import MAX_NAMES, AddressBook, Destination
from anp.identity.dids import did_all, did_key, same_agent
from anp.identity.keys import PrivateKey
from tests.anp.identity.names import AddedNames

# Fixed, so that every test process collects tests of the same names.
PUBLIC = PrivateKey(ec.derive_private_key(7, ec.SECP256R1())).public_bytes
DID, TWIN = did_key(PUBLIC), did_all(PUBLIC)
OTHER = did_key(PrivateKey(ec.derive_private_key(8, ec.SECP256R1())).public_bytes)
LOCAL, AWAY, SECURE = "ws://127.0.0.1:8765/", "ws://a.example/", "wss://a.example/"


class MemoryPins(AddedNames):
    def __init__(self, pins: dict[str, str] | None = None) -> None:
        super().__init__()
        self.pins = dict(pins or {})

    def get_pin(self, url: str) -> str | None:
        return self.pins.get(url)

    def put_pin(self, url: str, did: str) -> None:
        self.pins[url] = did

    def url_of(self, agent: str) -> str | None:
        for url, did in reversed(self.pins.items()):
            with suppress(PeerError):
                if same_agent(agent, did):
                    return url
        return None


def make_book(*entries: PeerAddress, pins: dict[str, str] | None = None) -> AddressBook:
    return AddressBook(entries, MemoryPins(pins))


def test_a_url_alone_leaves_the_did_open_until_it_is_pinned() -> None:
    pins = MemoryPins()
    book = AddressBook([], pins)
    assert book.lookup(parse_peer(LOCAL)) == Destination(LOCAL, None, named=False)
    assert book.confirm(LOCAL, DID) is True
    assert book.lookup(parse_peer(LOCAL)) == Destination(LOCAL, DID, named=False)
    assert book.confirm(LOCAL, DID) is False
    assert pins.pins == {LOCAL: DID}


@pytest.mark.parametrize("url", [LOCAL, SECURE, "ws://[::1]:1/", "ws://localhost/"])
def test_loopback_and_wss_are_trusted_at_first_use(url: str) -> None:
    assert make_book().confirm(url, DID) is True


@pytest.mark.parametrize("url", [AWAY, "ws://10.0.0.1/", "ws://[::]/"])
def test_first_use_of_another_machine_in_the_clear_needs_the_owners_word(
    url: str,
) -> None:
    pins = MemoryPins()
    book = AddressBook([], pins)
    with pytest.raises(CallError, match="--trust-first-use") as caught:
        book.confirm(url, DID)
    assert caught.value.kind is ErrorKind.POLICY
    assert pins.pins == {}
    assert book.confirm(url, DID, trust_first_use=True) is True
    assert book.confirm(url, DID) is False


def test_a_did_the_owner_named_needs_no_trust() -> None:
    book = make_book()
    found = book.lookup(parse_peer(f"{AWAY}#{DID}"))
    assert found == Destination(AWAY, DID, named=True)
    assert book.confirm(found.url, DID, named=found.named) is True


@pytest.mark.parametrize("trust", [False, True])
@pytest.mark.parametrize("url", [LOCAL, AWAY, SECURE])
def test_another_did_at_a_pinned_url_is_refused(url: str, trust: bool) -> None:
    book = make_book(pins={url: DID})
    with pytest.raises(CallError, match=f"anpd peers forget {DID}") as caught:
        book.confirm(url, OTHER, named=trust, trust_first_use=trust)
    assert caught.value.kind is ErrorKind.IDENTITY_REFUSED
    with pytest.raises(CallError) as caught:
        book.lookup(PeerAddress(url=url, did=OTHER))
    assert caught.value.kind is ErrorKind.IDENTITY_REFUSED


def test_the_other_did_of_the_same_key_is_no_change() -> None:
    book = make_book(pins={LOCAL: DID})
    assert book.confirm(LOCAL, TWIN) is False
    assert book.lookup(PeerAddress(url=LOCAL, did=TWIN)).did == TWIN


def test_every_spelling_of_a_url_has_the_same_pin() -> None:
    book = make_book(pins={SECURE: DID})
    assert book.lookup(parse_peer("https://A.EXAMPLE:443")).did == DID
    with pytest.raises(CallError):
        book.confirm("https://A.EXAMPLE:443", OTHER)


def test_an_answer_that_is_no_did_is_refused() -> None:
    with pytest.raises(CallError) as caught:
        make_book().confirm(LOCAL, "nonsense")
    assert caught.value.kind is ErrorKind.IDENTITY_REFUSED


def test_a_name_is_looked_up_in_the_owners_entries() -> None:
    book = make_book(
        PeerAddress(name="both", did=DID, url=LOCAL),
        PeerAddress(name="url", url="http://a.example"),
        PeerAddress(name="did", did=OTHER),
        pins={SECURE: OTHER},
    )
    assert book.lookup(parse_peer("both")) == Destination(LOCAL, DID, named=True)
    assert book.lookup(parse_peer("url")) == Destination(AWAY, None, named=False)
    assert book.lookup(parse_peer("did")) == Destination(SECURE, OTHER, named=True)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(CallError, match=r"shop .* it has bank, mail") as caught:
        make_book(
            PeerAddress(name="mail", url=LOCAL), PeerAddress(name="bank", url=AWAY)
        ).lookup(parse_peer("shop"))
    assert caught.value.kind is ErrorKind.USAGE
    with pytest.raises(CallError, match=r"anpd peers add shop URL"):
        make_book().lookup(parse_peer("shop"))


def test_a_did_alone_is_found_in_the_book_then_in_the_pins_then_in_itself() -> None:
    entry = PeerAddress(name="shop", did=DID, url=LOCAL)
    there = did_all(PUBLIC, "b.example:1")
    assert make_book(entry, pins={AWAY: DID}).lookup(PeerAddress(did=DID)).url == LOCAL
    assert make_book(entry).lookup(PeerAddress(did=TWIN)).url == LOCAL
    assert make_book(pins={AWAY: DID}).lookup(PeerAddress(did=DID)).url == AWAY
    assert make_book(pins={AWAY: DID}).lookup(PeerAddress(did=TWIN)).url == AWAY
    found = make_book().lookup(PeerAddress(did=there))
    assert found == Destination("ws://b.example:1/", there, named=True)


def test_the_newest_pin_of_a_did_wins() -> None:
    book = make_book(pins={LOCAL: DID, AWAY: OTHER, SECURE: DID})
    assert book.lookup(PeerAddress(did=DID)).url == SECURE


@pytest.mark.parametrize("did", [DID, TWIN, "did:wba:a.example", "did:key:zbroken"])
def test_a_did_without_known_address_is_a_usage_error(did: str) -> None:
    with pytest.raises(CallError, match="no address is known") as caught:
        make_book(pins={AWAY: OTHER}).lookup(PeerAddress(did=did))
    assert caught.value.kind is ErrorKind.USAGE
    with pytest.raises(CallError, match="no peer given"):
        make_book().lookup(PeerAddress())


def test_entries_need_a_name_and_an_address_and_stand_once() -> None:
    for entry in (PeerAddress(name="a"), PeerAddress(url=LOCAL)):
        with pytest.raises(ConfigError, match="needs a name"):
            make_book(entry)
    entry = PeerAddress(name="a", url=LOCAL)
    with pytest.raises(ConfigError, match="given twice"):
        make_book(entry, entry)


def test_a_name_that_was_added_stands_for_its_peer() -> None:
    pins = MemoryPins()
    book = AddressBook([], pins)
    book.add("shop", parse_peer(f"{AWAY}#{DID}"))
    assert book.lookup(parse_peer("shop")) == Destination(AWAY, DID, named=True)
    # The DID alone leads there, too; but nobody proved it there yet.
    assert book.lookup(parse_peer(TWIN)).url == AWAY
    assert pins.pins == {}
    # A book of another run, which has the same store.
    assert AddressBook([], pins).named("shop") == PeerAddress("shop", DID, AWAY)
    book.remove("shop")
    with pytest.raises(CallError, match="no peer is called shop"):
        book.lookup(parse_peer("shop"))


def test_a_name_is_not_given_to_another_peer_silently() -> None:
    book = make_book(PeerAddress("fixed", DID, None))
    book.add("shop", parse_peer(DID))
    assert book.add("shop", parse_peer(DID)) == PeerAddress("shop", DID, None)
    with pytest.raises(ConflictError, match="anpd peers remove shop"):
        book.add("shop", parse_peer(OTHER))
    with pytest.raises(ConflictError, match="configuration"):
        book.add("fixed", parse_peer(OTHER))
    with pytest.raises(ConflictError, match="configuration"):
        book.remove("fixed")
    with pytest.raises(UnknownError, match="fixed, shop"):
        book.remove("shops")


@pytest.mark.parametrize(
    ("name", "peer"), [("a b", DID), ("", DID), ("did:key:a", DID), ("shop", "other")]
)
def test_what_cannot_be_named_is_refused(name: str, peer: str) -> None:
    with pytest.raises(CallError, match="name") as caught:
        make_book().add(name, parse_peer(peer))
    assert caught.value.kind is ErrorKind.USAGE


def test_a_name_for_another_did_than_the_pinned_one_is_refused() -> None:
    with pytest.raises(CallError, match=f"at {LOCAL} is {DID}, not {OTHER}"):
        make_book(pins={LOCAL: DID}).add("shop", parse_peer(f"{LOCAL}#{OTHER}"))


def test_names_have_a_limit() -> None:
    book = make_book()
    for number in range(MAX_NAMES):
        book.add(f"n{number}", parse_peer(DID))
    with pytest.raises(CallError, match="makes room"):
        book.add("more", parse_peer(DID))
