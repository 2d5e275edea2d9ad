"""Measures of files and folders: how many, how named, how long, how complex."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence, Set
from pathlib import Path

from tests.house.sources import PACKAGES, Source


def flat_files(sources: Sequence[Source]) -> list[tuple[str, int]]:
    """Return each folder with the number of its files, the fullest first.

    Files in folders below it, `__init__.py` and `__main__.py` are not counted.
    """
    counts = Counter(str(one.path.parent) for one in sources if one.is_ordinary)
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def repeated_file_names(sources: Sequence[Source]) -> dict[str, list[str]]:
    """Return the file names that stand in more than one folder, with the folders."""
    folders: dict[str, list[str]] = {}
    for one in sources:
        if one.is_ordinary:
            folders.setdefault(one.path.name, []).append(str(one.path.parent))
    return {name: places for name, places in sorted(folders.items()) if places[1:]}


def gerund_modules(sources: Sequence[Source], nouns: Set[str]) -> list[str]:
    """Return the paths of modules whose last word ends in `ing` and is not in `nouns`.

    A verb needs a vowel before the ending, so `ring` and `string` are not verb forms.
    """
    found = []
    for one in sources:
        word = one.path.stem.rsplit("_", 1)[-1]
        stem = word.removesuffix("ing")
        if stem != word and set(stem) & set("aeiouy") and word not in nouns:
            found.append(str(one.path))
    return found


def count_lines(sources: Sequence[Source]) -> dict[str, int]:
    """Return the number of line ends per package, as `wc -l` counts them."""
    counts = dict.fromkeys(PACKAGES, 0)
    for one in sources:
        counts[one.package] += one.lines
    return counts


def count_documentation(sources: Sequence[Source]) -> tuple[int, int]:
    """Return the lines of docstrings and comments, and the lines of code.

    A comment behind code is a line of code, and empty lines are neither.
    """
    documentation = code = 0
    for one in sources:
        strings: set[int] = set()
        for node in ast.walk(one.tree):
            match node:
                case ast.Expr(value=ast.Constant(value=str())):
                    strings.update(range(node.lineno, (node.end_lineno or 0) + 1))
        for number, line in enumerate(one.text.splitlines(), start=1):
            text = line.strip()
            if number in strings or text.startswith("#"):
                documentation += bool(text)
            else:
                code += bool(text)
    return documentation, code


def complex_functions(tree: Path, limit: int) -> list[str]:
    """Return the functions of the product that are more complex than `limit`.

    Comments that switch the rule off do not count.

    Raises:
        RuntimeError: ruff could not check the files.
    """
    done = subprocess.run(
        [
            *(sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache"),
            *("--select", "C901", "--ignore-noqa", "--output-format", "json"),
            *("--config", f"lint.mccabe.max-complexity={limit}"),
            *(package for package in PACKAGES if (tree / package).is_dir()),
        ],
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in {0, 1}:
        raise RuntimeError(f"ruff failed: {done.stderr.strip()}")
    found = []
    for one in json.loads(done.stdout):
        if one["code"] != "C901":
            raise RuntimeError(f"ruff: {one['filename']}: {one['message']}")
        place = Path(one["filename"]).relative_to(tree.resolve())
        found.append(f"{place}:{one['location']['row']} {one['message']}")
    return sorted(found)
