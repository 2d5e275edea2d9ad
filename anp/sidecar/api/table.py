"""The operations of the local API: one table from which routes and OpenAPI come.

Each operation declares the scope that it needs. The agent's program, the MCP face and
`anpd run` have the scope `agent`: calls, and reading what they need. Whatever approves,
exposes, trusts or configures needs the scope `owner`. The guard gives each request its
scope, and the route of an operation checks it.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, Literal, TypeVar, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from anp.errors import ErrorKind
from anp.sidecar.api.answers import JsonAnswer
from anp.sidecar.api.problems import ApiError, problem_of, problem_response
from negotiation.errors import JsonError
from negotiation.long_texts import LONG
from negotiation.strict_json import Json, canonical_json, parse_json

MAX_BODY: Final = 2 * 1024 * 1024
"Largest body of a request, in bytes."

STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
"The rules by which bodies are read: no unknown field, no text for a number."

JSON_TYPE: Final = "application/json"
BYTES_TYPE: Final = "application/octet-stream"

SCOPE: Final = "anpd.scope"
"The key of a request's state (ASGI) under which its scope stands."

Handler = Callable[..., Awaitable[object]]
"""Answers one request, given it and what was read of its body, if it has one.

It returns an object of a declared class, or a response as it is to be sent.
"""

Endpoint = Callable[[Request], Awaitable[Response]]
"Answers one request, whatever goes wrong."

H = TypeVar("H", bound=Handler)

Schema = Mapping[str, Any]
"A JSON Schema."


class LocalScope(StrEnum):
    """A scope, of a request or as an operation needs it."""

    NONE = "none"
    "No token: it is enough for probes."

    AGENT = "agent"
    "Calls, and reading what they need; the scope of the socket and of `api.token`."

    OWNER = "owner"
    "Everything; the scope of the token in `owner.json` and of the dashboard."

    def covers(self, needed: LocalScope) -> bool:
        """Tell whether a request of this scope may do what needs another."""
        return _ORDER.index(self) >= _ORDER.index(needed)


_ORDER: Final = tuple(LocalScope)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One parameter in the query of an operation; all are texts on the wire."""

    name: str

    text: str
    "Its meaning, for people."

    schema: Schema = field(default_factory=lambda: {"type": "string"})
    "Its form: a string, an integer with limits, or an `enum`."

    required: bool = False
    "True when the operation needs it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """A good answer that is no JSON of ours: the handler makes the whole response."""

    text: str
    "Its meaning, for people."

    media_type: str
    "The format of its body."


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method on one path, with everything that it takes and answers."""

    method: Literal["GET", "POST", "DELETE"]
    "The HTTP method."

    path: str
    "The path, with `{name}` for what varies."

    scope: LocalScope
    "The scope that a request needs for it; it has no default, so none is forgotten."

    name: str
    "Its `operationId`; stable."

    summary: str
    "One line for people."

    handler: Handler
    "Answers it; what it raises becomes a problem document."

    answer: type | Media
    "The dataclass that it answers with status 200."

    others: Mapping[int, type] = field(default_factory=dict)
    "The dataclasses of other good answers, by HTTP status."

    body: type | None = None
    "The dataclass that the handler gets, read from the JSON of the body."

    raw_body: int = 0
    "Most bytes of a body that the handler gets byte for byte; 0 without such a body."

    upload: bool = False
    "True when the handler reads the bytes of a file from the body, of any size."

    query: tuple[Query, ...] = ()
    "Its query parameters; others are refused."

    problems: tuple[int, ...] = ()
    "Statuses of problem documents besides those that any operation may answer."

    headers: Mapping[str, str] = field(default_factory=dict)
    "Request headers it looks at, each with what it means."

    tag: str = "daemon"
    "The group it is shown in."


def operation(
    method: Literal["GET", "POST"],
    path: str,
    answer: type | Media,
    *,
    scope: LocalScope,
    **more: Any,
) -> Callable[[H], H]:
    """Declare that a method of a class carries out an operation.

    The method's name gives the name, and its docstring the summary.

    Args:
        scope: The scope that a request needs.
        more: Other fields of `Operation`.
    """

    def declare(handler: H) -> H:
        first, *words = handler.__name__.split("_")
        handler.__dict__["operation"] = Operation(
            method=method,
            path=path,
            scope=scope,
            name=first + "".join(word.capitalize() for word in words),
            summary=handler.__doc__ or "",
            handler=handler,
            answer=answer,
            **more,
        )
        return handler

    return declare


get = functools.partial(operation, "GET")
post = functools.partial(operation, "POST")


def operations_in(owner: Any) -> list[Operation]:
    """Return the operations that the class of `owner` declares, carried out by it."""
    declared = (
        vars(method).get("operation")
        for method in vars(type(owner)).values()
        if callable(method)
    )
    return [
        replace(one, handler=getattr(owner, one.handler.__name__), tag=owner.tag)
        for one in declared
        if one is not None
    ]


def routes_of(operations: Iterable[Operation]) -> list[Route]:
    """Return a route for each path, in the order in which the paths come first.

    One route has all methods of its path, so that a refusal names them all.
    """
    by_path: dict[str, dict[str, Endpoint]] = {}
    for one in operations:
        by_path.setdefault(one.path, {})[one.method] = endpoint_of(one)

    def route(path: str, methods: Mapping[str, Endpoint]) -> Route:
        async def endpoint(request: Request) -> Response:
            # HEAD is a GET whose body nobody reads.
            method = "GET" if request.method == "HEAD" else request.method
            return await methods[method](request)

        return Route(path, endpoint, methods=list(methods))

    return [route(path, methods) for path, methods in by_path.items()]


def endpoint_of(operation: Operation) -> Endpoint:
    """Return the handler of an operation, with its checks before it."""

    async def endpoint(request: Request) -> Response:
        try:
            what = f"{operation.method} {operation.path}"
            check_scope(request, operation.scope, what=what)
            _check_query(operation, request)
            # Nothing here holds the body, which may be long, while it is worked on.
            answer = await operation.handler(request, *await _given(operation, request))
            if isinstance(answer, Response):
                return answer
            return JsonAnswer(answer)
        except ApiError as exc:
            return problem_response(problem_of(exc), exc.headers)
        except Exception as exc:  # noqa: BLE001 - becomes the answer, and a log line
            return problem_response(problem_of(exc))

    return endpoint


async def _given(operation: Operation, request: Request) -> tuple[object, ...]:
    """Return what a handler gets beside the request; ApiError as `read_body`."""
    if operation.body is not None:
        return (await read_body(operation.body, request),)
    if operation.raw_body:
        return (await _read(request, operation.raw_body),)
    return ()


def give_scope(request: Any, scope: LocalScope) -> None:
    """Note the scope of a request (an ASGI scope) for the operation that takes it."""
    request.setdefault("state", {})[SCOPE] = scope


def scope_of(request: Request) -> LocalScope:
    """Return the scope of a request; `NONE` if no guard gave it one."""
    found = request.scope.get("state", {}).get(SCOPE, LocalScope.NONE)
    assert isinstance(found, LocalScope), "only give_scope writes it"
    return found


def check_scope(request: Request, needed: LocalScope, *, what: str) -> None:
    """Let a request pass that has the scope.

    Args:
        what: The thing that needs it, for the message.

    Raises:
        ApiError: It has not; 403, with the scope and how to get it.
    """
    if scope_of(request).covers(needed):
        return
    how = {
        LocalScope.OWNER: "use the command line as the daemon's user, or the "
        "dashboard; both show the token in owner.json of the daemon's home"
    }.get(needed, "send Authorization: Bearer with a token of this daemon")
    raise ApiError(
        403,
        f"{what} needs the scope {needed}, and this request has the scope "
        f"{scope_of(request)}; {how}",
        kind=ErrorKind.POLICY,
        headers={
            "WWW-Authenticate": 'Bearer realm="anpd", error="insufficient_scope", '
            f'scope="{needed}"'
        },
        needed_scope=needed.value,
    )


def integer_of(request: Request, name: str, default: int) -> int:
    """Return a query parameter that the table says to be an integer."""
    text = request.query_params.get(name)
    return default if text is None else int(text)


@functools.cache
def adapter_of(kind: type) -> TypeAdapter[Any]:
    """Return what reads a body; made at its first use."""
    return TypeAdapter(kind)


def first_header(request: Request, name: bytes) -> bytes:
    """Return the first header of a name in lower case; nothing if there is none."""
    headers: list[tuple[bytes, bytes]] = request.scope["headers"]
    return dict(reversed(headers)).get(name, b"")


def check_type(request: Request, wanted: str) -> None:
    """Let a body pass that has a media type; ApiError for any other."""
    # A page of another site can send text/plain without asking first (CORS).
    sent = first_header(request, b"content-type")
    if sent.partition(b";")[0].strip().lower() != wanted.encode():
        raise ApiError(415, f"the content type has to be {wanted}")


async def read_body(kind: type, request: Request) -> object:
    """Return the body of a request as an object of a declared class.

    Raises:
        ApiError: It is no JSON, too large, or does not fit.
    """
    return _parse(kind, await _read(request, MAX_BODY))


async def _read(request: Request, most: int) -> bytes:
    check_type(request, JSON_TYPE)
    chunks, size, more = [], 0, True
    while more:
        # What `Request.stream` does, which makes a generator for each request.
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk, more = message.get("body", b""), message.get("more_body", False)
        chunks.append(chunk)
        size += len(chunk)
        if size > most:
            raise ApiError(413, f"a body has at most {most} bytes here")
    # Not copied once more where it came in one piece.
    return b"".join(chunks)


def _parse(kind: type, data: bytes) -> object:
    try:
        # Sizes, depth and repeated names first: nothing else is so strict.
        found = parse_json(data, max_size=MAX_BODY)
    except JsonError as exc:
        raise ApiError(400, f"the body is no JSON: {exc}") from exc
    if len(data) > LONG and isinstance(found, dict):
        # Not read a second time with what is taken as it is; see below.
        data = canonical_json(_without_data(kind, found))
    try:
        body = adapter_of(kind).validate_json(data)
    except ValidationError as exc:
        raise ApiError(400, _explain(exc)) from exc
    return _with_exact_numbers(body, found)


def _with_exact_numbers(body: Any, found: Json) -> object:
    """Return a body whose objects have the numbers as they were sent.

    The library reads a number such as 12345678901234567.89 as its nearest float.
    """
    assert isinstance(found, dict), "every body is an object"
    objects = {
        name: value
        for name, value in found.items()
        # Nearly all are equal, and what makes another body takes long.
        if isinstance(known := getattr(body, name, None), dict) and known != value
    }
    return replace(body, **objects) if objects else body


@functools.cache
def _data_fields(kind: type) -> frozenset[str]:
    """Return the names of the fields of a body that are any object of JSON."""
    hints = get_type_hints(kind)
    return frozenset(name for name, hint in hints.items() if hint == dict[str, Any])


def _without_data(kind: type, found: dict[str, Json]) -> dict[str, Json]:
    """Return a body with empty objects where any object will do."""
    data = _data_fields(kind)
    return {
        name: {} if name in data and isinstance(value, dict) else value
        for name, value in found.items()
    }


def _check_query(operation: Operation, request: Request) -> None:
    if not (operation.query or request.scope["query_string"]):
        return
    known = {one.name: one for one in operation.query}
    given = request.query_params.multi_items()
    unknown = sorted({name for name, _ in given} - known.keys())
    if unknown:
        raise ApiError(400, f"unknown query parameters: {', '.join(unknown)}"[:200])
    if len(given) > len({name for name, _ in given}):
        raise ApiError(400, "a query parameter is given twice")
    for name, text in given:
        wrong = _wrong(known[name].schema, text)
        if wrong is not None:
            raise ApiError(400, f"{name} {wrong}")
    for one in operation.query:
        if one.required and not request.query_params.get(one.name):
            raise ApiError(400, f"{one.name} is missing in the query")


def _wrong(schema: Schema, text: str) -> str | None:
    """Return what is wrong with the text of a query parameter, or None."""
    if "enum" in schema:
        wanted = ", ".join(schema["enum"])
        return None if text in schema["enum"] else f"has to be one of {wanted}"
    if schema["type"] == "integer":
        # A bound that the table leaves open is that of ten digits.
        low, high = schema.get("minimum", 0), schema.get("maximum", 9_999_999_999)
        plain = text.isascii() and text.isdigit() and len(text) <= 10
        if not plain or not low <= int(text) <= high:
            return f"has to be a number from {low} to {high}"
    if len(text) < schema.get("minLength", 0):
        return "is empty"
    most = schema.get("maxLength")
    if most is not None and len(text) > most:
        return f"has {len(text)} characters, at most {most}"
    return None


def _explain(exc: ValidationError) -> str:
    first = exc.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    kind = first["type"]
    if kind == "unexpected_keyword_argument":
        return f"unknown field {where!r}"[:200]
    if kind in {"missing", "missing_argument", "missing_keyword_only_argument"}:
        return f"{where} is missing"
    if kind == "dataclass_type":
        return "the body has to be a JSON object"
    if kind == "dict_type":
        return f"{where} has to be a JSON object"
    said = first["msg"]
    if kind == "literal_error":
        # Pydantic quotes our own words; a person types them bare.
        said = said.replace("'", "")
    return f"{where or 'the body'}: {said}"[:500]
