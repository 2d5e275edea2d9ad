"""The product's Python files of one checkout, read and parsed once."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

PACKAGES = ("anp", "negotiation", "sandbox", "cache", "jsonic")
"The four packages that are installed."


@dataclass(frozen=True, slots=True)
class Source:
    """One Python file of the product."""

    path: PurePosixPath
    "Its place below the checkout."

    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        """The number of its line ends, as `wc -l` counts them."""
        return self.text.count("\n")

    @property
    def module(self) -> str:
        """Its dotted name; a package's `__init__` has the name of the package."""
        return module_of(self.path)

    @property
    def package(self) -> str:
        """The name of the package it belongs to, one of `PACKAGES`."""
        return self.path.parts[0]

    @property
    def is_package(self) -> bool:
        """Say if this is the `__init__` of a package."""
        return self.path.name == "__init__.py"

    @property
    def is_ordinary(self) -> bool:
        """Say if this is neither `__init__.py` nor `__main__.py`."""
        return self.path.name not in {"__init__.py", "__main__.py"}


def module_of(path: PurePosixPath) -> str:
    """Return the dotted name of the module in `path`."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def read_sources(tree: Path) -> list[Source]:
    """Return every Python file of the four packages in the checkout `tree`, sorted."""
    found = []
    for package in PACKAGES:
        for path in sorted((tree / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            place = PurePosixPath(path.relative_to(tree).as_posix())
            found.append(Source(place, text, ast.parse(text, str(place))))
    return found
