"""Scopes of local callers: an agent that has its socket, and the owner."""

from __future__ import annotations

import json
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from anp.sidecar.home.home import Home
from anp.sidecar.mcp.local_api import ApiProblem, LocalApi
from tests.e2e.daemons import Anpd
from tests.e2e.owner import owner_client

SHOP = """
def twice(number: int) -> dict[str, int]:
    return {"twice": number * 2}
"""

REFUSED = """
import os, sys, urllib.request, urllib.error
with open(os.environ["ANPD_TOKEN_FILE"]) as file:
    token = file.read().strip()
request = urllib.request.Request(
    os.environ["ANPD_API_URL"] + "/v1/reload",
    data=b"{}",
    headers={"Content-Type": "application/json", "Authorization": "Bearer " + token},
)
try:
    urllib.request.urlopen(request)
except urllib.error.HTTPError as exc:
    sys.exit(exc.code % 256)
"""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Anpd, Anpd]]:
    """A caller, and a provider of `twice`."""
    folder = tmp_path_factory.mktemp("scopes")
    (folder / "scope_shop.py").write_text(SHOP)
    provider = Anpd(folder / "provider")
    provider.ok(*("attach", "python", "--expose", "*", "scope_shop:twice"), cwd=folder)
    caller = Anpd(folder / "caller", listen__api_port="0")
    with provider.up(), caller.up():
        yield caller, provider


@pytest.fixture
def agent(pair: tuple[Anpd, Anpd]) -> Iterator[httpx.Client]:
    """The agent's program: it has the socket, and no token."""
    transport = httpx.HTTPTransport(uds=Home(pair[0].home).read_api().socket)
    with httpx.Client(
        transport=transport, base_url="http://anpd", timeout=60
    ) as client:
        yield client


def body(provider: Anpd, **more: Any) -> dict[str, Any]:
    return {
        "peer": provider.address,
        "need": "twice",
        "input": {"number": 2},
        **more,
    }


def refused(answer: httpx.Response) -> str:
    """Check that an answer refuses for its scope; return its words."""
    assert answer.status_code == 403, answer.text
    assert answer.json()["needed_scope"] == "owner"
    return str(answer.json()["detail"])


def test_an_agent_calls_and_trusts_nobody(
    pair: tuple[Anpd, Anpd], agent: httpx.Client
) -> None:
    _, provider = pair
    called = agent.post("/v1/calls", json=body(provider))
    assert called.json()["output"] == {"twice": 4}
    # The same call, with a word in it that is the owner's.
    trusting = agent.post("/v1/calls", json=body(provider, trust_first_use=True))
    assert refused(trusting).startswith("trust_first_use needs the scope owner")
    digest = called.json()["protocol"]
    for path in (
        "/v1/reload",
        "/v1/dashboard",
        "/v1/peers/allow",
        "/v1/peers/trust",
        f"/v1/protocols/{digest}/approve",
        f"/v1/protocols/{digest}/revoke",
        "/v1/consensus/publish",
    ):
        refused(agent.post(path, json={}))
    refused(agent.get("/v1/approvals"))
    refused(agent.get("/v1/spend"))


def test_an_agent_does_not_see_the_owners_calls(
    pair: tuple[Anpd, Anpd], agent: httpx.Client
) -> None:
    caller, provider = pair
    path = "/v1/calls"
    wait = {"Prefer": "respond-async"}
    with owner_client(caller.home, timeout=60) as owner:
        with (
            agent.stream("GET", "/v1/events") as seen_by_agent,
            owner.stream("GET", "/v1/events") as seen_by_owner,
        ):
            given = body(provider, idempotency_key="owner's")
            owners = owner.post(path, json=given, headers=wait).json()["id"]
            agents = agent.post(path, json=body(provider), headers=wait).json()["id"]
            # The end of a call that was made before may be among them.
            assert {owners, agents} <= calls_in(seen_by_owner, until=agents)
            seen = calls_in(seen_by_agent, until=agents)
            assert agents in seen
            assert owners not in seen
        assert agent.get(f"{path}/{agents}").status_code == 200
        for hidden in (f"{path}/{owners}", f"{path}/{owners}/events"):
            assert agent.get(hidden).status_code == 404
        assert agent.post(f"{path}/{owners}/cancel", json={}).status_code == 404
        listed = {call["id"] for call in agent.get(path).json()["calls"]}
        assert agents in listed
        assert owners not in listed
        assert {owners, agents} <= {c["id"] for c in owner.get(path).json()["calls"]}
        # Its key does not lead to its result either: the agent has keys of its own.
        own = agent.post(path, json=given, headers=wait)
        assert own.status_code == 202
        assert own.json()["id"] != owners


def calls_in(stream: httpx.Response, *, until: str) -> set[str]:
    """Return the calls in a stream of events, until one of them is done."""
    found: set[str] = set()
    for line in stream.iter_lines():
        if line.startswith("data: "):
            event = json.loads(line.removeprefix("data: "))
            found.add(event["data"].get("call", "none"))
            if event["type"] == "call.done" and event["data"]["call"] == until:
                break
    return found


def test_the_owners_file_is_for_the_owner_and_for_one_run(tmp_path: Path) -> None:
    daemon = Anpd(tmp_path / "home")
    home = Home(daemon.home)
    tokens = set()
    for _ in range(2):
        with daemon.up():
            assert stat.S_IMODE(home.owner_file.stat().st_mode) == 0o600
            owner = home.read_owner()
            folder = Path(owner.socket).parent
            assert stat.S_IMODE(Path(owner.socket).stat().st_mode) == 0o600
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            # What a container shares is the folder of the other socket.
            assert folder != Path(home.read_api().socket).parent
            assert owner.token not in home.api_file.read_text()
            tokens.add(owner.token)
        assert not home.owner_file.exists()
    assert len(tokens) == 2


def test_a_command_without_the_owners_file_calls_and_says_what_is_missing(
    pair: tuple[Anpd, Anpd],
) -> None:
    caller, provider = pair
    file = Home(caller.home).owner_file
    away = file.with_suffix(".away")
    file.rename(away)
    try:
        ended = caller.run("peers", "allow", provider.did)
        assert ended.code == 8
        assert "needs the scope owner" in ended.stderr
        assert f"{file} cannot be read: No such file" in ended.stderr
        called = caller.ok("call", provider.address, "twice", "-d", '{"number": 3}')
        assert json.loads(called.stdout) == {"twice": 6}
    finally:
        away.rename(file)
    caller.ok("peers", "allow", provider.did)


async def test_the_mcp_face_is_an_agent(pair: tuple[Anpd, Anpd]) -> None:
    async with LocalApi(Path(Home(pair[0].home).read_api().socket)) as api:
        assert (await api.get("/v1/info"))["did"] == pair[0].did
        with pytest.raises(ApiProblem) as caught:
            await api.get("/v1/approvals")
    assert caught.value.body["needed_scope"] == "owner"


def test_run_gives_its_command_the_scope_of_an_agent(tmp_path: Path) -> None:
    daemon = Anpd(tmp_path / "home", listen__api_port="0")
    ended = daemon.run("run", "--port", "0", "--", sys.executable, "-c", REFUSED)
    assert ended.code == 403 % 256, ended.stderr
