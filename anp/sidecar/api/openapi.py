"""The OpenAPI 3.1 document of the local API, made of the table of operations. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final

from anp.sidecar.api.answers import SCHEMAS, ref
from anp.sidecar.api.problems import PROBLEM_TYPE
from anp.sidecar.api.table import Operation, adapter_of

__all__ = ["openapi"]

ALWAYS: Final = (400, 401, 403, 421, 500, 507)
"What any operation may answer: a bad request, no way in, a fault of ours, a full disk."

WITH_BODY: Final = (413, 415)
"What any operation with a body may answer besides."

TAGS: Final = {
    "calls": "Use peers.",
    "negotiations": "How protocols come about, and what waits for the owner.",
    "protocols": "What was agreed, and what is known under a URI.",
    "peers": "Who we know, and what they may.",
    "daemon": "The daemon itself.",
}
SEGMENT: Final[dict[str, Any]] = {
    "type": "string",
    "minLength": 1,
    "maxLength": 64,
    # No slash, and no dot at the beginning: neither is a path of its own.
    "pattern": "^[A-Za-z0-9_-][A-Za-z0-9_.-]*$",
}


def openapi(operations: Iterable[Operation], *, version: str) -> dict[str, Any]:
    """Return the document.

    Args:
        version: Of the daemon.
    """
    paths: dict[str, dict[str, Any]] = {}
    schemas: dict[str, Any] = {}
    for operation in operations:
        shown = _operation(operation, schemas)
        paths.setdefault(operation.path, {})[operation.method.lower()] = shown
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "anpd local API",
            "version": version,
            "summary": "What people and programs on this machine ask the daemon.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "The daemon's socket, or loopback."}],
        "security": [{}, {"token": []}],
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "On loopback; the socket needs none.",
                }
            },
            "schemas": {**SCHEMAS, **schemas},
        },
    }


def _operation(operation: Operation, schemas: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.tag],
        "responses": _responses(operation),
    }
    parameters = _parameters(operation)
    if parameters:
        shown["parameters"] = parameters
    if operation.body is not None:
        content = {"schema": _body(operation.body, schemas)}
    elif operation.raw_body:
        content = {"schema": {"type": "object"}}
    else:
        return shown
    shown["requestBody"] = {"required": True, "content": {"application/json": content}}
    return shown


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    segments = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": SEGMENT,
            "description": "Its id or hash, or an unambiguous beginning.",
        }
        for name in re.findall(r"\{(\w+)\}", operation.path)
    ]
    query = [
        {
            "name": one.name,
            "in": "query",
            "required": one.required,
            "description": one.text,
            "schema": dict(one.schema),
        }
        for one in operation.query
    ]
    headers = [
        {
            "name": name,
            "in": "header",
            "required": False,
            "description": text,
            "schema": {"type": "string"},
        }
        for name, text in operation.headers.items()
    ]
    return [*segments, *query, *headers]


def _responses(operation: Operation) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for answer in operation.answers:
        schema = dict(answer.schema) if answer.schema is not None else {}
        content = {"schema": schema} if schema else {"schema": {"type": "string"}}
        known = responses.setdefault(
            str(answer.status), {"description": answer.text, "content": {}}
        )
        known["content"][answer.media_type] = content
    has_body = operation.body is not None or operation.raw_body
    statuses = {*ALWAYS, *operation.problems, *(WITH_BODY if has_body else ())}
    if "{" in operation.path:
        statuses |= {404, 409}
    for status in sorted(statuses):
        known = responses.setdefault(
            str(status), {"description": HTTPStatus(status).phrase, "content": {}}
        )
        known["content"][PROBLEM_TYPE] = {"schema": ref("Problem")}
    return responses


def _body(kind: type, schemas: dict[str, Any]) -> dict[str, Any]:
    template = "#/components/schemas/{model}"
    schema = adapter_of(kind).json_schema(ref_template=template)
    schemas.update(schema.pop("$defs", {}))
    name = kind.__name__
    schemas[name] = schema
    return ref(name)
