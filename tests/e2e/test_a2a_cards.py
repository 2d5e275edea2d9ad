"""Cards of the A2A face, one agent per attachment, modes and signed tokens."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.types import a2a_pb2
from a2a.utils.errors import TaskNotFoundError

from anp.protocols.a2a.words import INTENT_URI
from anp.sidecar.a2a.callers import A2aCaller
from anp.sidecar.a2a.tokens import token_book
from anp.sidecar.agreement.rulings import Decision
from anp.sidecar.home.home import Home
from anp.sidecar.process.a2a_face import serve_a2a
from tests.anp.sidecar.a2a.test_issuer import AUDIENCE, ISSUER, public, token
from tests.anp.sidecar.attachments.web import answer, attached, serving
from tests.clauses import clause
from tests.e2e.house import house_in
from tests.e2e.test_a2a_face import (
    CALCULATE,
    STREAM,
    anpd,
    client_of,
    data,
    face_in,
    message,
    sent,
)

NEW = {"A2A-Version": "1.0"}


@asynccontextmanager
async def guarded_face(
    folder: Path, more: dict[str, str] | None = None, **settings: Any
) -> AsyncIterator[tuple[str, dict[str, dict[str, str]]]]:
    """Give a face with two callers, Ann and Bob, who may use only one capability."""
    settings["a2a__listen"] = "127.0.0.1:0"
    async with house_in(folder, more=more or {}, **settings) as house:
        book = token_book(house.provider.home)
        book.add(A2aCaller(name="ann"), "token-of-ann")
        book.add(A2aCaller(name="bob", expose=("calc.calc",)), "token-of-bob")
        async with serve_a2a(house.provider) as url:
            assert url is not None
            yield url, {name: bearer(f"token-of-{name}") for name in ("ann", "bob")}


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


@asynccontextmanager
async def browser() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False, timeout=30) as http:
        yield http


def called(skill: str, modes: list[str] | None = None, **arguments: Any) -> Any:
    config = {} if modes is None else {"acceptedOutputModes": modes}
    part = data(skill, **arguments)
    said = {"messageId": f"m{id(part)}", "role": "ROLE_USER", "parts": [part]}
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "SendMessage",
        "params": {"message": said, "configuration": config},
    }


@clause("A2A-1", "A2A-8", "A2A-10")
@pytest.mark.parametrize(
    ("version", "binding"),
    [("0.3", "JSONRPC"), ("1.0", "JSONRPC"), ("1.0", "HTTP+JSON")],
)
async def test_each_attachment_is_an_agent_of_its_own(
    tmp_path: Path, version: str, binding: str
) -> None:
    async with face_in(tmp_path, story=STREAM, ai_calculate=CALCULATE) as url:
        mine = f"{url}/agents/ai_calculate"
        async with browser() as http:
            card = (await http.get(f"{mine}/.well-known/agent-card.json")).json()
            other = await http.get(f"{url}/agents/none/.well-known/agent-card.json")
            lost = await http.post(f"{url}/agents/none", json={}, headers=NEW)
        assert (other.status_code, lost.status_code) == (404, 404)
        assert card["url"] == mine
        assert [one["id"] for one in card["skills"]] == ["ai_calculate.ai_calculate"]
        shown = card["capabilities"]["extensions"][0]["params"]["skills"]
        assert [one["id"] for one in shown] == ["ai_calculate.ai_calculate"]
        async with (
            client_of(mine, version, streaming=False, binding=binding) as client,
            client_of(f"{url}/agents/story", version, streaming=False) as story,
        ):
            (answer,) = await sent(
                client, message(data("ai_calculate.ai_calculate", num1=1, num2=2))
            )
            task = answer["task"]
            assert task["artifacts"][0]["parts"][0]["data"] == {"sum": 3}
            (refused,) = await sent(client, message(data("story.story", topic="tea")))
            assert refused["task"]["status"]["state"] == "TASK_STATE_REJECTED"
            # In words, the other's skill would have been the only one for a text.
            (asked,) = await sent(client, message({"text": "tea"}))
            assert asked["task"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
            words = asked["task"]["status"]["message"]["parts"][0]["text"]
            assert "story" not in words
            wanted = a2a_pb2.GetTaskRequest(id=task["id"])
            assert (await client.get_task(wanted)).id == task["id"]
            with pytest.raises(TaskNotFoundError):
                await story.get_task(wanted)
            if version == "1.0":
                found = await story.list_tasks(a2a_pb2.ListTasksRequest())
                assert found.total_size == 0


@clause("A2A-8")
async def test_who_has_the_card_gets_no_second_copy(tmp_path: Path) -> None:
    async with guarded_face(tmp_path) as (url, who), browser() as http:
        place = f"{url}/.well-known/agent-card.json"
        first = await http.get(place)
        tag = first.headers["ETag"]
        assert first.headers["Cache-Control"] == "public, max-age=60"
        for known in (tag, f'"x", W/{tag}'):
            again = await http.get(place, headers={"If-None-Match": known})
            assert (again.status_code, again.content) == (304, b"")
            assert again.headers["ETag"] == tag
        other = await http.get(place, headers={"If-None-Match": '"x"'})
        assert other.status_code == 200
        mine = await http.get(place, headers={**who["bob"], "If-None-Match": tag})
        assert mine.status_code == 200
        assert mine.headers["Cache-Control"] == "private, max-age=60"
        assert mine.headers["Vary"] == "Authorization"


@clause("A2A-3", "A2A-8")
async def test_a_known_caller_has_a_card_of_its_own(tmp_path: Path) -> None:
    more = {"calc": "def calc(a: int) -> int:\n    return a\n"}
    async with guarded_face(tmp_path, more) as (url, who), browser() as http:
        card = (await http.get(f"{url}/.well-known/agent-card.json")).json()
        assert card["capabilities"]["extendedAgentCard"] is True
        assert card["supportsAuthenticatedExtendedCard"] is True
        assert len(card["skills"]) > 1
        old = {"method": "agent/getAuthenticatedExtendedCard"}
        new = {"method": "GetExtendedAgentCard"}
        for name, least in (("ann", 2), ("bob", 1)):
            for call, version in ((old, {}), (new, NEW)):
                asked = {"jsonrpc": "2.0", "id": 1, **call}
                heads = {**who[name], **version}
                answer = (await http.post(url, json=asked, headers=heads)).json()
                skills = [one["id"] for one in answer["result"]["skills"]]
                assert len(skills) >= least
                assert name == "ann" or skills == ["calc.calc"]
            rest = await http.get(f"{url}/extendedAgentCard", headers=who[name])
            assert rest.json() == answer["result"]
        refused = await http.get(f"{url}/extendedAgentCard")
        assert refused.status_code == 401
        assert refused.headers["WWW-Authenticate"] == "Bearer"


async def test_an_open_face_has_one_card_alone(tmp_path: Path) -> None:
    async with face_in(tmp_path) as url, browser() as http:
        card = (await http.get(f"{url}/.well-known/agent-card.json")).json()
        assert card["capabilities"]["extendedAgentCard"] is False
        asked = {"jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard"}
        answer = await http.post(url, json=asked, headers=NEW)
        assert answer.json()["error"]["code"] == -32007


@clause("INT-Q6")
async def test_an_extension_that_is_asked_for_is_echoed(tmp_path: Path) -> None:
    async with face_in(tmp_path) as url, browser() as http:
        for name in ("A2A-Extensions", "X-A2A-Extensions"):
            asked = {name: f"https://other.example/e, {INTENT_URI}", **NEW}
            call = called("twice.twice", number=2)
            answer = await http.post(url, json=call, headers=asked)
            assert answer.headers[name] == INTENT_URI
        other = {"A2A-Extensions": "https://other.example/e", **NEW}
        answer = await http.post(
            url, json=called("twice.twice", number=2), headers=other
        )
        assert "A2A-Extensions" not in answer.headers


@clause("A2A-5", "A2A-19")
async def test_an_answer_that_the_client_does_not_take_is_refused_before_it_runs(
    tmp_path: Path,
) -> None:
    async with face_in(tmp_path) as url, browser() as http:

        async def ask(modes: list[str], path: str = "") -> Any:
            call = called("twice.twice", modes, number=21)
            body = call["params"] if path else call
            return (await http.post(f"{url}{path}", json=body, headers=NEW)).json()

        refused = await ask(["image/png", "audio/*"])
        assert refused["error"]["code"] == -32005
        assert "application/json" in refused["error"]["message"]
        rest = await ask(["image/png"], "/message:send")
        assert rest["error"]["code"] == 415
        listed = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}
        found = (await http.post(url, json=listed, headers=NEW)).json()
        assert found["result"]["totalSize"] == 0
        call = called("twice.twice", number=1)
        picture = {"raw": "AAAA", "mediaType": "image/png"}
        call["params"]["message"]["parts"].append(picture)
        refused = (await http.post(url, json=call, headers=NEW)).json()
        assert refused["error"]["code"] == -32005
        assert "twice.twice takes application/json" in refused["error"]["message"]
        told = await ask(["text/plain"])
        (part,) = told["result"]["task"]["artifacts"][0]["parts"]
        assert json.loads(part["text"]) == {"twice": 42}
        told = await ask(["application/json"])
        (part,) = told["result"]["task"]["artifacts"][0]["parts"]
        assert part["data"] == {"twice": 42}


@clause("A2A-3", "A2A-9", "A2A-21")
async def test_callers_come_with_tokens_of_a_trusted_issuer(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps({"keys": [public("rsa2048"), public("ec")]}))
    settings = {
        "a2a__issuer": ISSUER,
        "a2a__audience": AUDIENCE,
        "a2a__keys": str(keys),
        "a2a__scopes": {"double": ("twice.twice",), "calc": ("calc",)},
        "a2a__token_url": "https://login.example/token",
    }
    more = {"calc": "def calc(a: int) -> int:\n    return a\n"}
    async with (
        guarded_face(tmp_path, more, **settings) as (url, who),
        browser() as http,
    ):

        async def ask(text: str, skill: str, **arguments: Any) -> httpx.Response:
            heads = {**NEW, **bearer(text)}
            return await http.post(url, json=called(skill, **arguments), headers=heads)

        mine = token("ec", "ES256", scope="double")
        found = (await ask(mine, "twice.twice", number=4)).json()["result"]["task"]
        assert found["status"]["state"] == "TASK_STATE_COMPLETED"
        # Another scope opens another skill, for the same caller.
        refused = (await ask(mine, "calc.calc", a=4)).json()["result"]["task"]
        assert refused["status"]["state"] == "TASK_STATE_REJECTED"
        other = token("ec", "ES256", scope="calc")
        done = (await ask(other, "calc.calc", a=4)).json()["result"]["task"]
        assert done["status"]["state"] == "TASK_STATE_COMPLETED"
        get = {"jsonrpc": "2.0", "id": 1, "method": "GetTask"}
        get["params"] = {"id": found["id"]}
        for text, is_known in (
            (other, True),
            (token(sub="eve", scope="double"), False),
            ("token-of-ann", False),
        ):
            answer = await http.post(url, json=get, headers={**NEW, **bearer(text)})
            assert ("result" in answer.json()) is is_known
        for text, status, error in (
            (token(exp=1), 401, "invalid_token"),
            (token(aud="else"), 401, "invalid_token"),
            (token("rsa2048b"), 401, "invalid_token"),
            (token(scope="none"), 403, "insufficient_scope"),
        ):
            answer = await ask(text, "twice.twice", number=4)
            assert answer.status_code == status
            assert error in answer.headers["WWW-Authenticate"]
        card = (await http.get(f"{url}/.well-known/agent-card.json")).json()
        flows = card["securitySchemes"]["oauth2"]["flows"]
        assert flows["clientCredentials"]["scopes"].keys() == {"double", "calc"}
        # Our own tokens count beside them.
        heads = {**NEW, **who["ann"]}
        call = called("twice.twice", number=1)
        assert "result" in (await http.post(url, json=call, headers=heads)).json()


@clause("INT-3", "INT-5", "INT-6", "INT-12")
async def test_another_daemon_calls_the_face_by_intents(tmp_path: Path) -> None:
    async with (
        face_in(tmp_path, ai_calculate=CALCULATE) as url,
        attached("a2a", url) as my,
    ):
        name = "my.ai_calculate.ai_calculate"
        found = next(one for one in my.capabilities() if one.name == name)
        assert isinstance(found.input_schema, dict)
        assert found.input_schema["required"] == ["num1", "num2"]
        assert found.tags == ("ai_calculate",)
        numbers = {"num1": 101, "num2": 102}
        told = await my.call(name, numbers, caller="did:key:zX", timeout=10)
        assert told["data"] == [{"sum": 203}]


async def test_keys_at_an_address_that_must_not_be_fetched_let_nobody_in(
    tmp_path: Path,
) -> None:
    settings: dict[str, Any] = {
        "a2a__issuer": ISSUER,
        "a2a__audience": AUDIENCE,
        "a2a__keys": "https://127.0.0.1:9/keys.json",
    }
    async with guarded_face(tmp_path, **settings) as (url, _), browser() as http:
        answer = await http.post(url, json={}, headers=bearer(token()))
        assert answer.status_code == 401


async def test_a_caller_that_sends_too_much_waits(tmp_path: Path) -> None:
    async with (
        guarded_face(tmp_path, a2a__max_requests=1) as (url, who),
        browser() as http,
    ):
        get = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "x"}}
        found = [
            await http.post(url, json=get, headers={**NEW, **who["ann"]})
            for _ in range(3)
        ]
        assert [one.status_code for one in found] == [200, 200, 429]
        assert found[-1].headers["Retry-After"] == "1"
        other = await http.post(url, json=get, headers={**NEW, **who["bob"]})
        assert other.status_code == 200


async def test_a_caller_has_so_many_tasks_open_at_most(tmp_path: Path) -> None:
    more = {"wait": "import time\n\n\ndef wait() -> None:\n    time.sleep(20)\n"}
    async with (
        guarded_face(tmp_path, more, interaction__max_tasks=2) as (url, who),
        browser() as http,
    ):
        found = []
        for number in range(3):
            call = called("wait.wait")
            call["params"]["message"]["messageId"] = f"wait-{number}"
            call["params"]["configuration"]["returnImmediately"] = True
            heads = {**NEW, **who["ann"]}
            found.append((await http.post(url, json=call, headers=heads)).json())
        assert [one.get("error", {}).get("code") for one in found] == [
            None,
            None,
            -32029,
        ]
        rest = await http.post(
            f"{url}/message:send", json=call["params"], headers={**NEW, **who["ann"]}
        )
        assert rest.status_code == 429


@clause("A2A-3", "A2A-4")
async def test_the_owner_is_asked_about_a_caller_by_name(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "a2a__listen": "127.0.0.1:0",
        "a2a__open": False,
        "negotiation__approve": "first-use",
    }
    async with house_in(tmp_path, **settings) as house:
        daemon = house.provider
        token_book(daemon.home).add(A2aCaller(name="ann"), "token-of-ann")
        async with serve_a2a(daemon) as url, browser() as http:
            assert url is not None
            desk = daemon.agreer.desk
            waits, tell = asyncio.Event(), desk.on_event

            def told(what: str, about: dict[str, Any]) -> None:
                tell(what, about)
                if what == "negotiation.waiting":
                    waits.set()

            desk.on_event = told
            heads = {**NEW, **bearer("token-of-ann")}
            call = called("twice.twice", number=4)
            answer = asyncio.create_task(http.post(url, json=call, headers=heads))
            await waits.wait()
            (question,) = await desk.negotiations(open_only=True)
            assert question.reason == "ann (A2A) wants to call twice.twice by a2a"
            assert question.peer_did == "local:ann"
            await desk.decide(question.id, Decision("accept"))
            task = (await answer).json()["result"]["task"]
            assert task["status"]["state"] == "TASK_STATE_COMPLETED"


@clause("A2A-3")
async def test_keys_are_fetched_from_the_issuer_and_rotate(tmp_path: Path) -> None:
    keys = [public("rsa2048")]
    settings: dict[str, Any] = {
        "a2a__issuer": ISSUER,
        "a2a__audience": AUDIENCE,
        "fetch__allow": ["127.0.0.0/8"],
        "fetch__allow_http_loopback": True,
    }
    async with serving(lambda _: answer({"keys": keys})) as web:
        settings["a2a__keys"] = f"{web.url}/keys.json"
        async with guarded_face(tmp_path, **settings) as (url, _), browser() as http:

            async def status(text: str) -> int:
                call = called("twice.twice", number=4)
                heads = {**NEW, **bearer(text)}
                return (await http.post(url, json=call, headers=heads)).status_code

            assert await status(token()) == 200
            assert await status(token()) == 200
            assert await status(token("ec", "ES256")) == 401
            # Who invents keys makes us ask no more often.
            assert [one.target for one in web.asked] == ["/keys.json"]


def test_tokens_have_an_end_and_a_last_use(tmp_path: Path) -> None:
    line = ["--home", str(tmp_path), "a2a", "tokens"]
    made = json.loads(anpd(*line, "add", "ann", "--days", "2", "--json"))
    assert made["expires"] == pytest.approx(time.time() + 2 * 86_400, abs=60)
    anpd(*line, "add", "bob")
    book = token_book(Home(tmp_path))
    ann = book.find({"authorization": f"Bearer {made['token']}"})
    assert ann is not None
    book.note_use(ann.name)
    book.write_uses()
    listed = json.loads(anpd(*line, "list", "--json"))["callers"]
    assert [one["name"] for one in listed] == ["ann", "bob"]
    assert listed[0]["expires"] == made["expires"]
    assert listed[0]["last_used"] == pytest.approx(time.time(), abs=60)
    assert (listed[1]["expires"], listed[1]["last_used"]) == (None, None)
    shown = anpd(*line, "list")
    assert "EXPIRES" in shown
    assert "never" in shown
