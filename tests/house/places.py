"""Places that documents name, and the lists of modules in the rooms' docstrings.

A place is written `path/file.py:name`, with dots between a class and its method. A room
is a folder of the product; its `__init__` lists each of its modules and rooms in a line
of the form ``* `name`: a phrase.``, which may go on in lines that are indented.

    python -m tests.house.places [--fix]

prints the modules that a list leaves out, and those that a list has and the folder not.
With `--fix` the lists are put right; a new line has the first sentence of the module's
own docstring, to be made a short phrase by whoever wrote the module.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from tests.house.sources import PACKAGES

_PLACE = re.compile(r"`([A-Za-z0-9_./-]+\.[a-z]+):([A-Za-z_][A-Za-z0-9_.]*)`")
_LINE = re.compile(r"^\* `([a-z0-9_]+)`: (\S.*)$", re.MULTILINE)
_ENTRY = re.compile(r"^\* `([a-z0-9_]+)`: \S.*\n(?:  \S.*\n)*", re.MULTILINE)
_WIDTH = 88

_Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def places(text: str) -> list[tuple[str, str]]:
    """Return what a document names as `path:name`, in order."""
    return _PLACE.findall(text)


def defines(path: Path, name: str) -> bool:
    """Tell whether a Python file defines a class, function, method or constant."""
    body: list[ast.stmt] = ast.parse(path.read_text("utf-8")).body
    for word in name.split("."):
        found = _find(body, word)
        if found is None:
            return False
        body = found.body if isinstance(found, _Definition) else []
    return True


def _find(body: list[ast.stmt], name: str) -> ast.stmt | None:
    for node in body:
        if isinstance(node, _Definition) and node.name == name:
            return node
        if isinstance(node, ast.Assign):
            targets: list[ast.expr] = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        else:
            continue
        if any(isinstance(one, ast.Name) and one.id == name for one in targets):
            return node
    return None


def rooms(tree: Path) -> Iterator[Path]:
    """Give every room of the product in the checkout `tree`."""
    for package in PACKAGES:
        for init in sorted((tree / package).rglob("__init__.py")):
            yield init.parent


def modules_of(room: Path) -> set[str]:
    """Return the modules and rooms in a folder, by name."""
    files = {one.stem for one in room.glob("*.py")} - {"__init__"}
    return files | {one.parent.name for one in room.glob("*/__init__.py")}


def listed(room: Path) -> list[str]:
    """Return what the docstring of a room's `__init__` lists, in order."""
    return [name for name, _ in _LINE.findall(_docstring(room))]


def problems_of(room: Path) -> list[str]:
    """Say what is wrong with a room's docstring; nothing if it is right."""
    found = []
    text = _docstring(room)
    first = text.partition("\n")[0]
    if not first.endswith("."):
        found.append("the first line is no sentence")
    names = listed(room)
    found += [
        f"{name} is listed twice" for name in sorted({*names}) if names.count(name) > 1
    ]
    there = modules_of(room)
    found += [f"{name} is not listed" for name in sorted(there - {*names})]
    found += [f"{name} is listed and missing" for name in sorted({*names} - there)]
    return found


def fixed(room: Path) -> str:
    """Return the text of a room's `__init__` with its list put right."""
    init = room / "__init__.py"
    text = init.read_text("utf-8")
    there = modules_of(room)
    text = _ENTRY.sub(lambda entry: entry[0] if entry[1] in there else "", text)
    new = "".join(_entry(room, name) for name in sorted(there - {*listed(room)}))
    if not new:
        return text
    entries = list(_ENTRY.finditer(text))
    if entries:
        end = entries[-1].end()
        return text[:end] + new + text[end:]
    first, rest = text.split("\n", 1)
    if first.endswith('"""') and len(first) > len('""""""'):
        first, rest = first.removesuffix('"""'), f'"""\n{rest}'
    return f"{first}\n\n{new}{rest}"


def _entry(room: Path, name: str) -> str:
    path = room / f"{name}.py"
    path = path if path.exists() else room / name / "__init__.py"
    said = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "none.").split(
        "\n\n", 1
    )[0]
    words = f"* `{name}`: {' '.join(said.split())}"
    return textwrap.fill(words, _WIDTH, subsequent_indent="  ") + "\n"


def _docstring(room: Path) -> str:
    return ast.get_docstring(ast.parse((room / "__init__.py").read_text("utf-8"))) or ""


def main(words: list[str]) -> int:
    """Print what is wrong with the lists of this checkout, or put them right."""
    tree = Path(__file__).parents[2]
    if words == ["--fix"]:
        for room in rooms(tree):
            if problems_of(room):
                (room / "__init__.py").write_text(fixed(room), "utf-8")
    lines = [
        f"{room.relative_to(tree)}: {problem}"
        for room in rooms(tree)
        for problem in problems_of(room)
    ]
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
