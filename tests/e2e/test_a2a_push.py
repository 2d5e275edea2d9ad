"""Push notifications of the A2A face, to receivers that are away, slow or hostile."""

from __future__ import annotations

import asyncio
import json
import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.compat.v0_3 import types as old
from a2a.types import a2a_pb2
from google.protobuf.json_format import ParseDict

from anp.identity.web.fetcher import Fetcher
from anp.sidecar.a2a import push
from anp.sidecar.process import a2a_face
from anp.sidecar.process.a2a_face import serve_a2a
from anp.sidecar.tasks.delivery import attempts
from tests.clauses import clause
from tests.e2e.daemons import Anpd
from tests.e2e.house import House, house_in
from tests.e2e.push_receiver import Receiver, receiver
from tests.e2e.test_a2a_face import ASK, SLOW, STREAM, client_of, data
from tests.waiting import until

LOOPBACK = {"fetch__allow": ["127.0.0.0/8"], "fetch__allow_http_loopback": True}
TOKEN = "of-this-task-alone"


@asynccontextmanager
async def face(
    folder: Path, *, is_open: bool = True, **more: Any
) -> AsyncIterator[tuple[str, House]]:
    flags: dict[str, Any] = {"a2a__listen": "127.0.0.1:0", "a2a__open": is_open}
    functions = {"story": STREAM, "order": ASK, "slow": SLOW}
    async with (
        house_in(folder, more=functions, **flags, **{**LOOPBACK, **more}) as house,
        serve_a2a(house.provider) as url,
    ):
        assert url is not None
        yield url, house


async def rpc(
    url: str, method: str, params: Any, *, version: str = "1.0", token: str = ""
) -> dict[str, Any]:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {"A2A-Version": version}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    async with httpx.AsyncClient(trust_env=False, timeout=30) as http:
        found: dict[str, Any] = (
            await http.post(url, json=body, headers=headers)
        ).json()
    return found


def target(at: Receiver, version: str, **more: Any) -> dict[str, Any]:
    schemes = {"schemes": ["Bearer"]} if version == "0.3" else {"scheme": "Bearer"}
    return {
        "url": at.url,
        "token": at.token,
        "authentication": {**schemes, "credentials": "of-the-receiver"},
        **more,
    }


async def send(
    url: str, version: str, skill: dict[str, Any], config: Any, **more: Any
) -> dict[str, Any]:
    is_old = version == "0.3"
    kind = "text" if "text" in skill else "data"
    part = {"kind": kind, **skill} if is_old else skill
    message = {
        "messageId": str(uuid.uuid4()),
        "role": "user" if is_old else "ROLE_USER",
        "parts": [part],
        **more,
    }
    name = "pushNotificationConfig" if is_old else "taskPushNotificationConfig"
    answer = await rpc(
        url,
        "message/send" if is_old else "SendMessage",
        {"message": message, "configuration": {name: config} if config else {}},
        version=version,
    )
    assert "result" in answer, answer
    found: dict[str, Any] = answer["result"] if is_old else answer["result"]["task"]
    return found


def state(sent: dict[str, Any]) -> str:
    """Return the state in what was pushed; empty for an artifact."""
    found = sent if "status" in sent else sent.get("statusUpdate", {})
    name: str = found.get("status", {}).get("state", "")
    return name.removeprefix("TASK_STATE_").lower()


def words(sent: dict[str, Any]) -> str:
    parts = sent.get("artifactUpdate", {}).get("artifact", {}).get("parts", [])
    return "".join(part["text"] for part in parts)


async def completed(at: Receiver) -> None:
    await until(lambda: bool(at.came) and state(at.came[-1]) == "completed")


async def letter_of(house: House, *, dead: bool = False) -> attempts.Letter:
    """Wait for the one letter that the owner sees."""
    outbox = house.provider.tasks.outbox
    async with asyncio.timeout(20):
        while True:
            for letter in await outbox.letters():
                if letter.dead or not dead:
                    return letter
            await asyncio.sleep(0.05)


@clause("A2A-25")
@pytest.mark.parametrize("version", ["0.3", "1.0"])
async def test_a_message_names_where_its_task_is_told(
    tmp_path: Path, version: str
) -> None:
    async with face(tmp_path) as (url, _), receiver(TOKEN) as at:
        await at.trust(url)
        skill = data("story.story", topic="wire")
        task = await send(url, version, skill, target(at, version))
        await completed(at)
        assert at.problems == []
        assert {one["authorization"] for one in at.heads} == {"Bearer of-the-receiver"}
        assert {one["x-a2a-notification-token"] for one in at.heads} == {TOKEN}
        kinds = {one["content-type"] for one in at.heads}
        states = [state(one) for one in at.came]
        if version == "0.3":
            assert kinds == {"application/json"}
            for one in at.came:
                assert old.Task.model_validate(one).id == task["id"]
            assert states[0] == "submitted"
            parts = [
                len(one.get("artifacts", [{}])[0].get("parts", "")) for one in at.came
            ]
            assert parts == sorted(parts)
            assert parts[-1] == 4
        else:
            assert kinds == {"application/a2a+json"}
            for one in at.came:
                ParseDict(one, a2a_pb2.StreamResponse())
            assert [one for one in states if one] == [
                "submitted",
                "working",
                "completed",
            ]
            assert "".join(map(words, at.came)) == "Once upon a time: wire"


@clause("A2A-25")
@pytest.mark.parametrize("version", ["0.3", "1.0"])
async def test_addresses_are_set_read_listed_and_deleted(
    tmp_path: Path, version: str
) -> None:
    async with (
        face(tmp_path) as (url, _),
        receiver(TOKEN) as at,
        receiver(TOKEN) as other,
        client_of(url, version, streaming=False) as client,
    ):
        task = await send(url, version, data("order.order", item="tea"), None)
        for name, one in (("one", at), ("two", other)):
            made = await client.create_task_push_notification_config(
                a2a_pb2.TaskPushNotificationConfig(
                    task_id=task["id"],
                    id=name,
                    url=one.url,
                    token=TOKEN,
                    authentication=a2a_pb2.AuthenticationInfo(
                        scheme="Bearer", credentials="secret-of-the-receiver"
                    ),
                )
            )
            assert (made.id, made.url) == (name, one.url)
            assert "secret" not in str(made)
        found = await client.get_task_push_notification_config(
            a2a_pb2.GetTaskPushNotificationConfigRequest(task_id=task["id"], id="two")
        )
        assert (found.url, found.task_id) == (other.url, task["id"])
        assert found.authentication.scheme == "Bearer"
        assert not found.authentication.credentials
        all_of_it = a2a_pb2.ListTaskPushNotificationConfigsRequest(task_id=task["id"])
        listed = await client.list_task_push_notification_configs(all_of_it)
        assert [one.id for one in listed.configs] == ["one", "two"]
        await client.delete_task_push_notification_config(
            a2a_pb2.DeleteTaskPushNotificationConfigRequest(
                task_id=task["id"], id="two"
            )
        )
        listed = await client.list_task_push_notification_configs(all_of_it)
        assert [one.id for one in listed.configs] == ["one"]
        answer = (
            {"kind": "text", "text": "two"} if version == "0.3" else {"text": "two"}
        )
        await send(url, version, answer, None, taskId=task["id"])
        await completed(at)
        # What was before it was set is not told, and who was taken out hears nothing.
        assert state(at.came[0]) == "working"
        assert other.came == []


@clause("A2A-25")
async def test_addresses_over_http_and_json(tmp_path: Path) -> None:
    async with face(tmp_path) as (url, _), receiver(TOKEN) as at:
        task = await send(url, "1.0", data("order.order", item="tea"), None)
        configs = f"{url}/tasks/{task['id']}/pushNotificationConfigs"
        async with httpx.AsyncClient(trust_env=False) as http:
            made = await http.post(configs, json={"id": "a", "url": at.url})
            assert made.json() == {"id": "a", "url": at.url, "taskId": task["id"]}
            assert (await http.get(f"{configs}/a")).json() == made.json()
            assert (await http.get(configs)).json()["configs"] == [made.json()]
            gone = await http.delete(f"{configs}/a")
            assert (gone.status_code, gone.json()) == (200, {})
            assert (await http.get(f"{configs}/a")).status_code == 404


@clause("A2A-25")
@pytest.mark.parametrize("version", ["0.3", "1.0"])
async def test_a_receiver_that_is_away_gets_everything_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setattr(attempts, "FIRST_WAIT", 0.05)
    monkeypatch.setattr(attempts, "MOST_WAIT", 0.2)
    await _away(tmp_path, version, seconds=2)


@pytest.mark.skipif("ANPD_MINUTE" not in os.environ, reason="make push-minute has it")
async def test_a_receiver_that_is_away_for_a_minute(tmp_path: Path) -> None:
    await _away(tmp_path, "1.0", seconds=60)


async def _away(folder: Path, version: str, *, seconds: float) -> None:
    async with face(folder, seconds=300) as (url, house), receiver(TOKEN) as at:
        await at.trust(url)
        await at.stop()
        skill = data("story.story", topic="wire")
        await send(url, version, skill, target(at, version))
        await asyncio.sleep(seconds)
        (letter,) = await house.provider.tasks.outbox.letters()
        assert (letter.address, letter.peer) == (at.url, "local:everybody")
        assert letter.attempts >= 4
        assert not letter.dead
        assert "cannot connect" in letter.problem
        await at.start()
        await completed(at)
        numbers = [
            index
            for one in at.came
            for index, name in enumerate(("submitted", "working", "completed"))
            if name == state(one)
        ]
        assert numbers == sorted(numbers)
        assert {*numbers} == {0, 1, 2}
        if version == "1.0":
            assert "".join(map(words, at.came)) == "Once upon a time: wire"
        assert await house.provider.tasks.outbox.letters() == []
        assert at.problems == []


@clause("A2A-25")
async def test_after_a_day_the_owner_sees_a_dead_letter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "FIRST_WAIT", 0.05)
    monkeypatch.setattr(attempts, "MOST_WAIT", 0.1)
    monkeypatch.setattr(attempts, "LIFETIME", 0.5)
    async with face(tmp_path) as (url, house), receiver(TOKEN) as at:
        at.status = 503
        skill = data("story.story", topic="wire")
        await send(url, "1.0", skill, target(at, "1.0"))
        outbox = house.provider.tasks.outbox

        letter = await letter_of(house, dead=True)
        assert "answers 503" in letter.problem
        at.status = 200
        outbox.retry()
        await completed(at)
        assert "".join(map(words, at.came)) == "Once upon a time: wire"
        assert await outbox.letters() == []


@clause("A2A-25", "A2A-6")
@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9/",
        "https://127.0.0.1/",
        "https://10.0.0.1/",
        "https://[::1]/",
        "https://169.254.169.254/latest/meta-data",
        "https://localhost/",
        "http://example.com/",
        "https://user:word@example.com/",
        "file:///etc/passwd",
    ],
)
async def test_inward_addresses_are_refused_when_they_are_set(
    tmp_path: Path, url: str
) -> None:
    none: dict[str, Any] = {"fetch__allow": [], "fetch__allow_http_loopback": False}
    async with face(tmp_path, **none) as (at, house):
        for version, method, name in (
            ("0.3", "message/send", "pushNotificationConfig"),
            ("1.0", "SendMessage", "taskPushNotificationConfig"),
        ):
            is_old = version == "0.3"
            part = data("twice.twice", number=1)
            message = {
                "messageId": "m",
                "role": "user" if is_old else "ROLE_USER",
                "parts": [{"kind": "data", **part} if is_old else part],
            }
            params = {"message": message, "configuration": {name: {"url": url}}}
            answer = await rpc(at, method, params, version=version)
            assert answer["error"]["code"] == -32602
            assert "url" in answer["error"]["message"]
        # Nothing was begun.
        assert await house.provider.tasks.sessions.tasks() == []


@clause("A2A-25")
async def test_a_name_that_turns_inward_later_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ["8.8.8.8"]

    async def resolve(host: str, port: int) -> list[str]:
        return found

    fetcher = Fetcher(resolve=resolve)
    monkeypatch.setattr(a2a_face, "make_fetcher", lambda config: fetcher)
    async with face(tmp_path) as (url, house), receiver() as at:
        task = await send(url, "1.0", data("order.order", item="tea"), None)
        config = {"taskId": task["id"], "url": f"https://push.example:{at.port}/"}
        answer = await rpc(url, "CreateTaskPushNotificationConfig", config)
        assert "result" in answer
        found[:] = ["127.0.0.1"]
        await send(url, "1.0", {"text": "two"}, None, taskId=task["id"])
        assert "on this machine" in (await letter_of(house)).problem
        assert at.came == []


@clause("A2A-25")
@pytest.mark.parametrize(
    "more",
    [
        b"location: /elsewhere\r\ncontent-length: 0\r\n\r\n",
        b"content-length: 99999999999\r\n\r\n" + b"x" * 100_000,
        b"a: b\r\n" * 100_000,
        b"\x00\xff garbage",
    ],
    ids=["redirect", "endless body", "endless head", "garbage"],
)
async def test_a_hostile_receiver_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: bytes
) -> None:
    monkeypatch.setattr(push, "DEADLINE", 1.0)
    async with face(tmp_path) as (url, house), receiver(TOKEN) as at:
        at.more, at.status = more, 302
        await send(url, "1.0", data("twice.twice", number=1), target(at, "1.0"))
        await letter_of(house)
        # Others are served meanwhile.
        task = await send(url, "1.0", data("twice.twice", number=4), None)
        assert state(task) == "completed"
        assert at.came == []


async def test_what_is_no_header_and_too_many_addresses_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push, "MAX_ADDRESSES", 12)
    async with face(tmp_path) as (url, _), receiver() as at:
        tasks = [
            await send(url, "1.0", data("order.order", item="tea"), None)
            for _ in range(2)
        ]

        async def answer(number: int, **more: Any) -> Any:
            config = {"taskId": tasks[number]["id"], "url": at.url, **more}
            return await rpc(url, "CreateTaskPushNotificationConfig", config)

        for wrong in (
            {"token": "a\r\nX-Evil: yes"},
            {"authentication": {"scheme": "Bea rer"}},
            {"authentication": {"scheme": "Bearer", "credentials": "a\nb"}},
        ):
            assert (await answer(0, **wrong))["error"]["code"] == -32602
        for number in range(10):
            assert "result" in await answer(0, id=str(number))
        assert "too many" in (await answer(0, id="x"))["error"]["message"]
        # One that is there may be replaced.
        assert "result" in await answer(0, id="9")
        for number in range(2):
            assert "result" in await answer(1, id=str(number))
        assert "at most 12" in (await answer(1, id="x"))["error"]["message"]


@clause("A2A-6")
async def test_nobody_sets_or_sees_addresses_of_anothers_task(tmp_path: Path) -> None:
    async with face(tmp_path, is_open=False) as (url, house), receiver() as at:
        home = house.provider.home.path
        tokens = {
            name: json.loads(
                Anpd(home).ok("a2a", "tokens", "add", name, "--json").stdout
            )["token"]
            for name in ("ann", "bob")
        }
        message = {
            "messageId": "m",
            "role": "ROLE_USER",
            "parts": [data("order.order", item="tea")],
        }
        sent = await rpc(url, "SendMessage", {"message": message}, token=tokens["ann"])
        config = {"taskId": sent["result"]["task"]["id"], "id": "a", "url": at.url}
        for method in ("Create", "Get", "Delete"):
            name = f"{method}TaskPushNotificationConfig"
            answer = await rpc(url, name, config, token=tokens["bob"])
            assert answer["error"]["code"] == -32001
            answer = await rpc(url, name, config, token=tokens["ann"])
            assert "result" in answer


@clause("A2A-25")
async def test_a_kill_loses_no_update(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    (folder / "story.py").write_text(STREAM)
    daemon = Anpd(tmp_path / "home", a2a__open="true")
    daemon.ok("attach", "python", "story", "--expose", "*", cwd=folder)
    (daemon.home / "anpd.toml").write_text(
        '[fetch]\nallow = ["127.0.0.0/8"]\nallow_http_loopback = true\n'
    )
    async with receiver(TOKEN) as at:
        await at.stop()
        await asyncio.to_thread(daemon.start, "--a2a", "0")
        await until(lambda: "a2a  " in daemon.log())
        url = daemon.log().partition("a2a  ")[2].split()[0]
        skill = data("story.story", topic="wire")
        task = await send(url, "1.0", skill, target(at, "1.0"))
        assert state(task) == "completed"
        await asyncio.to_thread(daemon.kill)
        home = b"".join(p.read_bytes() for p in daemon.home.rglob("*") if p.is_file())
        assert TOKEN.encode() not in home
        assert b"of-the-receiver" not in home
        await at.start()
        await asyncio.to_thread(daemon.start, "--a2a", "0")
        try:
            await completed(at)
            assert "".join(map(words, at.came)) == "Once upon a time: wire"
            assert "of-the-receiver" not in daemon.log()
            assert TOKEN not in daemon.log()
        finally:
            await asyncio.to_thread(daemon.stop)
