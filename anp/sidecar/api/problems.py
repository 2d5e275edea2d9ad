"""Errors of the local API as problem documents of RFC 9457 (SIDECAR.md, Local API)."""

from __future__ import annotations

import logging
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from anp.errors import (
    AnpError,
    BusyError,
    CallError,
    ConfigError,
    ConflictError,
    ErrorKind,
    UnknownError,
)
from cache.errors import CacheError, HashPrefixError
from negotiation.errors import JsonError

__all__ = [
    "HTTP_STATUS",
    "PROBLEM_TYPE",
    "ApiError",
    "http_problem",
    "problem",
    "problem_of",
    "problem_response",
]

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


class ApiError(CallError):
    """A request that is wrong in a way for which HTTP has a status of its own."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        kind: ErrorKind = ErrorKind.USAGE,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(kind, detail)
        self.status = status
        self.headers = headers or {}


def problem(
    kind: ErrorKind,
    detail: str,
    *,
    status: int | None = None,
    may_have_run: bool = False,
    retry_after: float | None = None,
) -> dict[str, Any]:
    """Return a problem document; its `kind` has the name of the exit code."""
    body: dict[str, Any] = {
        "type": f"urn:anpd:error:{kind.value}",
        "title": kind.value.replace("_", " "),
        "status": HTTP_STATUS[kind] if status is None else status,
        "detail": detail,
        "kind": kind.value,
    }
    if may_have_run:
        body["may_have_run"] = True
    if retry_after is not None:
        body["retry_after"] = retry_after
    return body


def problem_of(exc: Exception) -> dict[str, Any]:
    """Return the problem document of whatever a handler raised."""
    match exc:
        case ApiError():
            return problem(exc.kind, exc.detail, status=exc.status)
        case UnknownError():
            return problem(exc.kind, exc.detail, status=404)
        case ConflictError():
            return problem(exc.kind, exc.detail, status=409)
        case BusyError():
            return problem(
                exc.kind, exc.detail, status=429, retry_after=exc.retry_after
            )
        case CallError():
            return problem(
                exc.kind,
                exc.detail,
                may_have_run=exc.may_have_run,
                retry_after=exc.retry_after,
            )
        case ConfigError():
            return problem(ErrorKind.CONFIGURATION, str(exc))
        case HashPrefixError():
            status = 409 if exc.matches else 404
            return problem(ErrorKind.USAGE, str(exc), status=status)
        case CacheError():
            return problem(ErrorKind.LOCAL_RESOURCE, str(exc))
        case AnpError() | JsonError():
            return problem(ErrorKind.USAGE, str(exc))
    logger.error("request failed", exc_info=exc)
    return problem(ErrorKind.UNEXPECTED, "unexpected error; see the log")


def problem_response(
    body: dict[str, Any], headers: dict[str, str] | None = None
) -> Response:
    """Return the answer that carries a problem document."""
    more = dict(headers or {})
    if "retry_after" in body:
        more["Retry-After"] = str(max(1, int(body["retry_after"])))
    return JSONResponse(
        body, status_code=body["status"], headers=more, media_type=PROBLEM_TYPE
    )


async def http_problem(request: Request, exc: Exception) -> Response:
    """Answer what no operation took: an unknown path, a method that is not there."""
    if isinstance(exc, HTTPException):
        detail = {
            404: f"there is no {request.url.path}; see /v1/openapi.json",
            405: f"{request.method} does not go with {request.url.path}",
        }.get(exc.status_code, exc.detail)
        body = problem(ErrorKind.USAGE, detail, status=exc.status_code)
        return problem_response(body, dict(exc.headers or {}))
    return problem_response(problem_of(exc))
