"""The transport to a server that is a child process: its messages and its end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from anyio.abc import TaskStatus
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError

from anp.sidecar.attachments.attachment import AttachmentError
from anp.sidecar.attachments.mcp import server_pipes as module
from anp.sidecar.attachments.mcp.stdio_transport import (
    FIRST_ID,
    PipeDispatcher,
    stdio_dispatcher,
)
from tests.waiting import until

ECHO = """
import json, sys
sys.stdout.reconfigure(errors="surrogateescape")
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "several":
        for text in asked["params"]["lines"]:
            text = text.replace("ID", str(asked["id"]))
            print(text.replace("BAD", chr(0xDCFF)), flush=True)
    elif "id" in asked:
        answer = {"id": asked["id"], "result": asked.get("params") or {}}
        print(json.dumps({"jsonrpc": "2.0", **answer}), flush=True)
"""
"Answers each request with its parameters, or with the lines in them."

SAID = '{"jsonrpc": "2.0", "method": "said"}'
ANSWER = '{"jsonrpc": "2.0", "id": ID, "result": {"is": "it"}}'


class Started(TaskStatus[None]):
    """A dispatcher that runs, and what came over it unasked."""

    def __init__(self, pipes: PipeDispatcher) -> None:
        self.pipes = pipes
        self.heard: list[str] = []
        self.is_ready = asyncio.Event()
        self.running = asyncio.create_task(
            pipes.run(self._request, self._notice, task_status=self)
        )

    def started(self, value: None = None) -> None:
        """See `anyio.abc.TaskStatus`."""
        self.is_ready.set()

    async def _request(
        self, _: object, method: str, params: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        return {"you asked": method}

    async def _notice(
        self, _: object, method: str, params: Mapping[str, Any] | None
    ) -> None:
        self.heard.append(method)

    async def say(self, *lines: str, **options: Any) -> dict[str, Any]:
        """Have the server print lines, and return its answer."""
        opts = cast(CallOptions, options)
        return await self.pipes.send_raw_request("several", {"lines": lines}, opts)


@asynccontextmanager
async def started(
    *command: str, code: str = "", max_line: int = 8_000_000
) -> AsyncIterator[Started]:
    """Start a program or some code of Python, and run what talks to it."""
    ends: list[int] = []
    transport = stdio_dispatcher(
        command or (sys.executable, "-c", code or ECHO),
        env=dict(os.environ),
        cwd=None,
        errlog=os.fdopen(os.dup(2), "w"),
        max_line=max_line,
        on_end=lambda: ends.append(1),
    )
    async with asyncio.timeout(30), transport as pipes:
        run = Started(pipes)
        try:
            await run.is_ready.wait()
            yield run
        finally:
            run.running.cancel()
            await asyncio.wait({run.running})
    assert ends == [1]


def runs(pid: str) -> bool:
    """Return True for a process that runs; one that nobody has reaped does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


async def test_large_messages_and_many_at_a_time_are_answered_each() -> None:
    async with started() as my:
        wanted = [{"text": text} for text in ("x" * 3_000_000, "ü\n€", *"abcdefgh")]
        asked = (my.pipes.send_raw_request("echo", each) for each in wanted)
        assert await asyncio.gather(*asked) == wanted
        assert await my.pipes.send_raw_request("nothing", None) == {}


async def test_a_request_is_written_and_answered_without_a_task() -> None:
    async with started() as my:
        await my.pipes.send_raw_request("echo", {})
        made = []
        loop = asyncio.get_running_loop()
        factory: Any = lambda *_, **__: made.append(1)  # noqa: E731 - one line is enough
        loop.set_task_factory(factory)
        try:
            request = my.pipes.send_raw_request("echo", {"n": 1}, {"headers": {}})
            waited = request.send(None)
            # The first wait is that for the answer, so it is on its way by then.
            assert isinstance(waited, asyncio.Future)
            await until(waited.done)
            with pytest.raises(StopIteration) as found:
                request.send(None)
        finally:
            loop.set_task_factory(None)
        assert found.value.value == {"n": 1}
        assert made == []


async def test_what_is_no_message_is_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        async with started() as my:
            assert await my.say("no JSON", "", "BAD", ANSWER) == {"is": "it"}
    assert len(caplog.records) == 3
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("end", ["", "\n"])
async def test_a_line_over_its_limit_ends_the_server(end: str) -> None:
    most = 300_000
    code = f"""
import sys
sys.stdin.readline()
print({ANSWER!r}.replace("ID", "{FIRST_ID}").ljust({most}))
sys.stdin.readline()
sys.stdout.write("x" * {most + 1} + {end!r})
sys.stdout.flush()
sys.stdin.read()
"""

    async def talk() -> None:
        async with started(code=code, max_line=most) as my:
            assert await my.pipes.send_raw_request("fits", {})
            with pytest.raises(MCPError, match="Connection closed"):
                await my.pipes.send_raw_request("does not", {})
            assert not my.pipes._server._begun

    with pytest.raises(AttachmentError, match="a line of over 300000 bytes"):
        await talk()


async def test_many_messages_in_one_piece_are_all_heard_in_order() -> None:
    count = 5 * module.MAX_AT_ONCE
    async with started() as my:
        assert await my.say("\n".join([SAID] * count), ANSWER) == {"is": "it"}
        await until(lambda: len(my.heard) == count)


async def test_progress_goes_to_its_own_request_before_the_answer() -> None:
    told: list[Any] = []

    async def tell(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total, message))

    def progress(**params: Any) -> str:
        method = "notifications/progress"
        text = json.dumps({"jsonrpc": "2.0", "method": method, "params": params})
        return text.replace('"ID"', "ID")

    async with started() as my:
        lines = (
            progress(progressToken="ID", progress=1, total=2, message="half"),
            progress(progressToken="ID", progress=1.5, total="?", message=3),
            progress(progressToken="ID", progress=True),
            progress(progressToken=5, progress=2),
        )
        await my.say(*lines, ANSWER, on_progress=tell)
        assert told == [(1, 2, "half"), (1.5, None, None)]
        await until(lambda: len(my.heard) == 2)


async def test_an_error_is_raised_with_its_code() -> None:
    error = '{"jsonrpc": "2.0", "id": ID, "error": {"code": -5, "message": "no"}}'
    nobodys = '{"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "?"}}'
    async with started() as my:
        with pytest.raises(MCPError, match="no") as caught:
            await my.say(nobodys, error)
        assert caught.value.code == -5
        # Some servers make texts of our numbers.
        assert await my.say(ANSWER.replace("ID", '"ID"')) == {"is": "it"}


async def test_the_server_may_ask_while_it_is_asked() -> None:
    code = """
import json, sys
number = json.loads(sys.stdin.readline())["id"]
print('{"jsonrpc": "2.0", "id": 1, "method": "roots"}', flush=True)
found = json.loads(sys.stdin.readline())
print(json.dumps({"jsonrpc": "2.0", "id": number, "result": found}), flush=True)
sys.stdin.read()
"""
    async with started(code=code) as my:
        found = await my.pipes.send_raw_request("anything", {})
    assert found == {"jsonrpc": "2.0", "id": 1, "result": {"you asked": "roots"}}


async def test_a_request_that_is_given_up_is_cancelled_at_the_server() -> None:
    code = """
import json, sys
first = json.loads(sys.stdin.readline())
told = json.loads(sys.stdin.readline())
assert told["method"] == "notifications/cancelled"
assert told["params"]["requestId"] == first["id"]
asked = json.loads(sys.stdin.readline())
print(json.dumps({"jsonrpc": "2.0", "id": first["id"], "result": {}}))
print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"late": 1}}))
"""
    async with started(code=code) as my:
        given_up = asyncio.create_task(my.pipes.send_raw_request("a", {}))
        await asyncio.sleep(0)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        assert await my.pipes.send_raw_request("b", {}) == {"late": 1}


async def test_requests_with_a_time_limit_go_the_way_of_the_library() -> None:
    async with started() as my:
        assert await my.pipes.send_raw_request("e", {"a": 1}, {"timeout": 20.0})
        with pytest.raises(MCPError, match="timed out"):
            await my.say(SAID, timeout=0.05)


@pytest.mark.parametrize("when", ["before", "meanwhile"])
async def test_a_server_that_reads_no_more_ends_the_session(
    when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STOP_TIMEOUT", 0.2)
    first = "" if when == "before" else "head -c 9 >&2; "
    script = f"{first}exec <&-; echo '{SAID}'; sleep 60"
    async with started("sh", "-c", script) as my:
        if when == "before":
            await until(lambda: my.heard == ["said"])
        with pytest.raises(MCPError, match="Connection closed"):
            await my.pipes.send_raw_request("anybody", {"text": "x" * 200_000})
        await my.running
        with pytest.raises(MCPError, match="Connection closed"):
            await my.pipes.send_raw_request("anybody", {})


@pytest.mark.parametrize("stays", ["", "trap '' TERM; "])
async def test_a_server_that_stays_is_ended_with_its_children(
    stays: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STOP_TIMEOUT", 0.2)
    script = f"{stays}sleep 60 & echo $! > {tmp_path}/pid; echo; wait; sleep 60"
    async with started("sh", "-c", script):
        await until((tmp_path / "pid").exists)
    # One that was killed takes a moment to be gone.
    await until(lambda: not runs((tmp_path / "pid").read_text().strip()))


async def test_a_server_that_still_writes_is_let_end() -> None:
    code = f"import sys; sys.stdin.read(); print({SAID!r} * 100_000)"
    began = asyncio.get_running_loop().time()
    async with started(code=code):
        pass
    assert asyncio.get_running_loop().time() - began < module.STOP_TIMEOUT


async def test_a_progress_that_no_number_can_be_is_left_out_like_other_output() -> None:
    said = '{"jsonrpc": "2.0", "method": "notifications/progress", "params": '
    huge = said + '{"progressToken": ID, "progress": 1' + "0" * 400 + "}}"
    good = said + '{"progressToken": ID, "progress": 1}}'

    async def ignore(*_: object) -> None:
        pass

    async with started() as my:
        # More than one look at what has come takes, so that reading is held meanwhile.
        lines = ["\n".join([*[good] * 70, huge, ANSWER])]
        assert await my.say(*lines, on_progress=ignore) == {"is": "it"}
        assert await my.say(ANSWER) == {"is": "it"}


async def test_requests_wait_for_a_server_that_does_not_read() -> None:
    async with started(code="import time; time.sleep(30)") as my:
        for _ in range(10):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.01):
                    await my.pipes.send_raw_request("echo", {"text": "x" * 1_000_000})
        pipe = my.pipes._server._input
        assert pipe.get_write_buffer_size() < 2_000_000
