"""The A2A client of the Agent Development Kit, a framework (`make a2a-adk-env`).

It knows remote agents that are talked to: an answer is the events of one run.
"""

from __future__ import annotations

import uuid

import httpx
from a2a.client import ClientConfig, ClientFactory
from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

from tests.a2a.clients.steps import Steps, is_refused, main

ONE_TURN = "it sends text and shows the events of an answer"

CARD = "/.well-known/agent-card.json"


class Client:
    """A remote agent, with and without streams."""

    def __init__(self, http: httpx.AsyncClient, url: str, *, streaming: bool) -> None:
        config = ClientConfig(httpx_client=http, streaming=streaming)
        self.agent = RemoteA2aAgent(
            "shop",
            f"{url}{CARD}",
            httpx_client=http,
            a2a_client_factory=ClientFactory(config),
        )

    async def said(self, text: str) -> list[str]:
        """Return the texts of the events that answer one; what fails is raised."""
        sessions = InMemorySessionService()
        name = str(uuid.uuid4())
        await sessions.create_session(app_name="a", user_id="u", session_id=name)
        runner = Runner(agent=self.agent, app_name="a", session_service=sessions)
        content = types.Content(role="user", parts=[types.Part(text=text)])
        found = []
        async for event in runner.run_async(
            user_id="u", session_id=name, new_message=content
        ):
            if event.error_message:
                raise RuntimeError(event.error_message)
            parts = event.content.parts if event.content else None
            found += [part.text for part in parts or () if part.text]
        return found


async def run(steps: Steps, url: str, token: str, form: str) -> None:
    """Try what the framework has; there is one form."""
    head = {"Authorization": f"Bearer {token}"}
    async with (
        httpx.AsyncClient(trust_env=False, timeout=30, headers=head) as http,
        httpx.AsyncClient(trust_env=False, timeout=30) as stranger,
    ):
        plain = Client(http, url, streaming=False)
        streaming = Client(http, url, streaming=True)
        other = Client(stranger, url, streaming=False)

        async def send() -> None:
            said = await plain.said("good evening")
            assert said == ["You said: good evening"], said
            # It has read the card and taken the description.
            assert plain.agent.description, plain.agent

        async def stream() -> None:
            said = await streaming.said("good night")
            assert "You said: good night" in said, said

        async def asked() -> None:
            await other.said("good evening")

        await steps.take("send", send)
        steps.found = {"card": steps.found["send"], **steps.found}
        await steps.take("stream", stream)
        for method in ("ask back", "get", "list", "cancel", "resubscribe"):
            steps.without(method, ONE_TURN)
        for method in ("own errors", "0.1", "2^53 + 1"):
            steps.without(method, ONE_TURN)
        await steps.take("no token", lambda: is_refused(asked, "401"))
        steps.without("push", ONE_TURN)


if __name__ == "__main__":
    main(run)
