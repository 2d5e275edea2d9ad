"""Every attempt of the corpus, in a worker: with the language layer, and without it.

The control run has shown that each of them works in plain Python (`control.json`), so
that none passes here by being harmless (SANDBOX.md, Goals, 1).
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sandbox.errors import SandboxError
from sandbox.pool.config import SandboxConfig
from sandbox.pool.module import Module
from sandbox.pool.pool import Sandbox
from sandbox.processes.process import ForkServer
from tests.sandbox.corpus.control import RECORD
from tests.sandbox.escapes import (
    EFFECTS,
    Attempt,
    Outcome,
    Probe,
    Surroundings,
    attempts,
)

linux_only = pytest.mark.skipif(
    sys.platform != "linux", reason="the corpus names Linux's system calls"
)

AT_A_TIME = 6
"Attempts that run at a time."

DEADLINE = 2.0
"Seconds for an attempt that ends by itself."

ENDLESS_DEADLINE = 0.3
"Seconds for an attempt that is out for time, memory or the channel."

SETTLE = 0.05
"Seconds that what an attempt may have left running has to show its effect."

OWN_FAILURES = {"forbidden"}
"Outcomes that mean that an attempt was not tried at all."

DAEMONS_MATTER = {"channel", "exhaust"}
"Effects that limits and the daemon stop, whatever the kernel locks."

KERNELS_MATTER = {
    "descriptors",
    "files",
    "kernel",
    "memory",
    "network",
    "processes",
    "signals",
}
"Categories that name what the kernel has to refuse."

KNOWN_TO_WORK_UNLOCKED = {
    "evaluation/eval.py",
    "files/list_folder.py",
    "files/make_directory.py",
    "kernel/signal_handler.py",
    "memory/executable_anonymous_map.py",
    "network/tcp.py",
    "network/abstract_unix.py",
}
"Attempts that only the kernel's layers stop when the language layer is off."

CANARY = """
def echo(value):
    return [value]
"""


class _Trial:
    """All attempts in one sandbox, and a canary beside them."""

    def __init__(self, sandbox: Sandbox, surroundings: Surroundings) -> None:
        self._sandbox = sandbox
        self._surroundings = surroundings
        self._places = asyncio.Semaphore(AT_A_TIME)
        self._canary: Module | None = None
        self._echoes = 0
        self.failures: list[str] = []
        self.outcomes: Counter[str] = Counter()

    async def run(self, tried: list[Attempt]) -> None:
        """Try all; what went wrong is in `failures`."""
        self._canary = await self._sandbox.load("canary", CANARY, origin="model")
        async with asyncio.TaskGroup() as group:
            for attempt in tried:
                group.create_task(self._try(attempt))

    async def _try(self, attempt: Attempt) -> None:
        async with self._places:
            with self._surroundings.probe() as probe:
                outcome, failure = await self._outcome(attempt, probe)
                await asyncio.sleep(SETTLE)
                effects = probe.effects(outcome)
        kind = failure.outcome if failure is not None else "value"
        self.outcomes[kind] += 1
        seen = sorted(effects)
        if kind in OWN_FAILURES:
            seen.append("not tried")
        if seen:
            what = f"{attempt.name}: {', '.join(seen)} ({kind}) {outcome.text[:80]}"
            self.failures.append(what)
        await self._echo(attempt)

    async def _outcome(
        self, attempt: Attempt, probe: Probe
    ) -> tuple[Outcome, SandboxError | None]:
        must_fail = attempt.effect in DAEMONS_MATTER
        deadline = ENDLESS_DEADLINE if must_fail else DEADLINE
        key = attempt.name
        try:
            module = await self._sandbox.load(key, attempt.source, origin="model")
            value = await self._call(module, attempt, probe, deadline)
            if attempt.effect == "channel":
                # What it left in the channel meets the next request.
                await self._call(module, attempt, probe, deadline)
            check = None
            if attempt.effect == "state":
                check = await self._check(module, attempt, probe)
        except SandboxError as exc:
            return Outcome(text=f"{exc} {exc.reason}"), exc
        finally:
            await self._sandbox.unload(key)
        return (
            Outcome(
                text=repr(value),
                value=value,
                check=check,
                exhausted=attempt.effect == "exhaust",
                channel=attempt.effect == "channel",
            ),
            None,
        )

    async def _call(
        self, module: Module, attempt: Attempt, probe: Probe, deadline: float
    ) -> Any:
        if attempt.is_generator:
            return await module.run(
                "attempt", probe.values, on_call=_nothing, deadline=deadline
            )
        return await module.call("attempt", probe.values, deadline=deadline)

    async def _check(self, module: Module, attempt: Attempt, probe: Probe) -> Any:
        """Look for what the attempt left behind, in another worker.

        With the language layer on in its own worker too: there each call starts from
        nothing.
        """
        if self._sandbox.config.language_layer:
            found = await module.call("check", probe.values, deadline=DEADLINE)
            if found == "escaped":
                return found
        key = f"{attempt.name} again"
        try:
            other = await self._sandbox.load(key, attempt.source, origin="model")
            return await other.call("check", probe.values, deadline=DEADLINE)
        finally:
            await self._sandbox.unload(key)

    async def _echo(self, attempt: Attempt) -> None:
        assert self._canary is not None
        self._echoes += 1
        number = self._echoes
        try:
            answer = await self._canary.call("echo", number, deadline=10)
        except SandboxError as exc:
            answer = str(exc)
        if answer != [number]:
            self.failures.append(f"{attempt.name}: another module says {answer!r}")


async def _nothing(name: str, params: Any) -> None:
    await asyncio.sleep(0)


async def _try_all(
    tried: list[Attempt], *, language_layer: bool, without: tuple[str, ...] = ()
) -> _Trial:
    """Try attempts in workers that lack the layers `without` (as for `ForkServer`)."""
    config = SandboxConfig(
        language_layer=language_layer,
        # Workers are tried as they are, whatever this machine can lock.
        required_level="reduced",
        load_timeout=1.0,
    )
    backend = ForkServer(
        "module" if language_layer else "plain",
        memory=config.memory,
        max_frame=config.max_frame,
        without=without,
    )
    with Surroundings() as surroundings:
        sandbox = Sandbox(config, backend=backend)
        await sandbox.start()
        try:
            trial = _Trial(sandbox, surroundings)
            await trial.run(tried)
            return trial
        finally:
            await sandbox.close()


def _report(trial: _Trial) -> str:
    lines = sorted(trial.failures)
    return f"{len(lines)} effects; outcomes {dict(trial.outcomes)}\n" + "\n".join(lines)


@pytest.mark.slow
@linux_only
async def test_no_attempt_has_an_effect_with_the_language_layer() -> None:
    trial = await _try_all(attempts(), language_layer=True)
    assert not trial.failures, _report(trial)


@pytest.mark.slow
@linux_only
async def test_no_attempt_has_an_effect_without_the_language_layer() -> None:
    trial = await _try_all(attempts(), language_layer=False)
    assert not trial.failures, _report(trial)


@pytest.mark.slow
@linux_only
async def test_the_language_layer_holds_where_the_kernel_locks_nothing() -> None:
    tried = [a for a in attempts() if a.effect not in DAEMONS_MATTER]
    trial = await _try_all(tried, language_layer=True, without=("seccomp", "landlock"))
    assert not trial.failures, _report(trial)


@pytest.mark.slow
@linux_only
async def test_the_filter_of_system_calls_holds_without_landlock() -> None:
    tried = [a for a in attempts() if a.name.split("/")[0] in KERNELS_MATTER]
    trial = await _try_all(tried, language_layer=False, without=("landlock",))
    assert not trial.failures, _report(trial)


@linux_only
async def test_a_worker_without_any_lock_is_seen_to_leak() -> None:
    tried = [a for a in attempts() if a.name in KNOWN_TO_WORK_UNLOCKED]
    trial = await _try_all(tried, language_layer=False, without=("seccomp", "landlock"))
    assert len(trial.failures) == len(tried) > 0, _report(trial)


def test_each_attempt_was_shown_to_work_in_plain_python() -> None:
    record = json.loads(RECORD.read_text())
    stale = [
        attempt.name
        for attempt in attempts()
        if record.get(attempt.name, {}).get("sha256") != attempt.sha256
        or attempt.effect not in record[attempt.name]["seen"]
    ]
    assert not stale, f"run python -m tests.sandbox.corpus.control {' '.join(stale)}"


def test_the_corpus_is_large_and_has_every_effect() -> None:
    found = attempts()
    assert len(found) >= 200
    assert {attempt.effect for attempt in found} == set(EFFECTS)


def test_no_attempt_is_a_copy_of_another() -> None:
    names: dict[str, list[str]] = {}
    for attempt in attempts():
        lines = attempt.source.splitlines()
        body = "\n".join(line for line in lines if not line.startswith("# "))
        names.setdefault(body, []).append(attempt.name)
    assert [same for same in names.values() if len(same) > 1] == []


@linux_only
def test_the_judge_sees_what_was_done_and_nothing_else() -> None:
    with Surroundings() as surroundings:
        with surroundings.probe() as probe:
            assert probe.effects(Outcome(text="harmless", value="no")) == set()
        with surroundings.probe() as probe:
            assert probe.effects(Outcome(text=f"x{surroundings.token}x")) == {"leak"}
        with surroundings.probe() as probe:
            Path(probe.values["write_file"]).touch()
            assert probe.effects(Outcome()) == {"write"}
        with surroundings.probe() as probe:
            os.setpriority(os.PRIO_PROCESS, probe.values["victim"], 19)
            assert probe.effects(Outcome()) == {"signal"}
        with surroundings.probe() as probe:
            seen = probe.effects(Outcome(value="escaped", check="escaped"))
            assert seen == {"escaped", "state"}
