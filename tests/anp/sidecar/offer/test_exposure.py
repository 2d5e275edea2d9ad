"""What peers are offered is put together once, and again when something changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from anp.identity.dids import Identities
from anp.identity.keys import PrivateKey
from anp.sidecar.attachments import AttachmentSpec
from anp.sidecar.config.entries import PeerEntry
from anp.sidecar.offer.exposure import EVERYBODY, Exposure
from negotiation.need import Capability
from tests.negotiation.formats import strict

PEER = Identities.of_method(PrivateKey.generate(), "did:key").primary.did
SPEC = AttachmentSpec(kind="python", name="t", target="t", cwd=Path("/"), expose=("*",))


class Tools:
    """An attachment with a few tools."""

    def __init__(self, *names: str) -> None:
        self.healthy = True
        self.tools = [Capability(f"t.{one}", "", strict(), strict()) for one in names]

    def capabilities(self) -> list[Capability]:
        return list(self.tools)


def names(exposure: Exposure, peer: str | None = PEER) -> list[str]:
    return [one.name for one in exposure.offered(peer)]


def test_what_did_not_change_is_not_put_together_again() -> None:
    exposure, tools = Exposure(), Tools("b", "a")
    attachment: Any = tools
    exposure.put(SPEC, attachment)
    assert names(exposure) == ["t.a", "t.b"]
    assert exposure.offered(PEER) is exposure.offered(EVERYBODY)


def test_every_change_is_seen_at_once() -> None:
    exposure, tools = Exposure(), Tools("b", "a")
    attachment: Any = tools
    exposure.put(SPEC, attachment)
    assert names(exposure) == ["t.a", "t.b"]
    tools.tools.append(Capability("t.c", "", strict(), strict()))
    exposure.changed()
    assert names(exposure) == ["t.a", "t.b", "t.c"]
    tools.tools[0] = replace(tools.tools[0], read_only=True)
    exposure.changed()
    assert exposure.offered(PEER)[1].read_only
    tools.healthy = False
    assert names(exposure) == []
    tools.healthy = True
    exposure.put(replace(SPEC, expose=("a",)), attachment)
    assert names(exposure) == ["t.a"]
    entry = PeerEntry(name="p", did=PEER, expose=("b",))
    exposure.set_peers([entry])
    assert (names(exposure), names(exposure, EVERYBODY)) == (["t.b"], ["t.a"])
    assert [one.name for one in exposure.offered_to_some()] == ["t.a", "t.b"]
    exposure.set_peers([])
    assert [one.name for one in exposure.offered_to_some()] == ["t.a"]
    exposure.drop("t")
    assert names(exposure) == []


def test_a_misfit_is_told_from_the_capabilities_in_question() -> None:
    exposure, tools = Exposure(), Tools("a")
    attachment: Any = tools
    exposure.put(SPEC, attachment)
    assert exposure.misfit({"t.b": ""}, PEER) == "t.b is not exposed or not healthy"
    assert exposure.misfit({"t.a": ""}, PEER) == "the schema of t.a has changed"
    assert exposure.misfit({}, PEER) is None
