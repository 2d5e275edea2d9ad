"""The worked example of docs/consensus.md, run as it stands there."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path

import pytest

from tests.clauses import clause
from tests.documents import ROOT, Block, blocks
from tests.e2e.terminals import reader_environ, walk, with_free_ports

TEXT = (ROOT / "docs" / "consensus.md").read_text("utf-8")
FILE = re.compile(
    r"[Ss]ave (?:it|this) as `([a-z.]+)`:\n\n(`{3,4})\w+\n(.*?)^\2$", re.M | re.S
)
FILES = {match[1]: match[3] for match in FILE.finditer(TEXT)}
PORTS = (8771, 8772)


def example() -> list[Block]:
    title = "Writing one: a worked example"
    text = with_free_ports(TEXT, *PORTS)
    return [one for one in blocks(text) if one.heading == title]


def test_the_entry_names_the_text_by_its_hash() -> None:
    assert FILES.keys() == {"weather.md", "forecast.py", "weather.protocol.json"}
    entry = json.loads(FILES["weather.protocol.json"])
    digest = hashlib.sha256(FILES["weather.md"].encode()).hexdigest()
    assert entry["sha256"] == digest


@pytest.mark.slow
@clause("ANP-91", "ANP-92", "ANP-95")
def test_a_protocol_written_as_a_text_is_spoken_without_negotiation(
    tmp_path: Path,
) -> None:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content, "utf-8")
    environ = reader_environ(tmp_path)
    # As after `. .venv/bin/activate`.
    environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"
    typed = [one for one in example() if one.kind == "console"]
    assert len(typed) == 3
    walk(typed, tmp_path, environ)
