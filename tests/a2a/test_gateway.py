"""Two agents that know nothing of anpd talk through two daemons.

First each is told the other's URL; then each is behind a daemon of its own, and the
URL is the one of its daemon's gateway. Nothing else differs.
"""

from __future__ import annotations

import hashlib
import re
import time
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.clauses import clause
from tests.e2e.agents.running import running
from tests.e2e.daemons import Anpd
from tests.environments import side_python
from tests.waiting import PATIENCE

AGENTS = Path(__file__).parent / "agents"
VERSIONS = {"1.3": ("a2a", ""), "0.3": ("a2a-0.3", "_old")}
PHOTO = hashlib.sha256(bytes(range(255, -1, -1)) * 100).hexdigest()
NOTES = ("hello", "from here", "look", "which scale?", "1:50000", "draw")
MAP = "\n".join(NOTES).encode() + bytes(range(256)) * 40
ANSWERS = [
    ["note 1: hello"],
    [
        "note 2: from here",
        {"got": {"lat": 52.5, "stops": ["Köln", "北京"], "people": 3}},
    ],
    ["note 3: look", f"photo.bin {PHOTO}"],
    ["?", "You tell me: which one?"],
    ["note 5: 1:50000"],
    [
        "note 6: draw",
        ["map.bin", "image/x-map", len(MAP), hashlib.sha256(MAP).hexdigest()],
    ],
]


def agent(name: str, version: str, *args: str, **env: Any) -> Any:
    environment, ending = VERSIONS[version]
    script = str(AGENTS / f"{name}{ending}.py")
    return running(script, *args, python=side_python(environment), **env)


def told(answer: httpx.Response) -> Any:
    """Return what the traveller reports, in either version."""
    task = answer.json()["result"]
    task = task.get("task", task)
    assert "artifacts" in task, task
    (part,) = task["artifacts"][0]["parts"]
    return part["data"]["answers"]


def ask(url: str, version: str, *parts: dict[str, Any], **headers: str) -> Any:
    """Have the traveller talk; return its report."""
    message: dict[str, Any] = {"messageId": str(uuid.uuid4()), "parts": list(parts)}
    if version == "0.3":
        for part in parts:
            part["kind"] = "data" if "data" in part else "text"
        message |= {"role": "user", "kind": "message"}
    else:
        message |= {"role": "ROLE_USER"}
        headers["A2A-Version"] = "1.0"
    method = "message/send" if version == "0.3" else "SendMessage"
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": message}}
    answer = httpx.post(url, json=body, headers=headers, timeout=90, trust_env=False)
    return told(answer)


def face_of(daemon: Anpd, name: str) -> str:
    """Return the URL of a face that `anpd up` printed."""
    limit = time.monotonic() + PATIENCE
    while not (found := re.search(rf"^{name} +(http\S+)$", daemon.log(), re.MULTILINE)):
        assert time.monotonic() < limit, daemon.log()
        time.sleep(0.05)
    return found[1]


@pytest.mark.parametrize("version", VERSIONS)
def test_they_talk_without_daemons(version: str) -> None:
    with (
        agent("surveyor", version) as surveyor,
        agent("traveller", version, surveyor.url) as traveller,
    ):
        assert ask(traveller.url, version, {"text": "go"}) == ANSWERS


@clause("A2A-5", "A2A-7", "A2A-12", "A2A-24")
@pytest.mark.parametrize(
    ("mine", "other"), [("1.3", "1.3"), ("0.3", "1.3"), ("1.3", "0.3"), ("0.3", "0.3")]
)
def test_they_talk_through_two_daemons(tmp_path: Path, mine: str, other: str) -> None:
    there = Anpd(tmp_path / "there", consensus__use="true")
    here = Anpd(tmp_path / "here", consensus__use="true", a2a__open="true")
    with agent("surveyor", other) as surveyor:
        more = ("--expose", "*", "--conversational", "survey")
        there.ok("attach", "a2a", surveyor.url, "--name", "surveyor", *more)
        given = here.ok("a2a", "tokens", "add", "traveller", "--gateway", "--json")
        with (
            there.up(),
            here.up("--a2a", "0", "--a2a-gateway", "0"),
        ):
            here.ok("peers", "add", "surveyor", there.address)
            peer = face_of(here, "gateway") + "surveyor"
            token = given.json()["token"]
            with agent("traveller", mine, peer, TOKEN=token) as traveller:
                here.ok(
                    *("attach", "a2a", traveller.url, "--name", "traveller"),
                    *("--expose", "*"),
                )
                call = {"skill": "traveller.plan", "arguments": {"text": "go"}}
                answers = ask(face_of(here, "a2a"), mine, {"data": call})
                assert answers == ANSWERS
                # One conversation on the wire, with a task for each of the five turns.
                tasks = there.ok("tasks", "list", "--json").json()["tasks"]
                assert len(tasks) == 5
                assert len({one["session"] for one in tasks}) == 1


@clause("A2A-12")
@pytest.mark.parametrize("version", VERSIONS)
def test_the_agent_knows_the_conversation_after_a_restart(
    tmp_path: Path, version: str
) -> None:
    there = Anpd(tmp_path / "there", consensus__use="true")
    here = Anpd(tmp_path / "here", consensus__use="true")
    with agent("surveyor", version) as surveyor, here.up():
        more = ("--expose", "*", "--conversational", "survey")
        there.ok("attach", "a2a", surveyor.url, "--name", "surveyor", *more)

        def said(*words: str) -> tuple[str, str]:
            started = here.ok("tasks", "start", *words, "--json").json()
            ended = here.ok("tasks", "watch", started["id"])
            return started["session"], ended.stdout.strip()

        with there.up():
            peer = (there.address, "surveyor.survey")
            session, answer = said(*peer, "--text", "hello")
            assert answer == "note 1: hello"
            same = ("surveyor.survey", "--session", session)
            assert said(*same, "--text", "again")[1] == "note 2: again"
            port = there.port
        with there.up(port=port):
            assert said(*same, "--text", "and again")[1] == "note 3: and again"
            # Another session is another conversation.
            assert said(*peer, "--text", "hello")[1] == "note 1: hello"
