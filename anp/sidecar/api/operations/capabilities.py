"""The capabilities of the local agent in the local API."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pydantic import ConfigDict
from starlette.requests import Request

from anp.errors import CallError, ErrorKind, UnknownError
from anp.sidecar.api.requests import EmptyBody
from anp.sidecar.api.table import STRICT, LocalScope, get, post
from anp.sidecar.daemon import Daemon
from anp.sidecar.library.state import view_of
from anp.sidecar.offer.ways import WayIn
from negotiation.errors import CapabilityFailed
from negotiation.need import Capability


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityTestBody:
    """A request of the owner to try a capability."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    input: dict[str, Any] = field(default_factory=dict)
    "Its arguments."


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedCapability(Capability):
    """A capability of an attached agent."""

    exposed: bool
    "True when every peer may use it whose own `expose` says nothing else."

    exposed_to: Sequence[str]
    "Names of the peers that may use it by their own `expose`."


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Every attached capability, exposed or not."""

    capabilities: Sequence[AttachedCapability]


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityTest:
    """The output of a capability that its owner tried."""

    capability: str
    output: Any
    ms: float


class CapabilityOperations:
    """Operations on capabilities."""

    tag = "daemon"

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    @get("/v1/capabilities", Capabilities, scope=LocalScope.AGENT)
    async def list_capabilities(self, request: Request) -> Capabilities:
        """List every attached capability, exposed or not."""
        return Capabilities(self._all())

    @get("/v1/capabilities/{name}", AttachedCapability, scope=LocalScope.AGENT)
    async def get_capability(self, request: Request) -> AttachedCapability:
        """Show one capability with its schemas."""
        return self._find(request.path_params["name"])

    @post(
        "/v1/capabilities/{name}/test",
        CapabilityTest,
        body=CapabilityTestBody,
        problems=(424,),
        scope=LocalScope.OWNER,
    )
    async def test_capability(
        self, request: Request, body: CapabilityTestBody
    ) -> CapabilityTest:
        """Call an exposed capability as a peer would, without a protocol."""
        found = self._find(request.path_params["name"])
        name = found.name
        if not (found.exposed or found.exposed_to):
            raise CallError(
                ErrorKind.POLICY, f"{name} is not exposed, so peers cannot call it"
            )
        began = time.monotonic()
        try:
            output = await self._daemon.capability_calls.run(
                name,
                body.input,
                way=WayIn.OWNER,
                peer=self._daemon.identities.canonical,
                peer_did=self._daemon.did,
                max_payload=self._daemon.config.limits.max_payload,
            )
        except CapabilityFailed as exc:
            raise CallError(
                ErrorKind.APPLICATION_ERROR,
                f"{name} answered {exc.code}: {exc.message}",
                may_have_run=exc.ran,
            ) from exc
        ms = round((time.monotonic() - began) * 1000, 1)
        return CapabilityTest(capability=name, output=output, ms=ms)

    @post(
        "/v1/capabilities/{name}/expose",
        AttachedCapability,
        body=EmptyBody,
        problems=(422,),
        scope=LocalScope.OWNER,
    )
    async def expose_capability(
        self, request: Request, body: EmptyBody
    ) -> AttachedCapability:
        """Offer a capability to peers; the attachment's file says so from now on."""
        return await self._expose(request, exposed=True)

    @post(
        "/v1/capabilities/{name}/hide",
        AttachedCapability,
        body=EmptyBody,
        problems=(422,),
        scope=LocalScope.OWNER,
    )
    async def hide_capability(
        self, request: Request, body: EmptyBody
    ) -> AttachedCapability:
        """Offer a capability to peers no longer, and end what they do with it."""
        return await self._expose(request, exposed=False)

    async def _expose(self, request: Request, *, exposed: bool) -> AttachedCapability:
        name = self._find(request.path_params["name"]).name
        async with self._daemon.reload_lock:
            self._daemon.attaching.expose({name: exposed})
            await self._daemon.reload()
        await self._daemon.enforcer.recheck()
        return self._find(name)

    def _all(self) -> list[AttachedCapability]:
        return [
            view_of(
                AttachedCapability,
                capability,
                exposed=exposed,
                exposed_to=self._daemon.exposure.exposed_to(capability.name),
            )
            for capability, exposed in self._daemon.exposure.all()
        ]

    def _find(self, name: str) -> AttachedCapability:
        """Return a capability by its full name, or its short one while it is unique."""
        found = self._all()
        for fits in (
            [one for one in found if one.name == name],
            [one for one in found if one.name.partition(".")[2] == name],
        ):
            if len(fits) == 1:
                return fits[0]
        raise UnknownError(
            f"no capability is called {name}, or several; see `anpd capabilities list`"
        )
