"""Two daemons that play a scene, with a model where the scene has one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from anp.errors import CallError, ErrorKind
from anp.sidecar.agreement.rulings import Decision
from anp.sidecar.attachments import AttachmentSpec, save_attachment
from anp.sidecar.calls.call import CallRequest, CallResult
from anp.sidecar.config.load import load_config
from anp.sidecar.daemon import Daemon
from anp.sidecar.home.home import Home
from tests.desk.cassette import Endpoint
from tests.desk.scenes import Holds, Refused, Scene, Sides

ROOT: Final = Path(__file__).parents[2]
"The repository."

PATIENCE: Final = {
    "llm.timeout": 900,
    "negotiation.timeout": 900,
    "negotiation.codegen_timeout": 900,
    "negotiation.message_timeout": 900,
    "call.timeout": 900,
}
"Settings under which a reader at the desk has time (LLM.md, Trying it)."


@dataclass(frozen=True)
class Stage:
    """Both daemons, running."""

    scene: Scene
    "What is played."

    caller: Daemon
    "Who wants something."

    provider: Daemon
    "Who may have it."

    async def call(self, arguments: dict[str, Any]) -> CallResult:
        """Make one call of the scene's task."""
        peer = f"{self.provider.url}#{self.provider.did}"
        return await self.caller.caller.call(
            CallRequest(peer=peer, need=self.scene.need, arguments=arguments)
        )

    async def play(self) -> list[str]:
        """Make the calls of the scene in order; return what came out wrong."""
        wrong = []
        if self.scene.missing:
            try:
                result = await self.call(_sample(self.scene))
            except CallError as exc:
                named = any(word in str(exc).lower() for word in self.scene.missing)
                if exc.kind is not ErrorKind.NEGOTIATION_REJECTED or not named:
                    wrong.append(f"ended with {exc.kind}: {exc}")
            else:
                wrong.append(f"was served: {result.output}")
        for number, step in enumerate(self.scene.steps):
            expected = step.expected() if callable(step.expected) else step.expected
            try:
                result = await self.call(step.arguments)
            except CallError as exc:
                if not _is_refusal(exc, expected):
                    wrong.append(f"{step.arguments}: {exc.kind}: {exc}")
                continue
            wrong += differences(expected, result.output)
            if number and result.source != "agreement":
                wrong.append(f"{step.arguments}: {result.source} once more")
        return wrong


def differences(expected: Any, output: Any) -> list[str]:
    """Return what makes `output` another one than `expected`; numbers come near."""
    if isinstance(expected, Holds):
        found = list(_leaves(output))
        return [
            f"{value!r} is not in {output}"
            for value in expected.values
            if not any(_holds(one, value) for one in found)
        ]
    return [] if _same(expected, output) else [f"{expected} expected, got {output}"]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return abs(one - other) <= 1e-9 * max(1.0, abs(one))
    return bool(one == other)


def _holds(leaf: Any, value: Any) -> bool:
    if isinstance(leaf, str) and isinstance(value, str):
        return value in leaf
    return _same(leaf, value)


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for one in value.values() for leaf in _leaves(one)]
    if isinstance(value, list):
        return [leaf for one in value for leaf in _leaves(one)]
    return [value]


def _is_refusal(exc: CallError, expected: Any) -> bool:
    return (
        isinstance(expected, Refused)
        and exc.kind is ErrorKind.APPLICATION_ERROR
        and f"answered {expected.code}:" in str(exc)
    )


def _sample(scene: Scene) -> dict[str, Any]:
    schema = scene.need.input_schema
    assert isinstance(schema, dict)
    made = {"string": "Guten Morgen", "number": 48.5}
    return {name: made[one["type"]] for name, one in schema["properties"].items()}


def _attached(scene: Scene) -> AttachmentSpec:
    if scene.command:
        return AttachmentSpec(
            kind="mcp",
            name=scene.agent,
            command=scene.command,
            cwd=ROOT,
            expose=scene.expose,
        )
    return AttachmentSpec(
        kind="python",
        name=scene.agent,
        target=f"tests/desk/agents/{scene.agent}.py",
        cwd=ROOT,
        expose=scene.expose,
        read_only=scene.read_only,
    )


@asynccontextmanager
async def pair(
    folder: Path,
    attached: Sequence[AttachmentSpec],
    model: Endpoint | None,
    sides: Sides = Sides.BOTH,
    **settings: Any,
) -> AsyncIterator[tuple[Daemon, Daemon]]:
    """Run a caller and a provider in homes of their own under `folder`.

    Args:
        attached: What the provider has.
        model: Serves those of `sides`; without it both have rules only.
        settings: More settings of both, with `__` for a dot.
    """
    daemons = []
    for name in (Sides.REQUESTER, Sides.PROVIDER):
        home = Home(folder / name)
        home.create()
        flags: dict[str, Any] = {"listen.port": 0, **PATIENCE}
        flags |= {key.replace("__", "."): value for key, value in settings.items()}
        if model is not None and sides in {Sides.BOTH, name}:
            flags |= {"llm.model": "desk", "llm.base_url": model.url(name)}
        if name == Sides.PROVIDER:
            for one in attached:
                save_attachment(home.attachments, one)
        config = load_config(home, home_given=True, flags=flags, environ={}, cwd=folder)
        daemons.append(Daemon(home, config))
    caller, provider = daemons
    async with caller.running(), provider.running(), asyncio.TaskGroup() as owner:
        _let_accept(provider, owner)
        yield caller, provider


def _let_accept(provider: Daemon, owner: asyncio.TaskGroup) -> None:
    """Have the provider's owner accept each proposal that waits.

    A model chooses functions that change something for needs that do not name them.
    """
    desk = provider.agreer.desk
    tell = desk.on_event

    def told(event_type: str, data: dict[str, Any]) -> None:
        tell(event_type, data)
        if event_type == "negotiation.waiting":
            owner.create_task(desk.decide(data["id"], Decision("accept")))

    desk.on_event = told


@asynccontextmanager
async def stage(
    scene: Scene, folder: Path, model: Endpoint, **settings: Any
) -> AsyncIterator[Stage]:
    """Run both daemons of a scene in homes of their own under `folder`.

    Args:
        settings: More settings of both, with `__` for a dot.
    """
    playing = pair(folder, [_attached(scene)], model, scene.sides, **settings)
    async with playing as (caller, provider):
        yield Stage(scene, caller, provider)
