"""Numbers and error codes of tools, through two daemons and every face."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from anp.sidecar.home.home import Home
from tests.e2e.daemons import Anpd
from tests.e2e.owner import owner_client, owner_headers

SHOP = """
def same(value):
    return {"value": value}


class SoldOut(Exception):
    code = 409
    caller_message = "three are left"


class Closed(Exception):
    code = "CLOSED_TODAY"
    caller_message = "come tomorrow"


class Secret(Exception):
    code = 418


def order(how: str) -> dict[str, str]:
    raise {"sold": SoldOut, "closed": Closed}.get(how, Secret)("/home/owner/file")
"""
SERVER = Path(__file__).parents[1] / "anp/sidecar/attachments/mcp/mcp_server.py"
NUMBERS = "[12345678901234567.89,0.1,-0.0,123456789012345678901234567890,1e-400]"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Anpd, Anpd]]:
    """A caller and a provider."""
    folder = tmp_path_factory.mktemp("pair")
    (folder / "answers_shop.py").write_text(SHOP)
    state = folder / "tools.json"
    state.write_text(json.dumps({"tools": [{"name": "coded"}, {"name": "told"}]}))
    provider = Anpd(folder / "provider")
    for name in ("same", "order"):
        provider.ok(
            *("attach", "python", "--expose", "*", f"answers_shop:{name}"), cwd=folder
        )
    provider.ok(
        *("attach", "mcp", "--name", "tool", "--expose", "*", "--"),
        *(sys.executable, str(SERVER), str(state)),
    )
    with provider.up(), Anpd(folder / "caller").up() as caller:
        yield caller, provider


def test_the_command_line_keeps_numbers(pair: tuple[Anpd, Anpd]) -> None:
    caller, provider = pair
    data = f'{{"value": {NUMBERS}}}'
    ended = caller.ok("call", provider.address, "same", "-d", data, "--json")
    shown = "".join(ended.stdout.split())
    assert NUMBERS in shown


def test_the_api_keeps_numbers(pair: tuple[Anpd, Anpd]) -> None:
    caller, provider = pair
    peer = json.dumps(provider.address)
    body = f'{{"peer": {peer}, "need": "same", "input": {{"value": {NUMBERS}}}}}'
    with owner_client(caller.home, timeout=60) as api:
        headers = {"content-type": "application/json"}
        answer = api.post("/v1/calls", content=body, headers=headers)
        assert NUMBERS in answer.text
        large = body.replace("0.1", "1e400")
        refused = api.post("/v1/calls", content=large, headers=headers)
    assert refused.status_code == 400
    assert "a number too large for a float" in refused.text


def test_a_number_too_large_is_a_usage_error(pair: tuple[Anpd, Anpd]) -> None:
    caller, provider = pair
    ended = caller.run("call", provider.address, "same", "-d", '{"value": 1e400}')
    assert ended.code == 2
    assert "a number too large for a float" in ended.stderr


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("coded", "{}", "answered 409: sold out"),
        ("told", "{}", "answered 404: Error 404: no such sku"),
        ("order", '{"how": "sold"}', "answered 409: three are left"),
        ("order", '{"how": "closed"}', "answered 500: CLOSED_TODAY: come tomorrow"),
        ("order", '{"how": "secret"}', "answered 418: the capability failed; its own"),
    ],
)
def test_a_tools_own_code_reaches_the_caller(
    pair: tuple[Anpd, Anpd], name: str, data: str, said: str
) -> None:
    caller, provider = pair
    ended = caller.run("call", provider.address, name, "-d", data)
    assert ended.code == 10, ended.stderr
    assert said in ended.stderr
    assert "/home/owner" not in ended.stderr


def test_loopback_answers_nearly_as_fast_as_the_socket(tmp_path: Path) -> None:
    daemon = Anpd(tmp_path / "home", listen__api_port="0")
    with daemon.up():
        url = Home(daemon.home).read_api().api_url
        assert url is not None
        over_tcp = httpx.Client(base_url=url, headers=owner_headers(daemon.home))
        seconds = []
        for client in (owner_client(daemon.home), over_tcp):
            taken = []
            with client as api:
                for _ in range(100):
                    start = time.perf_counter()
                    assert api.get("/v1/peers").status_code == 200
                    taken.append(time.perf_counter() - start)
            seconds.append(statistics.median(taken))
        socket, tcp = seconds
        print(
            f"socket {socket * 1e3:.2f} ms, TCP {tcp * 1e3:.2f} ms: {tcp / socket:.2f}"
        )
        # Without TCP_NODELAY each request took 44 ms.
        assert tcp < 0.02
