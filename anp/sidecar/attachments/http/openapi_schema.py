"""Schemas of an OpenAPI document as plain JSON Schema without `$ref`.

Pure. The document is data of somebody else: whatever it repeats or nests is counted.
"""

from __future__ import annotations

from typing import Any, Final

from anp.errors import AnpError

MAX_NODES = 4_000
"Most values in one schema once its `$ref` are replaced; peers are shown the result."

MAX_DEPTH = 24
"Deepest nesting of schemas."

MAX_HOPS = 16
"`$ref` that lead to each other before there is a value."

_MAPS: Final = frozenset({"properties", "patternProperties", "dependentSchemas"})
_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_VALUES: Final = frozenset(
    {
        *("additionalProperties", "contains", "else", "if", "items", "not"),
        *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
    }
)
_DROPPED: Final = frozenset(
    {
        *("$anchor", "$comment", "$defs", "$dynamicAnchor", "$dynamicRef", "$id"),
        *("$schema", "$vocabulary", "definitions", "deprecated", "discriminator"),
        *("example", "externalDocs", "nullable", "readOnly", "writeOnly", "xml"),
    }
)
_ANNOTATIONS: Final = frozenset(
    {"title", "description", "default", "example", "examples", "summary", "nullable"}
)


class OpenApiError(AnpError):
    """A document, or one operation in it, cannot be used; says why."""


class References:
    """Follows the local `$ref` of one document."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def find(self, ref: object) -> Any:
        """Return what a `$ref` points to.

        Raises:
            DocumentError: It leaves the document or points nowhere.
        """
        if not isinstance(ref, str) or not ref.startswith("#"):
            raise OpenApiError(f"$ref {ref!r:.80} leaves the document")
        here: Any = self._document
        for part in ref[1:].split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(here, list) and name.isascii() and name.isdigit():
                here = here[int(name[:6])] if int(name[:6]) < len(here) else None
            elif isinstance(here, dict):
                here = here.get(name)
            else:
                here = None
            if here is None:
                raise OpenApiError(f"$ref {ref!r:.80} points nowhere")
        return here

    def resolve(self, value: Any) -> dict[str, Any]:
        """Return an object of the document, through `$ref` if it is one.

        Raises:
            DocumentError: It is no object, or the `$ref` go in a circle.
        """
        for _ in range(MAX_HOPS):
            if not isinstance(value, dict):
                raise OpenApiError("something that should be an object is none")
            if "$ref" not in value:
                return value
            value = self.find(value["$ref"])
        raise OpenApiError("its $ref go in a circle")


class SchemaReader:
    """Reads schemas of a document for one direction.

    Args:
        is_30: The document is OpenAPI 3.0, whose schemas differ from JSON Schema.
        request: Schemas are of requests: `readOnly` properties are left out, else
            `writeOnly` ones.
    """

    def __init__(self, references: References, *, is_30: bool, request: bool) -> None:
        self._references = references
        self._is_30 = is_30
        self._hidden = "readOnly" if request else "writeOnly"
        self._left = 0

    def read(self, schema: Any) -> Any:
        """Return one schema as a tree; where it contains itself, anything is allowed.

        Raises:
            DocumentError: It is no schema, or too large.
        """
        self._left = MAX_NODES
        return self._read(schema, (), 0)

    def _read(self, schema: Any, open_refs: tuple[str, ...], depth: int) -> Any:
        self._spend(1)
        if depth > MAX_DEPTH:
            raise OpenApiError("a schema is nested too deeply")
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise OpenApiError("a schema is no object")
        if "$ref" in schema:
            return self._read_ref(schema, open_refs, depth)
        found = {
            keyword: self._value(keyword, value, open_refs, depth)
            for keyword, value in schema.items()
            if keyword not in _DROPPED and not keyword.startswith("x-")
        }
        self._hide(schema, found)
        if "example" in schema and "examples" not in found:
            found["examples"] = [schema["example"]]
        return _from_30(schema, found) if self._is_30 else found

    def _read_ref(
        self, schema: dict[str, Any], open_refs: tuple[str, ...], depth: int
    ) -> Any:
        ref = schema["$ref"]
        if ref in open_refs:
            return {}
        if len(open_refs) > MAX_HOPS:
            raise OpenApiError("its $ref are nested too deeply")
        target = self._read(self._references.find(ref), (*open_refs, ref), depth + 1)
        rest = {name: value for name, value in schema.items() if name != "$ref"}
        # OpenAPI 3.0 has no siblings of `$ref`; annotations are worth no `allOf`.
        if self._is_30 or not rest.keys() - _ANNOTATIONS - _DROPPED:
            return target
        return {"allOf": [target, self._read(rest, open_refs, depth + 1)]}

    def _value(
        self, keyword: str, value: Any, open_refs: tuple[str, ...], depth: int
    ) -> Any:
        if keyword in _MAPS and isinstance(value, dict):
            return {
                name: self._read(one, open_refs, depth + 1)
                for name, one in value.items()
            }
        if keyword in _LISTS and isinstance(value, list):
            return [self._read(one, open_refs, depth + 1) for one in value]
        if keyword in _VALUES and isinstance(value, dict | bool):
            return self._read(value, open_refs, depth + 1)
        self._spend(_count(value, self._left))
        return value

    def _hide(self, schema: dict[str, Any], found: dict[str, Any]) -> None:
        """Take out the properties that do not travel in this direction."""
        properties = schema.get("properties")
        if not isinstance(properties, dict):
            return
        hidden = {
            name
            for name, one in properties.items()
            if isinstance(one, dict) and one.get(self._hidden) is True
        }
        if not hidden:
            return
        found["properties"] = {
            name: one for name, one in found["properties"].items() if name not in hidden
        }
        if isinstance(found.get("required"), list):
            found["required"] = [n for n in found["required"] if n not in hidden]

    def _spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise OpenApiError(f"a schema has over {MAX_NODES} values")


def _from_30(schema: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Return a schema of OpenAPI 3.0 in the words of JSON Schema 2020-12."""
    for limit, exclusive in (
        ("minimum", "exclusiveMinimum"),
        ("maximum", "exclusiveMaximum"),
    ):
        said = found.get(exclusive)
        if isinstance(said, bool):
            del found[exclusive]
        if said is True and limit in found:
            found[exclusive] = found.pop(limit)
    if schema.get("nullable") is not True:
        return found
    if isinstance(found.get("type"), str):
        found["type"] = [found["type"], "null"]
        if isinstance(found.get("enum"), list) and None not in found["enum"]:
            found["enum"] = [*found["enum"], None]
        return found
    return {"anyOf": [found, {"type": "null"}]} if found else found


def _count(value: Any, most: int) -> int:
    """Return how many values are in `value`, or more than `most`."""
    count, waiting = 0, [value]
    while waiting and count <= most:
        count += 1
        match waiting.pop():
            case dict() as one:
                waiting += one.values()
            case list() as many:
                waiting += many
    return count
