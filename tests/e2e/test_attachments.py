"""Each kind of attachment, with a real agent, reached through two daemons."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agents.running import running
from tests.e2e.daemons import Anpd
from tests.environments import side_python

SECRET = "sidecar-secret-word"


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Anpd, Anpd]]:
    caller, provider = Anpd(tmp_path / "caller"), Anpd(tmp_path / "provider")
    with provider.up(), caller.up():
        yield caller, provider


def ask(caller: Anpd, provider: Anpd, task: str, data: Any) -> Any:
    """Call the provider and return the output."""
    words = ("call", provider.address, task, "-d", json.dumps(data), "--json")
    return caller.ok(*words).json()["output"]


def attach(provider: Anpd, *words: str) -> Any:
    """Attach something with everything exposed, and return what is said of it."""
    found = provider.ok("attach", *words, "--expose", "*", "--json").json()
    assert found["problem"] is None, found
    assert found["daemon"] == "reloaded"
    return found


def health(provider: Anpd, name: str) -> Any:
    listed = provider.ok("attachments", "list", "--json").json()["attachments"]
    return next(each for each in listed if each["name"] == name)


def eventually(true: Callable[[], bool]) -> None:
    """Wait until something is so."""
    limit = time.monotonic() + 60
    while not true():
        assert time.monotonic() < limit
        time.sleep(0.05)


@pytest.mark.slow
def test_the_time_server_is_reached(pair: tuple[Anpd, Anpd]) -> None:
    caller, provider = pair
    command = ("mcp", "--name", "time")
    found = provider.ok(
        *("attach", *command, "--expose", "*", "--json"),
        *("--", sys.executable, "-m", "mcp_server_time"),
    ).json()
    assert "time.convert_time" in found["exposed"]
    data = {
        "source_timezone": "UTC",
        "target_timezone": "Asia/Tokyo",
        "time": "12:00",
    }
    output = ask(caller, provider, "convert_time", data)
    assert output["time_difference"] == "+9.0h"


@pytest.mark.slow
def test_the_git_server_is_reached(pair: tuple[Anpd, Anpd], tmp_path: Path) -> None:
    caller, provider = pair
    folder = tmp_path / "repository"
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example"]
    subprocess.run([*git, "init", "-q", str(folder)], check=True)
    commit = ["-C", str(folder), "commit", "-qm", "the first", "--allow-empty"]
    subprocess.run([*git, *commit], check=True)
    provider.ok(
        *("attach", "mcp", "--name", "git", "--expose", "git_log", "--json", "--"),
        *(sys.executable, "-m", "mcp_server_git", "--repository", str(folder)),
    )
    output = ask(caller, provider, "git_log", {"repo_path": str(folder)})
    assert "the first" in output["text"]


@pytest.mark.slow
def test_an_mcp_server_over_http_is_reached_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_TOKEN", SECRET)
    caller, provider = Anpd(tmp_path / "caller"), Anpd(tmp_path / "provider")
    with provider.up(), caller.up():
        with running("mcp_http_server.py", TOKEN=SECRET) as server:
            words = ("mcp", f"{server.url}/mcp", "--name", "calc")
            attach(provider, *words, "--bearer", "env:MCP_TOKEN")
            assert ask(caller, provider, "add", {"a": 2, "b": 3}) == {"result": 5}
            output = ask(caller, provider, "calc.caller", {})
            assert output["anpd/caller"] == caller.did
            server.kill()
        again = ("call", provider.address, "add", "-d", '{"a": 1, "b": 1}', "--json")
        assert caller.run(*again).code != 0
        eventually(lambda: not health(provider, "calc")["healthy"])
        assert "calc" in provider.ok("attachments", "list").stdout
        with running("mcp_http_server.py", port=server.port, TOKEN=SECRET):
            eventually(lambda: bool(health(provider, "calc")["healthy"]))
            assert ask(caller, provider, "add", {"a": 4, "b": 3}) == {"result": 7}
    assert SECRET not in provider.log()
    files = (each for each in provider.home.rglob("*") if each.is_file())
    assert not any(SECRET.encode() in each.read_bytes() for each in files)


@pytest.mark.slow
@pytest.mark.agents
def test_an_openapi_service_is_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_KEY", SECRET)
    caller, provider = Anpd(tmp_path / "caller"), Anpd(tmp_path / "provider")
    python = side_python("agents")
    with (
        provider.up(),
        caller.up(),
        running("openapi_service.py", python=python) as shop,
    ):
        words = ("http", shop.url, "--name", "shop", "--header", "X-Key=env:SHOP_KEY")
        found = attach(provider, *words)
        assert sorted(found["found"]) == [
            *("shop.drop_order", "shop.get_item", "shop.list_orders"),
            *("shop.place_order", "shop.whoami"),
        ]
        assert ask(caller, provider, "get_item", {"sku": "tea", "tag": ["a", "b"]}) == {
            "sku": "tea",
            "title": "Item tea",
            "tags": ["a", "b"],
        }
        order = {"sku": "tea", "quantity": 4}
        receipt = ask(caller, provider, "place_order", order)
        assert receipt == {"number": 1, "sku": "tea", "total": 10.0}
        assert ask(caller, provider, "list_orders", {}) == {"result": [receipt]}
        assert ask(caller, provider, "shop.whoami", {}) == {"did": caller.did}
        missing = ("call", provider.address, "get_item", "-d", '{"sku": "none"}')
        ended = caller.run(*missing)
        assert ended.code == 10
        assert "we have no such thing" in ended.stderr
        assert ask(caller, provider, "drop_order", {"number": 1}) == {"result": None}
    assert SECRET not in provider.log()


@pytest.mark.slow
def test_a_callback_agent_is_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_KEY", SECRET)
    caller, provider = Anpd(tmp_path / "caller"), Anpd(tmp_path / "provider")
    with provider.up(), caller.up(), running("callback_agent.py") as agent:
        words = ("callback", f"{agent.url}/calls", "--name", "hall")
        attach(provider, *words, "--secret", "env:HOOK_KEY")
        assert ask(caller, provider, "greet", {"name": "Ada"}) == {
            "text": "Hello Ada",
            "caller": caller.did,
        }
        nobody = ("call", provider.address, "greet", "-d", '{"name": "nobody"}')
        ended = caller.run(*nobody)
        assert (ended.code, "there is nobody" in ended.stderr) == (10, True)
        provider.ok("attachments", "remove", "hall")
        listed = provider.ok("attachments", "list", "--json").json()
        assert listed == {"attachments": []}


@pytest.mark.slow
def test_an_a2a_agent_is_reached(pair: tuple[Anpd, Anpd]) -> None:
    caller, provider = pair
    with running("a2a_agent.py") as agent:
        found = attach(provider, "a2a", agent.url, "--name", "voice")
        assert found["exposed"] == ["voice.shout", "voice.add_up", "voice.see"]
        assert ask(caller, provider, "shout", {"text": "shout hello"}) == {
            "text": "HELLO"
        }
        assert ask(caller, provider, "voice.add_up", {"data": {"a": 1, "b": 2}}) == {
            "text": "",
            "data": [{"total": 3}],
        }
        words = ("call", provider.address, "shout", "-d", '{"text": "ask"}')
        ended = caller.run(*words)
        assert (ended.code, "which city?" in ended.stderr) == (10, True)


@pytest.mark.slow
def test_what_the_attach_table_of_the_configuration_says_is_attached(
    tmp_path: Path,
) -> None:
    caller, provider = Anpd(tmp_path / "caller"), Anpd(tmp_path / "provider")
    provider.ok("init")
    (tmp_path / "caps.json").write_text("[]")
    with running("callback_agent.py") as agent:
        with (provider.home / "anpd.toml").open("a") as file:
            file.write(
                f'\n[[attach]]\nkind = "callback"\nname = "hall"\nurl = "{agent.url}"\n'
                'expose = ["greet"]\n\n[[attach.capabilities]]\nname = "greet"\n'
                "read_only = true\n[attach.capabilities.input_schema]\n"
                'type = "object"\nproperties = { name = { type = "string" } }\n'
                'required = ["name"]\n'
            )
        with provider.up(), caller.up():
            output = ask(caller, provider, "greet", {"name": "Ada"})
            assert output["text"] == "Hello Ada"


def test_a_service_is_called_as_it_calls_itself(tmp_path: Path) -> None:
    provider = Anpd(tmp_path / "home")
    with running("a2a_agent.py") as agent:
        named = provider.ok("attach", "a2a", agent.url, "--json").json()
        assert named["name"] not in {"127", "unnamed"}
        assert all(name.startswith(f"{named['name']}.") for name in named["found"])
        again = provider.ok("attach", "a2a", agent.url, "--json").json()
        assert again["name"] == named["name"]
    with running("a2a_agent.py") as other:
        ended = provider.run("attach", "a2a", other.url)
        assert ended.code == 2
        assert f"another attachment is called {named['name']}" in ended.stderr


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("http", "https://shop.example", "--bearer", SECRET), 3, "env:NAME"),
        (("http", "https://shop.example", "--header", SECRET), 2, "--header"),
        (("http", f"https://me:{SECRET}@shop.example"), 2, "with basic"),
        (("http", "http://127.0.0.1:9"), 3, "nothing listens there"),
        (("http", "shop.example", "--name", "x"), 3, "https://host/path"),
        (("mcp", "http://127.0.0.1:9/", "--name", "x", "--env", "A=1"), 2, "--env"),
        (("callback", "http://x.example", "--secret", "env:X"), 3, "allow"),
        (("callback", "http://x.example", "--capabilities", "/no"), 3, "cannot read"),
    ],
)
def test_attach_says_what_is_wrong_and_what_to_do(
    tmp_path: Path, words: tuple[str, ...], code: int, text: str
) -> None:
    ended = Anpd(tmp_path / "home").run("attach", *words, "--json")
    assert ended.code == code
    assert text in ended.stderr
    assert ended.json()["detail"]
    assert SECRET not in ended.stdout + ended.stderr


def test_attach_repeats_the_command_without_any_secret(tmp_path: Path) -> None:
    with running("callback_agent.py") as agent:
        words = (
            "callback",
            agent.url,
            "--name",
            "x",
            "--header",
            "X=file:/etc/hostname",
        )
        ended = Anpd(tmp_path / "home").ok("attach", *words)
    assert "--header X=file:/etc/hostname" in ended.stdout
    assert "--expose '*'" in ended.stdout
