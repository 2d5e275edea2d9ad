"""The walk of docs/a2a.md, run as it stands there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.documents import ROOT, blocks
from tests.e2e.terminals import reader_environ, walk, with_free_ports

FILE = re.compile(r" as `([a-z.]+)`:\n\n```python\n(.*?)^```$", re.M | re.S)


@pytest.mark.slow
def test_the_walk_from_an_mcp_server_to_an_answer(tmp_path: Path) -> None:
    text = with_free_ports((ROOT / "docs" / "a2a.md").read_text("utf-8"), 8765, 8770)
    ((name, source),) = FILE.findall(text)
    (tmp_path / name).write_text(source, "utf-8")
    environ = reader_environ(tmp_path)
    environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"
    # There is no `.venv` in this folder; the commands are found as after activating it.
    text = text.replace("$ . .venv/bin/activate\n", "")
    title = "Five minutes: from an MCP server to an answer over A2A"
    shown = blocks(text)
    typed = [one for one in shown if one.heading == title and one.kind == "console"]
    assert len(typed) == 2
    walk(typed, tmp_path, environ)
