"""The listener for updates of agents that take calls at a URL (kind `callback`).

`POST /updates/{id}` with the token of that call. It is no part of the local API, and a
wrong token, an ended call and another path get the same answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import ConfigDict, Field
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from anp.sidecar.api.answers import JsonAnswer
from anp.sidecar.api.operations.task_bodies import PartBody, parts_of
from anp.sidecar.api.problems import ApiError, problem_of, problem_response
from anp.sidecar.api.requests import LongText
from anp.sidecar.api.table import STRICT, read_body
from anp.sidecar.attachments.assignment import Assignment
from anp.sidecar.attachments.attachment import Progress, ToolError
from anp.sidecar.attachments.http.updates import UpdateDesk
from anp.sidecar.attachments.requester import Question

PATH: Final = "/updates/{id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateBody:
    """One update of an agent about its call."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    type: (
        Literal["progress", "message", "ask", "part", "completed", "failed", "rejected"]
        | None
    ) = None
    "Kind of the update; an update with a `state` may leave it out."

    state: Literal["rejected"] | None = None
    "The agent hands the task back, which it has not done: the same as that `type`."

    text: LongText | None = None
    "Words: of the progress, the message, the question, or a part of the result."

    value: Any = None
    "`message`, `part`: a JSON value other than null."

    parts: Annotated[list[PartBody], Field(max_length=64)] = field(default_factory=list)
    "`message`, `part`: further contents, such as files."

    progress: float | None = None
    total: float | None = None
    "`progress`: work that is done and all of it, in a unit of the agent's."

    schema: dict[str, Any] | None = None
    url: Annotated[str, Field(max_length=2048)] = ""
    "`ask`: JSON Schema of the wanted value; page on which something has to be done."

    output: Any = None
    "`completed`: the output; without it the parts before are the result."

    code: Annotated[int, Field(ge=400, le=599)] = 500
    message: Annotated[str, Field(max_length=500)] = ""
    """`failed`: code as of HTTP, and words that the requester reads, also those of
    `rejected`."""


@dataclass(frozen=True, slots=True)
class UpdateAnswer:
    """An update was taken."""

    ended: bool
    "True when the call is over, and its token ends."


def make_updates_app(desk: UpdateDesk) -> ASGIApp:
    """Return the application that takes updates for the open calls of a desk."""

    async def update(request: Request) -> Response:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        name = request.path_params["id"]
        found = desk.find(name, token) if scheme.lower() == "bearer" else None
        if found is None:
            return _unknown()
        try:
            body = await read_body(UpdateBody, request)
            assert isinstance(body, UpdateBody), "that is asked for"
            if found.ending:
                # It ended while the body came.
                return _unknown()
            await _take(found, body)
            return JsonAnswer(UpdateAnswer(bool(found.ending)))
        except ToolError as exc:
            return problem_response(problem_of(ApiError(413, exc.message)))
        except Exception as exc:  # noqa: BLE001 - becomes the answer, and a log line
            return problem_response(problem_of(exc))

    async def refuse(request: Request, exc: Exception) -> Response:
        return _unknown()

    return Starlette(
        routes=[Route(PATH, update, methods=["POST"])],
        exception_handlers={HTTPException: refuse},
    )


async def _take(work: Assignment, body: UpdateBody) -> None:
    match body.type or body.state:
        case "progress":
            work.progress(Progress(body.progress, body.total, body.text or ""))
        case "ask":
            if body.text is None:
                raise ApiError(400, "a question needs a text")
            work.ask(Question(text=body.text, schema=body.schema, url=body.url))
        case "completed":
            await work.complete(body.output)
        case "failed":
            work.fail(body.code, body.message or "the agent gave no reason")
        case "rejected":
            work.hand_back(body.message)
        case None:
            raise ApiError(400, "an update has a `type` or a `state`")
        case "message" | "part":
            parts = parts_of(body.parts, text=body.text, value=body.value)
            if not parts:
                raise ApiError(400, "it is empty")
            await (work.say(parts) if body.type == "message" else work.add(parts))


def _unknown() -> Response:
    return problem_response(problem_of(ApiError(404, "there is no such call")))
