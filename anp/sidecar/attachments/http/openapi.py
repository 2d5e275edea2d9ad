"""Reads an OpenAPI 3.0 or 3.1 document: its operations become capabilities.

Pure. What cannot be called faithfully is left out with the reason, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from anp.sidecar.attachments.http.answers import is_json
from anp.sidecar.attachments.http.bodies import MEDIA_TYPE, MULTIPART, form_schema
from anp.sidecar.attachments.http.endpoint import CALLER_HEADER, DEADLINE_HEADER
from anp.sidecar.attachments.http.openapi_schema import (
    OpenApiError,
    References,
    SchemaReader,
)
from anp.sidecar.attachments.http.operations import (
    ANY_OBJECT,
    STREAM_OUTPUT,
    STYLES,
    Body,
    HttpOperation,
    Parameter,
    is_bytes,
    output_of,
)
from anp.sidecar.attachments.http.streams import STREAM_TYPES
from anp.sidecar.attachments.part_json import FILE

METHODS = ("get", "head", "post", "put", "patch", "delete")
"Methods that become capabilities; OPTIONS and TRACE are about HTTP itself."

READ_ONLY = frozenset({"get", "head"})
IDEMPOTENT = READ_ONLY | {"put", "delete"}

NO_BODY = READ_ONLY | {"delete"}
"Methods whose body means nothing (RFC 9110, 9.3)."

IGNORED_HEADERS = frozenset({"accept", "content-type", "authorization"})
"Header parameters that OpenAPI itself says to ignore."

OUR_HEADERS = frozenset(
    {
        *(CALLER_HEADER.lower(), DEADLINE_HEADER.lower(), "connection", "cookie"),
        *("accept-encoding", "content-length", "expect", "host", "keep-alive"),
        *("proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade"),
    }
)
"Headers that no argument of a peer may set."

FORMS = ("form", "multipart")
FLAT = ("json", *FORMS)
"Encodings of bodies whose fields can lie beside the parameters."

MAX_OPERATIONS = 2_000
"Operations that are looked at."

MAX_PARAMETERS = 100
"Most parameters of one operation."

_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_PLACEHOLDER = re.compile(r"\{([^{}/]+)\}")

Place = Literal["path", "query", "header", "cookie"]


@dataclass(frozen=True, slots=True)
class OpenApi:
    """The operations that a document offers."""

    operations: tuple[HttpOperation, ...]
    "In the document's order."

    skipped: tuple[str, ...]
    "One line for each operation that cannot be called."

    server: str
    "The first server's URL, perhaps relative; empty if none is said."

    title: str
    "The service's name; empty if none is said."


def read_openapi(
    document: Any, *, secret_names: frozenset[tuple[str, str]] = frozenset()
) -> OpenApi:
    """Read a document.

    Args:
        secret_names: Places such as `("header", "x-api-key")` that the owner fills;
            parameters of that name are no arguments.

    Raises:
        DocumentError: It is no OpenAPI document that can be read.
    """
    if not isinstance(document, dict):
        raise OpenApiError("the OpenAPI document is no object")
    version = document.get("openapi")
    if not isinstance(version, str) or not version.startswith(("3.0", "3.1")):
        said = version or document.get("swagger")
        raise OpenApiError(
            f"the document is not OpenAPI 3.0 or 3.1 (it says {said!r:.40}); "
            "convert it, or declare the capabilities"
        )
    return _Reader(document, version.startswith("3.0"), secret_names).run()


class _Reader:
    def __init__(
        self,
        document: dict[str, Any],
        is_30: bool,
        secret_names: frozenset[tuple[str, str]],
    ) -> None:
        self._document = document
        self._references = References(document)
        self._secret_names = secret_names
        self._requests = SchemaReader(self._references, is_30=is_30, request=True)
        self._responses = SchemaReader(self._references, is_30=is_30, request=False)

    def run(self) -> OpenApi:
        operations: list[HttpOperation] = []
        skipped: list[str] = []
        for path, method, item, raw in self._raw_operations():
            where = f"{method.upper()} {path}"[:120]
            if len(operations) + len(skipped) >= MAX_OPERATIONS:
                skipped.append(f"all operations after the first {MAX_OPERATIONS}")
                break
            try:
                operations.append(self._operation(path, method, item, raw))
            except OpenApiError as exc:
                skipped.append(f"{where}: {exc}")
        info = self._document.get("info")
        title = info.get("title") if isinstance(info, dict) else None
        return OpenApi(
            tuple(operations),
            tuple(skipped),
            self._server(),
            title if isinstance(title, str) else "",
        )

    def _server(self) -> str:
        servers = self._document.get("servers")
        first = servers[0] if isinstance(servers, list) and servers else None
        url = first.get("url") if isinstance(first, dict) else None
        # A template's variables are the owner's to choose.
        return url if isinstance(url, str) and "{" not in url else ""

    def _raw_operations(self) -> Iterator[tuple[str, str, dict[str, Any], Any]]:
        paths = self._document.get("paths", {})
        if not isinstance(paths, dict):
            raise OpenApiError("paths of the OpenAPI document is no object")
        for path, item in paths.items():
            if not path.startswith("/"):
                continue
            try:
                item = self._references.resolve(item)
            except OpenApiError:
                continue
            for method in METHODS:
                if method in item:
                    yield path, method, item, item[method]

    def _operation(
        self, path: str, method: str, item: dict[str, Any], raw: Any
    ) -> HttpOperation:
        if not isinstance(raw, dict):
            raise OpenApiError("it is no object")
        if raw.get("servers") or item.get("servers"):
            raise OpenApiError("it has servers of its own")
        properties: dict[str, Any] = {}
        required: list[str] = []
        parameters = []
        for found in self._parameters(item, raw):
            place, name = found["in"], found["name"]
            argument = name if name not in properties else f"{place}_{name}"
            if argument in properties:
                raise OpenApiError(f"two parameters are called {name[:60]!r}")
            parameter, schema = self._parameter(found, argument)
            parameters.append(parameter)
            properties[argument] = schema
            if found.get("required") is True or place == "path":
                required.append(argument)
        _check_path(path, parameters)
        body = None
        if method not in NO_BODY and raw.get("requestBody") is not None:
            body = self._body(raw["requestBody"], properties, required)
        output_schema, wrapped = self._output(raw)
        return HttpOperation(
            name=_operation_name(raw, method, path),
            description=_description(raw, item),
            method=method.upper(),
            path=path,
            parameters=tuple(parameters),
            body=body,
            input_schema={
                "type": "object",
                "properties": properties,
                **({"required": required} if required else {}),
                "additionalProperties": False,
            },
            output_schema=output_schema,
            streams=self._streams(raw),
            # Where it may answer with JSON, too, that is what a call of one turn gets.
            updates={} if output_schema == STREAM_OUTPUT else None,
            wrapped=wrapped,
            read_only=method in READ_ONLY,
            idempotent=method in IDEMPOTENT,
            tags=raw.get("tags", ()),
        )

    def _parameters(
        self, item: dict[str, Any], raw: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """Return the parameters that are arguments; an operation's replace a path's."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for source in (item.get("parameters") or [], raw.get("parameters") or []):
            if not isinstance(source, list) or len(source) > MAX_PARAMETERS:
                raise OpenApiError("its parameters are no list, or too many")
            for each in source:
                one = self._references.resolve(each)
                name, place = one.get("name"), one.get("in")
                if not isinstance(name, str) or not name or place not in STYLES:
                    raise OpenApiError("a parameter has no name or no place")
                found[str(place), name] = one
        return [
            one
            for (place, name), one in found.items()
            if not self._is_given(place, name)
        ]

    def _is_given(self, place: str, name: str) -> bool:
        """Return whether the owner or HTTP itself fills a parameter."""
        if place == "header":
            lower = name.lower()
            return lower in IGNORED_HEADERS or ("header", lower) in self._secret_names
        return (place, name) in self._secret_names

    def _parameter(self, found: dict[str, Any], argument: str) -> tuple[Parameter, Any]:
        place: Place = found["in"]
        name: str = found["name"]
        if place == "header" and (
            name.lower() in OUR_HEADERS or not _HEADER.fullmatch(name)
        ):
            raise OpenApiError(f"header {name[:60]!r} cannot be an argument")
        if found.get("allowReserved") is True:
            # A peer's value could add parameters of its own.
            raise OpenApiError(f"{name[:60]!r} takes reserved characters unescaped")
        usual = "form" if place in {"query", "cookie"} else "simple"
        style = found.get("style", usual)
        if style not in STYLES[place]:
            raise OpenApiError(
                f"{name[:60]!r} has the style {style!r:.40}, which is not built"
            )
        explode = found.get("explode", style in {"form", "deepObject"})
        content = found.get("content")
        as_json = False
        schema = found.get("schema", {})
        if isinstance(content, dict) and content:
            media_type, media = next(iter(content.items()))
            if not is_json(media_type) or not isinstance(media, dict):
                raise OpenApiError(f"{name[:60]!r} is written as {media_type!r:.40}")
            schema, as_json = media.get("schema", {}), True
        read = self._requests.read(schema)
        if found.get("description") and isinstance(read, dict):
            read.setdefault("description", str(found["description"])[:500])
        if place == "cookie" and not as_json and _is_container(read):
            raise OpenApiError(f"cookie {name[:60]!r} is no plain value")
        return Parameter(
            name=name,
            argument=argument,
            place=place,
            style=style,
            explode=explode is True,
            as_json=as_json,
        ), read

    def _body(self, raw: Any, properties: dict[str, Any], required: list[str]) -> Body:
        """Return the body, after adding its arguments to the others."""
        found = self._references.resolve(raw)
        media_type, encoding, media = _choose_media(found.get("content"))
        needed = found.get("required") is True
        schema = self._requests.read(media.get("schema", {}))
        if encoding in FLAT and _lies_flat(schema, properties, needed):
            fields, files = schema["properties"], frozenset[str]()
            if encoding == "multipart":
                fields, files = form_schema(fields)
            properties.update(fields)
            required += schema.get("required", [])
            return Body(
                media_type=media_type,
                encoding=encoding,
                required=needed,
                files=files,
                types=_content_types(media.get("encoding")),
            )
        if encoding in FORMS:
            raise OpenApiError("its form has no plain fields")
        argument = "body" if "body" not in properties else "request_body"
        if argument in properties:
            raise OpenApiError("its parameters take the body's name")
        kinds = {"json": schema, "text": {"type": "string"}, "file": FILE}
        properties[argument] = kinds[encoding]
        if needed:
            required.append(argument)
        return Body(
            media_type=media_type, encoding=encoding, argument=argument, required=needed
        )

    def _output(self, raw: dict[str, Any]) -> tuple[Any, bool | None]:
        """Return the schema of the output, and whether answers are wrapped."""
        responses = raw.get("responses", {})
        if not isinstance(responses, dict):
            raise OpenApiError("its responses are no object")
        schemas = []
        for status, response in responses.items():
            if not re.fullmatch(r"2(\d\d|XX)", str(status)):
                continue
            found = self._references.resolve(response)
            if str(status) == "202" and _has_location(found.get("headers")):
                # The output is what is found there.
                continue
            schemas.append(self._answer(found.get("content") or {}))
        # Of several answers the output may be any, so only one schema for all helps.
        if not schemas or any(one is None or one != schemas[0] for one in schemas):
            return ANY_OBJECT, None
        schema = schemas[0]
        if isinstance(schema, dict) and schema.get("type") == "object":
            return schema, False
        if schema in ({}, True):
            return ANY_OBJECT, None
        return {
            "type": "object",
            "properties": {"result": schema},
            "required": ["result"],
        }, True

    def _answer(self, content: Any) -> Any:
        """Return the schema of one answer, or None if nothing is known of it."""
        if not isinstance(content, dict):
            raise OpenApiError("the content of a response is no object")
        types = {_media_type(name) for name in content}
        media = next(
            (content[name] for name in content if is_json(_media_type(name))), None
        )
        if media is None:
            return output_of(types)
        schema = media.get("schema") if isinstance(media, dict) else None
        return None if schema is None else self._responses.read(schema)

    def _streams(self, raw: dict[str, Any]) -> bool:
        """Return whether a success may be a stream."""
        for status, response in raw.get("responses", {}).items():
            content = self._references.resolve(response).get("content") or {}
            if str(status).startswith("2") and STREAM_TYPES & set(
                map(_media_type, content)
            ):
                return True
        return False


def _check_path(path: str, parameters: list[Parameter]) -> None:
    wanted = _PLACEHOLDER.findall(path)
    given = [p.name for p in parameters if p.place == "path"]
    if sorted(wanted) != sorted(given) or len(set(wanted)) != len(wanted):
        raise OpenApiError("its path and its path parameters differ")
    rest = _PLACEHOLDER.sub("", path)
    if "{" in rest or "}" in rest or not re.fullmatch(r"/[\x21-\x7e]*", rest):
        raise OpenApiError("its path is no path of a URL")
    if {"?", "#", "\\"} & set(rest) or {".", ".."} & set(path.split("/")):
        raise OpenApiError("its path is no path of a URL")


def _operation_name(raw: dict[str, Any], method: str, path: str) -> str:
    given = raw.get("operationId")
    text = given if isinstance(given, str) and given.strip() else f"{method}_{path}"
    return _NAME.sub("_", text).strip("_.-")[:128] or method


def _description(raw: dict[str, Any], item: dict[str, Any]) -> str:
    for source in (raw, item):
        texts = [source.get("summary"), source.get("description")]
        said = [text.strip() for text in texts if isinstance(text, str)]
        if any(said):
            return "\n".join(dict.fromkeys(text for text in said if text))
    return ""


def _content_types(encodings: Any) -> dict[str, str]:
    """Return the content types that a form says of its fields, where it is only one."""
    if not isinstance(encodings, dict):
        return {}
    said = {
        name: one.get("contentType")
        for name, one in encodings.items()
        if isinstance(one, dict)
    }
    return {
        name: one.lower()
        for name, one in said.items()
        if isinstance(one, str) and MEDIA_TYPE.fullmatch(one.lower()) and "*" not in one
    }


def _choose_media(content: Any) -> tuple[str, Any, dict[str, Any]]:
    """Return the media type, its encoding and what the document says about it."""
    if not isinstance(content, dict) or not content:
        raise OpenApiError("its body has no content")
    named = {_media_type(name): (name, media) for name, media in content.items()}
    for media_type, (_, media) in named.items():
        if is_json(media_type) and isinstance(media, dict):
            return media_type, "json", media
    for media_type, encoding in (
        ("application/x-www-form-urlencoded", "form"),
        (MULTIPART, "multipart"),
        ("text/plain", "text"),
        *((one, "file") for one in named if one == "*/*" or is_bytes(one)),
    ):
        media = named.get(media_type, ("", None))[1]
        if isinstance(media, dict):
            return media_type, encoding, media
    raise OpenApiError(f"its body is {', '.join(sorted(named))[:80]}, not JSON")


def _media_type(name: str) -> str:
    return name.partition(";")[0].strip().lower()


def _has_location(headers: Any) -> bool:
    return isinstance(headers, dict) and any(
        name.lower() == "location" for name in headers
    )


def _lies_flat(schema: Any, others: dict[str, Any], needed: bool) -> bool:
    """Return whether a body's properties can lie beside the parameters."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return False
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not properties or others.keys() & properties:
        return False
    # An optional body with required fields could not be told from a missing one.
    if not needed and schema.get("required"):
        return False
    more = schema.get("additionalProperties", False)
    plain = {"type", "properties", "required", "title", "description", "examples"}
    return more is False and not schema.keys() - plain - {
        "additionalProperties",
        "default",
    }


def _is_container(schema: Any) -> bool:
    kinds = schema.get("type") if isinstance(schema, dict) else None
    return bool(
        {"array", "object"} & set([kinds] if isinstance(kinds, str) else kinds or [])
    )
