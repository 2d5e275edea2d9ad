"""Explains a mistake in the configuration in one line."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import is_dataclass
from typing import Any, get_args, get_type_hints

from pydantic import ValidationError

MAX_VALUE = 80
"Longest piece of a wrong value that a message repeats, in characters."

UNKNOWN = {"unexpected_keyword_argument", "extra_forbidden"}
"Types of pydantic's errors about keys that do not exist."

SECRET = {("llm", "headers"), ("llm", "base_url"), ("cache", "url")}
"Places whose value may be a key or hold a password, so no message repeats it."

ATTACHMENT_SECRETS = {
    *("headers", "query", "bearer", "basic", "secret", "env"),
    *("oauth_secret", "oauth_assertion"),
}
"Keys of attachments whose value may be the secret itself, written by mistake."

TEXTS = {
    "dataclass_type": "should be a table",
    "mapping_type": "should be a table",
    "dict_type": "should be a table",
    "tuple_type": "should be an array",
    "int_parsing": "should be an integer",
    "float_parsing": "should be a number",
    "bool_parsing": "should be true or false",
}
"Messages in place of pydantic's own, which speak of Python and not of TOML."


def explain(error: ValidationError, root: type) -> tuple[str, list[str | int]]:
    """Return what is wrong with the worst key, and where that key is.

    Args:
        root: The frozen dataclass that was being read.
    """
    errors = error.errors(include_url=False, include_context=False)
    # A misspelt key is often the cause of a missing one.
    first = min(errors, key=lambda entry: entry["type"] not in UNKNOWN)
    where = list(first["loc"])
    key = dotted(where)
    if first["type"] in UNKNOWN:
        return unknown_key(where, root), where
    if first["type"] in {"missing", "missing_argument"}:
        return f"{key} is missing", where
    text = TEXTS.get(first["type"], first["msg"].removeprefix("Input "))
    if tuple(where[:2]) in SECRET or ATTACHMENT_SECRETS & set(where):
        return f"{key} {text}", where
    found = repr(first["input"])
    if len(found) > MAX_VALUE:
        found = f"{found[:MAX_VALUE]}…"
    return f"{key} {text}, got {found}", where


def unknown_key(where: Sequence[str | int], root: type) -> str:
    """Return what to say about a key that does not exist, with the nearest one."""
    parent, name = where[:-1], str(where[-1])
    known = known_keys(root, parent)
    near = nearest_key(name, known)
    if near is not None:
        return f"unknown key {dotted(where)}; did you mean {dotted([*parent, near])}?"
    return f"unknown key {dotted(where)}; known here: {', '.join(known)}"


def nearest_key(name: str, known: Sequence[str]) -> str | None:
    """Return the known key that looks most like `name`, or None."""
    close = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    return close[0] if close else None


def known_keys(root: type, where: Sequence[str | int]) -> list[str]:
    """Return the keys a dataclass has at a place below it."""
    here: Any = root
    for part in where:
        if isinstance(part, str) and is_dataclass(here):
            here = get_type_hints(here).get(part)
        elif isinstance(part, int):
            here = next(iter(get_args(here)), None)
    if not is_dataclass(here):
        return []
    return [key for key in here.__dataclass_fields__ if not key.startswith("_")]


def dotted(where: Sequence[str | int]) -> str:
    """Return `need[0].name` for `("need", 0, "name")`."""
    text = ""
    for part in where:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            # Any text can be a key in TOML; what is no plain word is quoted.
            plain = part.replace("-", "_").isidentifier()
            text += f".{part if plain else repr(part[:MAX_VALUE])}"
    return text.removeprefix(".") or "the file"
