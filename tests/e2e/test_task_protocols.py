"""The protocol over which a task goes: the one that its caller names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from anp.errors import CallError, ConflictError
from anp.interaction.elements import Part
from anp.protocols.a2a.words import A2A_URIS, A2aVersion
from anp.protocols.envelope import ENVELOPE_TASKS_URI
from anp.protocols.gbz import GBZ_GROUPS_URI, GBZ_URI
from anp.sidecar.tasks.known import KnownTask
from tests.e2e.talks import Talks, talks_in
from tests.e2e.test_tasks_over_envelope import protocols
from tests.waiting import until


async def start(talks: Talks, protocol: str, *, lines: int = 3) -> KnownTask:
    return await talks.caller.tasks.start_task(
        talks.address,
        capability="agent.poem",
        parts=[Part.value({"lines": lines})],
        protocol=protocol,
    )


async def test_a_task_goes_over_the_protocol_that_is_named(tmp_path: Path) -> None:
    async with talks_in(tmp_path) as talks:
        first = await talks.start("ticks", number=40, pause=0.05)
        named = await start(talks, ENVELOPE_TASKS_URI)
        seen = await talks.follow(named)
        assert seen.states == ["accepted", "working", "completed"]
        assert len(seen.results) == 3
        # The other goes on over the best one, each with its own words.
        assert protocols(talks) == {GBZ_URI, ENVELOPE_TASKS_URI}
        heard = await talks.provider.tasks.sessions.find(
            named.task.requester, named.task.session
        )
        assert heard is not None
        conversation = await talks.provider.tasks.sessions.conversation(heard)
        assert conversation.protocol == ENVELOPE_TASKS_URI
        assert (await talks.follow(first)).states[-1] == "completed"

        # Its session keeps it.
        with pytest.raises(ConflictError, match="session goes over"):
            await talks.caller.tasks.start_task(
                "", capability="agent.poem", log=named.log, protocol=GBZ_URI
            )
        with pytest.raises(CallError, match=r"not one of interaction\.order"):
            await start(talks, "urn:example:none")


async def test_a_task_named_for_a2a_goes_beside_one_over_the_best(
    tmp_path: Path,
) -> None:
    uri = next(uri for uri, known in A2A_URIS.items() if known is A2aVersion.V10)
    async with talks_in(tmp_path) as talks:
        first = await talks.start("ticks", number=20, pause=0.05)
        named = await start(talks, uri)
        seen = await talks.follow(named)
        assert seen.states == ["accepted", "working", "completed"]
        assert len(seen.results) == 3
        # What began over the best one stays there.
        assert (await talks.follow(first)).states[-1] == "completed"
        sessions = talks.caller.tasks.sessions
        threads = [
            bool((await sessions.conversation(one.log)).threads)
            for one in (first, named)
        ]
        assert threads == [False, True]


async def test_a_peer_that_knows_version_2_alone_gets_the_task_over_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with talks_in(tmp_path) as talks:
        select = talks.provider.consensus.select

        async def select_new(offered: Sequence[str], peer: str) -> str | None:
            return await select([one for one in offered if one != GBZ_URI], peer)

        monkeypatch.setattr(talks.provider.consensus, "select", select_new)
        seen = await talks.follow(await talks.start("ticks", number=3, pause=0.05))
        assert seen.states == ["accepted", "working", "completed"]
        assert protocols(talks) == {GBZ_GROUPS_URI}


async def test_a_peer_without_the_protocol_rejects_the_task(tmp_path: Path) -> None:
    async with talks_in(tmp_path, provider={"consensus__envelope": False}) as talks:
        seen = await talks.follow(await start(talks, ENVELOPE_TASKS_URI))
        assert seen.states == ["rejected"]
        assert seen.end is not None
        assert ENVELOPE_TASKS_URI in seen.end.reason
        assert not seen.end.may_have_run
        lines = talks.caller.tasks._exchange.lines
        await until(lambda: not lines._keeping)


async def test_a_task_as_a_call_of_one_turn_has_the_time_of_a_task(
    tmp_path: Path,
) -> None:
    flags: dict[str, Any] = {"interaction__order": (), "call__timeout": 1.0}
    async with talks_in(tmp_path, **flags) as talks:
        seen = await talks.follow(await talks.start("ticks", number=20, pause=0.1))
        assert seen.states == ["accepted", "working", "completed"], seen.end


async def test_a_task_as_a_call_of_one_turn_ends_by_the_limit_of_tasks(
    tmp_path: Path,
) -> None:
    flags: dict[str, Any] = {"interaction__order": (), "interaction__max_time": 2.0}
    async with talks_in(tmp_path, **flags) as talks:
        seen = await talks.follow(await talks.start("ticks", number=90, pause=0.1))
        assert seen.end is not None
        assert (seen.states[-1], seen.end.code) == ("failed", "timeout")
        assert seen.end.may_have_run
