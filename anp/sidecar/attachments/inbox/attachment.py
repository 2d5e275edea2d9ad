"""The attachment of an agent that reads the calls for it (kind `inbox`)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

from anp.sidecar.attachments.assignment import Assignment
from anp.sidecar.attachments.attachment import AttachmentLimits, ToolError
from anp.sidecar.attachments.http.declared import as_tool
from anp.sidecar.attachments.inbox.desk import Inbox
from anp.sidecar.attachments.listing import read_tools
from anp.sidecar.attachments.requester import current_requester
from anp.sidecar.attachments.spec import AttachmentSpec
from anp.sidecar.attachments.supervisor import SupervisedAttachment


class InboxAttachment(SupervisedAttachment):
    """Puts calls into the inbox, and waits for the agent's answers.

    Nobody is started, so it is always well: a task waits until the agent reads, a call
    of one turn until its deadline.
    """

    begins_itself = True

    def __init__(
        self,
        spec: AttachmentSpec,
        inbox: Inbox,
        *,
        limits: AttachmentLimits,
        on_change: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(spec, limits=limits, on_change=on_change)
        self._inbox = inbox
        tools = [as_tool(one) for one in spec.capabilities]
        self._listing = read_tools(spec, tools, limits)

    async def call(
        self, capability: str, arguments: dict[str, Any], *, caller: str, timeout: float
    ) -> dict[str, Any]:
        """Put a call into the inbox, and return the agent's result."""
        is_task = current_requester.get() is not None
        async with AsyncExitStack() as stack:
            if not is_task:
                # The tasks of a peer are limited where they are accepted.
                leave = await self._places.take(self._limits.max_calls, timeout=timeout)
                stack.callback(leave, None)
            await self._wait_ready(capability, timeout)
            assignment = Assignment(
                capability,
                arguments,
                caller=caller,
                deadline=math.inf if is_task else time.time() + timeout,
                max_result=self._limits.max_result,
            )
            await assignment.listen()
            item = self._inbox.add(self.name, assignment)
            try:
                to_begin = self._inbox.max_wait if is_task else None
                return await assignment.wait(timeout, to_begin=to_begin)
            except ToolError as exc:
                exc.may_have_run = item.deliveries > 0
                raise
            finally:
                assignment.end("canceled")

    async def _live(self) -> None:
        self._opened()
        await self._stopping.wait()
