"""Keys that sign in groups belong to the DIDs that they are said to be of."""

from __future__ import annotations

from anp.identity.dids import Identities, LocalIdentity
from anp.identity.keys import PrivateKey
from anp.identity.resolver import ChainResolver
from anp.sidecar.groups.checked_keys import CheckedKeys, named_keys, signer_of


def identity(method: str = "did:key") -> LocalIdentity:
    return Identities.of_method(PrivateKey.generate(), method).primary


async def test_a_key_verifies_once_it_was_checked() -> None:
    for method in ("did:key", "did:all"):
        signer, keys = signer_of(identity(method)), CheckedKeys(ChainResolver())
        signature = signer.sign(b"data")
        assert not keys(signer.did, signer.key, signature, b"data")
        await keys.learn([(signer.did, signer.key)])
        assert keys(signer.did, signer.key, signature, b"data")
        assert not keys(signer.did, signer.key, signature, b"other data")


async def test_a_key_of_another_did_is_not_learned() -> None:
    one, other, keys = (
        signer_of(identity()),
        signer_of(identity()),
        CheckedKeys(ChainResolver()),
    )
    named = [
        (one.did, other.key),
        (one.did, one.key.replace("#keys-1", "#keys-2")),
        (one.did, "no key"),
        ("did:web:nowhere.example", one.key),
        ("no did", one.key),
    ]
    await keys.learn(named)
    for did, key in named:
        for signer in (one, other):
            assert not keys(did, key, signer.sign(b"data"), b"data")


def test_names_are_found_in_any_json() -> None:
    package = {"package": {"did": "a", "key": "k"}}
    entry = {"entry": {"by": "b", "key": "l"}, "more": 3}
    strange: list[object] = [
        None,
        3,
        [],
        {"entry": []},
        {"entry": {"by": 3, "key": "k"}},
    ]
    assert list(named_keys([package, entry, *strange])) == [("a", "k"), ("b", "l")]
