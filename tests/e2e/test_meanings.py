"""A capability that is described in other words, with the same schemas."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from anp.sidecar.agreement.meanings import EVERY_PEER
from anp.sidecar.agreement.rulings import Decision
from anp.sidecar.attachments import save_attachment
from anp.sidecar.attachments.spec import AttachmentSpec
from anp.sidecar.library.retest import Retester
from cache.records.negotiations import NegotiationRecord
from negotiation.need import Capability
from tests.e2e.house import House, house_in
from tests.waiting import until

PRICE = '''
def price(sku: str) -> dict[str, float]:
    """Return the price in euros."""
    return {"price": 89.5}
'''
DEAR = PRICE.replace("euros", "cents").replace("89.5", "8950.0")


def described(house: House) -> Capability:
    offered = house.provider.exposure.offered(None)
    return next(one for one in offered if one.name == "price.price")


async def change(house: House, before: str, after: str) -> None:
    """Write the function's file anew, and attach it again."""
    spec: AttachmentSpec = house.provider.exposure.attachments["price"][0]
    assert spec.target is not None
    assert spec.cwd is not None
    file = Path(spec.cwd) / f"{spec.target.partition(':')[0]}.py"
    text = file.read_text()
    assert before.strip() in text
    again = file.with_name(f"{file.stem}_x.py")
    again.write_text(text.replace(before.strip(), after.strip()))
    moved = replace(spec, target=f"{again.stem}:price")
    save_attachment(house.provider.home.attachments, moved)
    words = described(house).description
    await house.provider.reload()
    await until(
        lambda: (
            "price" in house.provider.exposure.attachments
            and any(
                one.name == "price.price" and one.description != words
                for one in house.provider.exposure.offered(None)
            )
        )
    )


async def waiting(house: House) -> list[NegotiationRecord]:
    found = await house.provider.agreer.desk.negotiations(open_only=True)
    return [one for one in found if one.peer_did == EVERY_PEER]


async def test_what_has_side_effects_waits_for_the_owner_and_the_caller_is_told(
    tmp_path: Path,
) -> None:
    async with house_in(tmp_path, more={"price": PRICE}) as house:
        first = await house.result("price", {"sku": "a"})
        assert (first.source, first.notes) == ("negotiated", ())
        await change(house, PRICE, DEAR)
        again = await house.result("price", {"sku": "a"})
        # The hash is declined, so the caller looks at the capability as it is by now.
        assert again.source == "negotiated"
        assert again.output == {"price": 8950.0}
        (note,) = again.notes
        assert "agreed anew" in note
        assert (await house.result("price", {"sku": "a"})).notes == ()
        (entry,) = await waiting(house)
        assert "price in cents" in entry.reason
        assert entry.pending is not None
        assert not entry.pending["read_only"]
        desk = house.provider.agreer.desk
        await desk.decide(entry.id, Decision("accept"))
        assert await waiting(house) == []


@pytest.mark.parametrize("accepts", [True, False])
async def test_an_agreement_goes_on_once_the_owner_accepts(
    tmp_path: Path, accepts: bool
) -> None:
    async with house_in(tmp_path, more={"price": PRICE}) as house:
        first = await house.result("price", {"sku": "a"})
        assert first.protocol is not None
        half = house.provider.store.halves(first.protocol)[-1]
        await change(house, PRICE, DEAR)
        gate, peer = house.provider.capability_calls.gate, house.caller.did
        for _ in range(2):
            problem = await gate.half_problem(half, peer)
            assert problem == (
                "the owner has to accept the new description of price.price"
            )
        # A rerun of the tests is no proof of what the words mean.
        daemon = house.provider
        retester = Retester(
            store=daemon.store,
            workshop=daemon.workshop,
            exposure=daemon.exposure,
            binder=daemon.binder,
            finder=daemon.finder,
        )
        (run,) = await retester.offline(first.protocol)
        assert not run.problems
        assert await gate.half_problem(half, peer) is not None
        (entry,) = await waiting(house)
        said = Decision("accept" if accepts else "reject")
        await house.provider.agreer.desk.decide(entry.id, said)
        assert (await gate.half_problem(half, peer) is None) is accepts
        assert await waiting(house) == []


async def test_what_is_read_only_goes_on_and_both_owners_are_told(
    tmp_path: Path,
) -> None:
    async with house_in(
        tmp_path, more={"price": PRICE}, documents=True, consensus__use=True
    ) as house:
        spec = house.provider.exposure.attachments["price"][0]
        save_attachment(
            house.provider.home.attachments, replace(spec, read_only=("*",))
        )
        await house.provider.reload()
        await until(lambda: described(house).read_only)
        first = await house.result("price", {"sku": "a"})
        assert first.notes == ()
        key = first.protocol
        assert key is not None
        store = house.caller.store
        await until(
            lambda: any("meaning" in one.tests for one in store.agreements_of(key))
        )
        await change(house, PRICE, DEAR)
        # The list that the caller has is out of date by now.
        for lists in (house.caller.candidates._lists,):
            lists._lists.clear()
        again = await house.result("price", {"sku": "a"})
        assert again.source == "agreement"
        assert len(await waiting(house)) == 1
        bound = house.caller.binder.requesters
        await until(lambda: any(one.news for one in bound._open))
        (note,) = (await house.result("price", {"sku": "a"})).notes
        assert "price.price in other words" in note
        assert "price in cents" in note


async def test_many_changes_of_one_day_are_one_entry(tmp_path: Path) -> None:
    async with house_in(tmp_path, more={"price": PRICE}) as house:
        first = await house.result("price", {"sku": "a"})
        assert first.protocol is not None
        half = house.provider.store.halves(first.protocol)[-1]
        words = house.provider.capability_calls.gate._words
        for number in range(6):
            changed = replace(described(house), description=f"Version {number}.")
            assert await words.changed_meaning(half, [changed]) is not None
        rows = house.provider.store.negotiations(limit=100)
        asked = [one for one in rows if one.peer_did == EVERY_PEER]
        assert len(asked) == 3
        (entry,) = await waiting(house)
        assert "Version 5." in entry.reason
