"""Modules in workers: what honest ones do, and where the others end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from sandbox.errors import CapabilityFailure, SandboxError
from sandbox.pool.config import SandboxConfig
from sandbox.pool.history import QuarantineConfig
from sandbox.pool.module import Module
from sandbox.pool.pool import Sandbox
from sandbox.processes.process import ForkServer
from tests.clauses import clause
from tests.sandbox.sources import MISBEHAVING, PROVIDER, REQUESTER


async def _upper(name: str, params: Any) -> Any:
    assert name == "look_up"
    return params["text"] + "!"


async def _nothing(name: str, params: Any) -> None:
    await asyncio.sleep(0)


async def _failure(coroutine: Awaitable[Any]) -> SandboxError:
    with pytest.raises(SandboxError) as caught:
        await coroutine
    return caught.value


async def test_an_honest_half_encodes_and_decodes(sandbox: Sandbox) -> None:
    module = await sandbox.load("key", REQUESTER, origin="rules")
    data = await module.call("encode_request", "m1", {"a": "ü"}, deadline=5)
    assert data == b'{"messageId": "m1", "a": "\\u00fc"}'
    answer = b'{"messageId": "m1", "items": [5, 6, 7]}'
    assert await module.call("decode_response", answer, deadline=5) == {
        "message_id": "m1",
        "result": [20, {"5": 5, "6": 6, "7": 7}],
    }


async def test_a_generator_gets_the_answers_of_its_calls(sandbox: Sandbox) -> None:
    module = await sandbox.load("key", PROVIDER, origin="rules")
    value = await module.run("handle_request", b"a", on_call=_upper, deadline=5)
    assert value == ["a!", "a!!"]


async def test_a_failed_capability_is_thrown_into_the_generator(
    sandbox: Sandbox,
) -> None:
    async def refuse(name: str, params: Any) -> Any:
        raise CapabilityFailure(404, "no such product")

    module = await sandbox.load("key", PROVIDER, origin="rules")
    value = await module.run("handle_request", b"a", on_call=refuse, deadline=5)
    assert value == {"code": 404, "message": "no such product"}


async def test_an_absent_value_is_an_error_that_a_half_can_answer(
    sandbox: Sandbox,
) -> None:
    source = (
        "def handle_request(data):\n"
        "    try:\n"
        "        found = yield call('look_up', {})\n"
        "        if 'price' not in found:\n"
        "            raise ValueAbsent('price: the capability gave no value')\n"
        "    except CapabilityError as error:\n"
        "        return [error.code, error.message]\n"
    )

    async def empty(name: str, params: Any) -> Any:
        return {}

    module = await sandbox.load("key", source, origin="rules")
    value = await module.run("handle_request", b"", on_call=empty, deadline=5)
    assert value == ["502", "price: the capability gave no value"]


async def test_an_error_of_the_daemons_own_drops_the_run_and_passes(
    sandbox: Sandbox,
) -> None:
    async def broken(name: str, params: Any) -> Any:
        raise LookupError("ours")

    module = await sandbox.load("key", PROVIDER, origin="rules")
    with pytest.raises(LookupError, match="ours"):
        await module.run("handle_request", b"a", on_call=broken, deadline=5)
    value = await module.run("handle_request", b"a", on_call=_upper, deadline=5)
    assert value == ["a!", "a!!"]


async def test_waiting_for_its_turn_is_not_a_runs_own_time(sandbox: Sandbox) -> None:
    source = """
def work(n):
    for _ in range(n):
        pass


def work_after_call(n):
    yield call("look_up", None)
    for _ in range(n):
        pass
    return "done"
"""
    module = await sandbox.load("key", source, origin="rules")
    loop = asyncio.get_running_loop()
    started = loop.time()
    await module.call("work", 2_000_000, deadline=60)
    once = loop.time() - started
    # It waits for others that take longer together than its deadline.
    slow = [module.call("work", 8_000_000, deadline=60) for _ in range(3)]
    run = module.run(
        "work_after_call", 2_000_000, on_call=_nothing, deadline=4 * once + 0.1
    )
    *_, value = await asyncio.gather(*slow, run)
    assert value == "done"


@pytest.mark.slow
async def test_waiting_for_a_capability_is_not_the_modules_own_time(
    sandbox: Sandbox,
) -> None:
    async def slow(name: str, params: Any) -> Any:
        await asyncio.sleep(1.2)
        return params["text"]

    module = await sandbox.load("key", PROVIDER, origin="rules")
    value = await module.run("handle_request", b"a", on_call=slow, deadline=1.0)
    assert value == ["a", "a"]


async def test_interleaved_generators_and_calls_do_not_mix(sandbox: Sandbox) -> None:
    source = PROVIDER + "\ndef echo(value):\n    return value\n"
    module = await sandbox.load("key", source, origin="rules")

    async def run(text: str) -> Any:
        data = text.encode()
        return await module.run("handle_request", data, on_call=_upper, deadline=5)

    runs = [run(f"r{n}") for n in range(50)]
    calls = [module.call("echo", n, deadline=5) for n in range(50)]
    results = await asyncio.gather(*runs, *calls)
    assert results[:50] == [[f"r{n}!", f"r{n}!!"] for n in range(50)]
    assert results[50:] == list(range(50))


async def test_no_state_goes_from_one_call_to_the_next(sandbox: Sandbox) -> None:
    source = "seen = []\ndef add(x):\n    seen.append(x)\n    return len(seen)\n"
    module = await sandbox.load("key", source, origin="rules")
    assert [await module.call("add", 1, deadline=5) for _ in range(3)] == [1, 1, 1]


async def test_an_endless_loop_ends_at_its_deadline_while_others_work(
    sandbox: Sandbox,
) -> None:
    bad = await sandbox.load("bad", MISBEHAVING, origin="rules")
    good = await sandbox.load("good", REQUESTER, origin="rules")
    spinning = asyncio.create_task(_failure(bad.call("spin", deadline=0.5)))
    await asyncio.sleep(0)
    await good.call("encode_request", "m1", {}, deadline=5)
    assert not spinning.done()
    failure = await spinning
    assert (failure.outcome, failure.limit, failure.collateral) == (
        "timeout",
        0.5,
        False,
    )
    assert await bad.call("echo", 1, deadline=5) == 1


async def test_calls_beside_a_killed_one_are_started_again(sandbox: Sandbox) -> None:
    module = await sandbox.load("key", MISBEHAVING, origin="rules")
    spinning = asyncio.create_task(_failure(module.call("spin", deadline=0.3)))
    await asyncio.sleep(0)
    assert await module.call("echo", 1, deadline=5) == 1
    assert not (await spinning).collateral


async def test_a_run_that_called_a_capability_is_not_started_again(
    sandbox: Sandbox,
) -> None:
    module = await sandbox.load("key", MISBEHAVING, origin="rules")
    asked, answered = asyncio.Event(), asyncio.Event()
    calls = 0

    async def on_call(name: str, params: Any) -> Any:
        nonlocal calls
        calls += 1
        asked.set()
        await answered.wait()

    asking = module.run("chatter", 2, on_call=on_call, deadline=5)
    task = asyncio.create_task(_failure(asking))
    await asked.wait()
    await _failure(module.call("spin", deadline=0.2))
    answered.set()
    failure = await task
    assert (failure.collateral, failure.may_have_run, calls) == (True, True, 1)
    assert failure.report()["may_have_run"] is True


async def test_a_generator_that_spins_ends_at_its_deadline(sandbox: Sandbox) -> None:
    module = await sandbox.load("key", MISBEHAVING, origin="rules")
    run = module.run("spin_after_call", on_call=_nothing, deadline=0.3)
    assert (await _failure(run)).outcome == "timeout"


@pytest.mark.parametrize("function", ["hog", "grow"])
async def test_a_memory_hog_ends_and_the_next_call_works(
    sandbox: Sandbox, function: str
) -> None:
    module = await sandbox.load("key", MISBEHAVING, origin="rules")
    assert (await _failure(module.call(function, deadline=5))).outcome == "memory"
    assert await module.call("echo", 1, deadline=5) == 1


@pytest.mark.parametrize("function", ["stop", "fail", "a_set"])
async def test_an_exception_or_a_foreign_type_is_an_error_and_the_worker_stays(
    sandbox: Sandbox, function: str
) -> None:
    module = await sandbox.load("key", MISBEHAVING, origin="rules")
    worker = module.worker
    failure = await _failure(module.call(function, deadline=5))
    assert (failure.outcome, failure.function) == ("error", function)
    assert failure.reason.isprintable()
    assert await module.call("echo", 1, deadline=5) == 1
    assert module.worker is worker


async def test_an_error_names_its_line(sandbox: Sandbox) -> None:
    source = "def f():\n    x = 1\n    return x + 'a'\n"
    module = await sandbox.load("key", source, origin="rules")
    assert (await _failure(module.call("f", deadline=5))).line == 3


@pytest.mark.parametrize("value", [object(), {1: 2}, float("nan"), "\ud800", 1 << 4096])
async def test_arguments_that_are_not_plain_are_refused_before_they_cross(
    sandbox: Sandbox, value: Any
) -> None:
    module = await sandbox.load("key", MISBEHAVING, origin="rules")
    failure = await _failure(module.call("echo", value, deadline=5))
    assert failure.outcome == "error"
    assert await module.call("echo", 1, deadline=5) == 1


async def test_a_result_over_the_frame_limit_is_too_large() -> None:
    sandbox = Sandbox(SandboxConfig(max_frame=10_000))
    await sandbox.start()
    try:
        module = await sandbox.load("key", MISBEHAVING, origin="rules")
        assert len(await module.call("flood", 9_000, deadline=5)) == 9_000
        failure = await _failure(module.call("flood", 10_000, deadline=5))
        assert failure.outcome == "output_too_large"
    finally:
        await sandbox.close()


async def test_as_many_capability_calls_as_allowed_and_not_one_more(
    sandbox: Sandbox,
) -> None:
    module = await sandbox.load("key", MISBEHAVING, origin="rules")
    assert await module.run("chatter", 64, on_call=_nothing, deadline=5) == 64
    failure = await _failure(module.run("chatter", 65, on_call=_nothing, deadline=5))
    assert (failure.outcome, failure.limit) == ("capability_limit", 64)


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("import os\n", 1),
        ("import json\n\nfrom os import path\n", 3),
        ("x = 1\ny = x.__subclasses__\n", 2),
        ("def f(x):\n    return x.gi_frame\n", 2),
        ("x = 1\n\n\nexec('x')\n", 4),
        ("def f(:\n", 1),
    ],
)
async def test_what_a_source_may_not_say_is_rejected_with_its_line(
    sandbox: Sandbox, source: str, line: int
) -> None:
    failure = await _failure(sandbox.load("key", source, origin="rules"))
    assert (failure.outcome, failure.line) == ("rejected", line)


@pytest.mark.parametrize(
    "body",
    [
        "return open('/etc/passwd')",
        "return getattr(1, '__sub' + 'classes__')",
        "return '{0.__class__}'.format(1)",
        "return str.format('{0.__class__}', 1)",
        "return '{x.__class__}'.format_map({'x': 1})",
        "import json\n    json.loads = 1",
        "import json\n    return json.codecs",
        "return __import__('os')",
        "return type('A', (), {})",
        "return globals()",
    ],
)
async def test_what_a_source_may_not_do_gives_an_error(
    sandbox: Sandbox, body: str
) -> None:
    async def load_and_call() -> None:
        source = f"def f():\n    {body}\n"
        module = await sandbox.load("key", source, origin="rules")
        await module.call("f", deadline=5)

    failure = await _failure(load_and_call())
    assert failure.outcome in {"rejected", "error"}
    assert failure.line is not None


@pytest.mark.parametrize("hard", ["(" * 5_000, "x" + ".a" * 20_000, "-" * 40_000 + "1"])
async def test_a_source_that_breaks_the_compiler_breaks_no_more_than_its_worker(
    sandbox: Sandbox, hard: str
) -> None:
    failure = await _failure(sandbox.load("key", f"x = {hard}\n", origin="rules"))
    assert failure.outcome in {"rejected", "crashed", "memory", "timeout"}
    await sandbox.load("other", REQUESTER, origin="rules")


async def test_a_source_has_at_most_64_kib(sandbox: Sandbox) -> None:
    full = "#" * (64 * 1024 - 1) + "\n"
    await sandbox.load("key", full, origin="rules")
    failure = await _failure(sandbox.load("other", "#" + full, origin="rules"))
    assert (failure.outcome, failure.limit, failure.used) == (
        "rejected",
        64 * 1024,
        64 * 1024 + 1,
    )


def _without(*layers: str) -> ForkServer:
    return ForkServer("module", memory=1 << 28, max_frame=1 << 24, without=layers)


@pytest.mark.parametrize(
    ("layers", "required", "runs"),
    [
        ((), "full", True),
        (("landlock",), "full", True),
        (("seccomp",), "full", False),
        (("seccomp",), "reduced", True),
        ((), "reducde", False),
    ],
)
async def test_code_of_a_model_needs_the_level_that_is_required(
    layers: tuple[str, ...], required: str, runs: bool
) -> None:
    backend = _without(*layers)
    sandbox = Sandbox(SandboxConfig(required_level=required), backend=backend)
    await sandbox.start()
    try:
        await sandbox.load("rules", REQUESTER, origin="rules")
        for origin in ("model", "imported", "hand-written"):
            if runs:
                await sandbox.load(origin, REQUESTER, origin=origin)
            else:
                failure = await _failure(sandbox.load(origin, REQUESTER, origin=origin))
                assert failure.outcome == "forbidden"
    finally:
        await sandbox.close()


async def test_kills_by_one_peer_quarantine_a_protocol_for_it_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = SandboxConfig(quarantine=QuarantineConfig(kills=2))
    sandbox = Sandbox(config)
    await sandbox.start()
    try:
        bad, good = [
            await sandbox.load(
                peer, MISBEHAVING, origin="rules", protocol="hash", peer=peer
            )
            for peer in ("bad", "good")
        ]
        for _ in range(2):
            assert (await _failure(bad.call("spin", deadline=0.1))).outcome == "timeout"
        failure = await _failure(bad.call("echo", 1, deadline=5))
        assert failure.outcome == "quarantined"
        assert "2 workers were lost" in failure.reason
        assert len([r for r in caplog.records if "quarantined" in r.message]) == 1
        assert await good.call("echo", 1, deadline=5) == 1
        assert sandbox.quarantined("hash")
        await _failure(good.call("spin", deadline=0.1))
        assert (await _failure(good.call("echo", 1, deadline=5))).outcome == (
            "quarantined"
        )
        again = sandbox.load(
            "x", MISBEHAVING, origin="rules", protocol="hash", peer="third"
        )
        assert (await _failure(again)).stage == "load"
        runs = sandbox.runs("hash")
        assert (runs.outcomes["timeout"], runs.outcomes["ok"]) == (3, 1)
        assert runs.failures[0]["function"] == "spin"
        assert sandbox.release("hash")
        assert await bad.call("echo", 1, deadline=5) == 1
    finally:
        await sandbox.close()


async def test_a_worker_is_kept_ready_and_taken(sandbox: Sandbox) -> None:
    await sandbox.ready()
    [ready] = sandbox._warm
    module = await sandbox.load("key", REQUESTER, origin="rules")
    assert module.worker is ready
    await sandbox.ready()
    assert len(sandbox._warm) == 1


async def test_a_worker_that_grew_is_replaced_between_calls() -> None:
    sandbox = Sandbox(SandboxConfig(max_growth=0))
    await sandbox.start()
    try:
        source = "def f(size):\n    return size * 'x'\n"
        module = await sandbox.load("key", source, origin="rules")
        first = module.worker
        for _ in range(300):
            await module.call("f", 10_000, deadline=5)
        assert module.worker is not first
    finally:
        await sandbox.close()


async def test_arguments_of_capability_calls_have_a_limit_in_bytes() -> None:
    source = (
        "def chat(size):\n    for _ in range(3):\n        yield call('c', 'x' * size)\n"
    )
    sandbox = Sandbox(SandboxConfig(max_capability_bytes=3_000))
    await sandbox.start()
    try:
        module = await sandbox.load("key", source, origin="rules")
        await module.run("chat", 900, on_call=_nothing, deadline=5)
        run = module.run("chat", 1_000, on_call=_nothing, deadline=5)
        failure = await _failure(run)
        assert (failure.outcome, failure.limit) == ("capability_limit", 3_000)
    finally:
        await sandbox.close()


async def test_a_worker_killed_from_outside_ends_its_call_and_comes_back(
    sandbox: Sandbox,
) -> None:
    module = await sandbox.load("key", MISBEHAVING, origin="rules")
    spinning = asyncio.create_task(_failure(module.call("spin", deadline=5)))
    await asyncio.sleep(0.05)
    assert module.worker is not None
    os.kill(module.worker.pid, signal.SIGKILL)
    assert (await spinning).outcome == "crashed"
    assert await module.call("echo", 1, deadline=5) == 1


async def test_the_longest_unused_worker_makes_room_and_comes_back() -> None:
    sandbox = Sandbox(SandboxConfig(max_workers=2))
    await sandbox.start()
    try:
        modules = [
            await sandbox.load(f"key{n}", MISBEHAVING, origin="rules") for n in range(3)
        ]
        assert [_alive(module) for module in modules] == [False, True, True]
        assert await modules[0].call("echo", 1, deadline=5) == 1
        assert [_alive(module) for module in modules] == [True, False, True]
    finally:
        await sandbox.close()


async def test_when_every_worker_is_busy_another_is_refused() -> None:
    sandbox = Sandbox(SandboxConfig(max_workers=1))
    await sandbox.start()
    try:
        module = await sandbox.load("key", MISBEHAVING, origin="rules")
        spinning = asyncio.create_task(_failure(module.call("spin", deadline=1)))
        await asyncio.sleep(0)
        failure = await _failure(sandbox.load("other", REQUESTER, origin="rules"))
        assert (failure.outcome, failure.limit) == ("busy", 1)
        assert (await spinning).outcome == "timeout"
        await sandbox.load("other", REQUESTER, origin="rules")
    finally:
        await sandbox.close()


async def test_a_worker_is_replaced_after_its_number_of_requests() -> None:
    sandbox = Sandbox(SandboxConfig(max_calls_per_worker=3))
    await sandbox.start()
    try:
        module = await sandbox.load("key", MISBEHAVING, origin="rules")
        first = module.worker
        for _ in range(2):
            await module.call("echo", 1, deadline=5)
        assert module.worker is first
        await module.call("echo", 1, deadline=5)
        assert module.worker is not first
    finally:
        await sandbox.close()


async def test_an_unloaded_module_does_not_come_back(sandbox: Sandbox) -> None:
    module = await sandbox.load("key", MISBEHAVING, origin="rules")
    await sandbox.unload("key")
    assert (await _failure(module.call("echo", 1, deadline=5))).outcome == "crashed"
    await sandbox.unload("key")


async def test_after_close_no_call_starts_anything(sandbox: Sandbox) -> None:
    module = await sandbox.load("key", MISBEHAVING, origin="rules")
    await sandbox.close()
    assert (await _failure(module.call("echo", 1, deadline=5))).outcome == "crashed"


@clause("ANP-8")
async def test_the_daemon_never_compiles_a_source(sandbox: Sandbox) -> None:
    compiled: list[Any] = []
    hook = _watch_compile(compiled)
    try:
        module = await sandbox.load("key", "marker = 1\n" + REQUESTER, origin="rules")
        await module.call("encode_request", "m1", {}, deadline=5)
    finally:
        hook()
    assert not [source for source in compiled if "marker = 1" in str(source)]


def _watch_compile(seen: list[Any]) -> Callable[[], None]:
    watching = True

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if watching and event == "compile":
            seen.append(arguments[0])

    def stop() -> None:
        nonlocal watching
        watching = False

    # A hook cannot be taken away, only made to do nothing.
    sys.addaudithook(watch)
    compile("watched = 1", "<test>", "exec")
    assert seen
    return stop


def _alive(module: Module) -> bool:
    return module.worker is not None and module.worker.alive


STREAMING = """
def handle_request(data):
    number = 0

    def write(value):
        if value == "break":
            raise ValueError("no such update")
        return (value + "?").encode("utf-8")

    output = yield call("look_up", {"text": "a"}, write)
    second = yield call("look_up", {"text": output})
    return second


def no_function(data):
    yield call("look_up", {}, 5)
"""


async def test_a_module_writes_the_updates_of_its_call(sandbox: Sandbox) -> None:
    module = await sandbox.load("key", STREAMING, origin="rules")
    written: list[Any] = []
    late: list[Any] = []

    async def stream(name: str, params: Any, write: Any) -> Any:
        written.extend([await write("x"), await write("y")])
        late.append(write)
        return "b"

    value = await module.run(
        "handle_request", b"", on_call=_upper, on_stream=stream, deadline=5
    )
    assert (value, written) == ("b!", [b"x?", b"y?"])
    # Its call has ended, so that there is nothing to which it could belong.
    error = await _failure(late[0]("z"))
    assert (error.outcome, "has ended" in error.reason) == ("error", True)
    # Whoever takes no updates calls as ever.
    plain = await module.run("handle_request", b"", on_call=_upper, deadline=5)
    assert plain == "a!!"


async def test_a_wrong_update_is_an_error_and_the_worker_goes_on(
    sandbox: Sandbox,
) -> None:
    module = await sandbox.load("key", STREAMING, origin="rules")

    async def stream(name: str, params: Any, write: Any) -> Any:
        return await write("break")

    def run(function: str) -> Awaitable[Any]:
        return module.run(function, b"", on_call=_upper, on_stream=stream, deadline=5)

    error = await _failure(run("handle_request"))
    assert "no such update" in error.reason
    error = await _failure(run("no_function"))
    assert "is no function" in error.reason
    plain = await module.run("handle_request", b"", on_call=_upper, deadline=5)
    assert plain == "a!!"
