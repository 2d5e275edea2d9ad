"""Capabilities that the owner describes, as tools and as operations. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from anp.sidecar.attachments.declaration import DeclaredCapability
from anp.sidecar.attachments.http.openapi_schema import OpenApiError
from anp.sidecar.attachments.http.operations import (
    ANY_OBJECT,
    Body,
    HttpOperation,
    Parameter,
    output_of,
)
from anp.sidecar.attachments.http.streams import STREAM_TYPES
from anp.sidecar.attachments.listing import Tool

WITHOUT_BODY = frozenset({"GET", "HEAD", "DELETE"})
"Methods that send arguments in the query."

_PLACEHOLDER = re.compile(r"\{([^{}/]+)\}")


def as_tool(declared: DeclaredCapability) -> Tool:
    """Return a declared capability as a tool."""
    output = declared.output_schema
    return Tool(
        name=declared.name,
        description=declared.description,
        input_schema=dict(declared.input_schema),
        output_schema=ANY_OBJECT if output is None else dict(output),
        read_only=declared.read_only,
        idempotent=declared.idempotent,
        tags=declared.tags,
        examples=declared.examples,
        output_modes=(declared.media_type,) if declared.media_type else (),
    )


def read_tool(found: Any) -> Tool:
    """Return a tool that an agent described itself, in the words of the configuration.

    What is wrong with its schemas is said where tools become capabilities.
    """
    if not isinstance(found, dict):
        found = {}
    output = found.get("output_schema")
    return Tool(
        name=str(found.get("name", "")),
        description=str(found.get("description") or ""),
        input_schema=found.get("input_schema", ANY_OBJECT),
        output_schema=ANY_OBJECT if output is None else output,
        read_only=found.get("read_only") is True,
        idempotent=found.get("idempotent") is True,
        tags=found.get("tags", ()),
        examples=found.get("examples", ()),
    )


def as_operation(declared: DeclaredCapability) -> HttpOperation:
    """Return a declared capability of a service over HTTP.

    Arguments named in the path go there; of the others all go into the query of GET,
    HEAD and DELETE, and into a JSON body else.

    Raises:
        OpenApiError: Its path, input schema or media type cannot be used.
    """
    if not declared.path.startswith("/"):
        raise OpenApiError(f"{declared.name}: path has to begin with /")
    schema = dict(declared.input_schema)
    properties = schema.get("properties", {})
    in_path = _PLACEHOLDER.findall(declared.path)
    if not isinstance(properties, Mapping) or not set(in_path) <= properties.keys():
        raise OpenApiError(
            f"{declared.name}: its input_schema lacks {', '.join(in_path)} of its path"
        )
    parameters = [
        Parameter(name=name, argument=name, place="path", style="simple")
        for name in in_path
    ]
    body = None
    if declared.method in WITHOUT_BODY:
        # Without this an unknown argument would be dropped without a word.
        schema.setdefault("additionalProperties", False)
        parameters += [
            Parameter(name=name, argument=name, place="query", explode=True)
            for name in properties
            if name not in in_path
        ]
    else:
        body = Body(media_type="application/json", encoding="json")
    output = declared.output_schema or _output_of(declared)
    return HttpOperation(
        name=declared.name,
        description=declared.description,
        method=declared.method,
        path=declared.path,
        parameters=tuple(parameters),
        body=body,
        input_schema=schema,
        output_schema=ANY_OBJECT if output is None else dict(output),
        streams=declared.media_type in STREAM_TYPES,
        updates={} if declared.media_type in STREAM_TYPES else None,
        wrapped=None if output is None else False,
        read_only=declared.read_only or declared.method in {"GET", "HEAD"},
        tags=declared.tags,
        examples=declared.examples,
        output_modes=(declared.media_type,) if declared.media_type else (),
        idempotent=declared.idempotent or declared.method in {"PUT", "DELETE"},
    )


def _output_of(declared: DeclaredCapability) -> dict[str, Any] | None:
    media_type = declared.media_type
    found = output_of([media_type] if media_type else [])
    if media_type and found is None:
        raise OpenApiError(
            f"{declared.name}: media_type is for streams and bytes, not {media_type}"
        )
    return found


def wrap(value: Any, wrapped: bool | None) -> dict[str, Any] | None:
    """Return an answer as an output, or None if it is no object and has to be one.

    Args:
        wrapped: Whether it is laid into `{result}`; None wraps what is no object.
    """
    if wrapped or (wrapped is None and not isinstance(value, dict)):
        return {"result": value}
    return value if isinstance(value, dict) else None
