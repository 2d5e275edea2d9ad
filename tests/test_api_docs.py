"""docs/api.md names only what exists: kinds, statuses, exit codes, paths, options."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

from anp.cli.app import app
from anp.errors import EXIT_CODES, ErrorKind
from anp.sidecar.api.app import operations_of
from anp.sidecar.api.operations.calls import CallBody
from anp.sidecar.api.problems import HTTP_STATUS
from anp.sidecar.config.settings import ListenConfig

DOCS = Path(__file__).parents[1] / "docs"
TEXT = (DOCS / "api.md").read_text(encoding="utf-8")


class _Nothing:
    """Stands for a daemon that no operation is asked of."""

    def __getattr__(self, name: str) -> Any:
        return self


def commands() -> dict[str, set[str]]:
    """Return every command of `anpd` with its options."""
    found: dict[str, set[str]] = {}

    def walk(command: Any, words: tuple[str, ...]) -> None:
        found[" ".join(words)] = {
            option for one in command.params for option in one.opts
        }
        for name, below in getattr(command, "commands", {}).items():
            walk(below, (*words, name))

    walk(app, ())
    return found


def test_every_kind_has_the_status_and_exit_code_of_the_table() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (\d+) \|$", TEXT, re.MULTILINE)
    assert {name for name, _, _ in rows} == {kind.value for kind in ErrorKind}
    for name, statuses, code in rows:
        assert EXIT_CODES[ErrorKind(name)] == int(code)
        assert str(HTTP_STATUS[ErrorKind(name)]) in statuses


def test_every_path_and_field_exists() -> None:
    operations = operations_of(cast(Any, _Nothing()))
    paths = {operation.path for operation in operations} | {"/v1/openapi.json", "/mcp"}
    named = set(re.findall(r"`(?:GET |POST )?(/[a-z0-9_./{}]+)`", TEXT))
    assert named
    assert named <= paths
    fields = CallBody.__dataclass_fields__
    for name in ("peer", "need", "input", "mode", "timeout", "idempotency_key"):
        assert name in fields
    assert "api_port" in ListenConfig.__dataclass_fields__


def test_every_command_and_option_named_in_the_documents_exists() -> None:
    known = commands()
    flags = set.union(*known.values()) | {"--help", "--unix-socket"}
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        for line in re.findall(r"`anpd ([^`\n]+)`", text):
            words = re.findall(r"[a-z][a-z-]*", line.split(" --")[0].split("[")[0])
            if words and not line.startswith("-"):
                assert words[0] in known, f"{page.name}: anpd {line}"
            for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", line):
                assert option in flags, f"{page.name}: anpd {line}"


def test_every_command_prints_json_if_asked() -> None:
    # A stream of bytes, or another program's own output, has no such form.
    without = {"mcp", "run", "protocols export", "protocols release", "demo"}
    without |= {"sessions export"}
    for name, options in commands().items():
        is_group = any(other.startswith(f"{name} ") for other in commands())
        if name and not is_group and name not in without and options:
            assert "--json" in options, name
