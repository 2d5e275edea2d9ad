"""The client of today's a2a-sdk, made to speak 1.0 or 0.3."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.client.card_resolver import A2ACardResolver
from a2a.types import a2a_pb2
from google.protobuf.json_format import MessageToDict, ParseDict

from tests.a2a.clients.steps import PUSH_TOKEN, PUSH_URL, Steps, is_refused, main


def data(skill: str, **arguments: Any) -> dict[str, Any]:
    return {"data": {"skill": skill, "arguments": arguments}}


def request(part: dict[str, Any], **more: Any) -> Any:
    message = {
        "messageId": str(uuid.uuid4()),
        "role": "ROLE_USER",
        "parts": [part],
        **more,
    }
    return ParseDict({"message": message}, a2a_pb2.SendMessageRequest())


async def sent(client: Any, *what: Any, **more: Any) -> list[dict[str, Any]]:
    found = client.send_message(request(*what, **more))
    return [MessageToDict(one) async for one in found]


def state(task: dict[str, Any]) -> str:
    return str(task["status"]["state"]).removeprefix("TASK_STATE_").lower()


class Client:
    """One form of the client."""

    def __init__(self, http: httpx.AsyncClient, card: Any, binding: str) -> None:
        def made(*, streaming: bool) -> Any:
            bindings = [binding]
            config = ClientConfig(
                httpx_client=http,
                streaming=streaming,
                supported_protocol_bindings=bindings,
            )
            return ClientFactory(config).create(card)

        self.plain, self.streaming = made(streaming=False), made(streaming=True)
        self.task = ""

    async def send(self) -> None:
        (answer,) = await sent(self.plain, data("twice.twice", number=21))
        self.task = answer["task"]["id"]
        assert state(answer["task"]) == "completed", answer
        part = answer["task"]["artifacts"][0]["parts"][0]
        assert part["data"] == {"twice": 42}, answer

    async def stream(self) -> None:
        events = await sent(self.streaming, data("story.story", topic="wire"))
        words = [
            part["text"]
            for one in events
            if "artifactUpdate" in one
            for part in one["artifactUpdate"]["artifact"]["parts"]
        ]
        assert "".join(words) == "Once upon a time: wire", events
        assert state(events[-1]["statusUpdate"]) == "completed", events

    async def ask(self) -> None:
        (asked,) = await sent(self.plain, data("order.order", item="tea"))
        task = asked["task"]
        assert state(task) == "input_required", task
        more = {"taskId": task["id"], "contextId": task["contextId"]}
        (answer,) = await sent(self.plain, {"text": "two"}, **more)
        assert state(answer["task"]) == "completed", answer
        part = answer["task"]["artifacts"][0]["parts"][0]
        assert part["data"] == {"item": "tea", "answer": "two"}, answer

    async def exact(self) -> None:
        (answer,) = await sent(self.plain, data("half.half", number=0.2))
        part = answer["task"]["artifacts"][0]["parts"][0]
        assert part["data"] == {"half": 0.1}, answer

    async def get(self) -> None:
        wanted = a2a_pb2.GetTaskRequest(id=self.task, history_length=1)
        found = MessageToDict(await self.plain.get_task(wanted))
        assert state(found) == "completed", found
        assert len(found["history"]) == 1, found

    async def list(self) -> None:
        page = await self.plain.list_tasks(a2a_pb2.ListTasksRequest(page_size=100))
        assert self.task in [one.id for one in page.tasks]

    async def cancel(self) -> None:
        events = self.streaming.send_message(request(data("slow.slow", seconds=60)))
        task = (await anext(events)).task.id
        wanted = a2a_pb2.CancelTaskRequest(id=task)
        found = MessageToDict(await self.plain.cancel_task(wanted))
        assert state(found) == "canceled", found
        last = [MessageToDict(one) async for one in events][-1]
        assert state(last["statusUpdate"]) == "canceled", last

    async def resubscribe(self) -> None:
        events = self.streaming.send_message(request(data("slow.slow", seconds=2)))
        task = (await anext(events)).task.id
        await events.aclose()
        found = self.streaming.subscribe(a2a_pb2.SubscribeToTaskRequest(id=task))
        kept = [MessageToDict(one) async for one in found]
        assert kept[0]["task"]["id"] == task, kept
        assert state(kept[-1]["statusUpdate"]) == "completed", kept

    async def push(self) -> None:
        (asked,) = await sent(self.plain, data("order.order", item="tea"))
        task = asked["task"]
        made = await self.plain.create_task_push_notification_config(
            a2a_pb2.TaskPushNotificationConfig(
                task_id=task["id"], id="mine", url=PUSH_URL, token=PUSH_TOKEN
            )
        )
        wanted = a2a_pb2.GetTaskPushNotificationConfigRequest(
            task_id=task["id"], id=made.id
        )
        kept = await self.plain.get_task_push_notification_config(wanted)
        assert (kept.id, kept.url) == ("mine", PUSH_URL), kept
        more = {"taskId": task["id"], "contextId": task["contextId"]}
        await sent(self.plain, {"text": "two"}, **more)

    async def unknown(self) -> None:
        await self.plain.get_task(a2a_pb2.GetTaskRequest(id="none"))

    async def errors(self) -> None:
        await is_refused(self.unknown, "TaskNotFoundError")


async def run(steps: Steps, url: str, token: str, form: str) -> None:
    """Try everything in one form: `1.0`, `0.3` or `1.0 HTTP+JSON`."""
    version, _, binding = form.partition(" ")
    binding = binding or "JSONRPC"
    head = {"Authorization": f"Bearer {token}"}
    async with (
        httpx.AsyncClient(trust_env=False, timeout=30, headers=head) as http,
        httpx.AsyncClient(trust_env=False, timeout=30) as stranger,
    ):
        card: Any = None

        async def find_card() -> None:
            nonlocal card
            card = await A2ACardResolver(http, url).get_agent_card()
            assert {one.id for one in card.skills} >= {"twice.twice", "story.story"}
            kept = [
                one
                for one in card.supported_interfaces
                if (one.protocol_version, one.protocol_binding) == (version, binding)
            ]
            del card.supported_interfaces[:]
            card.supported_interfaces.extend(kept)

        await steps.take("card", find_card)
        client = Client(http, card, binding)
        await steps.take("send", client.send)
        await steps.take("stream", client.stream)
        await steps.take("ask back", client.ask)
        await steps.take("get", client.get)
        if version == "1.0":
            await steps.take("list", client.list)
        else:
            steps.without("list", "0.3 has no list")
        await steps.take("cancel", client.cancel)
        await steps.take("resubscribe", client.resubscribe)
        await steps.take("own errors", client.errors)
        await steps.take("0.1", client.exact)
        steps.without("2^53 + 1", "it reads JSON as protobuf, in doubles")

        other = Client(stranger, card, binding)
        await steps.take("no token", lambda: is_refused(other.send, "401"))
        await steps.take("push", client.push)


if __name__ == "__main__":
    main(run)
