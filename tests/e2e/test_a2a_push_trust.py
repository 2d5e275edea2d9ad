"""Trust in push notifications: their signatures, and callers that lose their token."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx

from anp.sidecar.a2a.door.callers import A2aCaller
from anp.sidecar.a2a.door.tokens import token_book
from tests.clauses import clause
from tests.e2e.push_receiver import receiver
from tests.e2e.test_a2a_face import data
from tests.e2e.test_a2a_push import TOKEN, completed, face, rpc, send


@clause("A2A-25", "A2A-3")
async def test_a_receiver_tells_what_the_face_signed_from_all_else(
    tmp_path: Path,
) -> None:
    async with face(tmp_path) as (url, _), receiver(TOKEN) as at:
        await at.trust(url)
        await send(
            url,
            "1.0",
            data("twice.twice", number=1),
            {"url": at.url, "token": TOKEN},
        )
        await completed(at)
        assert at.problems == []
        number = len(at.came)
        for headers, _ in at.requests:
            # A receiver that has no credentials of its own finds it here, too.
            signed = headers["x-a2a-notification-signature"]
            assert headers["authorization"] == f"Bearer {signed}"
        headers, body = at.requests[-1]
        of_us = {name: headers[name] for name in headers if name.startswith("x-a2a")}

        async def again(**more: Any) -> None:
            sent = {"headers": of_us, "content": body, **more}
            async with httpx.AsyncClient(trust_env=False) as http:
                assert (await http.post(at.url, **sent)).status_code == 401

        await again()
        await again(content=body.replace(b"COMPLETED", b"FAILED"))
        await again(headers={**of_us, "x-a2a-notification-token": "other"})
        await again(headers={"x-a2a-notification-token": TOKEN})
        at.later = 301
        await again()
        assert at.problems == [
            "seen before",
            "another body",
            "another token",
            "KeyError",
            "too old",
        ]
        assert len(at.came) == number


@clause("A2A-3", "A2A-25")
async def test_with_a_token_end_its_addresses_and_streams(tmp_path: Path) -> None:
    async with face(tmp_path, is_open=False) as (url, house), receiver() as at:
        book = token_book(house.provider.home)
        for name in ("ann", "bob"):
            book.add(A2aCaller(name=name), f"of {name}")
        heads = {"A2A-Version": "1.0", "Authorization": "Bearer of ann"}
        order = {
            "messageId": "m",
            "role": "ROLE_USER",
            "parts": [data("order.order", item="tea")],
        }
        made = await rpc(url, "SendMessage", {"message": order}, token="of ann")
        task = made["result"]["task"]["id"]
        config = {"taskId": task, "url": at.url}
        await rpc(url, "CreateTaskPushNotificationConfig", config, token="of ann")
        sessions = house.provider.tasks.sessions
        known = await sessions.task(task)
        assert known is not None
        slow = {**order, "messageId": "s", "parts": [data("slow.slow", seconds=60)]}
        body = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage"}
        events = []
        async with (
            httpx.AsyncClient(trust_env=False, timeout=30, headers=heads) as http,
            http.stream(
                "POST", url, json={**body, "params": {"message": slow}}
            ) as stream,
        ):
            async for line in stream.aiter_lines():
                events.append(line)
                book.revoke("ann")
                # Another token under her name is another one.
                book.add(A2aCaller(name="ann"), "new")
        assert events
        assert "COMPLETED" not in str(events)

        async with asyncio.timeout(10):
            # Nobody tells the owner of it.
            while (await sessions.conversation(known.log)).pushes:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        # Who was let in and is revoked meanwhile gets no answer.
        short = {**slow, "messageId": "b", "parts": [data("slow.slow", seconds=0.5)]}
        waiting = asyncio.create_task(
            rpc(url, "SendMessage", {"message": short}, token="of bob")
        )
        async with asyncio.timeout(10):
            # Nobody tells the owner of it.
            while len(await sessions.tasks()) < 3:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        book.revoke("bob")
        assert "was revoked" in (await waiting)["error"]
        more = {**order, "messageId": "n", "taskId": task, "parts": [{"text": "two"}]}
        ended = await rpc(url, "SendMessage", {"message": more}, token="new")
        assert ended["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
        assert at.came == []
