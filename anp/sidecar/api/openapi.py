"""The OpenAPI 3.1 document of the local API, made of the table of operations. Pure."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import core_schema

from anp.sidecar.api.answers import LEFT_OUT
from anp.sidecar.api.problems import PROBLEM_TYPE, Problem
from anp.sidecar.api.table import (
    BYTES_TYPE,
    JSON_TYPE,
    LocalScope,
    Media,
    Operation,
    adapter_of,
)
from anp.sidecar.config.schema import field_texts

ALWAYS: Final = (400, 401, 403, 421, 500, 503, 507)
"Problems of any operation: a bad request, no way in, our fault, no place, a full disk."

WITH_BODY: Final = (413, 415)
"Problems of any operation with a body besides."

SECURITY: Final[dict[LocalScope, list[dict[str, list[str]]]]] = {
    LocalScope.NONE: [{}],
    LocalScope.AGENT: [{}, {"token": ["agent"]}],
    LocalScope.OWNER: [{"token": ["owner"]}],
}
"Credentials that each scope needs: on the socket a request without any is an agent's."

TAGS: Final = {
    "calls": "Calls of peers.",
    "tasks": "Tasks that last, and the sessions they belong to.",
    "negotiations": "Negotiations, and the owner's decisions about them.",
    "protocols": "Agreed protocols, and protocols that are known by a URI.",
    "peers": "Known peers and their rights.",
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
    operations = list(operations)
    schemas = _Schemas(operations)
    paths: dict[str, dict[str, Any]] = {}
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
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The token has a scope, `agent` or `owner`; each "
                    "operation names the one that it needs. On loopback every request "
                    "needs a token; on the socket one without has the scope `agent`.",
                }
            },
            "schemas": schemas.components,
        },
    }


class _Schemas:
    """The schemas of all bodies and answers, made together so that names are unique."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        kinds: dict[tuple[type, JsonSchemaMode], None] = {
            (Problem, "serialization"): None
        }
        for one in operations:
            answers = [one.answer, *one.others.values()]
            kinds.update(
                ((kind, "serialization"), None)
                for kind in answers
                if not isinstance(kind, Media)
            )
            if one.body is not None:
                kinds[one.body, "validation"] = None
        self._shown, found = TypeAdapter.json_schemas(
            [(kind, mode, adapter_of(kind)) for kind, mode in kinds],
            ref_template="#/components/schemas/{model}",
            schema_generator=_Generator,
        )
        self.components: dict[str, Any] = found["$defs"]
        "Each schema by its name."

    def body(self, kind: type) -> JsonSchemaValue:
        """Return the schema of the body of a request."""
        return self._shown[kind, "validation"]

    def answer(self, kind: type | Media) -> JsonSchemaValue:
        """Return the schema of an answer."""
        if not isinstance(kind, Media):
            return self._shown[kind, "serialization"]
        return {"type": "object" if kind.media_type == JSON_TYPE else "string"}


class _Generator(GenerateJsonSchema):
    """Makes schemas as the classes are written: texts of fields, keys always there."""

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        """Add the string below each field."""
        shown = super().dataclass_schema(schema)
        for cls in schema["cls"].__mro__[:-1]:
            for name, text in field_texts(cls).items():
                if name in shown.get("properties", {}):
                    shown["properties"][name].setdefault("description", text)
        return shown

    def field_is_required(self, field: Any, total: bool) -> bool:
        """Tell that the key of an answer is there unless it may be left out."""
        if self.mode == "validation":
            return super().field_is_required(field, total)
        return field["schema"].get("default") is not LEFT_OUT

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Leave out the defaults of answers: they mean nothing to who reads one."""
        if self.mode == "validation":
            return super().default_schema(schema)
        return self.generate_inner(schema["schema"])

    def str_schema(self, schema: core_schema.StringSchema) -> JsonSchemaValue:
        """Write patterns as ECMAScript has them."""
        shown = super().str_schema(schema)
        if "pattern" in shown:
            shown["pattern"] = shown["pattern"].replace(r"\A", "^").replace(r"\z", "$")
        return shown

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Leave out titles that only repeat the names."""
        return False


def _operation(operation: Operation, schemas: _Schemas) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "security": SECURITY[operation.scope],
        "tags": [operation.tag],
        "responses": _responses(operation, schemas),
    }
    parameters = _parameters(operation)
    if parameters:
        shown["parameters"] = parameters
    if operation.body is not None:
        content = {"schema": schemas.body(operation.body)}
    elif operation.raw_body:
        content = {"schema": {"type": "object"}}
    elif operation.upload:
        content = {"schema": {"type": "string", "format": "binary"}}
    else:
        return shown
    media_type = BYTES_TYPE if operation.upload else JSON_TYPE
    shown["requestBody"] = {"required": True, "content": {media_type: content}}
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


def _responses(operation: Operation, schemas: _Schemas) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for status, kind in {200: operation.answer, **operation.others}.items():
        if isinstance(kind, Media):
            text, media_type = kind.text, kind.media_type
        else:
            text, media_type = inspect.cleandoc(kind.__doc__ or ""), JSON_TYPE
        responses[str(status)] = {
            "description": text,
            "content": {media_type: {"schema": schemas.answer(kind)}},
        }
    has_body = operation.body is not None or operation.raw_body > 0 or operation.upload
    statuses = {*ALWAYS, *operation.problems, *(WITH_BODY if has_body else ())}
    if "{" in operation.path:
        statuses |= {404, 409}
    for status in sorted(statuses):
        known = responses.setdefault(
            str(status), {"description": HTTPStatus(status).phrase, "content": {}}
        )
        known["content"][PROBLEM_TYPE] = {"schema": schemas.answer(Problem)}
    return responses
