"""Finding peers, waiting for tasks and registries, by the commands of real daemons."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.clauses import clause
from tests.e2e.daemons import Anpd
from tests.e2e.talks import AGENT
from tests.e2e.test_run_and_clients import client

DOUBLE = ("-d", json.dumps({"number": 4}))

Three = tuple[Anpd, Anpd, Anpd]


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Three]:
    """A caller that is also a registry, and two providers of the same functions."""
    folder = tmp_path_factory.mktemp("find")
    (folder / "find_agent.py").write_text(AGENT)
    with Anpd(folder / "caller", registry__serve="true").up() as caller:
        one, two = Anpd(folder / "one"), Anpd(folder / "two")
        two.home.mkdir()
        (two.home / "anpd.toml").write_text(
            f'[registry]\nannounce = ["{caller.address}"]\n'
        )
        for provider in (one, two):
            attach = ("attach", "python", "--name", "agent", "--expose", "*")
            provider.ok(*attach, "find_agent", cwd=folder)
        with one.up(), two.up():
            yield caller, one, two


@clause("A2A-26")
def test_a_call_and_a_task_find_the_allowed_peers(three: Three) -> None:
    caller, one, two = three
    refused = caller.run("call", "--find", "agent.double", *DOUBLE)
    assert refused.code == 12
    assert "no allowed peer publishes 'agent.double'" in refused.stderr
    for name, provider in (("one", one), ("two", two)):
        caller.ok("peers", "add", name, provider.address)
        caller.ok("peers", "allow", provider.did)
    found = caller.ok("peers", "find", "double", "--json").json()
    assert {peer["did"] for peer in found["peers"]} == {one.did, two.did}
    ran = [
        caller.ok("call", "--find", "agent.double", *DOUBLE, "--json").json()
        for _ in range(2)
    ]
    assert {answer["peer_did"] for answer in ran} == {one.did, two.did}
    assert ran[0]["output"] == {"number": 8}
    task = caller.ok("tasks", "start", "--find", "agent.double", *DOUBLE).stdout.strip()
    waited = caller.ok("tasks", "wait", task).stdout
    assert waited.split() == [task, "completed"]
    shown = caller.ok("peers", "list").stdout
    assert "HEALTH" in shown
    assert shown.count("good") == 2
    known = caller.ok("peers", "show", "one", "--json").json()
    assert known["health"] == "good"
    assert known["version"]
    assert known["latency_ms"] > 0


@clause("A2A-26")
def test_when_one_peer_is_killed_the_other_serves(three: Three) -> None:
    caller, one, two = three
    for name, provider in (("a", one), ("b", two)):
        caller.ok("peers", "add", name, provider.address)
        caller.ok("peers", "allow", provider.did)
    for _ in range(2):
        caller.ok("call", "--find", "agent.double", *DOUBLE)
    port = one.port
    one.kill()
    try:
        for _ in range(3):
            answer = caller.ok("call", "--find", "agent.double", *DOUBLE, "--json")
            assert answer.json()["peer_did"] == two.did
        words = ("tasks", "start", "--find", "agent.double", *DOUBLE, "--json")
        assert caller.ok(*words).json()["executor"] == two.did
        assert caller.run("call", one.address, "agent.double", *DOUBLE).code == 12
        assert "away" in caller.ok("peers", "list").stdout
    finally:
        one.start(port=port)


@clause("A2A-26")
def test_tasks_on_conditions_are_waited_for_from_python(three: Three) -> None:
    caller, one, _ = three
    anpd = client.Anpd(caller.home)
    bad = anpd.start_task(one.address, "agent.fail", {"words": "x"})
    rescue = anpd.start_task(
        None,
        "agent.double",
        {"number": 1},
        session=bad.session,
        depends_on=[{"task": bad.id, "states": ["failed"]}],
    )
    either = anpd.start_task(
        None,
        "agent.double",
        {"number": 2},
        session=bad.session,
        depends_on=[bad.id, rescue.id],
        depends_any=True,
    )
    done, tasks = anpd.wait_tasks([bad.id, rescue.id, either.id], timeout=60)
    assert done
    assert [task.state for task in tasks] == ["failed", "completed", "completed"]
    slow = anpd.start_task(one.address, "agent.ticks", {"number": 100, "pause": 1})
    done, tasks = anpd.wait_tasks([slow.id, bad.id], any_of=True)
    assert done
    done, tasks = anpd.wait_tasks([slow.id], timeout=0.05)
    assert not done
    ended = caller.run("tasks", "wait", slow.id, "--timeout", "0.05")
    assert ended.code == 9
    done, tasks = anpd.wait_tasks([slow.id], states=["working"])
    assert done
    assert tasks[0].state == "working"
    anpd.cancel_task(slow.id)
    done, tasks = anpd.wait_tasks([slow.id])
    assert tasks[0].state == "canceled"
    after = (f"--after={bad.id}=failed,rejected", "agent.double", *DOUBLE)
    words = caller.ok("tasks", "start", *after, "--json").json()
    assert anpd.wait_tasks([words["id"]])[1][0].state == "completed"


@clause("A2A-20", "ENV-25")
def test_a_daemon_is_withdrawn_from_the_registry_when_it_stops(three: Three) -> None:
    caller, one, two = three
    words = ("call", caller.address, "registry.find", "-d", '{"capability": "double"}')
    found = one.ok(*words, "--json").json()["output"]["announcements"]
    assert [entry["did"] for entry in found] == [two.did]
    port = two.port
    two.stop()
    assert one.ok(*words, "--json").json()["output"]["announcements"] == []
    two.start(port=port)
