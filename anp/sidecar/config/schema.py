"""The JSON Schema of the configuration, made from the settings themselves."""

from __future__ import annotations

import ast
import inspect
import sys
from dataclasses import fields, is_dataclass
from itertools import pairwise
from typing import Any, get_args, get_type_hints

from pydantic import TypeAdapter

from anp.sidecar.config.live import is_live
from anp.sidecar.config.settings import Config

__all__ = ["config_schema", "field_texts"]

SCHEMA_ID = "https://anpd.dev/schemas/anpd.toml.json"
"A name, not a place: nobody fetches it."


def config_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of `anpd.toml`.

    Each setting has the text of its docstring, its default and its limits;
    `x-anpd-reload` says whether a reload puts it into effect.
    """
    schema = TypeAdapter(Config).json_schema(mode="validation")
    definitions = schema.get("$defs", {})
    for cls in _classes(Config):
        shown = schema if cls is Config else definitions.get(cls.__name__)
        if shown is None:
            continue
        texts = field_texts(cls)
        for name, entry in shown.get("properties", {}).items():
            if name in texts:
                entry["description"] = texts[name]
    for section, entry in schema["properties"].items():
        _say_reload(section, entry, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        **schema,
        "title": "anpd.toml",
        "description": "The configuration of anpd; see docs/operation.md.",
    }


def field_texts(cls: type) -> dict[str, str]:
    """Return what the string below each field of a dataclass says."""
    module = sys.modules[cls.__module__]
    tree = ast.parse(inspect.getsource(module))
    body = next(
        node.body
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == cls.__name__
    )
    found = {}
    for entry, after in pairwise(body):
        match entry, after:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = " ".join(text.split())
    return found


def _classes(root: type) -> list[type]:
    """Return a dataclass and those of its fields, each once."""
    found = [root]
    hints = get_type_hints(root)
    for entry in fields(root):
        kinds = [hints[entry.name], *get_args(hints[entry.name])]
        found += [
            kind for kind in kinds if isinstance(kind, type) and is_dataclass(kind)
        ]
    return list(dict.fromkeys(found))


def _say_reload(
    section: str, entry: dict[str, Any], definitions: dict[str, Any]
) -> None:
    name = entry.get("$ref", "").rpartition("/")[2]
    keys = definitions.get(name, {}).get("properties", {})
    if not keys:
        entry["x-anpd-reload"] = _how(section)
    for key, shown in keys.items():
        shown["x-anpd-reload"] = _how(f"{section}.{key}")


def _how(name: str) -> str:
    return "live" if is_live(name) else "restart"
