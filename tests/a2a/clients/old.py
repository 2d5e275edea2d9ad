"""The client of a2a-sdk 0.3, which speaks 0.3 only (`make a2a-0.3-env`)."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import (
    DataPart,
    GetTaskPushNotificationConfigParams,
    Message,
    Part,
    PushNotificationConfig,
    Role,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TextPart,
)

from tests.a2a.clients.steps import PUSH_TOKEN, PUSH_URL, Steps, is_refused, main

EXACT = 9007199254740993


def data(skill: str, **arguments: Any) -> DataPart:
    return DataPart(data={"skill": skill, "arguments": arguments})


def message(part: Any, **more: Any) -> Message:
    return Message(
        message_id=str(uuid.uuid4()), role=Role.user, parts=[Part(root=part)], **more
    )


class Client:
    """The client, with and without streams."""

    def __init__(self, http: httpx.AsyncClient, card: Any) -> None:
        def made(*, streaming: bool) -> Any:
            config = ClientConfig(httpx_client=http, streaming=streaming)
            return ClientFactory(config).create(card)

        self.plain, self.streaming = made(streaming=False), made(streaming=True)
        self.task = ""

    async def answer(self, part: Any, **more: Any) -> Any:
        found = [one async for one in self.plain.send_message(message(part, **more))]
        ((task, update),) = found
        assert update is None
        return task

    async def send(self) -> None:
        task = await self.answer(data("twice.twice", number=21))
        self.task = task.id
        assert task.status.state == "completed", task
        assert task.artifacts[0].parts[0].root.data == {"twice": 42}, task

    async def large(self) -> None:
        task = await self.answer(data("twice.twice", number=EXACT))
        assert task.artifacts[0].parts[0].root.data == {"twice": 2 * EXACT}, task

    async def exact(self) -> None:
        task = await self.answer(data("half.half", number=0.2))
        assert task.artifacts[0].parts[0].root.data == {"half": 0.1}, task

    async def stream(self) -> None:
        sent = message(data("story.story", topic="wire"))
        events = [one async for one in self.streaming.send_message(sent)]
        task, update = events[-1]
        words = [part.root.text for part in task.artifacts[0].parts]
        assert "".join(words) == "Once upon a time: wire", task
        assert (update.status.state, update.final) == ("completed", True), update

    async def ask(self) -> None:
        task = await self.answer(data("order.order", item="tea"))
        assert task.status.state == "input-required", task
        more = {"task_id": task.id, "context_id": task.context_id}
        task = await self.answer(TextPart(text="two"), **more)
        assert task.status.state == "completed", task
        found = task.artifacts[0].parts[0].root.data
        assert found == {"item": "tea", "answer": "two"}, task

    async def get(self) -> None:
        wanted = TaskQueryParams(id=self.task, history_length=1)
        task = await self.plain.get_task(wanted)
        assert (task.status.state, len(task.history)) == ("completed", 1), task

    async def cancel(self) -> None:
        sent = message(data("slow.slow", seconds=60))
        events = self.streaming.send_message(sent)
        task, _ = await anext(events)
        found = await self.plain.cancel_task(TaskIdParams(id=task.id))
        assert found.status.state == "canceled", found
        *_, (last, _) = [one async for one in events]
        assert last.status.state == "canceled", last

    async def resubscribe(self) -> None:
        sent = message(data("slow.slow", seconds=2))
        events = self.streaming.send_message(sent)
        task, _ = await anext(events)
        await events.aclose()
        again = self.streaming.resubscribe(TaskIdParams(id=task.id))
        *_, (last, _) = [one async for one in again]
        assert last.status.state == "completed", last

    async def push(self) -> None:
        task = await self.answer(data("order.order", item="tea"))
        config = PushNotificationConfig(id="mine", url=PUSH_URL, token=PUSH_TOKEN)
        await self.plain.set_task_callback(
            TaskPushNotificationConfig(task_id=task.id, push_notification_config=config)
        )
        kept = await self.plain.get_task_callback(
            GetTaskPushNotificationConfigParams(
                id=task.id, push_notification_config_id="mine"
            )
        )
        assert kept.push_notification_config.url == PUSH_URL, kept
        more = {"task_id": task.id, "context_id": task.context_id}
        await self.answer(TextPart(text="two"), **more)

    async def unknown(self) -> None:
        await self.plain.get_task(TaskQueryParams(id="none"))

    async def errors(self) -> None:
        await is_refused(self.unknown, "-32001")


async def run(steps: Steps, url: str, token: str, form: str) -> None:
    """Try everything; there is one form."""
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

        await steps.take("card", find_card)
        client = Client(http, card)
        await steps.take("send", client.send)
        await steps.take("stream", client.stream)
        await steps.take("ask back", client.ask)
        await steps.take("get", client.get)
        steps.without("list", "0.3 has no list")
        await steps.take("cancel", client.cancel)
        await steps.take("resubscribe", client.resubscribe)
        await steps.take("own errors", client.errors)
        await steps.take("0.1", client.exact)
        await steps.take("2^53 + 1", client.large)

        other = Client(stranger, card)
        await steps.take("no token", lambda: is_refused(other.send, "401"))
        await steps.take("push", client.push)


if __name__ == "__main__":
    main(run)
