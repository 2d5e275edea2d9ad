"""The walk of docs/tasks.md, run as it stands there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.documents import ROOT, blocks
from tests.e2e.terminals import reader_environ, walk, with_free_ports

TEXT = (ROOT / "docs" / "tasks.md").read_text("utf-8")
FILE = re.compile(r"Save this as `([a-z.]+)`:\n\n```python\n(.*?)^```$", re.M | re.S)
PORTS = (8781, 8782)


@pytest.mark.slow
def test_the_walk_of_the_research_assistant(tmp_path: Path) -> None:
    ((name, source),) = FILE.findall(TEXT)
    (tmp_path / name).write_text(source, "utf-8")
    environ = reader_environ(tmp_path)
    # As after `. .venv/bin/activate`.
    environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"
    title = "A walk: a research assistant"
    shown = blocks(with_free_ports(TEXT, *PORTS))
    typed = [one for one in shown if one.heading == title and one.kind == "console"]
    assert len(typed) == 4
    # The last two are one terminal's, since the second needs what the first set.
    typed[2:] = [type(typed[2])("console", typed[2].text + typed[3].text, 0, title)]
    walk(typed, tmp_path, environ)
