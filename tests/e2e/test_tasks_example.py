"""The walk of docs/tasks.md, run as it stands there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.documents import ROOT, blocks
from tests.e2e.terminals import reader_environ, walk, with_free_ports

TEXT = (ROOT / "docs" / "tasks.md").read_text("utf-8")
FILE = re.compile(r" as `([a-z.]+)`:\n\n```python\n(.*?)^```$", re.M | re.S)
PORTS = (8781, 8782, 8783)


@pytest.mark.slow
def test_the_walk_of_the_research_assistant(tmp_path: Path) -> None:
    files = FILE.findall(TEXT)
    assert [name for name, _ in files] == ["papers.py", "readings.py"]
    for name, source in files:
        (tmp_path / name).write_text(source, "utf-8")
    environ = reader_environ(tmp_path)
    # As after `. .venv/bin/activate`.
    environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"
    title = "A walk: a research assistant"
    shown = blocks(with_free_ports(TEXT, *PORTS))
    typed = [one for one in shown if one.heading == title and one.kind == "console"]
    assert len(typed) == 6
    # The last three are one terminal's, since the later need what the first set.
    tasks = "".join(one.text for one in typed[3:])
    walk([*typed[:3], type(typed[3])("console", tasks, 0, title)], tmp_path, environ)
