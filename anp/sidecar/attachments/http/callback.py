"""An agent that takes calls at a URL of its own (kind `callback`).

`POST {url}` with `{id, capability, input, caller: {did}, deadline}` is answered with
`{output}`, or with 4xx or 5xx and `{error}`, a text or `{code, message}`. An agent that
hands the task back answers `{state: "rejected", message}`. Without declared
capabilities `GET {url}` has to answer `{capabilities: [...]}`.

An answer of 202 means that updates follow, at the URL and with the token that the call
names. Answers to the agent's questions, and the end of a call for which nobody waits,
are posted to it as well: `{id, answer}` and `{id, cancel: true}`.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import logging
import math
import time
from binascii import Error as Base64Error
from functools import partial
from typing import Any

from anp.interaction.states import TaskState
from anp.sidecar.attachments.assignment import Assignment
from anp.sidecar.attachments.attachment import (
    AttachmentError,
    AttachmentLimits,
    HandedBack,
    ToolError,
)
from anp.sidecar.attachments.http.answers import HttpAnswer
from anp.sidecar.attachments.http.declared import as_tool, read_tool, wrap
from anp.sidecar.attachments.http.endpoint import CallContext, deadline_text
from anp.sidecar.attachments.http.remote import Service
from anp.sidecar.attachments.http.results import error_of
from anp.sidecar.attachments.http.updates import UpdateDesk
from anp.sidecar.attachments.listing import ToolListing, read_tools
from anp.sidecar.attachments.spec import AttachmentSpec, read_secret
from anp.sidecar.attachments.tool_errors import status_in
from jsonic.exact_numbers import write_json
from negotiation.errors import JsonError

logger = logging.getLogger(__name__)

ACCEPTED = 202
"Status by which an agent says that updates follow."

ANSWER_PAUSES = (0.0, 1.0, 5.0, 30.0)
"Seconds before each attempt to tell the agent the answer to its question."

CANCEL_TIMEOUT = 2.0
"Seconds that an agent gets to hear that nobody waits."

PREFIX = "whsec_"
"Begins keys that are written in base64, as Standard Webhooks has them."


class CallbackService(Service):
    """One life of an agent's callback URL."""

    def __init__(
        self, spec: AttachmentSpec, limits: AttachmentLimits, updates: UpdateDesk
    ) -> None:
        """Serve one agent.

        Args:
            updates: Where its calls are open for updates.
        """
        super().__init__(spec, limits)
        self._key = b""
        self._updates = updates
        self._telling: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Read the secrets, also the key that signs, and make the client."""
        await super().open()
        if self._spec.secret:
            read = partial(read_secret, self._spec.secret, folder=self._spec.cwd)
            self._key = _key(await asyncio.to_thread(read))

    async def close(self) -> None:
        """End every connection; idempotent."""
        for telling in self._telling:
            telling.cancel()
        await super().close()

    async def list(self) -> ToolListing:
        """Return the declared capabilities, or ask the agent for its own."""
        if self._spec.capabilities:
            await self._endpoint.reach()
            tools = [as_tool(each) for each in self._spec.capabilities]
            return read_tools(self._spec, tools, self._limits)
        answer = await self._endpoint.ask(
            "GET", self._url, headers=self._signed("list", b"")
        )
        try:
            said = answer.json() if answer.status == 200 else None
        except JsonError as exc:
            raise AttachmentError(f"the agent's list of capabilities: {exc}") from None
        found = said.get("capabilities") if isinstance(said, dict) else None
        if not isinstance(found, list):
            raise AttachmentError(
                f"GET {self._url.text} answered {answer.phrase} without "
                '{"capabilities": [...]}; answer so, or declare them with '
                "--capabilities FILE"
            )
        most = self._limits.max_tools + 1
        tools = [read_tool(each) for each in found[:most]]
        return read_tools(self._spec, tools, self._limits)

    async def call(
        self, tool: str, arguments: dict[str, Any], context: CallContext
    ) -> dict[str, Any]:
        """Post one call and return the output."""
        body: dict[str, Any] = {
            "id": context.call_id,
            "capability": tool,
            "input": arguments,
            "caller": {"did": context.caller},
            "deadline": deadline_text(context.deadline),
        }
        work = Assignment(
            tool,
            arguments,
            caller=context.caller,
            deadline=context.deadline,
            max_result=self._limits.max_result,
        )
        work.on_change = lambda _: self._changed(context.call_id, work)
        if work.key:
            body["key"] = work.key
        url = await self._updates.url(work)
        with self._updates.admitting(work) as token:
            if url is not None:
                body["updates"] = {"url": url, "token": token}
            try:
                answer = await self._post(context.call_id, body)
                if answer.status != ACCEPTED or url is None:
                    return await self._output(answer, work)
                try:
                    # The attachment cancels this when its time is over.
                    return await work.wait(math.inf)
                except asyncio.CancelledError:
                    await self._cancel(context.call_id)
                    raise
            finally:
                work.end("canceled")

    async def _post(self, call_id: str, body: dict[str, Any]) -> HttpAnswer:
        content = write_json(body, ensure_ascii=False).encode(errors="replace")
        return await self._endpoint.ask(
            "POST",
            self._url,
            headers={
                "Content-Type": "application/json",
                "Accept": "application/json",
                **self._signed(call_id, content),
            },
            content=content,
        )

    async def _output(self, answer: HttpAnswer, work: Assignment) -> dict[str, Any]:
        """Return the output of an answer that is the whole result."""
        try:
            said = answer.json() if answer.body else None
        except JsonError:
            said = None
        if isinstance(said, dict) and said.get("state") == TaskState.REJECTED:
            raise HandedBack(str(said.get("message") or said.get("reason") or ""))
        if answer.status >= 300:
            raise _refused(said) or error_of(answer)
        output = None
        if isinstance(said, dict) and "output" in said:
            output = wrap(said["output"], None)
        if output is None:
            raise ToolError(502, 'the agent\'s answer is no {"output": ...}')
        if not work.ending:
            # What it sent before the answer belongs to the result.
            await work.complete(output)
        return await work.wait(math.inf)

    def _changed(self, call_id: str, work: Assignment) -> None:
        """Tell the agent the answer to its question."""
        if work.reply is None or work.ending:
            return
        reply = work.reply
        value = {} if reply.value is None else {"value": reply.value}
        said = {"action": reply.action, "text": reply.text, **value}
        telling = asyncio.create_task(self._tell(call_id, work, {"answer": said}))
        self._telling.add(telling)
        telling.add_done_callback(self._telling.discard)

    async def _tell(self, call_id: str, work: Assignment, told: Any) -> None:
        for pause in ANSWER_PAUSES:
            await asyncio.sleep(pause)
            if work.ending:
                return
            try:
                answer = await self._post(call_id, {"id": call_id, **told})
                if answer.status < 300:
                    return
            except (AttachmentError, ToolError) as exc:
                logger.info("answer not taken attachment=%s: %s", self._url.host, exc)
        if not work.ending:
            work.fail(502, "the agent took no answer to its question")

    async def _cancel(self, call_id: str) -> None:
        """Tell the agent that nobody waits any more, if it listens."""
        with contextlib.suppress(AttachmentError, ToolError, TimeoutError):
            async with asyncio.timeout(CANCEL_TIMEOUT):
                await self._post(call_id, {"id": call_id, "cancel": True})

    def _signed(self, call_id: str, content: bytes) -> dict[str, str]:
        if not self._key:
            return {}
        return sign(self._key, call_id, content, now=int(time.time()))


def sign(key: bytes, call_id: str, content: bytes, *, now: int) -> dict[str, str]:
    """Return the headers that prove to the agent that the daemon sent this.

    They are those of Standard Webhooks, so that any of its libraries can check them.
    """
    message = b".".join((call_id.encode(), str(now).encode(), content))
    digest = base64.b64encode(hmac.digest(key, message, hashlib.sha256)).decode()
    return {
        "webhook-id": call_id,
        "webhook-timestamp": str(now),
        "webhook-signature": f"v1,{digest}",
    }


def _key(secret: str) -> bytes:
    if not secret.startswith(PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (Base64Error, ValueError):
        raise AttachmentError(
            f"the secret begins with {PREFIX} but is not base64 from there on"
        ) from None


def _refused(said: Any) -> ToolError | None:
    """Return the agent's own error, if that is what it answered."""
    error = said.get("error") if isinstance(said, dict) else None
    if not isinstance(error, dict):
        return None
    code = status_in(error.get("code"))
    if code is None:
        return None
    return ToolError(code, str(error.get("message") or "the agent gave no reason"))
