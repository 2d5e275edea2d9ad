"""The threads in which the owner's plain functions run."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.anp.sidecar.attachments.python.test_child import attached, call, write

SHOP = """
import contextvars, threading, time

seen = contextvars.ContextVar("seen", default="nothing")
gate = threading.Event()


def remember(word: str) -> str:
    before = seen.get()
    seen.set(word)
    return before


def thread() -> int:
    return threading.get_ident()


def wait() -> int:
    gate.wait()
    return threading.get_ident()


def open_gate() -> int:
    gate.set()
    return threading.active_count()


def hang() -> None:
    time.sleep(1000)
"""


async def test_calls_after_one_another_start_no_threads(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    async with attached(tmp_path, "shop") as my:
        idents = {(await call(my, "thread"))["result"] for _ in range(20)}
        # One reads while another one is about to be through with its call.
        assert len(idents) <= 3


async def test_what_a_function_sets_in_its_context_ends_with_its_call(
    tmp_path: Path,
) -> None:
    write(tmp_path, SHOP)
    async with attached(tmp_path, "shop") as my:
        found = [await call(my, "remember", word=f"{one}") for one in range(6)]
        assert found == [{"result": "nothing"}] * 6


async def test_many_calls_at_a_time_have_a_thread_each_and_few_stay(
    tmp_path: Path,
) -> None:
    write(tmp_path, SHOP)
    async with attached(tmp_path, "shop") as my:
        waiting = [asyncio.create_task(call(my, "wait")) for _ in range(30)]
        # Each call is sent before the one that lets them all go on.
        await asyncio.sleep(0)
        running = (await call(my, "open_gate"))["result"]
        assert running > 30
        idents = {found["result"] for found in await asyncio.gather(*waiting)}
        assert len(idents) == 30
        for _ in range(100):
            if (await call(my, "open_gate"))["result"] < 15:
                break
        else:
            raise AssertionError("the threads of calls that ended are still there")


async def test_functions_that_hang_stop_no_others(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    async with attached(tmp_path, "shop") as my:
        hanging = [asyncio.create_task(call(my, "hang")) for _ in range(20)]
        await asyncio.sleep(0)
        assert (await call(my, "remember", word="one"))["result"] == "nothing"
        for task in hanging:
            task.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)
        assert (await call(my, "remember", word="two"))["result"] == "nothing"


async def test_no_thread_holds_a_long_argument_after_its_call(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
        import time, tracemalloc

        tracemalloc.start()

        def size(text: str) -> int:
            return len(text)

        def lets_go(below: int) -> bool:
            # The last call's thread may just be on its way to the next one.
            end = time.monotonic() + 2.0
            while tracemalloc.get_traced_memory()[0] > below and time.monotonic() < end:
                time.sleep(0.01)
            return time.monotonic() < end
        """,
    )
    async with attached(tmp_path, "shop") as my:
        for _ in range(4):
            assert await call(my, "size", text="x" * 2_000_000) == {"result": 2_000_000}
        assert await call(my, "lets_go", below=1_000_000) == {"result": True}
