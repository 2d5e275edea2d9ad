"""The version of a release: project file and changelog have to say the same."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

HEADING = re.compile(r"(?m)^## \[([^\]]+)\] - (\S+)$")


class ReleaseError(Exception):
    """The release cannot be made; the message says why."""


def version_of(project: Path) -> tuple[str, bool]:
    """Return the version of a checkout, and whether its changelog has dated it.

    Raises:
        ReleaseError: The project file and the changelog do not agree.
    """
    declared = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))
    version = str(declared["project"]["version"])
    found = HEADING.search((project / "CHANGELOG.md").read_text("utf-8"))
    if found is None:
        raise ReleaseError("CHANGELOG.md has no heading `## [VERSION] - DATE`")
    if found[1] != version:
        raise ReleaseError(
            f"pyproject.toml has version {version}, CHANGELOG.md begins with {found[1]}"
        )
    if found[2] == "unreleased":
        return version, False
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", found[2]):
        raise ReleaseError(f"CHANGELOG.md: {found[2]} is no date (YYYY-MM-DD)")
    return version, True
