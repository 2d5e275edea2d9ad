"""Puts the sources of the site together: documents, generated parts, source files."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from anp.sidecar.config.schema import config_schema
from anp.version import daemon_version
from tests.documents import ROOT, documents
from tests.site.links import FIVE_MINUTES, WALK, place_of, relinked
from tests.site.reference import GENERATED, openapi_document

_MARK = re.compile(r"<!-- generated: (\w+) -->")
_README = ROOT / "README.md"
_FIVE = ROOT / "docs" / FIVE_MINUTES
_ITEM = re.compile(r"(?:[*-]|\d+\.) ")

_LANGUAGES = {".py": "python", ".toml": "toml", ".yaml": "yaml", ".json": "json"}
_LANGUAGES |= {".md": "markdown", ".sh": "bash", ".js": "javascript"}


def write_sources(folder: Path) -> None:
    """Write the sources of the site into a folder, and its configuration beside it."""
    shutil.rmtree(folder, ignore_errors=True)
    wanted: set[Path] = set()
    written: set[str] = set()
    for path in documents():
        place = place_of(path)
        _write(folder / place, _document(path, place, wanted))
        written.add(place)
    for path in sorted((ROOT / "docs").rglob("*")):
        if path.suffix in {".svg", ".png", ".css", ".js"}:
            target = folder / path.relative_to(ROOT / "docs")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            written.add(place_of(path))
    for path in sorted(wanted):
        if path.exists() and (place := place_of(path)) not in written:
            _write(folder / place, _source(path))
    config = (ROOT / "docs" / "site" / "zensical.toml").read_text("utf-8")
    version = daemon_version()
    _write(folder.parent / "zensical.toml", config.replace("VERSION", version))
    for name, value in (
        ("openapi.json", openapi_document()),
        ("anpd.schema.json", config_schema()),
    ):
        _write(folder / "reference" / name, json.dumps(value, indent=1))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def _document(path: Path, place: str, wanted: set[Path]) -> str:
    text = path.read_text("utf-8")
    walk = section_of(_README.read_text("utf-8"), WALK)
    if path == _README:
        text = text.replace(walk, "")
    text = relinked(text, path, place, wanted.add)
    if path == _FIVE:
        # Its first paragraph sends readers of the repository to the README.
        title, _, rest = text.partition("\n\n")
        body = relinked(walk, _README, place, wanted.add).partition("\n")[2]
        text = f"{title}\n{body}\n{rest.partition(chr(10) * 2)[2]}"
    text = _MARK.sub(lambda match: "\n".join(GENERATED[match[1]]()), text)
    return _spaced(text)


def section_of(text: str, anchor: str) -> str:
    """Return the section under the heading of level two that has an anchor."""
    for part in re.split(r"(?m)^(?=## )", text):
        title = part.partition("\n")[0].removeprefix("## ")
        if title.lower().replace(" ", "-") == anchor:
            return part
    raise ValueError(f"there is no section {anchor}")


def _spaced(text: str) -> str:
    """Put an empty line before each list and table, where the renderer wants one."""
    lines: list[str] = []
    fence = ""
    for line in text.splitlines():
        mark = re.match(r" *(`{3,})", line)
        if mark and (not fence or line.strip() == fence):
            fence = "" if fence else mark[1]
        before = lines[-1] if lines else ""
        if not fence and before and not before.startswith((" ", "|")):
            begins = _ITEM.match(line) and not _ITEM.match(before)
            if (begins and not _in_list(lines)) or line.startswith("|"):
                lines.append("")
        lines.append(line)
    return "\n".join(lines) + "\n"


def _in_list(lines: list[str]) -> bool:
    """Return whether the paragraph that was written last belongs to a list."""
    for line in reversed(lines):
        if not line:
            return False
        if _ITEM.match(line):
            return True
    return False


def _source(path: Path) -> str:
    name = path.relative_to(ROOT).as_posix()
    if path.is_dir():
        names = [
            f"* `{one.name}{'/' if one.is_dir() else ''}`"
            for one in sorted(path.iterdir())
            if not one.name.startswith(("_", "."))
        ]
        init = path / "__init__.py"
        about = f"```python\n{init.read_text('utf-8')}```\n\n" if init.exists() else ""
        return f"# {name}/\n\n{about}In this folder:\n\n" + "\n".join(names) + "\n"
    text = path.read_text("utf-8")
    fence = "`" * (max([2, *map(len, re.findall(r"`+", text))]) + 1)
    kind = _LANGUAGES.get(path.suffix, "text")
    return f"# {name}\n\n{fence}{kind}\n{text.rstrip()}\n{fence}\n"
