"""Agents of every kind that hand a task back before they did a part of it (GBZ-62)."""

from __future__ import annotations

import asyncio
import math
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from a2a.types.a2a_pb2 import Part as A2aPart
from a2a.types.a2a_pb2 import StreamResponse, TaskState

from anp.errors import ConflictError
from anp.interaction.elements import Part
from anp.sidecar.attachments import HandedBack, ToolError
from anp.sidecar.attachments.a2a.tasks import TaskRecord, failure_of
from anp.sidecar.attachments.assignment import Assignment
from anp.sidecar.attachments.declaration import DeclaredCapability
from anp.sidecar.attachments.mcp.attachment import _tool_error
from anp.sidecar.attachments.requester import Requester, current_requester
from tests.anp.sidecar.attachments.python.test_child import attached as function
from tests.anp.sidecar.attachments.python.test_child import call as call_function
from tests.anp.sidecar.attachments.python.test_child import write
from tests.anp.sidecar.attachments.python.test_streaming import Taker, taking
from tests.anp.sidecar.attachments.web import Asked, answer, attached, call, serving
from tests.clauses import clause

GO = (DeclaredCapability(name="go"),)

FUNCTIONS = """
from typing import Iterator, Protocol


class Context(Protocol):
    def reject(self, reason: str) -> None: ...


def plain(context: Context) -> str:
    try:
        context.reject("not my field")
    except Exception:
        return "kept"


async def later(context: Context) -> str:
    context.progress(0, 1, "reading")
    context.reject("not my field")


def first(context: Context) -> Iterator[str]:
    context.reject("not my field")
    yield "never"


def late(context: Context) -> Iterator[str]:
    yield "one"
    context.reject("not my field")
"""


@clause("GBZ-62", "GBZ-Q20")
async def test_a_python_function_hands_a_task_back_by_its_context(
    tmp_path: Path,
) -> None:
    write(tmp_path, FUNCTIONS)
    async with function(tmp_path, "shop") as my:
        for name in ("plain", "later", "first"):
            with taking(Taker()), pytest.raises(HandedBack) as caught:
                await call_function(my, name)
            assert caught.value.message == "not my field"
            assert not caught.value.may_have_run
        with taking(Taker()) as taker, pytest.raises(ToolError) as failed:
            await call_function(my, "late")
        assert taker.contents == ["one"]
        assert not isinstance(failed.value, HandedBack)
        assert "cannot be handed back" in failed.value.message


@pytest.mark.parametrize("status", [400, 409, 422])
async def test_a_service_hands_back_by_a_header_and_by_no_status_alone(
    status: int,
) -> None:
    said = {"detail": "no such branch"}
    kind: type[ToolError] = HandedBack
    for more in ({"Anpd_Task": "rejected"}, {}):
        raw = answer(said, status, "application/json", **more)
        async with (
            serving(partial(_always, raw)) as web,
            attached("http", web.url, capabilities=GO) as my,
        ):
            with pytest.raises(ToolError) as caught:
                await call(my, "go")
        assert type(caught.value) is kind
        assert (caught.value.code, caught.value.message) == (status, "no such branch")
        kind = ToolError
    assert caught.value.may_have_run


async def test_only_a_client_error_of_a_service_hands_back() -> None:
    raw = answer({"detail": "down"}, 503, "application/json", Anpd_Task="rejected")
    async with (
        serving(lambda _: raw) as web,
        attached("http", web.url, capabilities=GO) as my,
    ):
        with pytest.raises(ToolError) as caught:
            await call(my, "go")
    assert type(caught.value) is ToolError


@pytest.mark.parametrize(
    "raw",
    [
        answer({"state": "rejected", "message": "not mine"}),
        answer({"state": "rejected", "reason": "not mine"}, 409),
        answer({"error": "not mine"}, 409, "application/json", Anpd_Task="rejected"),
    ],
)
async def test_a_callback_hands_back_by_its_state_or_the_header(raw: bytes) -> None:
    async with (
        serving(lambda _: raw) as web,
        attached("callback", web.url, capabilities=GO) as my,
    ):
        with pytest.raises(HandedBack, match="not mine"):
            await call(my, "go")


@pytest.mark.parametrize(
    ("data", "handed_back"),
    [
        ("rejected", True),
        ({"state": "rejected"}, True),
        ({"order": {"state": "rejected"}}, False),
        (["rejected"], False),
        (None, False),
        ("rejected by the bank", False),
    ],
)
def test_an_mcp_error_hands_back_by_its_data(data: Any, handed_back: bool) -> None:
    found = _tool_error(-32602, "not mine", data)
    assert isinstance(found, ToolError)
    assert isinstance(found, HandedBack) == handed_back


def test_an_a2a_agent_hands_back_until_it_gave_an_artifact() -> None:
    rejected = StreamResponse()
    rejected.status_update.status.state = TaskState.TASK_STATE_REJECTED
    rejected.status_update.status.message.parts.append(A2aPart(text="not mine"))
    record = TaskRecord(max_size=1000)
    record.add(rejected)
    found = failure_of(record)
    assert isinstance(found, HandedBack)
    assert (found.message, found.may_have_run) == ("not mine", False)
    given = StreamResponse()
    given.artifact_update.artifact.artifact_id = "a"
    given.artifact_update.artifact.parts.append(A2aPart(text="half"))
    record = TaskRecord(max_size=1000)
    record.add(given)
    record.add(rejected)
    assert type(failure_of(record)) is ToolError


def _always(raw: bytes, asked: Asked) -> bytes:
    return raw


class Told:
    """A requester who was given a part of the result."""

    was_told = False


async def test_an_agent_that_answers_later_hands_back_until_it_gave_a_part() -> None:
    current_requester.set(cast(Requester, told := Told()))
    work = Assignment("c", {}, caller="did", deadline=math.inf, max_result=9)
    told.was_told = True
    with pytest.raises(ConflictError, match="cannot be handed back"):
        work.hand_back("not mine")
    told.was_told = False
    work.hand_back("not mine")
    assert work.ending == "rejected"
    with pytest.raises(HandedBack, match="not mine"):
        await work.wait(1)
    current_requester.set(None)
    work = Assignment("c", {}, caller="did", deadline=math.inf, max_result=99)
    await work.add([Part.text("half")])
    with pytest.raises(ConflictError):
        work.hand_back("not mine")
    await asyncio.sleep(0)
