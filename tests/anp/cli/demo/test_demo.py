"""The demo, as `make demo` runs it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from anp.cli.demo.demo import model_settings
from anp.cli.demo.view import conversions
from anp.sidecar.config.load import load_config
from anp.sidecar.home.home import Home

DEMO = [sys.executable, "-m", "anp", "demo", "--json"]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give the demo a folder for its files, with a path that sockets can have."""
    path = Path(tempfile.mkdtemp(prefix="anpd-"))
    yield path
    shutil.rmtree(path)


@pytest.mark.slow
def test_the_demo_agrees_then_calls_and_then_repairs(folder: Path) -> None:
    done = subprocess.run(
        DEMO,
        env={**os.environ, "TMPDIR": str(folder), "ANPD_LISTEN__PORT": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    calls = document["calls"]
    first, second = calls[:3], calls[3:]
    assert len(second) == 3
    for before, after in zip(first, second, strict=True):
        assert (before["source"], after["source"]) == ("negotiated", "agreement")
        assert before["negotiation_messages"] > 0
        assert after["negotiation_messages"] == 0
        assert before["protocol"] == after["protocol"]
        assert before["llm_calls"] == after["llm_calls"] == 0
        assert before["ms"] > 0
        assert after["ms"] > 0
    # The buyer's own names, in which the shop's program knows nothing.
    assert first[0]["output"] == {"product_name": "Mechanical keyboard", "price": 89.5}
    assert first[1]["output"]["target"]["timezone"] == "Asia/Tokyo"
    again = document["again"]
    assert (again["source"], again["output"]) == ("agreement", first[0]["output"])
    for call in first:
        [cases] = [test["cases"] for test in call["tests"] if "cases" in test]
        assert cases["mode"] == "wire"
        assert len(cases["results"]) >= 2
        assert all(result["passed"] for result in cases["results"])
    # Without a model another unit is declined, and the reason names the field.
    assert not document["units"]["agreed"]
    assert "fahrenheit" in document["units"]["reason"]
    reasons = [held["reason"] for held in document["strangers"]]
    for reason, word in zip(reasons, ("open", "memory", "not allowed"), strict=True):
        assert word in reason
    # A wrong field was reported, accepted and repaired; each call booked once.
    repair = document["repair"]
    assert [call["negotiation_messages"] for call in repair["calls"]] == [0, 3, 0]
    assert [call["output"]["booking"] for call in repair["calls"]] == [2, 3, 4]
    assert repair["origin"] == "rules"
    assert list(folder.iterdir()) == []


def test_without_its_server_the_demo_says_so_in_one_line(folder: Path) -> None:
    blocked = "import sys; sys.modules['mcp_server_time'] = None\n"
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"{blocked}sys.argv[1:] = ['demo', '--json']\n"
            "from anp.__main__ import main\nmain()",
        ],
        env={"PATH": str(folder), "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 13
    assert done.stderr.count("\n") == 1
    assert done.stderr.endswith("[demo]'\n")
    assert json.loads(done.stdout)["kind"] == "local_resource"


def test_the_owners_model_and_budget_are_those_of_the_demo(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.create()
    text = (
        '[llm]\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"\nprice_input = 0.25\n'
        'headers = { "X-Team" = "a\\"b" }\n[budget]\nday_calls = 3\n'
    )
    home.config_file.write_text(text, "utf-8")
    owner = load_config(home, home_given=True, environ={})
    other = Home(tmp_path / "other")
    other.create()
    other.config_file.write_text(model_settings(owner), "utf-8")
    found = load_config(other, home_given=True, environ={})
    assert (found.llm, found.budget) == (owner.llm, owner.budget)
    assert (
        model_settings(load_config(Home(tmp_path), home_given=True, environ={})) == ""
    )


def test_the_conversions_of_code_are_shown_or_else_its_last_function() -> None:
    code = ["import json", "", "def convert_1(v):", "    return v", "", "def go(d):"]
    assert conversions(code) == ["def convert_1(v):", "    return v"]
    assert conversions([code[0], code[-1], "    pass"]) == ["def go(d):", "    pass"]
    assert conversions([]) == []
