"""The walk of docs/subscriptions.md, run as it stands there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.clauses import clause
from tests.documents import ROOT, Block, blocks
from tests.e2e.terminals import reader_environ, walk, with_free_ports

TEXT = (ROOT / "docs" / "subscriptions.md").read_text("utf-8")
FILE = re.compile(r"Save it as `([a-z.]+)`:\n\n```python\n(.*?)^```$", re.M | re.S)


@pytest.mark.slow
@clause("GBZ-63", "GBZ-64", "GBZ-65", "GBZ-66")
def test_the_walk_of_the_build_that_fails(tmp_path: Path) -> None:
    for name, source in FILE.findall(TEXT):
        (tmp_path / name).write_text(source, "utf-8")
    environ = reader_environ(tmp_path)
    # As after `. .venv/bin/activate`.
    environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"
    title = "A walk: tell me when the build fails"
    shown = blocks(with_free_ports(TEXT, 8784, 8785))
    typed = [one for one in shown if one.heading == title and one.kind == "console"]
    # All but the daemons' are one terminal's, since the later need what the first set.
    commands = "".join(one.text for one in typed[2:])
    walk([*typed[:2], Block("console", commands, 0, title)], tmp_path, environ)
