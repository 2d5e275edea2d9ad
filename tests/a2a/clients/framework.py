"""The A2A client of Strands Agents, a framework (`make a2a-framework-env`).

It knows agents that are talked to: text in, text out, one turn after the other.
"""

from __future__ import annotations

import httpx
from a2a.client import ClientConfig
from strands.agent.a2a_agent import A2AAgent

from tests.a2a.clients.steps import Steps, is_refused, main

ONE_TURN = "it sends text and reads a stream"


async def run(steps: Steps, url: str, token: str, form: str) -> None:
    """Try what the framework has; there is one form."""
    head = {"Authorization": f"Bearer {token}"}
    async with (
        httpx.AsyncClient(trust_env=False, timeout=30, headers=head) as http,
        httpx.AsyncClient(trust_env=False, timeout=30) as stranger,
    ):
        agent = A2AAgent(url, client_config=ClientConfig(httpx_client=http))

        async def card() -> None:
            found = await agent.get_agent_card()
            assert (agent.name, found.url) == ("shop", url), found

        async def send() -> None:
            result = await agent.invoke_async("good evening")
            assert result.message["content"] == [{"text": "You said: good evening"}]
            assert result.stop_reason == "end_turn", result

        async def stream() -> None:
            events = [one async for one in agent.stream_async("good night")]
            assert len(events) > 2, events
            said = events[-1]["result"].message["content"]
            assert said == [{"text": "You said: good night"}], events

        other = A2AAgent(url, client_config=ClientConfig(httpx_client=stranger))

        async def asked() -> None:
            await other.invoke_async("good evening")

        await steps.take("card", card)
        await steps.take("send", send)
        await steps.take("stream", stream)
        for method in ("ask back", "get", "list", "cancel", "resubscribe"):
            steps.without(method, ONE_TURN)
        for method in ("own errors", "0.1", "2^53 + 1"):
            steps.without(method, ONE_TURN)
        await steps.take("no token", lambda: is_refused(asked, "401"))
        steps.without("push", ONE_TURN)


if __name__ == "__main__":
    main(run)
