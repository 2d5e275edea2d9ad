"""Errors of the local API as problem documents of RFC 9457 (SIDECAR.md, Local API)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from anp.errors import (
    AnpError,
    BusyError,
    CallError,
    ConfigError,
    ConflictError,
    ErrorKind,
    UnknownError,
)
from anp.sidecar.api.answers import LEFT_OUT, JsonAnswer
from cache.errors import CacheError, HashPrefixError
from negotiation.errors import JsonError

logger = logging.getLogger(__name__)

PROBLEM_TYPE: Final = "application/problem+json"
"The media type of a problem document."

HTTP_STATUS: Final[dict[ErrorKind, int]] = {
    ErrorKind.UNEXPECTED: 500,
    ErrorKind.USAGE: 400,
    ErrorKind.CONFIGURATION: 422,
    ErrorKind.DAEMON_UNREACHABLE: 503,
    ErrorKind.IDENTITY_REFUSED: 403,
    ErrorKind.NEGOTIATION_REJECTED: 409,
    ErrorKind.APPROVAL_PENDING: 409,
    ErrorKind.POLICY: 403,
    # The peer's failures are not this server's. A 502, 503 or 504 is sent again by many
    # clients and proxies on their own, and a call may have run.
    ErrorKind.TIMEOUT: 424,
    ErrorKind.APPLICATION_ERROR: 424,
    ErrorKind.GENERATED_CODE: 424,
    ErrorKind.PEER_UNREACHABLE: 424,
    ErrorKind.LOCAL_RESOURCE: 507,
    ErrorKind.INTERRUPTED: 409,
}
"HTTP status of each kind of error."


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A request failed."""

    type: str
    "A URN with the kind."

    title: str
    "The kind, for people."

    status: Annotated[int, Field(ge=400, le=599)]
    "The HTTP status."

    detail: str
    "The fault, in one line."

    kind: str
    "The name of the exit code that the command line ends with."

    may_have_run: bool = LEFT_OUT
    "True when the call may have been carried out all the same."

    retry_after: float = LEFT_OUT
    "Seconds after which it can be tried again."

    needed_scope: str = LEFT_OUT
    "Scope that the request would need, if it was refused for its own."

    @classmethod
    def of(
        cls,
        kind: ErrorKind,
        detail: str,
        *,
        status: int | None = None,
        may_have_run: bool = False,
        retry_after: float | None = None,
        needed_scope: str | None = None,
    ) -> Problem:
        """Return the problem of a kind, with that kind's status unless one is given."""
        return cls(
            type=f"urn:anpd:error:{kind.value}",
            title=kind.value.replace("_", " "),
            status=HTTP_STATUS[kind] if status is None else status,
            detail=detail,
            kind=kind.value,
            may_have_run=may_have_run or LEFT_OUT,
            retry_after=LEFT_OUT if retry_after is None else retry_after,
            needed_scope=LEFT_OUT if needed_scope is None else needed_scope,
        )


class ApiError(CallError):
    """A request that is wrong in a way for which HTTP has a status of its own."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        kind: ErrorKind = ErrorKind.USAGE,
        headers: dict[str, str] | None = None,
        needed_scope: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(kind, detail, retry_after=retry_after)
        self.status = status
        self.needed_scope = needed_scope
        self.headers = headers or {}


def problem_of(exc: Exception) -> Problem:
    """Return the problem document of whatever a handler raised.

    Raises:
        ClientDisconnect: The client has left, so no answer would be read.
    """
    match exc:
        case ClientDisconnect():
            raise exc
        case ApiError():
            return Problem.of(
                exc.kind,
                exc.detail,
                status=exc.status,
                needed_scope=exc.needed_scope,
                retry_after=exc.retry_after,
            )
        case UnknownError() | ConflictError():
            status = 404 if isinstance(exc, UnknownError) else 409
            return Problem.of(exc.kind, exc.detail, status=status)
        case BusyError():
            return Problem.of(
                exc.kind, exc.detail, status=429, retry_after=exc.retry_after
            )
        case CallError():
            return Problem.of(
                exc.kind,
                exc.detail,
                may_have_run=exc.may_have_run,
                retry_after=exc.retry_after,
            )
        case ConfigError():
            return Problem.of(ErrorKind.CONFIGURATION, str(exc))
        case HashPrefixError():
            status = 409 if exc.matches else 404
            return Problem.of(ErrorKind.USAGE, str(exc), status=status)
        case CacheError():
            return Problem.of(ErrorKind.LOCAL_RESOURCE, str(exc))
        case AnpError() | JsonError():
            return Problem.of(ErrorKind.USAGE, str(exc))
    logger.error("request failed", exc_info=exc)
    return Problem.of(ErrorKind.UNEXPECTED, "unexpected error; see the log")


def problem_response(
    answer: Problem, headers: dict[str, str] | None = None
) -> Response:
    """Return the answer that carries a problem document."""
    more = dict(headers or {})
    if answer.retry_after is not LEFT_OUT:
        more["Retry-After"] = str(max(1, int(answer.retry_after)))
    return JsonAnswer(
        answer, status_code=answer.status, headers=more, media_type=PROBLEM_TYPE
    )


async def http_problem(request: Request, exc: Exception) -> Response:
    """Answer what no operation took: an unknown path, a method that is not there."""
    if isinstance(exc, HTTPException):
        detail = {
            404: f"there is no {request.url.path}; see /v1/openapi.json",
            405: f"{request.method} does not go with {request.url.path}",
        }.get(exc.status_code, exc.detail)
        answer = Problem.of(ErrorKind.USAGE, detail, status=exc.status_code)
        return problem_response(answer, dict(exc.headers or {}))
    return problem_response(problem_of(exc))
