"""Finding peers, waiting for tasks and registries, by the commands of real daemons."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.clauses import clause
from tests.e2e.daemons import Anpd
from tests.e2e.talks import AGENT
from tests.e2e.test_run_and_clients import client

INPUT = {"input": {"number": 4}}
DOUBLE = ("-d", json.dumps(INPUT["input"]))

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


@clause("ENV-20")
def test_an_event_is_told_to_all_by_a_command(three: Three) -> None:
    caller, one, two = three
    words = ("restocked", "-d", '{"sku": "A-1"}')
    told = caller.ok("peers", "tell", *words, "--json").json()["peers"]
    assert sorted((peer["peer"], peer["sent"]) for peer in told) == [
        ("one", True),
        ("two", True),
    ]
    only = caller.ok("peers", "tell", *words, "--to", "two").stdout
    assert only.split()[-3:] == ["two", "yes", "-"]
    for peer, count in ((one, 1), (two, 2)):
        heard = peer.ok("peers", "heard", "--json").json()["heard"]
        assert [entry["name"] for entry in heard] == ["restocked"] * count


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


@clause("GBZ-60", "GBZ-61", "GBZ-62")
def test_a_task_in_parts_outlives_a_kill_and_starts_no_part_twice(three: Three) -> None:
    caller, one, two = three
    anpd = client.Anpd(caller.home)
    book = {"peer": one.address, "capability": "agent.book", "input": {"seat": "1A"}}
    parts = [json.dumps(book), json.dumps({"find": "agent.double", **INPUT})]
    given = [word for part in parts for word in ("--part", part)]
    whole = caller.ok("tasks", "split", *given, "--timeout", "60").stdout.strip()
    seat = asked(caller)
    caller.kill()
    caller.start(port=caller.port)
    assert asked(caller) == seat
    caller.ok("tasks", "send", seat, "yes")
    watched = caller.ok("tasks", "watch", whole).stdout
    assert '{"number":8}' in watched.replace(" ", "")
    messages = caller.ok("tasks", "show", whole, "--json").json()["messages"]
    told = {one["metadata"]["subtask"]: one["metadata"] for one in messages}
    assert (len(messages), sorted(told)) == (2, [0, 1])
    assert told[0]["executor"] == one.did
    booked = one.ok("tasks", "list", "--json").json()["tasks"]
    assert [task["capability"] for task in booked].count("agent.book") == 1
    words = ("--candidate", "nobody", "--candidate", two.address, "agent.double")
    task = caller.ok("tasks", "start", *words, *DOUBLE).stdout.strip()
    assert caller.ok("tasks", "wait", task).stdout.split() == [task, "completed"]
    told_by = caller.ok("tasks", "show", task, "--json").json()["messages"][0]
    assert told_by["metadata"]["executor"] == two.did
    split = anpd.split_task([{"find": "agent.double", **INPUT}], wait="any", timeout=60)
    assert anpd.wait_tasks([split.id])[1][0].state == "completed"


def asked(caller: Anpd) -> str:
    """Return the task that waits for an answer."""
    while True:
        tasks = caller.ok("tasks", "list", "--open", "--json").json()["tasks"]
        for task in tasks:
            if task["state"] == "x-input-required":
                return str(task["id"])
