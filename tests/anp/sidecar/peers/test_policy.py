"""The owner's decisions about peers hold for every DID of a key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from anp.errors import PeerError
from anp.identity.dids import did_all, did_key
from anp.identity.keys import PrivateKey
from anp.sidecar.config.entries import PeerEntry
from anp.sidecar.config.settings import Config
from anp.sidecar.peers.policy import PeerPolicy, PeerRules
from cache.errors import StoreUnavailable
from cache.records.peers import PeerState
from cache.store import Store
from tests.clauses import clause

KEY = PrivateKey.generate().public_bytes
FORMS = {
    "did:key": did_key(KEY),
    "did:all": did_all(KEY),
    "did:all at a host": did_all(KEY, "host.example:7"),
}


@pytest.fixture
def policy(tmp_path: Path) -> Iterator[PeerPolicy]:
    with Store(tmp_path) as store:
        yield PeerPolicy(store, PeerRules("any"))


@pytest.mark.parametrize("shown", FORMS)
@pytest.mark.parametrize("named", FORMS)
async def test_a_decision_holds_under_each_did_of_a_key(
    named: str, shown: str, policy: PeerPolicy
) -> None:
    did = FORMS["did:key"], FORMS[shown]
    await policy.rule(FORMS[named], PeerState.BLOCKED)
    assert policy.state(*did) is PeerState.BLOCKED
    with pytest.raises(PeerError, match="is blocked"):
        await policy.check(did[0], shown_did=did[1])
    # Also after it was met, and taken back under another form.
    await policy.remember(did[0], shown_did=did[1])
    assert policy.is_blocked(FORMS[named])
    await policy.rule(FORMS[shown], PeerState.ALLOWED)
    assert policy.state(*did) is PeerState.ALLOWED
    assert policy.is_listed(did[0])
    assert policy.forget(FORMS[shown])
    assert policy.state(*did) is PeerState.UNKNOWN


@pytest.mark.parametrize("shown", FORMS)
@pytest.mark.parametrize("named", FORMS)
def test_a_rule_of_the_configuration_holds_under_each_did_of_a_key(
    named: str, shown: str, policy: PeerPolicy
) -> None:
    for said, state in (("block", PeerState.BLOCKED), ("allow", PeerState.ALLOWED)):
        entry = PeerEntry(name="it", did=FORMS[named], policy=said)  # type: ignore[arg-type]
        policy.rules = PeerRules.of(Config(peer=(entry,)))
        assert policy.state(FORMS["did:key"], FORMS[shown]) is state


def test_a_block_is_stronger_than_a_permission(policy: PeerPolicy) -> None:
    did = FORMS["did:key"]
    policy.rules = PeerRules("any", allowed=frozenset({did}), blocked=frozenset({did}))
    assert policy.is_blocked(did)


async def test_who_is_not_listed_waits(policy: PeerPolicy) -> None:
    policy.rules = PeerRules("listed")
    did = FORMS["did:key"]
    with pytest.raises(PeerError, match="is not allowed"):
        await policy.check(did, shown_did=did)
    (known,) = policy.known(did)
    assert known.state is PeerState.WAITING
    assert policy.state(did) is PeerState.UNKNOWN


@clause("A2A-3")
async def test_a_caller_with_a_token_is_let_in(policy: PeerPolicy) -> None:
    # As a listed peer it has an account of its own for model calls.
    assert policy.is_listed("local:ann")
    assert not policy.is_blocked("local:ann")


@pytest.mark.parametrize("shown", FORMS)
@pytest.mark.parametrize("named", FORMS)
async def test_a_block_that_the_store_does_not_take_holds_without_the_store(
    named: str, shown: str, policy: PeerPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("no connection")

    did = FORMS["did:key"], FORMS[shown]
    with monkeypatch.context() as patched:
        patched.setattr(policy._store, "peers_known_as", away)
        with pytest.raises(StoreUnavailable):
            await policy.rule(FORMS[named], PeerState.BLOCKED)
        policy.hold(FORMS[named])
        with pytest.raises(PeerError, match="is blocked"):
            await policy.check(did[0], shown_did=did[1])
    assert policy.is_blocked(FORMS[shown])
    await policy.rule(FORMS[named], PeerState.ALLOWED)
    assert policy.state(*did) is PeerState.ALLOWED
