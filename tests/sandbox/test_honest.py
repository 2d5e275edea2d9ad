"""Honest modules give what they give in plain CPython (SANDBOX.md, Goal 2)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from sandbox.errors import CapabilityFailure, SandboxError
from sandbox.pool.config import SandboxConfig
from sandbox.pool.module import Module
from sandbox.pool.pool import Sandbox
from tests.sandbox import honest

# Seconds; far above what a case takes, so that a busy machine fails none.
DEADLINE = 5.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fenced() -> AsyncIterator[Sandbox]:
    """A sandbox with the language layer, for all modules."""
    async for started in _started(SandboxConfig(required_level="reduced")):
        yield started


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def unfenced() -> AsyncIterator[Sandbox]:
    """A sandbox without the language layer, for all modules."""
    config = SandboxConfig(required_level="reduced", language_layer=False)
    async for started in _started(config):
        yield started


def test_the_corpus_has_at_least_sixty_modules() -> None:
    assert len(honest.names()) >= 60


@pytest.mark.parametrize("name", honest.names())
def test_a_module_says_its_kind_and_has_cases(name: str) -> None:
    assert honest.source_of(name).startswith("# kind: ")
    assert len(honest.cases_of(name)) >= 2


@pytest.mark.parametrize(
    ("left", "right"),
    [(1, True), (1, 1.0), ([1], (1,)), ({"a": [0]}, {"a": [False]}), (b"a", "a")],
)
def test_a_value_of_another_type_is_not_the_same(left: Any, right: Any) -> None:
    assert honest.same(left, left)
    assert not honest.same(left, right)


@pytest.mark.parametrize("name", honest.names())
def test_a_module_gives_its_values_in_plain_python(name: str) -> None:
    for case in honest.cases_of(name):
        try:
            value = honest.run_plain(name, case)
        except honest.Refusal:
            raise
        except Exception as exc:  # noqa: BLE001 - a module may raise any error.
            _check_error(case, f"{type(exc).__name__}: {exc}")
        else:
            _check_value(case, value)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", honest.names())
async def test_a_module_gives_its_values_in_the_sandbox(
    fenced: Sandbox, name: str
) -> None:
    await _check_in(fenced, name)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", honest.names())
async def test_a_module_gives_its_values_without_the_language_layer(
    unfenced: Sandbox, name: str
) -> None:
    await _check_in(unfenced, name)


async def _started(config: SandboxConfig) -> AsyncIterator[Sandbox]:
    sandbox = Sandbox(config)
    await sandbox.start()
    try:
        yield sandbox
    finally:
        await sandbox.close()


async def _check_in(sandbox: Sandbox, name: str) -> None:
    try:
        module = await sandbox.load(name, honest.source_of(name), origin="model")
        for case in honest.cases_of(name):
            await _check_case(module, case)
    finally:
        await sandbox.unload(name)


async def _check_case(module: Module, case: honest.Case) -> None:
    try:
        value = await _value(module, case)
    except SandboxError as exc:
        if exc.outcome != "error":
            raise
        _check_error(case, exc.reason)
    else:
        _check_value(case, value)


async def _value(module: Module, case: honest.Case) -> Any:
    if case.calls is None:
        return await module.call(case.function, *case.args, deadline=DEADLINE)
    script = honest.Script(case)

    async def answer(name: str, params: Any) -> Any:
        try:
            return script.answer(name, params)
        except honest.CapabilityError as exc:
            raise CapabilityFailure(exc.code, exc.message) from exc

    value = await module.run(
        case.function, *case.args, on_call=answer, deadline=DEADLINE
    )
    script.finish()
    return value


def _check_value(case: honest.Case, value: Any) -> None:
    assert case.error is None, f"{case.function} gave {value!r}"
    assert honest.same(value, case.value), f"{case.function} gave {value!r}"


def _check_error(case: honest.Case, reason: str) -> None:
    assert reason == case.error, f"{case.function}{case.args} failed"
