"""Carries out attacks, and looks for their success in all that can be seen."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import count, groupby
from pathlib import Path

from tests.attacks_model.attack import Attack, Broken, Outcome, Victim
from tests.attacks_model.model import ObedientModel, obedient_model
from tests.attacks_model.private import PRIVATE, found_in
from tests.attacks_model.scene import EXPOSED, House, Scene, house
from tests.attacks_model.wire import wire_tapped

SECONDS = 60.0
"Longest time of one attack."

MAY_KNOW = {"hint": {"select", "allow"}, "call data": {"reply"}}
"Steps whose prompts may hold a private text."


async def carried_out(
    attacks: Iterable[Attack], *, variants: Sequence[bool] = (False, True)
) -> AsyncIterator[Outcome]:
    """Carry attacks out, those with the same settings on the same two daemons.

    Args:
        variants: Whether the model keeps to the forms (False) or answers freely.
    """
    numbers = count(1)
    ordered = sorted(attacks, key=_settings)
    with obedient_model() as model, wire_tapped() as wire:
        for _, group in groupby(ordered, key=_settings):
            same = list(group)
            if same[0].settings:
                # Budgets are used up, so each run has daemons of its own.
                batches = [[(one, free)] for one in same for free in variants]
            else:
                batches = [[(one, free) for one in same for free in variants]]
            for batch in batches:
                with tempfile.TemporaryDirectory() as folder:
                    place, outcomes = Path(folder), []
                    async with house(place, batch[0][0], model, wire) as found:
                        for attack, free in batch:
                            model.free = free
                            scene = await found.begin(attack, next(numbers))
                            outcomes.append(await _carry_out(found, scene, free))
                        pages = await _pages(found)
                    # The peer's records, as they rest on its disk.
                    kept = b"\n".join(
                        one.read_bytes()
                        for one in (place / "attacker").rglob("*")
                        if one.is_file() and one.suffix != ".key"
                    )
                    for name in found_in(pages + kept):
                        outcomes[-1].broken.append(f"the peer's records tell: {name}")
                for outcome in outcomes:
                    yield outcome


def _settings(attack: Attack) -> str:
    same = (attack.victim, attack.approve, attack.cases, attack.listed)
    return f"{same} {sorted(attack.settings.items())}"


async def _carry_out(found: House, scene: Scene, free: bool) -> Outcome:
    attack, model = scene.attack, scene.model
    outcome = Outcome(attack, free)
    side = "victim" if attack.victim is Victim.PROVIDER else "attacker"
    before = {one: len(found.runs(one)) for one in ("victim", "attacker")}
    scene.wire.take()
    model.asked, model.obeyed, model.knew = [], 0, set()
    await scene.hint(PRIVATE["hint"])
    try:
        async with asyncio.timeout(SECONDS):
            if attack.act is not None:
                await attack.act(scene)
            else:
                await scene.call()
                await scene.call()
    except Broken as exc:
        outcome.broken.append(str(exc))
    except TimeoutError:
        outcome.broken.append(f"not over after {SECONDS:g} s")
    sent = scene.wire.take()
    ours = {scene.victim.did, scene.victim.identities.canonical}
    outcome.ended = scene.ended
    outcome.asked, outcome.obeyed = len(model.asked), model.obeyed
    outcome.knew = model.knew
    outcome.frames = sum(who in ours for who, _ in sent)
    outcome.bytes = sum(len(data) for who, data in sent if who in ours)
    outcome.ran = [name for name, _ in found.runs(side)[before[side] :]]
    told = b"\n".join([*(data for _, data in sent), *map(str.encode, scene.heard)])
    outcome.broken += [f"told the peer: {name}" for name in sorted(found_in(told))]
    outcome.broken += _prompts(model)
    if side == "victim":
        hidden = set(outcome.ran) - set(EXPOSED)
        outcome.broken += [f"ran, not exposed: {name}" for name in sorted(hidden)]
    elif found.runs("victim")[before["victim"] :]:
        outcome.broken.append("the caller's own functions ran")
    effects = [one for one in outcome.ran if one in {"buy", "charge", "pay"}]
    most = attack.effects if side == "victim" else max(attack.effects, scene.calls)
    if len(effects) > most:
        outcome.broken.append(f"ran {len(effects)} times, not {most}: {effects}")
    return outcome


def _prompts(model: ObedientModel) -> list[str]:
    """Return the private texts that stand in prompts where they may not."""
    wrong = {
        (name, step)
        for step, prompt in model.asked
        for name, text in PRIVATE.items()
        if text in prompt and step not in MAY_KNOW.get(name, set())
    }
    return [f"{name} in the prompt {step}" for name, step in sorted(wrong)]


async def _pages(found: House) -> bytes:
    """Return what the victim shows to everybody over HTTP."""
    await found.victim.consensus.settle()
    return b"\n".join(page[1] for page in found.victim.consensus.pages().values())
