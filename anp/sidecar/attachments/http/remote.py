"""The common part of attachments over HTTP: life, health and calls."""

from __future__ import annotations

import asyncio
import json
import logging
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from typing import Any

from anp.errors import LocalError
from anp.sidecar.attachments.attachment import (
    AttachmentError,
    AttachmentLimits,
    ToolError,
)
from anp.sidecar.attachments.http.endpoint import CallContext, HttpEndpoint
from anp.sidecar.attachments.listing import ToolListing
from anp.sidecar.attachments.spec import AttachmentSpec
from anp.sidecar.attachments.supervisor import SupervisedAttachment, wait_at_most
from anp.sidecar.attachments.urls import Url, parse_url

logger = logging.getLogger(__name__)

CLOSE_TIMEOUT = 3.0
"Seconds that calls under way may take to tell the service that nobody waits."


class Service(ABC):
    """One life of something that is reached over HTTP."""

    def __init__(self, spec: AttachmentSpec, limits: AttachmentLimits) -> None:
        self._spec = spec
        self._limits = limits
        self._url = parse_url(spec.url)
        self._endpoint = self._endpoint_at(self._url)

    def _endpoint_at(self, url: Url) -> HttpEndpoint:
        most = max(self._limits.max_document, self._limits.max_result)
        return HttpEndpoint(url, self._spec, max_answer=most)

    async def open(self) -> None:
        """Read the secrets and make the client.

        Raises:
            AttachmentError: A secret is missing.
        """
        await self._endpoint.open()

    async def close(self) -> None:
        """End every connection; idempotent."""
        await self._endpoint.close()

    @abstractmethod
    async def list(self) -> ToolListing:
        """Ask what it can do now; also how its health is looked after.

        Raises:
            AttachmentError: It does not answer, or not with anything that can be used.
        """

    @abstractmethod
    async def call(
        self, tool: str, arguments: dict[str, Any], context: CallContext
    ) -> dict[str, Any]:
        """Make one call; the caller cancels it when its time is over.

        Raises:
            CapabilityError: The service answered with an error.
            AttachmentError: It did not answer.
        """


class RemoteAttachment(SupervisedAttachment):
    """An attachment that is reached over HTTP (SIDECAR.md, "Attaching an agent").

    Nobody starts or ends the service: it is asked again every `limits.refresh` seconds
    what it can do, and at once when a call cannot reach it.
    """

    def __init__(
        self,
        spec: AttachmentSpec,
        make: Callable[[], Service],
        *,
        limits: AttachmentLimits,
        on_change: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(spec, limits=limits, on_change=on_change)
        self._make = make
        self._service: Service | None = None
        self._trouble = asyncio.Event()
        self._calls: set[asyncio.Task[dict[str, Any]]] = set()
        self._endings: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """End every call and connection; idempotent."""
        self._trouble.set()
        await super().close()
        for task in self._calls:
            # One that was cancelled already is telling the service so.
            if not task.cancelling():
                task.cancel()
        if waiting := {*self._calls, *self._endings}:
            await asyncio.wait(waiting, timeout=CLOSE_TIMEOUT)

    async def call(
        self, capability: str, arguments: dict[str, Any], *, caller: str, timeout: float
    ) -> dict[str, Any]:
        """Make a call; many may be in flight."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        leave = await self._places.take(self._limits.max_calls, timeout=timeout)
        try:
            await self._wait_ready(capability, timeout)
            if self._service is None:
                raise LocalError(f"attachment {self.name} is ready without a service")
        except BaseException:
            leave(None)
            raise
        context = CallContext(
            call_id=uuid.uuid4().hex,
            caller=caller,
            deadline=time.time() + deadline - loop.time(),
        )
        tool = self._tool_of(capability)
        task = self._begin(self._service.call(tool, arguments, context))
        task.add_done_callback(leave)
        try:
            done, _ = await asyncio.wait({task}, timeout=deadline - loop.time())
        finally:
            # Also when our caller gave up; what the call still says goes nowhere.
            task.cancel()
        if not done:
            raise ToolError(504, f"no answer within {timeout:g} s")
        output = self._outcome(task)
        size = len(json.dumps(output, ensure_ascii=False).encode(errors="replace"))
        if size > self._limits.max_result:
            raise ToolError(502, f"the result is over {self._limits.max_result} bytes")
        return output

    def _begin(
        self, work: Coroutine[Any, Any, dict[str, Any]]
    ) -> asyncio.Task[dict[str, Any]]:
        task = asyncio.create_task(work, name=f"call of attachment {self.name}")
        self._calls.add(task)

        def ended(task: asyncio.Task[dict[str, Any]]) -> None:
            self._calls.discard(task)
            if not task.cancelled():
                task.exception()

        task.add_done_callback(ended)
        return task

    def _outcome(self, task: asyncio.Task[dict[str, Any]]) -> dict[str, Any]:
        """Return the output of a call that ended, or raise its error."""
        if task.cancelled():
            raise AttachmentError("the attachment was closed", may_have_run=True)
        try:
            return task.result()
        except ToolError:
            raise
        except AttachmentError:
            self._trouble.set()
            raise
        except Exception as exc:
            # One call must not take the others of this attachment down.
            logger.exception("call failed attachment=%s", self.name)
            raise AttachmentError(f"the call failed: {exc}", may_have_run=True) from exc

    async def _live(self) -> None:
        """Keep the service in sight from the first answer to the first silence."""
        service = self._make()
        self._trouble.clear()
        try:
            await service.open()
            self._take(await self._ask(service))
            self._service = service
            self._opened()
            await self._watch(service)
        finally:
            self._lost()
            self._service = None
            self._end(service)

    async def _watch(self, service: Service) -> None:
        while not self._stopping.is_set():
            await wait_at_most(self._trouble, self._limits.refresh)
            self._trouble.clear()
            if self._stopping.is_set():
                return
            if self._take(await self._ask(service)):
                self._changed()

    async def _ask(self, service: Service) -> ToolListing:
        limit = self._limits.supervisor.start_timeout
        try:
            async with asyncio.timeout(limit):
                return await service.list()
        except TimeoutError:
            raise AttachmentError(f"it did not answer within {limit:g} s") from None
        except ToolError as exc:
            raise AttachmentError(exc.message) from None

    def _take(self, listing: ToolListing) -> bool:
        """Use a listing from now on; return whether it differs from the last."""
        if listing == self._listing:
            return False
        self._listing = listing
        for reason in listing.skipped:
            logger.warning("left out attachment=%s %s", self.name, reason)
        return True

    def _end(self, service: Service) -> None:
        """Close a service as soon as the calls that use it have ended."""
        calls = set(self._calls)

        async def end() -> None:
            if calls:
                await asyncio.wait(calls)
            await service.close()

        task = asyncio.create_task(end(), name=f"end of attachment {self.name}")
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)
