"""The pages of reference, made from the code."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from anp.errors import EXIT_CODES, ErrorCode, ErrorKind
from anp.interaction.errors import InteractionFault
from anp.sidecar.api.app import operations_of
from anp.sidecar.api.openapi import openapi
from anp.sidecar.api.problems import HTTP_STATUS
from anp.sidecar.config.schema import config_schema
from anp.version import daemon_version
from tests.command_lines import ROOT_COMMAND
from tests.site.messages import messages


class _Nobody:
    """Stands for a daemon that no operation is asked of."""

    def __getattr__(self, name: str) -> Any:
        return self


def openapi_document() -> dict[str, Any]:
    """Return the OpenAPI document of the local API."""
    operations = operations_of(cast(Any, _Nobody()))
    return openapi(operations, version=daemon_version())


def _cell(text: object) -> str:
    """Return a text as a cell of a table."""
    return " ".join(str(text).split()).replace("|", "\\|").replace("<", "&lt;")


def _code(text: str) -> str:
    """Return a text as code in a cell of a table."""
    mark = "``" if "`" in text else "`"
    pad = " " if "`" in text else ""
    return f"{mark}{pad}{_cell(text).replace('&lt;', '<')}{pad}{mark}"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    if rows:
        yield "| " + " | ".join(head) + " |"
        yield "|" + "---|" * len(head)
        yield from ("| " + " | ".join(row) + " |" for row in rows)
        yield ""


def _commands() -> Iterator[str]:
    yield from _table(("Global option", "Meaning"), _options(ROOT_COMMAND))

    def walk(command: Any, words: tuple[str, ...]) -> Iterator[str]:
        if words:
            places = " ".join(
                f"{one.metavar or one.name.upper()}{'…' if one.nargs == -1 else ''}"
                for one in command.params
                if one.param_type_name == "argument"
            )
            yield f"{'#' * (len(words) + 1)} anpd {' '.join(words)}"
            yield ""
            yield _cell((command.help or "").partition("\f")[0])
            yield ""
            if not hasattr(command, "commands"):
                yield f"    anpd {' '.join(words)} [OPTIONS] {places}".rstrip()
                yield ""
            yield from _table(("Option", "Meaning"), _options(command))
        for name, below in getattr(command, "commands", {}).items():
            if not below.hidden:
                yield from walk(below, (*words, name))

    yield from walk(ROOT_COMMAND, ())


def _options(command: Any) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for one in command.params:
        if one.param_type_name != "option" or one.hidden:
            continue
        names = ", ".join(f"`{name}`" for name in [*one.opts, *one.secondary_opts])
        text = one.help or ""
        if one.default not in (None, False, "", ()) and not callable(one.default):
            text += f" [default: {one.default}]"
        rows.append((names, _cell(text)))
    return rows


def _settings() -> Iterator[str]:
    yield "The JSON Schema as a file: [anpd.schema.json](anpd.schema.json)."
    yield ""
    schema = config_schema()
    for section, entry in schema["properties"].items():
        many = "items" in entry
        place = (entry["items"] if many else entry)["$ref"].rpartition("/")[2]
        shape = schema["$defs"][place]
        yield f"## {'[[' if many else '['}{section}{']]' if many else ']'}"
        yield ""
        yield _cell(entry.get("description") or shape.get("description", ""))
        yield ""
        rows = [
            (
                f"`{key}`",
                _code(json.dumps(one["default"])) if "default" in one else "–",
                _cell(one.get("description", "")),
                "at once" if one.get("x-anpd-reload") == "live" else "restart",
            )
            for key, one in shape["properties"].items()
        ]
        yield from _table(("Setting", "Default", "Meaning", "In effect"), rows)


def _operations() -> Iterator[str]:
    yield "The OpenAPI document as a file: [openapi.json](openapi.json)."
    yield ""
    document = openapi_document()
    schemas = document["components"]["schemas"]
    found: dict[str, list[tuple[str, str, Mapping[str, Any]]]] = {}
    for path, methods in document["paths"].items():
        for method, one in methods.items():
            found.setdefault(one["tags"][0], []).append((method.upper(), path, one))
    about = {one["name"]: one["description"] for one in document["tags"]}
    for tag, operations in found.items():
        yield f"## {tag}"
        yield ""
        yield _cell(about.get(tag, ""))
        yield ""
        for method, path, one in operations:
            yield f"### `{method} {path}`"
            yield ""
            scopes = [
                name for need in one["security"] for s in need.values() for name in s
            ]
            yield f"{_cell(one['summary'])} Scope: {', '.join(scopes) or 'none'}."
            yield ""
            rows = [
                (f"`{p['name']}`", p["in"], _cell(p.get("description", "")))
                for p in one.get("parameters", ())
            ]
            rows += [
                (f"`{name}`", "body", _cell(field.get("description", "")))
                for name, field in _fields(one, schemas)
            ]
            yield from _table(("Field", "In", "Meaning"), rows)


def _fields(
    operation: Mapping[str, Any], schemas: Mapping[str, Any]
) -> list[tuple[str, Any]]:
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    schema = schemas.get(schema.get("$ref", "").rpartition("/")[2], schema)
    return list(schema.get("properties", {}).items())


def _errors() -> Iterator[str]:
    for kind in ErrorKind:
        yield f"## {kind.value}"
        yield ""
        yield (
            f"Exit code {EXIT_CODES[kind]}; status {HTTP_STATUS[kind]} of the local "
            f"API. [Causes and repairs](../troubleshooting.md#{kind.value})."
        )
        yield ""
        for one in messages():
            if one.kind is kind:
                yield f"* {_code(one.text).replace(chr(92) + '|', '|')}"
        yield ""


def _codes() -> Iterator[str]:
    known = inspect.getsource(InteractionFault)
    rows = []
    for fault in InteractionFault:
        found = re.search(rf'"{fault.value}"\n    "([^"]+)"', known)
        meaning = found[1] if found else fault.value.replace("_", " ")
        rows.append((f"`{fault.value}`", _cell(meaning)))
    yield from _table(("Code", "Meaning"), rows)
    yield "Between daemons, in the outer `response` of the Agent Network Protocol:"
    yield ""
    outer = [(f"{one.value}", one.name.lower().replace("_", " ")) for one in ErrorCode]
    yield from _table(("Code", "Meaning"), outer)


GENERATED: dict[str, Callable[[], Iterator[str]]] = {
    "commands": _commands,
    "settings": _settings,
    "operations": _operations,
    "errors": _errors,
    "codes": _codes,
}
"The makers of generated parts, by the word in `<!-- generated: WORD -->`."
