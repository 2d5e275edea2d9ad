"""`anpd run -- CMD`, and the Python client in one file, against real daemons."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from anp.sidecar.home.home import Home
from tests.e2e.daemons import Anpd

CLIENT = Path(__file__).parents[2] / "clients" / "python" / "anpd_client.py"
WRITES_ENVIRONMENT = (
    "import json,os;"
    "print(json.dumps({k: v for k, v in os.environ.items() if k.startswith('ANPD_')}))"
)
WAITS = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(33))
# A script that runs the tests in its background has SIGINT ignored, and children
# inherit that.
signal.signal(signal.SIGINT, signal.SIG_DFL)
print("started", flush=True)
time.sleep(60)
"""


def command(home: Path, *words: str) -> list[str]:
    run = [*(sys.executable, "-m", "anp", "--home", str(home), "run", "--port", "0")]
    return [*run, "--", *words]


def client_module() -> ModuleType:
    """Import the client as a file beside a program, apart from our packages."""
    spec = importlib.util.spec_from_file_location("anpd_client", CLIENT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["anpd_client"] = module
    spec.loader.exec_module(module)
    return module


client = client_module()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Anpd, Anpd]]:
    folder = tmp_path_factory.mktemp("client")
    (folder / "client_shop.py").write_text(
        "def twice(number: int) -> dict[str, int]:\n"
        '    return {"twice": number * 2}\n\n\n'
        "def fails(number: int) -> dict[str, int]:\n"
        '    raise ValueError("no such number")\n'
    )
    provider = Anpd(folder / "provider")
    for name in ("twice", "fails"):
        provider.ok(
            *("attach", "python", "--expose", "*", f"client_shop:{name}"), cwd=folder
        )
    with (
        provider.up(),
        Anpd(folder / "caller", listen__api_port="0").up() as caller,
    ):
        yield caller, provider


def ways(caller: Anpd) -> list[Any]:
    address = Home(caller.home).read_api()
    token = Path(address.token_file).read_text()
    return [
        client.Anpd(caller.home),
        client.Anpd(socket_path=address.socket),
        client.Anpd(url=address.api_url, token=token),
    ]


def test_the_client_calls_over_socket_and_loopback(pair: tuple[Anpd, Anpd]) -> None:
    caller, provider = pair
    for anpd in ways(caller):
        result = anpd.call(provider.address, "twice", {"number": 21})
        assert result.output == {"twice": 42}
        assert result.peer_did == provider.did
    assert result.negotiation_messages == 0
    assert anpd.info()["did"] == caller.did
    described = anpd.describe(provider.address)
    assert [one["did"] for one in anpd.peers()] == [provider.did]
    assert described["publishes"]
    assert anpd.protocols()


def test_the_client_talks_in_a_group(pair: tuple[Anpd, Anpd]) -> None:
    caller, provider = pair
    ours, theirs = client.Anpd(caller.home), client.Anpd(provider.home)
    group = ours.create_group("Plan", [provider.address])["id"]
    limit = time.monotonic() + 20
    while not theirs.groups():
        assert time.monotonic() < limit
        time.sleep(0.02)
    (invited,) = theirs.groups()
    assert (invited["id"], invited["state"]) == (group, "invited")
    # A stranger's invitation waits for the owner.
    with pytest.raises(client.AnpdError) as refused:
        theirs.answer_invitation(group)
    assert refused.value.kind == "policy"
    provider.ok("approvals", "accept", f"invitation-{group}")
    number = ours.post(group, "hello", files={"a.txt": b"abc"})
    assert number == 3
    event = next(theirs.follow(group, after=2))
    assert (event["number"], event["data"]["by"]) == (3, ours.group(group)["own"])
    text, file = event["data"]["message"]["parts"]
    assert (text["text"], file["name"]) == ("hello", "a.txt")
    assert theirs.post(group, value={"a": 1}) == 4


def test_the_client_follows_a_call_and_waits_for_it(pair: tuple[Anpd, Anpd]) -> None:
    caller, provider = pair
    anpd = client.Anpd(caller.home)
    need = "Twice"
    call = anpd.start(provider.address, need, {"number": 2}, idempotency_key="k")
    types = [event["type"] for event in anpd.events(call.id)]
    assert (types[0], types[-1]) == ("call.started", "call.done")
    assert anpd.wait(call.id).output == {"twice": 4}
    assert anpd.status(call.id).state == "done"


def test_the_client_raises_what_the_daemon_says(
    pair: tuple[Anpd, Anpd], tmp_path: Path
) -> None:
    caller, provider = pair
    anpd = client.Anpd(caller.home)
    for need, kind in (("fails", "application_error"), ("x", "negotiation_rejected")):
        with pytest.raises(client.AnpdError) as caught:
            anpd.call(provider.address, need, {"number": 1})
        assert caught.value.kind == kind
    with pytest.raises(client.AnpdError, match="token"):
        client.Anpd(url=Home(caller.home).read_api().api_url, token="no").info()
    with pytest.raises(client.AnpdError, match="anpd up"):
        client.Anpd(tmp_path)


def test_the_client_needs_nothing_but_python() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(CLIENT)], check=False, capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_run_gives_the_command_its_daemon_and_takes_its_exit_code(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    done = subprocess.run(
        command(home, sys.executable, "-c", f"{WRITES_ENVIRONMENT}; exit(21)"),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 21, done.stderr
    environment = json.loads(done.stdout)
    assert environment["ANPD_HOME"] == str(home)
    assert environment["ANPD_DID"] in environment["ANPD_ADDRESS"]
    assert not Path(environment["ANPD_SOCKET"]).exists()
    assert not (home / "api.json").exists()


def test_run_lets_the_command_use_its_daemon(tmp_path: Path) -> None:
    source = (
        f"import sys; sys.path.insert(0, {str(CLIENT.parent)!r})\n"
        "from anpd_client import Anpd\n"
        "print(Anpd().info()['did'])"
    )
    done = subprocess.run(
        command(tmp_path / "home", sys.executable, "-c", source),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stdout.startswith("did:key:")


def test_run_uses_a_daemon_that_runs_and_leaves_it(pair: tuple[Anpd, Anpd]) -> None:
    caller, _ = pair
    done = subprocess.run(
        command(caller.home, sys.executable, "-c", WRITES_ENVIRONMENT),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert json.loads(done.stdout)["ANPD_DID"] == caller.did
    assert client.Anpd(caller.home).info()["did"] == caller.did


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 33), (signal.SIGINT, 130)]
)
def test_run_passes_signals_on(tmp_path: Path, number: int, code: int) -> None:
    process = subprocess.Popen(
        command(tmp_path / "home", sys.executable, "-c", WAITS),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"started\n"
    os.kill(process.pid, number)
    assert process.wait(timeout=60) == code
    process.stdout.close()
    limit = time.monotonic() + 10
    while Home(tmp_path / "home").is_running():
        assert time.monotonic() < limit
        time.sleep(0.05)


def test_run_says_when_there_is_no_such_command(tmp_path: Path) -> None:
    done = Anpd(tmp_path / "home").run("run", "--port", "0", "--", "no-such-program")
    assert done.code == 2
    assert "no-such-program" in done.stderr
