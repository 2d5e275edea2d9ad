"""Probes, metrics and reload in the local API."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from anp.sidecar.api.answers import OBJECT, TEXT, answer_of, ref, some
from anp.sidecar.api.bodies import EmptyBody
from anp.sidecar.api.table import Answer, Operation
from anp.sidecar.health import readiness
from anp.sidecar.operation import reload_daemon
from anp.sidecar.telemetry.metrics_text import CONTENT_TYPE, metrics_text

if TYPE_CHECKING:
    from anp.sidecar.daemon import Daemon

__all__ = ["health_operations"]


def health_operations(daemon: Daemon) -> list[Operation]:
    """Return the operations for whoever operates the daemon."""
    api = _HealthApi(daemon)
    ready = answer_of(status=TEXT, parts=OBJECT)
    return [
        Operation(
            method="GET",
            path="/livez",
            name="isAlive",
            summary="Tell that the loop turns; says nothing of anything else.",
            handler=api.live,
            answers=(Answer(text="It does.", schema=ref("Health")),),
        ),
        Operation(
            method="GET",
            path="/readyz",
            name="isReady",
            summary="Tell whether calls can be taken, part by part.",
            handler=api.ready,
            answers=(
                Answer(text="They can; `degraded` says what cannot.", schema=ready),
                Answer(text="They cannot, or it stops.", schema=ready, status=503),
            ),
        ),
        Operation(
            method="GET",
            path="/metrics",
            name="getMetrics",
            summary="Show all metrics in the text format of Prometheus.",
            handler=api.metrics,
            answers=(Answer(text="The metrics.", media_type=CONTENT_TYPE),),
        ),
        Operation(
            method="POST",
            path="/v1/reload",
            name="reload",
            summary="Read the configuration and the attachments again.",
            handler=api.reload,
            body=EmptyBody,
            answers=(
                Answer(
                    text="All attachments, and the settings that have changed.",
                    schema=answer_of(
                        attachments=some(TEXT), applied=some(TEXT), restart=some(TEXT)
                    ),
                ),
            ),
            problems=(422,),
        ),
    ]


class _HealthApi:
    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    async def live(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        found = await readiness(self._daemon)
        return JSONResponse(found.view(), status_code=200 if found.ready else 503)

    async def metrics(self, request: Request) -> Response:
        # In a thread the first time too, when prometheus-client is imported.
        text = await asyncio.to_thread(metrics_text, self._daemon.observer.metrics)
        return Response(text, media_type=CONTENT_TYPE)

    async def reload(self, request: Request) -> Response:
        found: dict[str, Any] = asdict(await reload_daemon(self._daemon))
        return JSONResponse(found)
