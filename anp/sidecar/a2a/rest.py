"""The HTTP+JSON binding of A2A 1.0: paths and HTTP methods in place of JSON-RPC."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from anp.protocols.a2a.words import A2aError, A2aMethod, A2aVersion

Ask = Callable[[Request, A2aMethod, Mapping[str, Any]], Awaitable[Response]]
"Answers a request, given its method and the parameters in its path and query."

_PATHS: Final = (
    ("POST", "/message:send", A2aMethod.SEND),
    ("POST", "/message:stream", A2aMethod.STREAM),
    ("GET", "/tasks", A2aMethod.LIST),
    ("POST", "/tasks/{id}:cancel", A2aMethod.CANCEL),
    ("GET", "/tasks/{id}:subscribe", A2aMethod.SUBSCRIBE),
    ("POST", "/tasks/{id}:subscribe", A2aMethod.SUBSCRIBE),
    ("GET", "/tasks/{id}", A2aMethod.GET),
    ("POST", "/tasks/{taskId}/pushNotificationConfigs", A2aMethod.PUSH_SET),
    ("GET", "/tasks/{taskId}/pushNotificationConfigs", A2aMethod.PUSH_LIST),
    ("GET", "/tasks/{taskId}/pushNotificationConfigs/{id}", A2aMethod.PUSH_GET),
    ("DELETE", "/tasks/{taskId}/pushNotificationConfigs/{id}", A2aMethod.PUSH_DELETE),
    ("GET", "/extendedAgentCard", A2aMethod.CARD),
)
"Of two paths that fit, the first counts."

_NUMBERS: Final = frozenset({"historyLength", "pageSize"})
_FLAGS: Final = frozenset({"includeArtifacts"})

_GRPC: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    404: "NOT_FOUND",
    409: "FAILED_PRECONDITION",
    413: "RESOURCE_EXHAUSTED",
    415: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
}
"Names of errors in the binding, by their HTTP status."


def rest_routes(ask: Ask, prefix: str = "") -> list[Route]:
    """Return the routes of the binding below a path."""

    def endpoint(method: A2aMethod) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            query = {
                key: _typed(key, value) for key, value in request.query_params.items()
            }
            return await ask(request, method, {**query, **request.path_params})

        return answer

    return [
        Route(prefix + path, endpoint(method), methods=[http_method])
        for http_method, path, method in _PATHS
    ]


def _typed(key: str, value: str) -> Any:
    """Return a parameter of a query as the JSON that it stands for."""
    if key in _NUMBERS and value.isascii() and value.isdigit():
        return int(value[:12])
    if key in _FLAGS and value in {"true", "false"}:
        return value == "true"
    return value


def rest_error(error: A2aError) -> tuple[int, dict[str, Any]]:
    """Return the status and the body for a request that is refused."""
    status = error.fault.status
    told = error.to_json(A2aVersion.V10)
    body = {
        "code": status,
        "status": _GRPC.get(status, HTTPStatus(status).name),
        "message": told["message"],
        "details": told.get("data", []),
    }
    return status, {"error": body}
