"""Source lines that build and read one message of a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from negotiation.document.fields import Fixed, Mark, Message, Slot
from negotiation.rules.literals import indented, literal, names_literal


def message_lines(
    fields: Message,
    slots: Mapping[Slot, str],
    path: Sequence[str] = (),
    values: str | None = None,
    *,
    own: Mapping[tuple[str, ...], str] | None = None,
) -> list[str]:
    """Return the lines that build `message`.

    Args:
        slots: The expression for each slot.
        path: The place of `values`, the name of a variable.
        own: Expressions for fields that get codes of the document's own.
    """
    tree: dict[str, Any] = {}
    for names, leaf in fields:
        inner = tree
        for name in names[:-1]:
            inner = inner.setdefault(name, {})
        text = literal(leaf.value) if isinstance(leaf, Fixed) else slots[leaf]
        inner[names[-1]] = (own or {}).get(names, text)
    if values is not None and path:
        tree[path[0]] = values
    lines = _tree(tree)
    if values is not None and not path:
        # The protocol's fields come last, so that no value can overwrite them.
        lines.insert(0, f"**{values},")
    return ["message = {", *indented(lines), "}"]


def _tree(tree: Mapping[str, Any]) -> list[str]:
    lines = []
    for name, value in tree.items():
        if isinstance(value, dict):
            lines += [f"{name!r}: {{", *indented(_tree(value)), "},"]
        else:
            lines.append(f"{name!r}: {value},")
    return lines


def value_lines(
    message: str, taken: frozenset[str], path: Sequence[str], *, optional: bool
) -> list[str]:
    """Return the line that reads the values of a message.

    Args:
        taken: Names of the fields that are not values.
    """
    if path and optional:
        return [f"values = {message}.get({path[0]!r}, {{}})"]
    if path:
        return [f"values = {message}[{path[0]!r}]"]
    others = f"if name not in {names_literal(sorted(taken))}"
    return [f"values = {{name: {message}[name] for name in {message} {others}}}"]


def id_lines(name: str | None, message: str, *, prefix: str = "") -> list[str]:
    """Return the line that reads the message id.

    Args:
        prefix: The beginning of the names of the half's own helpers.
    """
    if name is None:
        return ["message_id = None"]
    return [f"message_id = {prefix}expect({message}[{name!r}], str)"]


def mark_check(mark: Mark, *, prefix: str = "") -> str:
    """Return an expression that is true when `mark` reports success."""
    good = ", ".join(map(literal, mark.good)) + ","
    if mark.required:
        return f"response{''.join(f'[{name!r}]' for name in mark.path)} in ({good})"
    return f'{prefix}find(response, {names_literal(mark.path)}) in ("", {good})'
