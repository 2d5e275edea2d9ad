"""Each program of docs/recipes/frameworks.md calls a peer, as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.callers.recipes.model import playing
from tests.documents import ROOT
from tests.e2e.daemons import Anpd
from tests.environments import side_python

TEXT = (ROOT / "docs" / "recipes" / "frameworks.md").read_text("utf-8")
FILE = re.compile(r"save as `(\w+\.py)`:\n\n```python\n(.*?)^```$", re.M | re.S)
PROGRAMS = dict(FILE.findall(TEXT))


def test_the_page_has_a_program_for_each_framework() -> None:
    assert list(PROGRAMS) == [
        "ask_langgraph.py",
        "ask_openai_agents.py",
        "ask_crewai.py",
    ]


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    if "ANPD_RECIPES" not in os.environ:
        pytest.skip("make test-recipes")
    side_python("recipes")
    folder = tmp_path_factory.mktemp("recipes")
    shop, buyer = Anpd(folder / "shop"), Anpd(folder / "buyer")
    catalogue = str(ROOT / "examples" / "catalogue.py")
    with ExitStack() as stack:
        shop.ok("attach", "python", catalogue, "--expose", "*")
        for daemon in (shop, buyer):
            stack.enter_context(daemon.up())
        buyer.ok("peers", "add", "shop", shop.address)
        tool, arguments = "catalogue_get_product", {"product_id": "P12346"}
        url = stack.enter_context(playing(tool, arguments))
        kept = {k: v for k, v in os.environ.items() if not k.startswith("ANPD_")}
        yield {
            **kept,
            "ANPD_HOME": str(buyer.home),
            "HOME": str(folder),
            "PATH": f"{Path(sys.executable).parent}:{kept['PATH']}",
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": url,
            # Nothing of a test is told to the authors of the frameworks.
            "CREWAI_DISABLE_TELEMETRY": "true",
            "CREWAI_TRACING_ENABLED": "false",
            "OTEL_SDK_DISABLED": "true",
        }


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_the_page_gets_the_answer_of_the_peer(
    name: str, environ: dict[str, str], tmp_path: Path
) -> None:
    python = side_python("recipes")
    (tmp_path / name).write_text(PROGRAMS[name], "utf-8")
    done = subprocess.run(
        [python, name],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "89.5" in done.stdout, done.stdout + done.stderr
