"""Python functions in a child process, and the runner's reading of type hints."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import textwrap
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict, Union

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.errors import ConfigError
from anp.sidecar.attachments import (
    Attachment,
    AttachmentError,
    AttachmentLimits,
    AttachmentSpec,
    ToolError,
    load_attachments,
    open_attachment,
    remove_attachment,
    save_attachment,
)
from anp.sidecar.attachments.attachment import SupervisorConfig
from anp.sidecar.attachments.python import runner
from anp.sidecar.attachments.python.child import find_interpreter
from anp.sidecar.attachments.python.runner import (
    BadValue,
    Function,
    decode,
    encode,
    schema_of,
)
from anp.sidecar.attachments.supervisor import OutputTail, child_environment
from sandbox.pool.shares import Rank, Share, current_share

FAST = SupervisorConfig(start_timeout=20.0, min_backoff=0.01)
LIMITS = AttachmentLimits(supervisor=FAST)
CATALOGUE = Path(__file__).parents[5] / "examples" / "catalogue.py"


def write(folder: Path, text: str, name: str = "shop.py") -> None:
    """Write a module of the owner's."""
    (folder / name).write_text(textwrap.dedent(text))


@asynccontextmanager
async def attached(
    folder: Path,
    target: str,
    *,
    limits: AttachmentLimits = LIMITS,
    env: Mapping[str, str] | None = None,
) -> AsyncIterator[Attachment]:
    """Attach `target` as `my` for the time of a test."""
    spec = AttachmentSpec(
        kind="python", name="my", target=target, cwd=folder, env=env or {}
    )
    attachment = open_attachment(spec, limits=limits)
    async with asyncio.timeout(60):
        try:
            await attachment.start()
            yield attachment
        finally:
            await attachment.close()


async def call(
    attachment: Attachment, tool: str, timeout: float = 20.0, /, **arguments: Any
) -> dict[str, Any]:
    """Call a function of the attachment `my`."""
    return await attachment.call(
        f"my.{tool}", arguments, caller="did:key:z", timeout=timeout
    )


# -- the child


async def test_the_catalogue_of_the_examples_is_served(tmp_path: Path) -> None:
    async with attached(tmp_path, str(CATALOGUE)) as catalogue:
        product, products = catalogue.capabilities()
        assert (product.name, products.name) == ("my.get_product", "my.list_products")
        assert product.input_schema == {
            "type": "object",
            "properties": {
                "product_id": {"type": "string", "description": "Such as P12345."}
            },
            "required": ["product_id"],
            "additionalProperties": False,
        }
        assert isinstance(product.output_schema, dict)
        assert product.output_schema["properties"]["price"] == {"type": "number"}
        assert product.description.startswith("Name, description and price")
        found = await call(catalogue, "get_product", product_id="P12345")
        assert (found["productName"], found["price"]) == ("高性能笔记本电脑", 1299.99)
        listed = await call(catalogue, "list_products")
        assert found in listed["result"]
        with pytest.raises(ToolError, match="no product P99999") as caught:
            await call(catalogue, "get_product", product_id="P99999")
        assert caught.value.code == 404


async def test_one_function_of_a_dotted_module_can_be_attached(tmp_path: Path) -> None:
    (tmp_path / "pack").mkdir()
    write(tmp_path, "def one(): return {'n': 1}\ndef two(): ...", "pack/deep.py")
    async with attached(tmp_path, "pack.deep:one") as my:
        assert [each.name for each in my.capabilities()] == ["my.one"]
        assert await call(my, "one") == {"n": 1}
        with pytest.raises(AttachmentError, match="no capability"):
            await call(my, "two")


async def test_a_module_offers_what_it_defines_and_is_public(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
        from os.path import join
        def seen(): ...
        def _hidden(): ...
        class Thing: ...
        """,
    )
    async with attached(tmp_path, "shop") as my:
        assert [each.name for each in my.capabilities()] == ["my.seen"]


async def test_an_object_offers_its_public_methods(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
        class Shop:
            def __init__(self): self.sold = 0
            def sell(self, count: int) -> int:
                self.sold += count
                return self.sold
            def _hidden(self): ...
        shop = Shop()
        """,
    )
    async with attached(tmp_path, "shop:shop") as my:
        assert [each.name for each in my.capabilities()] == ["my.sell"]
        await call(my, "sell", count=2)
        assert await call(my, "sell", count=3) == {"result": 5}


async def test_what_the_code_prints_never_reaches_the_channel(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
        import os, sys
        print("at import")
        def loud():
            print("x" * 300_000); sys.stderr.write("y" * 300_000)
            os.write(1, b"raw"); os.write(2, b"raw")
            return {"stdin": sys.stdin.read()}
        """,
    )
    async with attached(tmp_path, "shop:loud") as my:
        assert await call(my, "loud") == {"stdin": ""}


async def test_nothing_of_our_installation_is_on_the_path(tmp_path: Path) -> None:
    write(tmp_path, "def spec(): return 'mine'", "spec.py")
    write(
        tmp_path,
        """
        import sys, os, spec
        def look():
            return {"path": sys.path, "argv": sys.argv, "cwd": os.getcwd(),
                    "spec": spec.spec()}
        """,
    )
    async with attached(tmp_path, "shop:look") as my:
        found = await call(my, "look")
    assert found["path"][0] == found["cwd"] == str(tmp_path)
    assert found["spec"] == "mine"
    assert not any("attachments" in entry for entry in found["path"])
    assert len(found["argv"]) == 1


async def test_the_child_gets_no_secret_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANPD_LLM__MODEL", "AWS_SECRET", "PYTHONPATH"):
        monkeypatch.setenv(name, "secret")
    write(tmp_path, "import os\ndef env(): return dict(os.environ)")
    given = {"SHOP": "open", "KEY": "env:AWS_KEY"}
    monkeypatch.setenv("AWS_KEY", "named by the owner")
    async with attached(tmp_path, "shop:env", env=given) as my:
        found = await call(my, "env")
    assert found["SHOP"] == "open"
    assert found["KEY"] == "named by the owner"
    assert "PATH" in found
    assert "secret" not in found.values()


async def test_plain_functions_run_at_the_same_time(tmp_path: Path) -> None:
    # Each call waits for all the others: one at a time would never end.
    write(
        tmp_path,
        """
        import threading
        barrier = threading.Barrier(8)
        def meet(n: int) -> int:
            barrier.wait(15)
            return n
        """,
    )
    async with attached(tmp_path, "shop:meet") as my:
        answers = await asyncio.gather(*(call(my, "meet", n=n) for n in range(8)))
    assert answers == [{"result": n} for n in range(8)]


async def test_async_functions_run_at_the_same_time(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
        import asyncio
        waiting = []
        async def meet(n: int) -> int:
            event = asyncio.Event()
            waiting.append(event)
            if len(waiting) == 8:
                for each in waiting: each.set()
            await event.wait()
            return n
        """,
    )
    async with attached(tmp_path, "shop:meet") as my:
        answers = await asyncio.gather(*(call(my, "meet", n=n) for n in range(8)))
    assert answers == [{"result": n} for n in range(8)]


async def test_an_exception_becomes_a_capability_error(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
        import sys
        class Gone(Exception):
            code = 410
        class Told(Exception):
            code = 409
            caller_message = "three are left"
        def fail(how: str):
            if how == "told": raise Told("swordfish")
            if how == "code": raise Gone("sold out")
            if how == "exit": sys.exit(3)
            if how == "long": raise ValueError("x" * 10_000)
            if how == "nan": return {"a": float("nan")}
            if how == "object": return object()
            if how == "surrogate": return "\\ud800"
            if how == "deep":
                deep = []
                for _ in range(100): deep = [deep]
                return deep
            raise KeyError(how)
        """,
    )
    async with attached(tmp_path, "shop:fail") as my:

        async def fails(how: str) -> ToolError:
            with pytest.raises(ToolError) as caught:
                await call(my, "fail", how=how)
            return caught.value

        told = await fails("told")
        assert (str(told), told.private) == ("409: three are left", False)
        gone = await fails("code")
        assert (str(gone), gone.private) == ("410: Gone: sold out", True)
        assert told.may_have_run
        assert gone.may_have_run
        assert str(await fails("other")) == "500: KeyError: 'other'"
        assert "SystemExit" in str(await fails("exit"))
        assert len((await fails("long")).message) == 500
        for how in ("nan", "object", "surrogate"):
            assert (await fails(how)).code == 500
        # Unreadable for us, but it ends this call only.
        assert (await fails("deep")).code == 502
        assert my.healthy


@pytest.mark.parametrize(
    "arguments", [{}, {"n": "x"}, {"n": 1, "m": 2}, {"n": 1.5}, {"n": True}]
)
async def test_bad_arguments_are_refused_before_the_call(
    tmp_path: Path, arguments: dict[str, Any]
) -> None:
    write(tmp_path, "def double(n: int) -> int:\n    return n * 2")
    async with attached(tmp_path, "shop:double") as my:
        with pytest.raises(ToolError) as caught:
            await call(my, "double", **arguments)
        assert caught.value.code == 400
        assert (caught.value.may_have_run, caught.value.private) == (False, False)
        assert await call(my, "double", n=2.0) == {"result": 4}


async def test_a_result_may_be_as_large_as_its_limit(tmp_path: Path) -> None:
    write(tmp_path, "def text(n: int) -> str:\n    return 'x' * n")
    limits = replace(LIMITS, max_result=100_000)
    # {"output": {"result": "x…"}}
    overhead = len('{"output": {"result": ""}}')
    async with attached(tmp_path, "shop:text", limits=limits) as my:
        found = await call(my, "text", n=100_000 - overhead)
        assert len(found["result"]) == 100_000 - overhead
        with pytest.raises(ToolError, match="over 100000 bytes"):
            await call(my, "text", n=100_001 - overhead)
        assert await call(my, "text", n=1) == {"result": "x"}


async def test_a_call_that_takes_too_long_ends_alone(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
        import asyncio, threading
        cancelled = threading.Event()
        async def hang():
            try:
                await asyncio.sleep(3600)
            finally:
                cancelled.set()
        def was_cancelled() -> bool:
            return cancelled.wait(15)
        """,
    )
    async with attached(tmp_path, "shop") as my:
        with pytest.raises(ToolError) as caught:
            await call(my, "hang", 0.05)
        assert caught.value.code == 504
        assert await call(my, "was_cancelled") == {"result": True}


async def test_a_cancelled_call_is_cancelled_in_the_child(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
        import asyncio, threading
        began, ended = threading.Event(), threading.Event()
        async def hang():
            began.set()
            try: await asyncio.sleep(3600)
            finally: ended.set()
        def has_begun() -> bool: return began.wait(15)
        def has_ended() -> bool: return ended.wait(15)
        """,
    )
    async with attached(tmp_path, "shop") as my:
        running = asyncio.create_task(call(my, "hang"))
        assert await call(my, "has_begun") == {"result": True}
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert await call(my, "has_ended") == {"result": True}


async def test_calls_that_hang_count_until_they_end(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
        import threading
        go = threading.Event()
        def hang(): go.wait(30)
        async def free(): go.set()
        """,
    )
    limits = replace(LIMITS, max_calls=2)
    async with attached(tmp_path, "shop", limits=limits) as my:
        with pytest.raises(ToolError) as first:
            await call(my, "hang", 0.01)
        assert first.value.code == 504
        assert await call(my, "free") == {"result": None}
    async with attached(tmp_path, "shop", limits=limits) as my:
        for expected in (504, 504, 503):
            with pytest.raises(ToolError) as caught:
                await call(my, "hang", 0.01)
            assert caught.value.code == expected


async def test_a_dead_child_fails_its_calls_and_is_started_again(
    tmp_path: Path,
) -> None:
    write(
        tmp_path,
        """
        import os, signal, threading
        def pid() -> int: return os.getpid()
        def die(): os.kill(os.getpid(), signal.SIGKILL); threading.Event().wait()
        """,
    )
    async with attached(tmp_path, "shop") as my:
        first = await call(my, "pid")
        with pytest.raises(AttachmentError) as caught:
            await call(my, "die")
        assert caught.value.may_have_run
        assert await call(my, "pid") != first
        assert my.healthy
        assert my.problem is None


async def test_changes_of_health_are_told(tmp_path: Path) -> None:
    write(tmp_path, "import os\ndef die(): os._exit(3)")
    told: asyncio.Queue[bool] = asyncio.Queue()
    spec = AttachmentSpec(kind="python", name="my", target="shop:die", cwd=tmp_path)
    my = open_attachment(
        spec, limits=LIMITS, on_change=lambda: told.put_nowait(my.healthy)
    )
    async with asyncio.timeout(60):
        await my.start()
        assert await told.get() is True
        with pytest.raises(AttachmentError):
            await call(my, "die")
        assert [await told.get(), await told.get()] == [False, True]
        await my.close()
        assert not my.healthy


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("nowhere:f", "No module named 'nowhere'"),
        ("nowhere.py:f", "nowhere.py"),
        ("shop:nothing", "nothing"),
        ("shop:Thing", "is a class"),
        ("shop:number", "no function"),
        ("broken", "SyntaxError"),
        ("leaves", "SystemExit"),
        ("empty", "no public function"),
        ("crash", "it printed: last words"),
    ],
)
async def test_what_cannot_be_loaded_says_why(
    tmp_path: Path, target: str, reason: str
) -> None:
    write(tmp_path, "class Thing: ...\nnumber = 3")
    write(tmp_path, "def (", "broken.py")
    write(tmp_path, "import sys; sys.exit(3)", "leaves.py")
    write(tmp_path, "x = 3", "empty.py")
    write(
        tmp_path, "import os; print('last words', flush=True); os._exit(1)", "crash.py"
    )
    with pytest.raises(AttachmentError, match=reason) as caught:
        async with attached(tmp_path, target):
            pass
    assert "\n" not in str(caught.value)


async def test_an_interpreter_that_is_not_there_says_so(tmp_path: Path) -> None:
    spec = AttachmentSpec(
        kind="python", name="my", target="shop", python=tmp_path / "no"
    )
    attachment = open_attachment(spec, limits=LIMITS)
    with pytest.raises(AttachmentError, match="check --python"):
        await attachment.start()
    with pytest.raises(AttachmentError, match=r"is down: .*check --python") as caught:
        await call(attachment, "anything", 0.01)
    assert not caught.value.may_have_run
    await attachment.close()


async def test_a_closed_attachment_has_no_process_left(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
        import os, threading
        def pid() -> int: return os.getpid()
        def hang(): threading.Event().wait()
        """,
    )
    async with attached(tmp_path, "shop") as my:
        pid = (await call(my, "pid"))["result"]
        hanging = asyncio.create_task(call(my, "hang"))
        assert await call(my, "pid") == {"result": pid}
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(AttachmentError) as caught:
        await hanging
    assert caught.value.may_have_run


def children() -> str:
    """Return the ids of the processes that this one started."""
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text()


async def test_an_attachment_that_is_given_up_before_its_channel_stands_has_no_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "import threading; threading.Event().wait()")
    connects = asyncio.Event()

    async def connect(*_: object, **__: object) -> None:
        connects.set()
        await asyncio.Event().wait()

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "create_unix_connection", connect)
    spec = AttachmentSpec(kind="python", name="my", target="shop", cwd=tmp_path)
    my = open_attachment(spec, limits=LIMITS)
    before = children()
    starting = asyncio.create_task(my.start())
    await connects.wait()
    await my.close()
    with pytest.raises(AttachmentError):
        await starting
    assert children() == before


async def test_a_child_that_cannot_be_started_leaves_no_answer_that_nobody_takes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spec = AttachmentSpec(
        kind="python", name="my", target="shop", cwd=tmp_path, python=Path("/no/python")
    )
    my = open_attachment(spec, limits=LIMITS)
    with pytest.raises(AttachmentError):
        await my.start()
    await my.close()
    # The end of the channel is told in the next round of the loop.
    await asyncio.sleep(0)
    gc.collect()
    assert "never retrieved" not in caplog.text


async def test_closing_does_not_wait_for_a_module_that_hangs(tmp_path: Path) -> None:
    write(tmp_path, "import threading; threading.Event().wait()")
    endless = SupervisorConfig(start_timeout=3600, stop_timeout=3600)
    spec = AttachmentSpec(kind="python", name="my", target="shop", cwd=tmp_path)
    my = open_attachment(spec, limits=AttachmentLimits(supervisor=endless))
    async with asyncio.timeout(60):
        starting = asyncio.create_task(my.start())
        await asyncio.sleep(0.05)
        await my.close()
        with pytest.raises(AttachmentError):
            await starting


async def test_a_child_ends_when_its_daemon_is_killed(tmp_path: Path) -> None:
    write(tmp_path, "import os\ndef pid() -> int:\n    return os.getpid()")
    code = """
        import asyncio, sys
        from pathlib import Path
        from anp.sidecar.attachments import AttachmentSpec, open_attachment
        async def main():
            spec = AttachmentSpec(kind="python", name="my", target="shop:pid",
                                  cwd=Path(sys.argv[1]))
            my = open_attachment(spec)
            await my.start()
            print(await my.call("my.pid", {}, caller="", timeout=20), flush=True)
            await asyncio.sleep(3600)
        asyncio.run(main())
    """
    async with asyncio.timeout(60):
        daemon = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            textwrap.dedent(code),
            str(tmp_path),
            stdout=asyncio.subprocess.PIPE,
        )
        assert daemon.stdout is not None
        line = await daemon.stdout.readline()
        pid = int(line.decode().split(":")[1].strip(" }\n"))
        watch = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
        daemon.send_signal(signal.SIGKILL)
        await daemon.wait()
        if watch is None:
            pytest.skip("needs pidfd to watch a process that is not a child")
        gone = asyncio.Event()
        asyncio.get_running_loop().add_reader(watch, gone.set)
        await gone.wait()
        asyncio.get_running_loop().remove_reader(watch)
        os.close(watch)


# -- the spec and its files


def test_an_attachment_is_kept_in_a_file_of_its_own(tmp_path: Path) -> None:
    python = AttachmentSpec(
        kind="python",
        name="shop",
        target="shop.py:get",
        cwd=tmp_path,
        python=Path(sys.executable),
        expose=("*",),
        read_only=("get",),
        env={"A": "b"},
    )
    mcp = AttachmentSpec(kind="mcp", name="git", command=("git-server", "-x"))
    folder = tmp_path / "attachments"
    assert load_attachments(folder) == ()
    path = save_attachment(folder, python)
    save_attachment(folder, mcp)
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_attachments(folder) == (mcp, python)
    save_attachment(folder, replace(mcp, expose=("git_log",)))
    assert load_attachments(folder)[0].expose == ("git_log",)
    assert remove_attachment(folder, "git")
    assert not remove_attachment(folder, "git")
    assert load_attachments(folder) == (python,)


def test_an_attachment_may_be_written_by_hand_as_toml(tmp_path: Path) -> None:
    (tmp_path / "git.toml").write_text('kind = "mcp"\ncommand = ["x"]\n')
    (tmp_path / "README").write_text("not one")
    spec = AttachmentSpec(kind="mcp", name="git", command=("x",))
    assert load_attachments(tmp_path) == (spec,)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "not valid JSON"),
        ("[]", "expected an object"),
        ("{}", "kind is missing"),
        ('{"kind": "mcp"}', "command is missing"),
        ('{"kind": "python"}', "MODULE:FUNCTION"),
        ('{"kind": "mcp", "comand": []}', "did you mean command"),
        ('{"kind": "mcp", "name": "../x", "command": ["x"]}', "name"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_broken_attachment_file_is_named(
    tmp_path: Path, content: str, reason: str
) -> None:
    (tmp_path / "bad.json").write_text(content)
    with pytest.raises(ConfigError, match=reason) as caught:
        load_attachments(tmp_path)
    assert "bad.json" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_two_files_for_one_attachment_are_a_mistake(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text('{"kind": "mcp", "name": "x", "command": ["x"]}')
    with pytest.raises(ConfigError, match="two files"):
        load_attachments(tmp_path)


def test_the_interpreter_of_the_active_environment_is_found(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    assert find_interpreter({}) == Path(sys.executable)
    assert find_interpreter({"VIRTUAL_ENV": str(tmp_path)}) == Path(sys.executable)
    (tmp_path / "bin" / "python").touch()
    found = find_interpreter({"VIRTUAL_ENV": str(tmp_path)})
    assert found == tmp_path / "bin" / "python"


def test_a_child_inherits_a_few_names_only() -> None:
    ours = {"PATH": "/bin", "LC_ALL": "C", "ANPD_HOME": "/h", "OPENAI_API_KEY": "k"}
    assert child_environment({"X": "1"}, ours) == {
        "PATH": "/bin",
        "LC_ALL": "C",
        "X": "1",
    }


async def test_output_without_a_newline_does_not_grow() -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(b"first\n\n" + b"x" * 1_000_000)
    reader.feed_eof()
    tail = OutputTail("my")
    await tail.drain(reader)
    assert tail.last_line == "x" * OutputTail.MAX_LINE


async def test_the_log_has_what_a_child_prints(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(b"no key is set\n")
    reader.feed_eof()
    with caplog.at_level(logging.INFO, logger="anp"):
        await OutputTail("my").drain(reader)
    assert "child printed attachment=my text='no key is set'" in caplog.text


# -- type hints


class Color(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Size:
    width: int
    height: int = 3
    tags: list[str] = field(default_factory=list)


@dataclass
class Node:
    value: int
    next: Optional[Node] = None  # noqa: UP045 -- this form is what is tested


class Order(TypedDict):
    item: Annotated[str, "What is ordered."]
    note: NotRequired[str]


INTEGER = {"type": "integer"}
STRING = {"type": "string"}

HINTS: list[tuple[Any, dict[str, Any], Any, Any]] = [
    (int, INTEGER, 3, 3),
    (float, {"type": "number"}, 3, 3.0),
    (bool, {"type": "boolean"}, True, True),
    (str, STRING, "x", "x"),
    (None, {"type": "null"}, None, None),
    (Any, {}, [1], [1]),
    (object, {}, [1], [1]),
    (list, {"type": "array"}, [1], [1]),
    (list[int], {"type": "array", "items": INTEGER}, [1], [1]),
    (set[int], {"type": "array", "items": INTEGER, "uniqueItems": True}, [1], {1}),
    (tuple[int, ...], {"type": "array", "items": INTEGER}, [1, 2], (1, 2)),
    (
        tuple[int, str],
        {
            "type": "array",
            "prefixItems": [INTEGER, STRING],
            "minItems": 2,
            "maxItems": 2,
        },
        [1, "x"],
        (1, "x"),
    ),
    (dict, {"type": "object"}, {"a": 1}, {"a": 1}),
    (dict[str, Any], {"type": "object"}, {"a": 1}, {"a": 1}),
    (
        dict[str, int],
        {"type": "object", "additionalProperties": INTEGER},
        {"a": 1},
        {"a": 1},
    ),
    (
        dict[int, int],
        {"type": "object", "additionalProperties": INTEGER},
        {"1": 1},
        {1: 1},
    ),
    (int | None, {"type": ["integer", "null"]}, None, None),
    (
        Optional[list[int]],  # noqa: UP045 -- this form is what is tested
        {"anyOf": [{"type": "array", "items": INTEGER}, {"type": "null"}]},
        [1],
        [1],
    ),
    (
        Union[float, int],  # noqa: UP007 -- this form is what is tested
        {"type": ["number", "integer"]},
        3,
        3,
    ),
    (Literal["a", 1], {"enum": ["a", 1]}, "a", "a"),
    (Color, {"enum": ["red", "blue"]}, "red", Color.RED),
    (Annotated[int, "How many."], {**INTEGER, "description": "How many."}, 3, 3),
    (
        datetime,
        {**STRING, "format": "date-time"},
        "2026-01-02T03:04:05",
        datetime(2026, 1, 2, 3, 4, 5),
    ),
    (date, {**STRING, "format": "date"}, "2026-01-02", date(2026, 1, 2)),
    (Path, STRING | {"format": "path"}, "/x", Path("/x")),
    (
        Size,
        {
            "type": "object",
            "properties": {
                "width": INTEGER,
                "height": {**INTEGER, "default": 3},
                "tags": {"type": "array", "items": STRING},
            },
            "required": ["width"],
            "additionalProperties": False,
        },
        {"width": 2, "height": 3, "tags": []},
        Size(2),
    ),
    (
        Order,
        {
            "type": "object",
            "properties": {
                "item": {**STRING, "description": "What is ordered."},
                "note": STRING,
            },
            "required": ["item"],
        },
        {"item": "x"},
        {"item": "x"},
    ),
    (
        Node,
        {
            "type": "object",
            "properties": {
                "value": INTEGER,
                "next": {"type": ["object", "null"], "default": None},
            },
            "required": ["value"],
            "additionalProperties": False,
        },
        {"value": 1, "next": {"value": 2, "next": None}},
        Node(1, Node(2)),
    ),
]


@pytest.mark.parametrize(("hint", "schema", "wire", "value"), HINTS)
def test_a_hint_gives_a_schema_and_carries_values_both_ways(
    hint: Any, schema: dict[str, Any], wire: Any, value: Any
) -> None:
    assert schema_of(hint) == schema
    found = decode(wire, hint, "x")
    assert found == value
    assert type(found) is type(value)
    assert encode(value) == wire


@pytest.mark.parametrize(
    ("hint", "wire", "message"),
    [
        (int, "3", "x: expected a number, got str"),
        (int, True, "x: expected a number, got bool"),
        (int, 3.5, "x: expected an integer, got float"),
        (str, 3, "x: expected a string, got int"),
        (list[int], [1, "a"], "x[1]: expected a number, got str"),
        (set[Any], [[1]], "x: its items cannot be in a set"),
        (tuple[int, str], [1], "x: expected 2 items, got 1"),
        (dict[str, int], {"a": None}, "x.a: expected a number, got NoneType"),
        (dict[int, int], {"a": 1}, "x: the name 'a' is no integer"),
        (Color, "green", "x: 'green' is none of 'red', 'blue'"),
        (Literal[1], True, "x: True is none of 1"),
        (Size, {}, "x: width is missing"),
        (Size, {"width": 1, "depth": 2}, "x: there is no 'depth'"),
        (date, "tomorrow", "x: 'tomorrow' is no date"),
        (int | None, "a", "x: expected a number, got str"),
        (float, 10**400, "x: the number is too large"),
        (int, float("inf"), "x: expected an integer, got float"),
    ],
)
def test_a_value_that_does_not_fit_names_its_place(
    hint: Any, wire: Any, message: str
) -> None:
    with pytest.raises(BadValue) as caught:
        decode(wire, hint, "x")
    assert str(caught.value) == message


def untyped(a, b=2): ...  # type: ignore[no-untyped-def]  # as owners write


def test_parameters_without_hints_accept_anything() -> None:
    described = Function("f", untyped).describe()
    assert described["input_schema"] == {
        "type": "object",
        "properties": {"a": {}, "b": {"default": 2}},
        "required": ["a"],
        "additionalProperties": False,
    }
    assert described["output_schema"] == {"type": "object"}


def test_a_result_without_a_hint_is_wrapped_unless_it_is_a_dict() -> None:
    function = Function("f", untyped)
    assert function.result({"a": 1}) == {"a": 1}
    assert function.result([1]) == {"result": [1]}
    assert function.result(None) == {"result": None}


def of_size() -> Size:
    """Return a size."""
    return Size(1)


def of_number() -> int | None:
    """Return a number."""
    return 1


def test_a_return_type_that_is_no_object_is_wrapped() -> None:
    assert Function("f", of_size).output_schema == schema_of(Size)
    assert Function("f", of_number).output_schema == {
        "type": "object",
        "properties": {"result": {"type": ["integer", "null"]}},
        "required": ["result"],
    }
    with pytest.raises(ValueError, match="returned int"):
        Function("f", of_size).result(3)


def of_kinds(a: int, /, b: int = 2, *rest: int, c: int, **more: Any) -> list[int]:
    """Take parameters of every kind."""
    return [a, b, c, *rest, len(more)]


def test_parameters_of_every_kind_are_bound_by_name() -> None:
    function = Function("f", of_kinds)
    positional, named = function.bind({"a": 1, "c": 3, "x": 9})
    assert (positional, named) == ([1], {"c": 3, "x": 9})
    assert of_kinds(*positional, **named) == [1, 2, 3, 1]
    assert "additionalProperties" not in function.describe()["input_schema"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON, st.sampled_from([hint for hint, *_ in HINTS]))
def test_any_json_value_fits_a_hint_or_is_refused(value: Any, hint: Any) -> None:
    try:
        found = decode(value, hint, "x")
    except BadValue:
        return
    encode(found)


async def test_a_source_changed_within_its_second_is_read_anew(tmp_path: Path) -> None:
    # As when an owner edits, attaches, calls and edits again by script: same size and
    # same time stamp, which is all that Python's bytecode files look at.
    answers = []
    for text in ("one", "two"):
        write(tmp_path, f"def say() -> str:\n    return {text!r}\n")
        os.utime(tmp_path / "shop.py", (1_700_000_000, 1_700_000_000))
        async with attached(tmp_path, "shop:say") as my:
            answers.append(await call(my, "say"))
    assert answers == [{"result": "one"}, {"result": "two"}]


async def test_slow_calls_of_strangers_leave_places_to_others(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
        import time
        def hang(): time.sleep(60)
        def add(): return 1
        """,
    )
    limits = replace(LIMITS, max_calls=16)
    async with attached(tmp_path, "shop", limits=limits) as my:

        async def give_up(share: Share) -> int:
            current_share.set(share)
            with pytest.raises(ToolError) as caught:
                await call(my, "hang", 0.01)
            return caught.value.code

        strangers = [Share(Rank.COMMON, f"192.0.2.{number}") for number in range(4)]
        codes = [
            await asyncio.create_task(give_up(share))
            for share in strangers
            for _ in range(2)
        ]
        # They go on counting after everybody has given them up.
        assert codes.count(504) == 4
        assert codes.count(503) == 4
        current_share.set(Share(Rank.LISTED, "did:key:zGood"))
        for _ in range(20):
            assert await call(my, "add") == {"result": 1}


@pytest.mark.parametrize("piece", ["x", 'a"\\', "\x00\x7f", "é", "😀"])
def test_long_texts_are_written_as_short_ones_are(piece: str) -> None:
    text = "y" * runner.LONG + piece
    for output in ({"a": text}, {"n": 1.5, 'k"': text, "l": [text]}, {"a": [text]}):
        frame = {"output": output}
        assert runner.written(frame) == runner.ENCODER.encode(frame).encode()


def test_a_lone_surrogate_in_a_long_text_is_no_json() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        runner.written({"output": {"a": "y" * runner.LONG + "\ud800"}})


MODELS = """
from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import BaseModel, Field


class Seat(BaseModel):
    row: int = Field(ge=1)
    letter: Literal["A", "B"]


class Ticket(BaseModel):
    seat: Seat
    price_eur: float = Field(alias="priceEur")
    open: bool = True
    next: Ticket | None = None


def book(seat: Seat) -> Ticket:
    return Ticket(seat=seat, priceEur=9.5)


def all_of(seats: list[Seat]) -> list[Ticket]:
    return [book(seat) for seat in seats]


def stream(rows: int) -> Iterator[Seat]:
    for row in range(1, rows + 1):
        yield Seat(row=row, letter="A")


def untyped(seat):
    return Seat(**seat)
"""


async def test_models_of_pydantic_are_arguments_and_results(tmp_path: Path) -> None:
    write(tmp_path, MODELS)
    seat = {"row": 1, "letter": "A"}
    ticket = {"seat": seat, "priceEur": 9.5, "open": True, "next": None}
    async with attached(tmp_path, "shop") as my:
        found = {one.name: one for one in my.capabilities()}
        taken, made = found["my.book"].input_schema, found["my.book"].output_schema
        assert isinstance(taken, dict)
        assert isinstance(made, dict)
        wanted = taken["properties"]["seat"]
        assert wanted["properties"]["letter"]["enum"] == ["A", "B"]
        assert made["properties"]["seat"] == wanted
        # A model that holds itself ends there.
        assert made["properties"]["next"]["anyOf"][0] == {"type": "object"}
        assert "$ref" not in str([one.output_schema for one in found.values()])
        assert await call(my, "book", seat=seat) == ticket
        assert await call(my, "all_of", seats=[seat]) == {"result": [ticket]}
        assert await call(my, "stream", rows=1) == {"result": [seat]}
        assert await call(my, "untyped", seat=seat) == seat
        with pytest.raises(ToolError, match=r"seat\.row: .*greater than") as caught:
            await call(my, "book", seat={**seat, "row": 0})
        assert (caught.value.code, caught.value.may_have_run) == (400, False)


class Context: ...


def meant(text, context): ...  # type: ignore[no-untyped-def]  # as owners write


def also(text: str, context: Context | None = None) -> None: ...


def data(text, context=""): ...  # type: ignore[no-untyped-def]  # as owners write


def typed(context: str) -> None: ...


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (meant, ["text"]),
        (also, ["text"]),
        (data, ["text", "context"]),
        (typed, ["context"]),
    ],
)
def test_a_parameter_that_is_the_context_is_no_argument(
    function: Any, names: list[str]
) -> None:
    schema = runner.Function("f", function).describe()["input_schema"]
    assert list(schema["properties"]) == names
