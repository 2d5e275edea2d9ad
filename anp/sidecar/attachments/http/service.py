"""A service over HTTP, described by OpenAPI or by the owner (kind `http`)."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from anp.sidecar.attachments.attachment import (
    AttachmentError,
    AttachmentLimits,
    ToolError,
)
from anp.sidecar.attachments.http.answers import HttpAnswer
from anp.sidecar.attachments.http.declared import as_operation
from anp.sidecar.attachments.http.endpoint import (
    CALLER_HEADER,
    DEADLINE_HEADER,
    CallContext,
    HttpEndpoint,
    deadline_text,
)
from anp.sidecar.attachments.http.openapi import OpenApi, read_openapi
from anp.sidecar.attachments.http.openapi_schema import OpenApiError
from anp.sidecar.attachments.http.operations import (
    HttpOperation,
    accepted_types,
    build_request,
)
from anp.sidecar.attachments.http.remote import Service
from anp.sidecar.attachments.http.results import Later, ResultReader
from anp.sidecar.attachments.listing import ToolListing, read_tools
from anp.sidecar.attachments.requester import current_requester
from anp.sidecar.attachments.spec import AttachmentSpec
from anp.sidecar.attachments.urls import Url, join_url, parse_url
from negotiation.errors import JsonError
from negotiation.strict_json import parse_json

WELL_KNOWN = "/openapi.json"
"Where a service has its document if the owner names none, below the base URL."


class HttpService(Service):
    """One life of a service over HTTP."""

    def __init__(self, spec: AttachmentSpec, limits: AttachmentLimits) -> None:
        super().__init__(spec, limits)
        self._operations: dict[str, HttpOperation] = {}
        self._digest = b""
        self._listing = ToolListing()
        self._prefix = self._url.path.rstrip("/")

    async def list(self) -> ToolListing:
        """Read the document again; without one see whether the service is there."""
        if self._spec.capabilities:
            await self._endpoint.reach()
            if not self._operations:
                self._use(_declared(self._spec), server="")
            return self._listing
        data, place = await self._document()
        digest = hashlib.sha256(data).digest()
        if digest != self._digest:
            found = await asyncio.to_thread(self._read, data, place)
            self._use(found, server=found.server if place is not None else "")
            self._digest = digest
        if place is None:
            await self._endpoint.reach()
        return self._listing

    async def call(
        self, tool: str, arguments: dict[str, Any], context: CallContext
    ) -> dict[str, Any]:
        """Send the request of an operation and return its answer."""
        operation = self._operations.get(tool)
        if operation is None:
            raise AttachmentError(f"there is no operation {tool} any more")
        try:
            request = build_request(operation, arguments)
        except ToolError as exc:
            exc.may_have_run = False
            raise
        url = replace(
            self._url, path=f"{self._prefix}{request.path}", query=request.query
        )
        ours = {
            CALLER_HEADER: context.caller,
            DEADLINE_HEADER: deadline_text(context.deadline),
        }
        requester = current_requester.get()
        reader = ResultReader(operation, requester, self._limits.max_result)
        headers = {**request.headers, **ours}
        headers.setdefault("Accept", accepted_types(operation, requester is not None))
        asked = replace(request, headers=headers)
        later = Later(url)
        while True:
            try:
                async with self._endpoint.exchange(
                    asked.method,
                    later.url,
                    headers=asked.headers,
                    content=asked.content,
                    endless=requester is not None,
                ) as answer:
                    if not later.holds(answer, self._endpoint):
                        return await reader.read(answer)
            except AttachmentError as exc:
                # Whoever answers 202 has taken the call.
                exc.may_have_run = exc.may_have_run or later.began
                raise
            await asyncio.sleep(later.pause)
            followed = {"Accept": headers["Accept"], **ours}
            asked = replace(asked, method="GET", headers=followed, content=None)

    async def _document(self) -> tuple[bytes, Url | None]:
        """Return the document, and the URL it came from if it was no file."""
        named = self._spec.openapi
        if named and not named.startswith(("http://", "https://")):
            path = (self._spec.cwd or Path()) / named
            most = self._limits.max_document
            return await asyncio.to_thread(_read_file, path, most), None
        try:
            if named:
                place = parse_url(named)
            else:
                path_text = f"{self._prefix}{WELL_KNOWN}"
                place = replace(self._url, path=path_text, query="")
        except ValueError as exc:
            raise AttachmentError(f"openapi: {exc}") from None
        if place.origin == self._url.origin:
            answer = await self._endpoint.ask("GET", place)
        else:
            answer = await self._fetch_elsewhere(place)
        if answer.status != 200:
            hint = "" if named else "; name the document with --openapi"
            raise AttachmentError(
                f"no OpenAPI document at {place.text}: {answer.phrase}{hint}"
            )
        return answer.body, place

    async def _fetch_elsewhere(self, place: Url) -> HttpAnswer:
        """Fetch a document from another host, which gets none of our secrets."""
        bare = self._spec.without_secrets
        endpoint = HttpEndpoint(place, bare, max_answer=self._limits.max_document)
        try:
            await endpoint.open()
            return await endpoint.ask("GET", place)
        finally:
            await endpoint.close()

    def _read(self, data: bytes, place: Url | None) -> OpenApi:
        where = place.text if place is not None else self._spec.openapi
        try:
            document = parse_json(data, max_size=self._limits.max_document)
            return read_openapi(document, secret_names=self._endpoint.secret_names)
        except JsonError as exc:
            hint = "; YAML has to be converted" if data[:1] not in b"{ \n" else ""
            raise AttachmentError(
                f"the OpenAPI document {where}: {exc}{hint}"
            ) from None
        except OpenApiError as exc:
            raise AttachmentError(f"{where}: {exc}") from None

    def _use(self, found: OpenApi, *, server: str) -> None:
        listing = read_tools(self._spec, found.operations, self._limits)
        operations: dict[str, HttpOperation] = {}
        for operation in found.operations:
            operations.setdefault(operation.name, operation)
        self._operations = operations
        self._listing = replace(
            listing, skipped=(*found.skipped, *listing.skipped), title=found.title
        )
        self._prefix = self._url.path.rstrip("/")
        # An owner who gave no path means the one that the service says is its own.
        if not self._prefix and server:
            try:
                url = join_url(self._url, server)
            except ValueError:
                return
            if url.origin == self._url.origin:
                self._prefix = url.path.rstrip("/")


def _declared(spec: AttachmentSpec) -> OpenApi:
    operations, skipped = [], []
    for declared in spec.capabilities:
        try:
            operations.append(as_operation(declared))
        except OpenApiError as exc:
            skipped.append(str(exc))
    return OpenApi(tuple(operations), tuple(skipped), "", "")


def _read_file(path: Path, max_size: int) -> bytes:
    try:
        with path.expanduser().open("rb") as file:
            data = file.read(max_size + 1)
    except OSError as exc:
        raise AttachmentError(f"cannot read {path}: {exc.strerror}") from None
    if len(data) > max_size:
        raise AttachmentError(f"{path} has over {max_size} bytes")
    return data
