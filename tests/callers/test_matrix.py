"""Each kind of caller reaches each kind of attachment through two daemons."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.callers.running import Call, Program, Request
from tests.e2e.agents.running import agents_python, running
from tests.e2e.daemons import Anpd

CALLERS = {
    "langchain-stdio": Program("call_langchain.py", "stdio", own_environment=True),
    "langchain-http": Program("call_langchain.py", "http", own_environment=True),
    "mcp-stdio": Program("call_mcp.py", "stdio"),
    "mcp-http": Program("call_mcp.py", "http"),
    "client-tcp": Program("call_client.py", "tcp", bare=True),
    "client-socket": Program("call_client.py", "socket", bare=True),
    "http-tcp": Program("call_http.py", "tcp", bare=True),
    "http-socket": Program("call_http.py", "socket", bare=True),
}

CALLS = {
    "mcp-server-time": Call(
        "time.convert_time",
        {
            "source_timezone": "Asia/Tokyo",
            "time": "09:00",
            "target_timezone": "Asia/Kolkata",
        },
    ),
    "mcp-server-git": Call("git.git_log", {"repo_path": "", "max_count": 1}),
    "fastapi": Call("shop.get_item", {"sku": "K-7", "tag": ["new", "red"]}),
    "a2a-sdk": Call("helper.add_up", {"data": {"a": 30, "b": 12}}),
}


@dataclass(frozen=True, slots=True)
class Pair:
    """A daemon that has everything attached, and one that calls it."""

    caller: Anpd
    "Whose faces the callers use."

    provider: Anpd
    "Who has the attachments."

    repository: Path
    "What mcp-server-git looks at."

    given: dict[str, dict[str, Any]] = field(default_factory=dict)
    "What callers got so far, by their names and the kinds of attachments."

    def outputs(self, name: str) -> dict[str, Any]:
        """Return what one caller gets from each attachment; it runs once."""
        if name not in self.given:
            home = str(self.caller.home)
            anpd = [sys.executable, "-P", "-m", "anp", "--home", home]
            calls = [self.call(kind) for kind in CALLS]
            request = Request(anpd, home, self.provider.address, calls)
            found = CALLERS[name].run(request)
            self.given[name] = dict(zip(CALLS, found, strict=True))
        return self.given[name]

    def call(self, kind: str) -> Call:
        """Return the call for a kind of attachment."""
        call = CALLS[kind]
        if "repo_path" in call.input:
            return Call(call.need, {**call.input, "repo_path": str(self.repository)})
        return call


def repository_in(folder: Path) -> Path:
    """Make a repository with one commit."""
    path = folder / "repository"
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@agents.example")
    commit = ("commit", "-q", "--allow-empty", "-m", "The first one")
    subprocess.run(["git", "init", "-q", str(path)], check=True)
    subprocess.run(["git", *who, *commit], cwd=path, check=True)
    return path


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("callers")
    provider = Anpd(folder / "provider")
    caller = Anpd(folder / "caller", listen__api_port="0")
    repository = repository_in(folder)

    def attach(kind: str, *words: str) -> None:
        provider.ok("attach", kind, "--expose", "*", "--name", *words)

    with contextlib.ExitStack() as stack:
        python = agents_python()
        shop = stack.enter_context(running("openapi_service.py", python=python))
        helper = stack.enter_context(running("a2a_agent.py"))
        attach("mcp", "time", "--", sys.executable, "-m", "mcp_server_time")
        attach("mcp", "git", "--", sys.executable, "-m", "mcp_server_git")
        attach("http", "shop", shop.url)
        attach("a2a", "helper", helper.url)
        for daemon in (provider, caller):
            stack.enter_context(daemon.up())
        yield Pair(caller, provider, repository)
        assert "Traceback" not in caller.log() + provider.log()


def check(kind: str, output: Any) -> None:
    """The answer is that of the agent itself."""
    match kind:
        case "mcp-server-time":
            assert output["time_difference"] == "-3.5h"
        case "mcp-server-git":
            assert "The first one" in output["text"]
        case "fastapi":
            assert output == {"sku": "K-7", "title": "Item K-7", "tags": ["new", "red"]}
        case "a2a-sdk":
            assert output["data"] == [{"total": 42}]


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize("name", CALLERS)
def test_a_caller_reaches_an_attachment(pair: Pair, name: str, kind: str) -> None:
    check(kind, pair.outputs(name)[kind])


def test_callers_of_all_kinds_share_one_agreement_for_each_task(pair: Pair) -> None:
    # Whoever came first had it negotiated; the order of tests does not matter.
    for name in CALLERS:
        pair.outputs(name)
    agreed = pair.caller.ok("protocols", "list", "--json").json()["protocols"]
    needs = [one["need"] for one in agreed]
    assert sorted(needs) == sorted({call.need for call in CALLS.values()})
