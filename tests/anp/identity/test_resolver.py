"""The resolvers: self-certifying DIDs, and the choice by method."""

from __future__ import annotations

import pytest

from anp.errors import ErrorCode, PeerError
from anp.identity.dids import did_all, did_key, key_id_of
from anp.identity.keys import PrivateKey
from anp.identity.resolver import ChainResolver, KeyResolver

PUBLIC = PrivateKey.generate().public_bytes


class Recorder:
    def __init__(self) -> None:
        self.asked: list[str] = []
        self.completed: list[str] = []

    async def check_key(self, did: str, key_id: str, public_key: bytes) -> None:
        self.asked.append(did)

    async def accepted(self, did: str, key_id: str, public_key: bytes) -> None:
        self.completed.append(did)


async def test_a_self_certifying_did_is_checked_without_asking_anybody() -> None:
    for resolver in (KeyResolver(), ChainResolver()):
        for did in (did_key(PUBLIC), did_all(PUBLIC), did_all(PUBLIC, "a.example:1")):
            await resolver.check_key(did, key_id_of(did), PUBLIC)
            other = PrivateKey.generate().public_bytes
            with pytest.raises(PeerError) as caught:
                await resolver.check_key(did, key_id_of(did), other)
            assert caught.value.code is ErrorCode.NOT_ALLOWED


async def test_a_method_nobody_knows_is_not_found() -> None:
    with pytest.raises(PeerError, match=r"only did:all, did:key") as caught:
        await ChainResolver().check_key("did:wba:a", "did:wba:a#keys-1", PUBLIC)
    assert caught.value.code is ErrorCode.DID_NOT_FOUND


async def test_a_text_that_is_no_did_is_not_found() -> None:
    for did in ("", "did:", "nonsense", "did:key:", "did:key:zzz"):
        with pytest.raises(PeerError) as caught:
            await ChainResolver().check_key(did, key_id_of(did), PUBLIC)
        assert caught.value.code is ErrorCode.DID_NOT_FOUND


async def test_each_method_goes_to_its_resolver() -> None:
    web, wba = Recorder(), Recorder()
    chain = ChainResolver({"web": web, "wba": wba})
    await chain.check_key("did:web:a", "did:web:a#k", PUBLIC)
    await chain.check_key("did:wba:b", "did:wba:b#k", PUBLIC)
    assert (web.asked, wba.asked) == (["did:web:a"], ["did:wba:b"])
    with pytest.raises(PeerError, match="only did:wba, did:web"):
        await chain.check_key(did_key(PUBLIC), "", PUBLIC)
