"""An agent that takes calls at a URL of its own (kind `callback`).

`POST {url}` with `{id, capability, input, caller: {did}, deadline}` is answered with
`{output}`, or with 4xx or 5xx and `{error}`, a text or `{code, message}`. Without
declared capabilities `GET {url}` has to answer `{capabilities: [...]}`.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import time
from binascii import Error as Base64Error
from functools import partial
from typing import Any

from anp.sidecar.attachments.attachment import (
    AttachmentError,
    AttachmentLimits,
    ToolError,
)
from anp.sidecar.attachments.http.declared import as_tool, read_tool, wrap
from anp.sidecar.attachments.http.endpoint import (
    CallContext,
    deadline_text,
)
from anp.sidecar.attachments.http.remote import Service
from anp.sidecar.attachments.http.results import error_of
from anp.sidecar.attachments.listing import ToolListing, read_tools
from anp.sidecar.attachments.spec import AttachmentSpec, read_secret
from anp.sidecar.attachments.tool_errors import status_in
from negotiation.errors import JsonError
from negotiation.exact_numbers import write_json

__all__ = ["CallbackService", "sign"]

PREFIX = "whsec_"
"Begins keys that are written in base64, as Standard Webhooks has them."


class CallbackService(Service):
    """One life of an agent's callback URL."""

    def __init__(self, spec: AttachmentSpec, limits: AttachmentLimits) -> None:
        super().__init__(spec, limits)
        self._key = b""

    async def open(self) -> None:
        """Read the secrets, also the key that signs, and make the client."""
        await super().open()
        if self._spec.secret:
            read = partial(read_secret, self._spec.secret, folder=self._spec.cwd)
            self._key = _key(await asyncio.to_thread(read))

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
        body = {
            "id": context.call_id,
            "capability": tool,
            "input": arguments,
            "caller": {"did": context.caller},
            "deadline": deadline_text(context),
        }
        content = write_json(body, ensure_ascii=False).encode(errors="replace")
        answer = await self._endpoint.ask(
            "POST",
            self._url,
            headers={
                "Content-Type": "application/json",
                "Accept": "application/json",
                **self._signed(context.call_id, content),
            },
            content=content,
        )
        try:
            said = answer.json() if answer.body else None
        except JsonError:
            said = None
        if answer.status >= 300:
            raise _refused(said) or error_of(answer)
        output = None
        if isinstance(said, dict) and "output" in said:
            output = wrap(said["output"], None)
        if output is None:
            raise ToolError(502, 'the agent\'s answer is no {"output": ...}')
        return output

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
