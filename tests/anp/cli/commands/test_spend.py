"""`anpd spend` and `anpd config`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import httpx
import pytest

from anp.sidecar.home.home import Home
from anp.sidecar.minds.spend import Spend
from tests.anp.cli.test_commands import FakeApi, Output, anpd, api, home
from tests.anp.sidecar.minds.test_spend import view

__all__ = ["api", "home"]  # Fixtures, which pytest finds by name.

SECRET = "sk-secret-0123456789"


def answer(api: FakeApi, shown: Spend, days: int = 7) -> None:
    api.answers[f"/v1/spend?days={days}"] = httpx.Response(200, json=asdict(shown))


def test_spend_shows_days_peers_steps_and_what_is_left(
    home: Home, api: FakeApi, capsys: Output
) -> None:
    answer(api, view())
    assert anpd(home, "spend") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["DAY", "CALLS", "INPUT", "OUTPUT", "COST"]
    assert lines[1].split() == ["2026-03-01", "5", "3600", "900", "1.0"]
    assert ["judge", "2", "1200", "300", "0.125"] in [line.split() for line in lines]
    assert "  owner: 3 of 100 calls, 1540 of 1000000 tokens" in lines
    assert "9 calls are still running or no longer in the ledger" in lines


def test_without_prices_no_money_is_shown(
    home: Home, api: FakeApi, capsys: Output
) -> None:
    answer(api, view(priced=False), days=30)
    assert anpd(home, "spend", "--days", "30") == 0
    out = capsys.readouterr().out
    assert "COST" not in out
    assert "set llm.price_input and llm.price_output" in out


def test_nothing_spent_is_one_line(home: Home, api: FakeApi, capsys: Output) -> None:
    answer(api, view(spends=[], calls=[]))
    assert anpd(home, "spend") == 0
    assert capsys.readouterr().out == "no model calls since 2026-02-28\n"


def test_spend_prints_json(home: Home, api: FakeApi, capsys: Output) -> None:
    answer(api, view())
    assert anpd(home, "spend", "--json") == 0
    assert json.loads(capsys.readouterr().out) == asdict(view())


@pytest.fixture
def plain_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    for name in ("ANPD_LLM__MODEL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return Home(tmp_path)


def test_config_show_says_every_budget_and_where_prompts_go(
    plain_home: Home, capsys: Output
) -> None:
    assert anpd(plain_home, "config", "show") == 0
    lines = capsys.readouterr().out.splitlines()
    for line in (
        "# model is not set",
        'base_url = "https://api.openai.com/v1"',
        "negotiation_calls = 8",
        "peer_calls = 40",
        "unlisted_calls = 20",
        "day_calls = 200",
        "day_tokens = 2000000",
        'peers = "any"',
    ):
        assert line in lines


def test_config_show_says_that_a_running_daemon_may_have_others(
    plain_home: Home, capsys: Output
) -> None:
    plain_home.create()
    for words in (["config", "show"], ["config", "show", "--json"]):
        assert anpd(plain_home, *words) == 0
        assert capsys.readouterr().err == ""
        with plain_home.lock():
            assert anpd(plain_home, *words) == 0
        said = capsys.readouterr()
        assert "options of its `anpd up`" in said.err
        assert "options" not in said.out


def test_config_show_leaves_secrets_out(
    plain_home: Home, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    plain_home.config_file.write_text(
        f"[llm]\nmodel = 'm'\nheaders = {{ X-Key = '{SECRET}' }}\n"
        f"[[attach]]\nname = 'a'\nkind = 'mcp'\ncommand = ['x', '{SECRET}']\n"
        f"env = {{ TOKEN = '{SECRET}' }}\n"
    )
    for words in (["config", "show"], ["config", "show", "--json"]):
        assert anpd(plain_home, *words) == 0
        out = capsys.readouterr().out
        assert SECRET not in out
        assert "X-Key" in out


def test_config_check_and_path(plain_home: Home, capsys: Output) -> None:
    assert anpd(plain_home, "config", "check") == 0
    assert anpd(plain_home, "config", "path") == 0
    assert capsys.readouterr().out.splitlines() == [
        "the configuration has no errors",
        f"absent  {plain_home.config_file}",
    ]
    plain_home.config_file.write_text("[budget]\nday_call = 3\n")
    assert anpd(plain_home, "config", "check") == 3
    assert "did you mean budget.day_calls?" in capsys.readouterr().err
