"""Announces this daemon in registries, and withdraws it when it stops."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from anp.errors import AnpError
from anp.sidecar.calls.call import CallRequest, CallResult
from anp.sidecar.discovery.registry import ANNOUNCE, WITHDRAW
from negotiation.errors import NegotiationError
from negotiation.need import Need

logger = logging.getLogger(__name__)

CALL_TIME: Final = 20.0
"Seconds for one announcement."

STOP_TIME: Final = 3.0
"Seconds for all withdrawals when the daemon stops."

SETTLE: Final = 1.0
"Seconds after a change before it is announced, so that several are told together."

AGAIN: Final = 30.0
"Seconds until a registry that did not take it is called again, at least."


class Announcer:
    """Keeps our announcement fresh in each of some registries."""

    def __init__(
        self,
        registries: Sequence[str],
        *,
        make: Callable[[], dict[str, Any]],
        call: Callable[[CallRequest], Awaitable[CallResult]],
        lifetime: int,
        again: float = AGAIN,
    ) -> None:
        """Begin with nothing announced.

        Args:
            registries: The peers that are registries, as calls name them.
            make: Returns our announcement as of now, signed.
            lifetime: Seconds for which it counts.
        """
        self._registries = registries
        self._make = make
        self._call = call
        self._lifetime = lifetime
        self._again = again
        self._changed = asyncio.Event()
        self._announced: set[str] = set()

    def changed(self) -> None:
        """Announce anew, soon: what we offer has changed."""
        self._changed.set()

    async def run(self) -> None:
        """Announce again and again; never ends by itself."""
        while self._registries:
            told = self._make()
            good = [await self._announce(one, told) for one in self._registries]
            wait = self._lifetime / 3
            if not all(good):
                wait = min(wait, self._again)
            try:
                async with asyncio.timeout(wait):
                    await self._until_other(told)
            except TimeoutError:
                continue

    async def _until_other(self, told: Mapping[str, Any]) -> None:
        while self._make()["capabilities"] == told["capabilities"]:
            self._changed.clear()
            await self._changed.wait()
            await asyncio.sleep(SETTLE)

    async def close(self) -> None:
        """Announce no more, and withdraw what was announced if that goes quickly."""
        self._registries = ()
        calls = [self._tell(one, WITHDRAW, {}) for one in self._announced]
        self._announced = set()
        try:
            async with asyncio.timeout(STOP_TIME):
                await asyncio.gather(*calls)
        except TimeoutError:
            logger.info("not withdrawn in time; the announcement expires")

    async def _announce(self, registry: str, told: Mapping[str, Any]) -> bool:
        good = await self._tell(registry, ANNOUNCE, {"announcement": told})
        if good and self._registries:
            self._announced.add(registry)
        return good

    async def _tell(self, registry: str, name: str, arguments: dict[str, Any]) -> bool:
        request = CallRequest(
            peer=registry, need=Need(name), arguments=arguments, timeout=CALL_TIME
        )
        try:
            await self._call(request)
        except (AnpError, NegotiationError) as exc:
            logger.warning("registry did not take it name=%s reason=%s", registry, exc)
            return False
        return True
