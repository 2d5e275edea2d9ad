"""MCP servers over stdio: two real ones, and one that answers as none should."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anp.errors import ConfigError
from anp.sidecar.attachments import (
    Attachment,
    AttachmentError,
    AttachmentLimits,
    AttachmentSpec,
    ToolError,
    open_attachment,
)
from anp.sidecar.attachments.attachment import SupervisorConfig
from anp.sidecar.attachments.mcp import attachment as module
from anp.sidecar.attachments.mcp.attachment import McpAttachment, _tool_error
from anp.sidecar.attachments.mcp.content import TEXT_OUTPUT
from anp.sidecar.attachments.mcp.exchange import CallTalk
from anp.sidecar.attachments.mcp.http_transport import NOT_SENT
from anp.sidecar.attachments.mcp.operations import McpOutcome
from anp.sidecar.offer.capability_calls import MAX_VALUES
from tests.anp.sidecar.attachments.mcp.test_stdio_transport import runs
from tests.waiting import until


def test_a_line_has_room_for_any_echo_of_a_peer() -> None:
    """A server may escape HTML, and writes its result as a value and as text."""
    escaped = json.dumps("<").replace("<", "\\u003c").strip('"')
    each = len(escaped) + len(json.dumps(escaped).strip('"'))
    assert each == 13
    most = module.RESULTS_PER_LINE * AttachmentLimits().max_result
    assert most > each * MAX_VALUES


FAST = SupervisorConfig(start_timeout=20.0, min_backoff=0.01)
LIMITS = AttachmentLimits(supervisor=FAST)
SERVER = Path(__file__).with_name("mcp_server.py")


@asynccontextmanager
async def attached(
    *command: str, limits: AttachmentLimits = LIMITS, **fields: Any
) -> AsyncIterator[Attachment]:
    """Attach the server of a command as `my` for the time of a test."""
    spec = AttachmentSpec(kind="mcp", name="my", command=command, **fields)
    attachment = open_attachment(spec, limits=limits)
    async with asyncio.timeout(90):
        try:
            await attachment.start()
            yield attachment
        finally:
            await attachment.close()


@asynccontextmanager
async def scripted(
    folder: Path,
    *tools: str | dict[str, Any],
    able: dict[str, Any] | None = None,
    **fields: Any,
) -> AsyncIterator[Attachment]:
    """Attach our own server with these tools, and what else it is able to do."""
    state(folder, *tools, able=able or {})
    command = (sys.executable, str(SERVER), str(folder / "state.json"))
    async with attached(*command, **fields) as attachment:
        yield attachment


def state(folder: Path, *tools: str | dict[str, Any], **more: Any) -> None:
    """Write what our own server reads."""
    listed = [{"name": each} if isinstance(each, str) else each for each in tools]
    (folder / "state.json").write_text(json.dumps({"tools": listed, **more}))


async def call(
    attachment: Attachment, tool: str, timeout: float = 20.0, /, **arguments: Any
) -> dict[str, Any]:
    """Call a tool of the attachment `my`."""
    return await attachment.call(
        f"my.{tool}", arguments, caller="did:key:z", timeout=timeout
    )


def names(attachment: Attachment) -> list[str]:
    """Return the short names of an attachment's capabilities."""
    return [each.name.removeprefix("my.") for each in attachment.capabilities()]


# -- real servers


async def test_the_time_server_converts_a_time() -> None:
    async with attached(sys.executable, "-m", "mcp_server_time") as my:
        tools = {each.name: each for each in my.capabilities()}
        convert = tools["my.convert_time"]
        assert convert.read_only
        assert isinstance(convert.output_schema, dict)
        assert "time_difference" in convert.output_schema["required"]
        found = await call(
            my,
            "convert_time",
            source_timezone="UTC",
            target_timezone="Asia/Tokyo",
            time="12:00",
        )
        assert found["time_difference"] == "+9.0h"
        with pytest.raises(ToolError, match="Nowhere") as caught:
            await call(my, "get_current_time", timezone="Nowhere")
        assert caught.value.code == 500
        answers = await asyncio.gather(
            *(call(my, "get_current_time", timezone="Asia/Tokyo") for _ in range(20))
        )
        assert {answer["timezone"] for answer in answers} == {"Asia/Tokyo"}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository with one commit."""
    git: list[str | Path] = ["git"]
    git += ["-c", "user.name=t", "-c", "user.email=t@example", "-C", tmp_path]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-qm", "first", "--allow-empty"], check=True)
    return tmp_path


async def test_the_git_server_answers_in_text(repository: Path) -> None:
    command = (sys.executable, "-m", "mcp_server_git", "--repository", str(repository))
    async with attached(*command, cwd=repository) as my:
        log = next(each for each in my.capabilities() if each.name == "my.git_log")
        assert log.output_schema == TEXT_OUTPUT
        found = await call(my, "git_log", repo_path=str(repository), max_count=1)
        assert list(found) == ["text"]
        assert "first" in found["text"]


# -- results


async def test_text_blocks_are_joined_by_newlines(tmp_path: Path) -> None:
    async with scripted(tmp_path, "texts", "nothing") as my:
        assert await call(my, "texts") == {"text": "one\ntwo"}
        assert await call(my, "nothing") == {"text": ""}


async def test_what_is_no_result_is_a_capability_error(tmp_path: Path) -> None:
    async with scripted(tmp_path, "broken", "no_result") as my:
        with pytest.raises(ToolError, match="not base64") as caught:
            await call(my, "broken")
        assert caught.value.code == 502
        with pytest.raises(ToolError, match="no tool result"):
            await call(my, "no_result")


async def test_an_error_of_a_tool_is_passed_on_cut(tmp_path: Path) -> None:
    async with scripted(tmp_path, "error", "refuse") as my:
        with pytest.raises(ToolError) as caught:
            await call(my, "error")
        assert caught.value.code == 500
        assert len(caught.value.message) == 500
        with pytest.raises(ToolError) as caught:
            await call(my, "refuse")
        assert caught.value.code == 400


async def test_structured_content_is_the_output(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "string"}}}
    async with scripted(
        tmp_path,
        {"name": "structured", "outputSchema": schema},
        {"name": "unstructured", "outputSchema": schema},
    ) as my:
        assert my.capabilities()[0].output_schema == schema
        # It does not fit the schema: to say so is the validation worker's business.
        assert await call(my, "structured") == {"n": 1}
        with pytest.raises(ToolError, match="no structured content"):
            await call(my, "unstructured")


async def test_no_pattern_of_a_server_runs_in_this_process(tmp_path: Path) -> None:
    endless = {"type": "string", "pattern": "^(a+)+$"}
    schema = {"type": "object", "properties": {"s": endless}}
    async with scripted(tmp_path, {"name": "pattern", "outputSchema": schema}) as my:
        assert len((await call(my, "pattern"))["s"]) == 41


async def test_a_result_may_be_as_large_as_its_limit(tmp_path: Path) -> None:
    limits = replace(LIMITS, max_result=1000)
    overhead = len('{"text": ""}')
    async with scripted(tmp_path, "large", limits=limits) as my:
        assert await call(my, "large", n=1000 - overhead)
        with pytest.raises(ToolError, match="over 1000 bytes"):
            await call(my, "large", n=1001 - overhead)


async def test_a_number_that_json_does_not_have_is_refused_where_it_comes_from(
    tmp_path: Path,
) -> None:
    schema = {"type": "object", "properties": {"number": {"type": "number"}}}
    async with scripted(tmp_path, {"name": "nan", "outputSchema": schema}) as my:
        with pytest.raises(ToolError, match="NaN and Infinity are not JSON") as caught:
            await call(my, "nan")
    assert caught.value.code == 502


async def test_an_endless_line_costs_a_server_one_life_and_us_one_line_of_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    limits = replace(LIMITS, max_result=10_000)
    with caplog.at_level(logging.WARNING):
        async with scripted(tmp_path, "large", limits=limits) as my:
            with pytest.raises(AttachmentError, match="the MCP server ended") as caught:
                await call(my, "large", n=100_000)
            assert caught.value.may_have_run
            assert await call(my, "large", n=5)
    (line,) = caplog.messages
    assert f"a line of over {module.RESULTS_PER_LINE * 10_000} bytes" in line


# -- tools


async def test_hints_come_from_the_server_and_from_the_owner(tmp_path: Path) -> None:
    hints = {"readOnlyHint": True, "idempotentHint": True}
    async with scripted(
        tmp_path,
        {"name": "texts", "annotations": hints},
        "nothing",
        "image",
        read_only=("nothing",),
        idempotent=("image",),
    ) as my:
        found = {e.name: (e.read_only, e.idempotent) for e in my.capabilities()}
    assert found == {
        "my.texts": (True, True),
        "my.nothing": (True, False),
        "my.image": (False, True),
    }


async def test_tools_that_break_a_limit_are_left_out_and_said(tmp_path: Path) -> None:
    def padded(size: int) -> dict[str, Any]:
        schema = {"type": "object", "description": ""}
        padding = size - len(json.dumps(schema, separators=(",", ":")))
        return {**schema, "description": "x" * padding}

    tools: list[str | dict[str, Any]] = [
        "fine",
        "fine",
        {"name": "fits", "inputSchema": padded(64 * 1024)},
        {"name": "large", "inputSchema": padded(64 * 1024 + 1)},
        {"name": "far", "inputSchema": {"type": "object", "$ref": "https://x.example"}},
        {"name": "x'); evil\n"},
        {"name": "n" * 128, "description": "d" * 5000},
        {"name": "n" * 129},
    ]
    async with scripted(tmp_path, *tools) as my:
        assert names(my) == ["fine", "fits", "n" * 128]
        assert len(my.skipped) == 5
        assert len(my.capabilities()[2].description) == 4096
        with pytest.raises(AttachmentError, match="no capability"):
            await call(my, "large")


async def test_tools_are_read_over_all_pages_up_to_the_limit(tmp_path: Path) -> None:
    tools = [f"t{number}" for number in range(7)]
    command = (sys.executable, str(SERVER), str(tmp_path / "state.json"))
    state(tmp_path, *tools, page=2)
    async with attached(*command, limits=replace(LIMITS, max_tools=7)) as my:
        assert names(my) == tools
        assert my.skipped == ()
    async with attached(*command, limits=replace(LIMITS, max_tools=6)) as my:
        assert names(my) == tools[:6]
        assert my.skipped == ("all tools after the first 6",)


async def test_a_changed_list_is_read_again_when_the_server_says_so(
    tmp_path: Path,
) -> None:
    told = asyncio.Event()
    state(tmp_path, "relist")
    spec = AttachmentSpec(
        kind="mcp",
        name="my",
        command=(sys.executable, str(SERVER), str(tmp_path / "state.json")),
    )
    my = open_attachment(spec, limits=LIMITS, on_change=told.set)
    async with asyncio.timeout(60):
        await my.start()
        told.clear()
        state(tmp_path, "relist", "texts")
        await call(my, "relist")
        await told.wait()
        assert names(my) == ["relist", "texts"]
        await my.close()


# -- life and death


async def test_the_server_gets_no_secret_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANPD_LLM__MODEL", "AWS_SECRET"):
        monkeypatch.setenv(name, "secret")
    async with scripted(tmp_path, "env", env={"SHOP": "open"}) as my:
        found = json.loads((await call(my, "env"))["text"])
    assert found["SHOP"] == "open"
    assert "secret" not in found.values()


async def test_secrets_of_its_environment_are_read_when_the_child_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_KEY", "from the environment")
    (tmp_path / "key").write_text("from a file\n")
    given = {"A": "env:SHOP_KEY", "B": "file:key", "C": "as it stands"}
    async with scripted(tmp_path, "env", env=given, cwd=tmp_path) as my:
        found = json.loads((await call(my, "env"))["text"])
    assert found["A"] == "from the environment"
    assert found["B"] == "from a file"
    assert found["C"] == "as it stands"
    assert "SHOP_KEY" not in found


def test_a_secret_of_the_environment_has_a_place() -> None:
    with pytest.raises(ConfigError, match="write env:NAME or file:PATH"):
        AttachmentSpec(kind="mcp", name="my", command=("x",), env={"A": "env:"})


async def test_a_missing_secret_of_its_environment_is_named(tmp_path: Path) -> None:
    with pytest.raises(AttachmentError, match="NOWHERE_KEY is not set"):
        async with scripted(tmp_path, "env", env={"A": "env:NOWHERE_KEY"}):
            pass


async def test_noise_of_a_server_neither_blocks_nor_leaves_a_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="mcp"):
        async with scripted(tmp_path, "loud") as my:
            assert await call(my, "loud") == {"text": "one"}
    assert "Traceback" not in caplog.text


async def test_a_call_that_takes_too_long_is_cancelled_at_the_server(
    tmp_path: Path,
) -> None:
    async with scripted(tmp_path, "hang", "was_cancelled") as my:
        with pytest.raises(ToolError) as caught:
            await call(my, "hang", 0.05)
        assert caught.value.code == 504
        assert await call(my, "was_cancelled") == {"text": "True"}


async def test_a_cancelled_call_is_cancelled_at_the_server(tmp_path: Path) -> None:
    async with scripted(tmp_path, "hang", "was_cancelled", "texts") as my:
        running = asyncio.create_task(call(my, "hang"))
        # Calls are handed over in order, so this answer means that it has begun.
        await call(my, "texts")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert await call(my, "was_cancelled") == {"text": "True"}


async def test_calls_at_a_time_are_limited(tmp_path: Path) -> None:
    limits = replace(LIMITS, max_calls=2)
    async with scripted(tmp_path, "hang", "texts", limits=limits) as my:
        first = asyncio.create_task(call(my, "hang"))
        await asyncio.sleep(0)
        assert await call(my, "texts")
        second = asyncio.create_task(call(my, "hang"))
        await asyncio.sleep(0)
        with pytest.raises(ToolError) as caught:
            await call(my, "texts")
        assert caught.value.code == 503
        for task in (first, second):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert await call(my, "texts")


async def test_a_dead_server_fails_its_calls_and_is_started_again(
    tmp_path: Path,
) -> None:
    async with scripted(tmp_path, "die", "hang", "pid") as my:
        first = await call(my, "pid")
        hanging = asyncio.create_task(call(my, "hang"))
        await asyncio.sleep(0)
        with pytest.raises(AttachmentError) as caught:
            await call(my, "die")
        assert caught.value.may_have_run
        with pytest.raises(AttachmentError):
            await hanging
        assert await call(my, "pid") != first
        assert my.healthy


async def test_a_server_that_dies_while_idle_is_noticed(tmp_path: Path) -> None:
    told: asyncio.Queue[bool] = asyncio.Queue()
    state(tmp_path, "pid")
    spec = AttachmentSpec(
        kind="mcp",
        name="my",
        command=(
            "sh",
            "-c",
            f'echo $$ > {tmp_path}/pid; exec "$0" "$@"',
            sys.executable,
            str(SERVER),
            str(tmp_path / "state.json"),
        ),
    )
    my = open_attachment(
        spec, limits=LIMITS, on_change=lambda: told.put_nowait(my.healthy)
    )
    async with asyncio.timeout(60):
        await my.start()
        assert await told.get() is True
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        assert await told.get() is False
        assert await told.get() is True
        await my.close()


async def test_changed_schemas_are_read_after_a_restart(tmp_path: Path) -> None:
    async with scripted(tmp_path, "die", "pid") as my:
        state(tmp_path, "pid", "texts")
        with pytest.raises(AttachmentError):
            await call(my, "die")
        assert await call(my, "pid")
        assert names(my) == ["pid", "texts"]


async def test_a_closed_attachment_ends_its_calls(tmp_path: Path) -> None:
    async with scripted(tmp_path, "hang", "texts") as my:
        hanging = asyncio.create_task(call(my, "hang"))
        await call(my, "texts")
    with pytest.raises(AttachmentError) as caught:
        await hanging
    assert caught.value.may_have_run
    assert not my.healthy


class Endless:
    """An operation that waits for somebody else than the server."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def run(self, exchange: CallTalk, arguments: dict[str, Any]) -> McpOutcome:
        self.begun.set()
        await asyncio.Event().wait()
        raise AssertionError


@pytest.mark.parametrize("tool", ["texts", "die"])
async def test_a_call_that_waits_for_a_requester_ends_with_its_server(
    tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "END_GRACE", 0.05)
    async with scripted(tmp_path, "hang", "texts", "die") as my:
        assert isinstance(my, McpAttachment)
        my._operations["hang"] = endless = Endless()
        waiting = asyncio.create_task(call(my, "hang"))
        await endless.begun.wait()
        with contextlib.suppress(AttachmentError):
            await call(my, tool)
        if tool == "texts":
            await my.close()
        with pytest.raises(AttachmentError, match="was closed") as caught:
            await waiting
    assert caught.value.may_have_run


async def test_a_call_that_waits_for_a_requester_has_its_deadline(
    tmp_path: Path,
) -> None:
    async with scripted(tmp_path, "hang", "texts") as my:
        assert isinstance(my, McpAttachment)
        my._operations["hang"] = Endless()
        with pytest.raises(ToolError, match=r"no answer within 0\.05 s"):
            await call(my, "hang", 0.05)
        assert await call(my, "texts")


async def test_a_call_starts_no_task(tmp_path: Path) -> None:
    made: list[object] = []

    def factory(loop: Any, coro: Any, **options: Any) -> asyncio.Task[Any]:
        made.append(coro)
        return asyncio.Task(coro, loop=loop, **options)

    async with scripted(tmp_path, "texts") as my:
        loop = asyncio.get_running_loop()
        loop.set_task_factory(factory)
        try:
            assert await call(my, "texts")
        finally:
            loop.set_task_factory(None)
    assert made == []


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (("/no/such/program",), "cannot start /no/such/program"),
        (("false",), "the MCP server failed"),
    ],
)
async def test_a_server_that_does_not_start_says_why(
    command: tuple[str, ...], reason: str
) -> None:
    with pytest.raises(AttachmentError, match=reason) as caught:
        async with attached(*command):
            pass
    assert "\n" not in str(caught.value)


async def test_a_server_that_leaves_last_words_is_quoted(tmp_path: Path) -> None:
    state(tmp_path, last_words=True)
    command = (sys.executable, str(SERVER), str(tmp_path / "state.json"))
    with pytest.raises(AttachmentError, match="my last words"):
        async with attached(*command):
            pass


async def test_a_server_that_says_nothing_is_given_up(tmp_path: Path) -> None:
    state(tmp_path, silent=True)
    command = (sys.executable, str(SERVER), str(tmp_path / "state.json"))
    slow = replace(LIMITS, supervisor=replace(FAST, start_timeout=0.3))
    with pytest.raises(AttachmentError, match=r"did not start within 0\.3 s"):
        async with attached(*command, limits=slow):
            pass


async def test_closing_does_not_wait_for_a_server_that_says_nothing(
    tmp_path: Path,
) -> None:
    state(tmp_path, silent=True)
    spec = AttachmentSpec(
        kind="mcp",
        name="my",
        command=(sys.executable, str(SERVER), str(tmp_path / "state.json")),
    )
    endless = SupervisorConfig(start_timeout=3600, stop_timeout=3600)
    my = open_attachment(spec, limits=AttachmentLimits(supervisor=endless))
    async with asyncio.timeout(60):
        starting = asyncio.create_task(my.start())
        await asyncio.sleep(0)
        await my.close()
        with pytest.raises(AttachmentError):
            await starting


async def test_a_server_that_starts_is_ended_with_its_children_by_two_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anp.sidecar.attachments.mcp.server_pipes.STOP_TIMEOUT", 0.2)
    script = f"sleep 60 & echo $! > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid"
    command = ("sh", "-c", f"{script}; wait")
    my = McpAttachment(
        AttachmentSpec(kind="mcp", name="my", command=command), limits=LIMITS
    )
    starting = asyncio.create_task(my.start())
    await until((tmp_path / "pid").exists)
    closing = asyncio.create_task(my.close())
    await asyncio.sleep(0.05)
    await my.close()
    await closing
    with pytest.raises(AttachmentError):
        await starting
    child = (tmp_path / "pid").read_text().strip()
    # It has its signal, and ends when it has its turn.
    await until(lambda: not runs(child))


async def test_an_attachment_can_be_closed_before_and_after_all(tmp_path: Path) -> None:
    spec = AttachmentSpec(kind="mcp", name="my", command=("false",))
    never = McpAttachment(spec, limits=LIMITS)
    await never.close()
    assert never.problem == "closed"
    async with scripted(tmp_path, "texts") as my:
        await my.close()
        await my.close()
        with pytest.raises(AttachmentError, match="down: closed"):
            await my.call("my.texts", {}, caller="", timeout=0.05)


@pytest.mark.parametrize(
    ("code", "message", "may_have_run", "private"),
    [
        (-32000, "Connection closed", True, None),
        pytest.param(
            -32000, f"{NOT_SENT}cannot connect", False, None, id="cannot connect"
        ),
        (-32600, "Session terminated", False, None),
        (-32603, "Session terminated", True, True),
        (-32050, "a code of the server's own", True, True),
        (-32602, "sku is missing", True, False),
        (-32603, "OperationalError: shop.db", True, True),
    ],
)
def test_an_error_of_the_server_says_what_is_known(
    code: int, message: str, may_have_run: bool, private: bool | None
) -> None:
    error = _tool_error(code, message)
    assert isinstance(error, AttachmentError | ToolError)
    assert error.may_have_run is may_have_run
    assert getattr(error, "private", None) is private
