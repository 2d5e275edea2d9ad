"""Probes, metrics, reload and stop of a real daemon."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from anp.sidecar.home.home import Home
from tests.e2e.daemons import Anpd

SLOW = """
import pathlib
import time


def slow(seconds: float) -> dict[str, str]:
    pathlib.Path(__file__).with_name("began").touch()
    time.sleep(seconds)
    return {"done": "yes"}
"""
TRACE = "0af7651916cd43dd8448eb211c80319c"


def asked(daemon: Anpd, path: str, **more: Any) -> httpx.Response:
    """Ask the local API of a daemon."""
    socket = json.loads((daemon.home / "api.json").read_text())["socket"]
    with httpx.Client(transport=httpx.HTTPTransport(uds=socket)) as client:
        return client.get(f"http://anpd{path}", **more)


def samples(daemon: Anpd) -> dict[str, float]:
    """Return the sum of each metric's samples."""
    text = asked(daemon, "/metrics").text
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found


def until(seen: Callable[[], bool]) -> None:
    """Wait for something that another process does."""
    limit = time.monotonic() + 60
    while not seen():
        assert time.monotonic() < limit
        time.sleep(0.02)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Anpd, Anpd]]:
    """Give a caller and a provider whose function takes its time, both running."""
    (tmp_path / "made.py").write_text(SLOW)
    caller = Anpd(tmp_path / "caller", log__format="json")
    provider = Anpd(tmp_path / "provider", operation__stop_timeout="30")
    provider.ok(
        *("attach", "python", "made:slow", "--expose", "*"),
        *("--python", sys.executable, "--cwd", str(tmp_path)),
    )
    with caller.up(), provider.up():
        caller.ok("call", provider.address, "slow", "-d", '{"seconds": 0}')
        (tmp_path / "began").unlink()
        yield caller, provider


def begin_call(caller: Anpd, provider: Anpd, seconds: float) -> subprocess.Popen[str]:
    """Begin a call that lasts, and wait until the function runs."""
    command = [sys.executable, "-m", "anp", "--home", str(caller.home), "call"]
    command += [provider.address, "slow", "-d", json.dumps({"seconds": seconds})]
    process = subprocess.Popen(
        [*command, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={k: v for k, v in os.environ.items() if not k.startswith("ANPD_")},
    )
    until((caller.home.parent / "began").exists)
    return process


def test_both_sides_count_what_they_did(pair: tuple[Anpd, Anpd]) -> None:
    caller, provider = pair
    caller.ok("call", provider.address, "slow", "-d", '{"seconds": 0}')
    ours, theirs = samples(caller), samples(provider)
    for found in (ours, theirs):
        assert found["anpd_handshakes_total"] >= 1
        assert found["anpd_negotiations_total"] == 1
        assert found["anpd_calls_total"] >= 2
        assert found["anpd_sandbox_runs_total"] > 0
        assert found["anpd_connections"] == 1
        assert found["anpd_channels"] >= 1
        assert found["anpd_ready"] == 1
    assert ours["anpd_protocol_lookups_total"] == 2
    assert theirs["anpd_attachments"] == 1
    text = asked(provider, "/metrics").text
    assert "did:" not in text
    assert "slow" not in text


def test_probes_say_what_they_mean_and_no_more(pair: tuple[Anpd, Anpd]) -> None:
    _, provider = pair
    assert asked(provider, "/livez").json() == {"status": "ok"}
    ready = asked(provider, "/readyz")
    assert (ready.status_code, ready.json()["status"]) == (200, "ok")
    assert set(ready.json()["parts"]) == {
        *("identity", "store", "listener", "sandbox", "attachments", "model")
    }
    for word in (str(provider.home), provider.did, "did:", "made"):
        assert word not in ready.text
    assert provider.ok("health").stdout.startswith("ok")
    assert provider.ok("health", "--live", "--json").json() == {"status": "ok"}


@pytest.mark.slow
def test_a_daemon_without_its_only_attachment_is_not_ready(tmp_path: Path) -> None:
    daemon = Anpd(tmp_path / "home")
    # Saved although it does not start, which the command says with its exit code.
    command = ("--", "no-such-program-here")
    assert daemon.run("attach", "mcp", "--keep", "--name", "gone", *command).code
    with daemon.up():
        assert asked(daemon, "/livez").status_code == 200
        ready = asked(daemon, "/readyz")
        assert (ready.status_code, ready.json()["status"]) == (503, "not ready")
        assert ready.json()["parts"]["attachments"]["state"] == "down"
        assert daemon.run("health").code == 4
    assert daemon.run("health").code == 4


@pytest.mark.slow
def test_a_stop_waits_for_the_call_in_flight(pair: tuple[Anpd, Anpd]) -> None:
    caller, provider = pair
    call = begin_call(caller, provider, seconds=1.5)
    assert provider.stop() == 0
    out, err = call.communicate(timeout=60)
    assert call.returncode == 0, err
    assert json.loads(out)["output"] == {"done": "yes"}
    assert not (provider.home / "api.json").exists()
    refused = caller.run("call", provider.address, "slow", "-d", '{"seconds": 0}')
    assert refused.code == 12


@pytest.mark.slow
def test_the_callers_stop_waits_too(pair: tuple[Anpd, Anpd]) -> None:
    caller, provider = pair
    call = begin_call(caller, provider, seconds=1.5)
    assert caller.process is not None
    caller.process.send_signal(signal.SIGTERM)
    until(lambda: "stopping" in caller.log())
    # Nothing new meanwhile, and the probe says so.
    late = caller.run("call", provider.address, "slow", "-d", '{"seconds": 0}')
    assert late.code == 4
    assert call.communicate(timeout=60)[0]
    assert call.returncode == 0
    assert caller.process.wait(timeout=30) == 0


@pytest.mark.slow
def test_a_stop_cuts_off_what_takes_too_long(
    pair: tuple[Anpd, Anpd], tmp_path: Path
) -> None:
    caller, provider = pair
    provider.stop()
    impatient = Anpd(provider.home, operation__stop_timeout="0.2")
    with impatient.up():
        call = begin_call(caller, impatient, seconds=20)
        assert impatient.stop() == 9
        assert call.wait(timeout=60) == 12
    assert "operation.stop_timeout" in impatient.log()
    cut = Home(impatient.home).calls_cut()
    assert cut
    assert f"stopped with {cut} calls cut off" in impatient.log()
    assert "daemon ended" in impatient.log()


@pytest.mark.slow
def test_a_second_signal_ends_at_once(pair: tuple[Anpd, Anpd]) -> None:
    caller, provider = pair
    call = begin_call(caller, provider, seconds=20)
    process = provider.process
    assert process is not None
    process.send_signal(signal.SIGTERM)
    until(lambda: "stopping" in provider.log())
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 130
    assert call.wait(timeout=60) == 12
    assert not (provider.home / "api.json").exists()
    # Nothing is broken: the same home goes on with the same agreement.
    provider.start()
    again = caller.ok(
        "call", provider.address, "slow", "-d", '{"seconds": 0}', "--json"
    )
    assert again.json()["source"] == "agreement"


def test_a_reload_says_what_took_effect_and_what_did_not(tmp_path: Path) -> None:
    daemon = Anpd(tmp_path / "home")
    daemon.ok("init")
    settings = daemon.home / "anpd.toml"
    with daemon.up():
        settings.write_text(
            '[log]\nlevel = "debug"\n[policy]\npeers = "listed"\n'
            "[limits]\nmax_message = 70000\n"
            '[[peer]]\nname = "shop"\nurl = "ws://127.0.0.1:9/"\n'
        )
        told = daemon.ok("reload")
        assert "log.level" in told.stdout
        assert "policy.peers" in told.stdout
        assert "limits.max_message" in told.stderr
        found = asked(daemon, "/v1/info").json()
        assert found["peers_policy"] == "listed"
        # Named in the address book by now, and not reachable.
        assert daemon.run("call", "shop", "anything").code == 12
        assert daemon.ok("reload", "--json").json()["applied"] == []


def test_a_broken_file_changes_nothing(tmp_path: Path) -> None:
    daemon = Anpd(tmp_path / "home", log__format="json")
    daemon.ok("init")
    settings = daemon.home / "anpd.toml"
    with daemon.up():
        assert daemon.process is not None
        settings.write_text('[policy]\npears = "listed"\n')
        told = daemon.run("reload")
        assert told.code == 3
        assert "policy.peers" in told.stderr
        assert samples(daemon)["anpd_config_last_reload_successful"] == 0
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: "not reloaded" in daemon.log())
        assert asked(daemon, "/v1/info").json()["peers_policy"] == "any"
        settings.write_text('[policy]\npeers = "listed"\n')
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: asked(daemon, "/v1/info").json()["peers_policy"] == "listed")
        until(lambda: samples(daemon)["anpd_config_last_reload_successful"] == 1)


def test_logs_are_json_where_nobody_looks(tmp_path: Path) -> None:
    daemon = Anpd(tmp_path / "home")
    with daemon.up():
        pass
    lines = [line for line in daemon.log().splitlines() if line.startswith("{")]
    assert lines
    for line in lines:
        entry = json.loads(line)
        assert {"time", "level", "logger", "message"} <= entry.keys()


def test_a_service_manager_hears_of_it_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        daemon = Anpd(tmp_path / "home")
        with daemon.up():
            assert manager.recv(4096).startswith(b"READY=1")
            assert daemon.process is not None
            daemon.process.send_signal(signal.SIGHUP)
            assert manager.recv(4096).startswith(b"RELOADING=1")
            assert manager.recv(4096).startswith(b"READY=1")
        assert manager.recv(4096).startswith(b"STOPPING=1")
