"""The JSON Schema and the default file of the configuration, made from the settings."""

from __future__ import annotations

import ast
import functools
import inspect
import json
import sys
import textwrap
from dataclasses import MISSING, Field, fields, is_dataclass
from itertools import pairwise
from typing import Any, Literal, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter
from pydantic.fields import FieldInfo

from anp.sidecar.config.live import is_live
from anp.sidecar.config.settings import Config
from negotiation.python_source import module_tree

DEFAULT_HEAD = """\
# The configuration of anpd. A line that begins with '#' shows a default, or an example
# where nothing is set.
# Stronger than this file: flags, and the environment (ANPD_LISTEN__PORT=9000)."""

DEFAULT_TAIL = """\
# [[peer]]
# name = "shop"
# did = "did:key:z…"
# url = "ws://127.0.0.1:8766/"
# keep_connection = false
# expose = ["time.now"]           # in place of what all peers may call; needs did

# [[need]]
# name = "product"
# requirement = "get_product: name, description and price of a product by its id"
# protocol = "https://shop.example/protocols/product/1.0"

# [[group]]                       # made at start; docs/groups.md
# name = "Nightly build"
# members = ["tester", "packager"]
# admins = ["shop"]
# join = "invite"

# [[attach]]                      # or: anpd attach mcp --name time -- mcp-server-time
# kind = "mcp"
# name = "time"
# command = ["mcp-server-time"]
# expose = ["*"]
"""
"Entries of the arrays, as examples."

WIDTH = 88
COLUMN = 34
"Columns of the default file, and the one where its comments begin."

SCHEMA_ID = "https://anpd.dev/schemas/anpd.toml.json"
"The schema's `$id`: a name that nobody fetches."


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
    """Return the string below each field of a dataclass, by the field's name."""
    body = next(
        node.body
        for node in _tree(cls.__module__).body
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


@functools.cache
def _tree(module: str) -> ast.Module:
    """Return the source of a module, taken apart once for all its classes."""
    return module_tree(inspect.getsource(sys.modules[module]))


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


def default_config_text(method: str = "did:key") -> str:
    """Return the file that `anpd init` writes: each setting, shown as its default.

    Args:
        method: The one setting that the file puts into effect.
    """
    lines = [DEFAULT_HEAD]
    for section, table in get_type_hints(Config).items():
        if not isinstance(table, type):
            continue
        title, _, _ = (table.__doc__ or "").partition("\n")
        lines += ["", *_beside(f"[{section}]", title)]
        texts = field_texts(table)
        hints = get_type_hints(table, include_extras=True)
        for entry in fields(table):
            hint = hints[entry.name]
            choices = json.dumps(_choices(hint))[1:-1]
            more = f" One of {choices}." if choices else ""
            shown = f"# {entry.name} = {_toml(_default_of(entry, hint))}"
            lines += _beside(shown, texts[entry.name] + more)
    text = "\n".join([*lines, "", DEFAULT_TAIL])
    return text.replace('# method = "did:key"', f'method = "{method}"  ', 1)


def _beside(setting: str, text: str) -> list[str]:
    """Return a setting with its text as a comment, in a column of its own."""
    first, *more = textwrap.wrap(
        text, WIDTH - COLUMN - len("# "), break_long_words=False, break_on_hyphens=False
    )
    if len(setting) >= COLUMN:
        first, more = "", [first, *more]
    lines = [f"{setting:<{COLUMN}}# {first}" if first else setting]
    return lines + [f"{'':<{COLUMN}}# {line}" for line in more]


def _default_of(entry: Field[Any], hint: Any) -> Any:
    """Return the default of a setting, or the example of one that has none."""
    if entry.default is not MISSING and entry.default is not None:
        return entry.default
    return next(
        mark.examples[0]
        for mark in get_args(hint)
        if isinstance(mark, FieldInfo) and mark.examples
    )


def _choices(hint: Any) -> list[Any]:
    """Return the values among which a setting chooses, none where it is free."""
    for part in (hint, *get_args(hint)):
        for kind in (part, *get_args(part)):
            if get_origin(kind) is Literal and get_origin(part) is not tuple:
                return list(get_args(kind))
    return []


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        pairs = ", ".join(f"{key} = {_toml(one)}" for key, one in value.items())
        return f"{{ {pairs} }}"
    return json.dumps(value, ensure_ascii=False)
