"""One call of a service over HTTP: where each argument goes, and what comes back.

Pure. Values come from peers: none of them may reach another path, header or parameter
than its own.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote

from anp.sidecar.attachments.attachment import ToolError
from anp.sidecar.attachments.http.bodies import file_body, multipart_body
from anp.sidecar.attachments.http.streams import STREAM_TYPES
from anp.sidecar.attachments.listing import Tool
from jsonic.exact_numbers import write_json

ANY_OBJECT: dict[str, Any] = {"type": "object"}
'Output schema where none is said; what is no object comes as `{"result": …}`.'

BYTES_OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "mediaType": {"type": "string"},
        "data": {"type": "string", "description": "The bytes in base64."},
        "size": {"type": "integer", "description": "Bytes before base64."},
    },
    "required": ["mediaType", "data", "size"],
}
"Output schema of an operation that answers with bytes, for calls of one turn."

STREAM_OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {"result": {"type": "array"}},
    "required": ["result"],
}
"Output schema of an operation that streams, for calls of one turn."

ACCEPTED = "application/json, text/plain;q=0.5, */*;q=0.1"
STREAMS_ACCEPTED = (
    "text/event-stream, application/x-ndjson, application/jsonl, "
    "application/json;q=0.9, text/plain;q=0.5, */*;q=0.1"
)

STYLES: dict[str, frozenset[str]] = {
    "path": frozenset({"simple"}),
    "query": frozenset({"form", "spaceDelimited", "pipeDelimited", "deepObject"}),
    "header": frozenset({"simple"}),
    "cookie": frozenset({"form"}),
}
"Ways of writing values (OpenAPI, Style Values) that are built here, by place."

SEPARATORS = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PLACEHOLDER = re.compile(r"\{([^{}/]+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """An argument that goes into the path, the query, a header or a cookie."""

    name: str
    "Its name in the request."

    argument: str
    "Its name among the arguments."

    place: Literal["path", "query", "header", "cookie"]
    "Where it goes."

    style: str = "form"
    "Form in which arrays and objects are written; one of `STYLES`."

    explode: bool = False
    "Each item stands for itself."

    as_json: bool = False
    "Written as JSON, whatever it is."


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """The body of a request: its arguments and its form."""

    media_type: str
    "Content type that is sent."

    encoding: Literal["json", "form", "text", "multipart", "file"]
    "Form in which the value is written."

    argument: str | None = None
    "The argument that is the body; None makes an object of all that are left."

    required: bool = True
    "A request without it is an error."

    files: frozenset[str] = frozenset()
    "Fields of a form that are files, or lists of them."

    types: Mapping[str, str] = field(default_factory=dict)
    "Content types of a form's other fields, where the service says them."


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOperation(Tool):
    """One operation of a service, and the tool that it is to its callers."""

    method: str
    "HTTP method."

    path: str
    "Below the base URL, with `{name}` for each path parameter."

    parameters: tuple[Parameter, ...] = ()
    "In the document's order."

    body: Body | None = None
    "Form of its body."

    streams: bool = False
    "Its answer may come event by event or line by line."

    wrapped: bool | None = None
    "The answer is laid into `{result}`; None wraps only what is no object."


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """The request that is sent for one call."""

    method: str
    "HTTP method."

    path: str
    "Below the base URL, encoded; begins with a slash."

    query: str
    "Encoded, without question mark."

    headers: Mapping[str, str]
    "Besides those of the owner."

    content: bytes | None
    "Body, or None."


def output_of(media_types: Collection[str]) -> dict[str, Any] | None:
    """Return the output schema of answers that are streams, or that are bytes.

    Args:
        media_types: The media types that an answer may have, without parameters.

    Returns:
        None where they may be something else, or either of the two.
    """
    if media_types and all(one in STREAM_TYPES for one in media_types):
        return STREAM_OUTPUT
    return BYTES_OUTPUT if media_types and all(map(is_bytes, media_types)) else None


def is_bytes(media_type: str) -> bool:
    """Return whether a media type is certainly neither JSON nor a text nor a stream."""
    kind, _, name = media_type.partition("/")
    if kind in {"audio", "font", "image", "model", "video"}:
        return True
    known = kind == "application" and name not in {"", "*", "json"}
    return known and not name.endswith("+json") and media_type not in STREAM_TYPES


def accepted_types(operation: HttpOperation, live: bool) -> str:
    """Return the media types that a request asks for.

    Args:
        live: Somebody takes the parts of a stream as they come.
    """
    return STREAMS_ACCEPTED if live and operation.streams else ACCEPTED


def build_request(
    operation: HttpOperation, arguments: Mapping[str, Any]
) -> HttpRequest:
    """Return the request of a call.

    Args:
        arguments: Checked against the operation's input schema.

    Raises:
        CapabilityError: 400, a value cannot stand where it belongs.
    """
    path = {}
    query: list[str] = []
    taken = {p.name for p in operation.parameters if p.place == "query"}
    headers: dict[str, str] = {}
    cookies: list[str] = []
    left = dict(arguments)
    for parameter in operation.parameters:
        value = left.pop(parameter.argument, None)
        if value is None:
            if parameter.place == "path":
                raise ToolError(400, f"{parameter.argument} is missing")
            continue
        if parameter.place == "path":
            path[parameter.name] = _path_segment(parameter, value)
        elif parameter.place == "query":
            query += _query_pairs(parameter, value, taken - {parameter.name})
        elif parameter.place == "header":
            headers[parameter.name] = _header_value(parameter, value)
        else:
            cookies.append(
                f"{_encoded(parameter.name)}={_encoded(_plain(parameter, value))}"
            )
    if cookies:
        headers["Cookie"] = "; ".join(cookies)
    content = None
    if operation.body is not None:
        found = _content(operation.body, left)
        if found is not None:
            content, headers["Content-Type"] = found
    target = _PLACEHOLDER.sub(lambda match: path[match[1]], operation.path)
    return HttpRequest(operation.method, target, "&".join(query), headers, content)


def _path_segment(parameter: Parameter, value: Any) -> str:
    text = _joined(parameter, value)
    # An encoded slash is a slash again for many servers, and dots lead upwards: the
    # value would choose another operation than the one that is exposed.
    if text in {"", ".", ".."} or any(c in text for c in "/\\") or _control(text):
        raise ToolError(
            400, f"{parameter.argument}: {text[:40]!r} cannot stand in a path"
        )
    return _encoded(text, safe="," if isinstance(value, list | dict) else "")


def _query_pairs(parameter: Parameter, value: Any, others: set[str]) -> Iterator[str]:
    name = _encoded(parameter.name)
    if parameter.as_json or not isinstance(value, list | dict):
        yield f"{name}={_encoded(_plain(parameter, value))}"
    elif isinstance(value, list) and parameter.explode:
        yield from (f"{name}={_encoded(_scalar(parameter, one))}" for one in value)
    elif isinstance(value, list):
        if value:
            separator = SEPARATORS.get(parameter.style, ",")
            items = (_encoded(_scalar(parameter, one)) for one in value)
            yield f"{name}={separator.join(items)}"
    elif parameter.style == "deepObject":
        for key, one in value.items():
            yield (f"{name}%5B{_encoded(key)}%5D={_encoded(_scalar(parameter, one))}")
    elif parameter.explode:
        for key, one in value.items():
            if key in others:
                raise ToolError(
                    400, f"{parameter.argument}: {key!r} is another parameter"
                )
            yield f"{_encoded(key)}={_encoded(_scalar(parameter, one))}"
    else:
        pairs = (
            _encoded(part)
            for key, one in value.items()
            for part in (key, _scalar(parameter, one))
        )
        yield f"{name}={','.join(pairs)}"


def _header_value(parameter: Parameter, value: Any) -> str:
    text = _joined(parameter, value)
    if _control(text) or not text.isascii():
        raise ToolError(400, f"{parameter.argument} cannot stand in a header")
    return text.strip()


def _content(body: Body, left: dict[str, Any]) -> tuple[bytes, str] | None:
    """Return the body and its content type, or None if there is none."""
    if body.argument is None:
        return _written(body, left) if left or body.required else None
    if body.argument in left:
        return _written(body, left[body.argument])
    if body.required:
        raise ToolError(400, f"{body.argument} is missing")
    return None


def _written(body: Body, value: Any) -> tuple[bytes, str]:
    match body.encoding:
        case "json":
            return write_json(value, ensure_ascii=False).encode(), body.media_type
        case "text":
            if not isinstance(value, str):
                raise ToolError(400, f"{body.argument} has to be a text")
            return value.encode(), body.media_type
        case "file":
            return file_body(body.media_type, body.argument or "body", value)
        case "multipart":
            return multipart_body(value, body.files, body.types)
        case "form":
            return _form(value), body.media_type


def _form(value: Mapping[str, Any]) -> bytes:
    pairs = []
    for name, one in value.items():
        parameter = Parameter(name=name, argument=name, place="query")
        items = one if isinstance(one, list) else [one]
        pairs += [
            f"{_encoded(name)}={_encoded(_scalar(parameter, item))}"
            for item in items
            if item is not None
        ]
    return "&".join(pairs).encode()


def _joined(parameter: Parameter, value: Any) -> str:
    """Return a value in the style `simple`."""
    if parameter.as_json:
        return write_json(value)
    if isinstance(value, list):
        return ",".join(_scalar(parameter, one) for one in value)
    if isinstance(value, dict):
        glue = "=" if parameter.explode else ","
        return ",".join(
            f"{key}{glue}{_scalar(parameter, one)}" for key, one in value.items()
        )
    return _scalar(parameter, value)


def _plain(parameter: Parameter, value: Any) -> str:
    return write_json(value) if parameter.as_json else _joined(parameter, value)


def _scalar(parameter: Parameter, value: Any) -> str:
    match value:
        case str():
            return value
        case bool() | int() | float():
            return write_json(value)
        case None:
            return ""
    raise ToolError(
        400, f"{parameter.argument}: what is nested cannot stand in a {parameter.place}"
    )


def _encoded(text: str, safe: str = "") -> str:
    try:
        return quote(text, safe=safe)
    except UnicodeEncodeError:
        raise ToolError(400, "a lone surrogate is no text") from None


def _control(text: str) -> bool:
    return _CONTROL.search(text) is not None
