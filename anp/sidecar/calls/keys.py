"""Idempotency keys on disk, so that they outlive the daemon.

A key is stored before the first byte of its request leaves, and its outcome before the
caller learns it. So a key without an outcome is a call that may have run: the daemon
that made it was killed, or another one of the fleet still makes it.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, Final, Protocol

from pydantic import TypeAdapter, ValidationError

from anp.errors import CallError, ConflictError, ErrorKind
from anp.sidecar.calls.call import CallRequest, CallResult
from anp.sidecar.home.rest_cipher import RestCipher
from cache.errors import CacheError, RecordError
from cache.records.records import CallRecord
from jsonic.exact_numbers import read_number, write_json

logger = logging.getLogger(__name__)

PURPOSE: Final = b"anpd: calls at rest"
"Purpose of the secret that seals outcomes; see `PrivateKey.derive`."

MAX_OUTCOME: Final = 1024 * 1024
"Largest outcome that is stored, in bytes of JSON."

PRUNE_EVERY: Final = 64
"New keys after which those that are too old or too many are dropped."

NO_OUTCOME: Final = (
    "the first call with this idempotency_key may have run, but the daemon that made "
    "it does not know its outcome; it is not sent again under this key"
)
NOT_KEPT: Final = (
    "the first call with this idempotency_key ended well, but its result is not kept; "
    "it is not sent again under this key"
)


class CallRecords(Protocol):
    """Where keys rest; `cache.parts.calls.CallStore` is one. All of it blocks."""

    def save_call(self, record: CallRecord) -> None:
        """Store a call."""
        ...

    def kept_call(self, call_id: str, *, now: float) -> CallRecord | None:
        """Return a call, or None; CacheError if nobody knows."""
        ...

    def drop_call(self, call_id: str) -> None:
        """Forget a call."""
        ...

    def prune_calls(self, *, now: float) -> None:
        """Forget calls that are too old or too many."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The end of the first call with a key."""

    id: str
    "Id of that call."

    created: float
    "When it began, in seconds since 1970."

    result: CallResult | None = None
    "Its result, unless it failed."

    error: CallError | None = None
    "Its error."


@cache
def _reader() -> TypeAdapter[CallResult]:
    """Return what reads results; made at its first use, which is slow."""
    return TypeAdapter(CallResult)


class CallKeys:
    """The idempotency keys of this daemon's callers.

    Args:
        secret: 32 bytes that only this identity can derive (DESIGN.md, Trust).
        wall: Seconds since 1970.
    """

    def __init__(
        self,
        records: CallRecords,
        secret: bytes,
        *,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._records = records
        self._secret = secret
        self._cipher = RestCipher(secret, "the outcome of a call")
        self._wall = wall
        self._begun = 0

    async def find(self, key: str, request: CallRequest) -> Outcome | None:
        """Return the outcome of the first call with a key; None: it may be sent.

        Args:
            key: The caller's scope and key.

        Raises:
            ConflictError: The key belongs to another request.
            CacheError: Nobody knows; nothing may be sent.
        """
        known = await asyncio.to_thread(
            self._records.kept_call, self._name(key), now=self._wall()
        )
        if known is None:
            return None
        if known.request != fingerprint(request, self._secret):
            raise ConflictError("this idempotency_key was used for another call")
        if known.sealed:
            return self._open(known)
        if known.repeatable:
            return None
        return _unknown(known, NO_OUTCOME)

    async def begin(self, key: str, request: CallRequest, *, repeatable: bool) -> None:
        """Store a key; called before the first byte of its request leaves.

        Raises:
            StoreUnavailable: It is not stored; nothing may be sent.
        """
        record = CallRecord(
            self._name(key),
            fingerprint(request, self._secret),
            self._wall(),
            repeatable,
        )
        await asyncio.to_thread(self._records.save_call, record)
        if self._begun % PRUNE_EVERY == 0:
            await asyncio.to_thread(self._records.prune_calls, now=self._wall())
        self._begun += 1

    async def end(self, key: str, outcome: Outcome) -> None:
        """Store the outcome of a key that was stored; a failure is only logged."""
        name = self._name(key)
        try:
            known = await asyncio.to_thread(
                self._records.kept_call, name, now=self._wall()
            )
            if known is not None:
                sealed = replace(known, sealed=self._seal(name, outcome))
                await asyncio.to_thread(self._records.save_call, sealed)
        except CacheError as exc:
            # Whoever asks later learns that the call may have run.
            logger.warning("outcome of a call not stored reason=%s", exc)

    async def drop(self, key: str) -> None:
        """Forget a key whose call was certainly not run."""
        try:
            await asyncio.to_thread(self._records.drop_call, self._name(key))
        except CacheError as exc:
            logger.warning("key of a call not forgotten reason=%s", exc)

    def _name(self, key: str) -> str:
        return hmac.digest(self._secret, key.encode(), hashlib.sha256).hex()

    def _seal(self, name: str, outcome: Outcome) -> str:
        error = outcome.error
        said: dict[str, Any] = {"id": outcome.id, "created": outcome.created}
        if outcome.result is not None:
            said["result"] = asdict(outcome.result)
        if error is not None:
            said["error"] = [error.kind.value, error.detail, error.may_have_run]
        data = write_json(said).encode()
        if len(data) > MAX_OUTCOME:
            del said["result"]
            data = write_json(said).encode()
        return base64.b64encode(self._cipher.seal(data, name)).decode("ascii")

    def _open(self, known: CallRecord) -> Outcome:
        try:
            data = base64.b64decode(known.sealed, validate=True)
            opened = self._cipher.open(data, known.id)
            said = json.loads(opened, parse_float=read_number)
            result, error = said.get("result"), said.get("error")
            if result is None and error is None:
                return replace(_unknown(known, NOT_KEPT), id=said["id"])
            return Outcome(
                id=said["id"],
                created=said["created"],
                result=None if result is None else _reader().validate_python(result),
                error=None if error is None else _error(*error),
            )
        except (RecordError, ValueError, KeyError, TypeError, ValidationError):
            # As after a change of the identity's key.
            return _unknown(known, NO_OUTCOME)


def fingerprint(request: CallRequest, secret: bytes) -> str:
    """Return what tells a request from another one with the same key."""
    bare = request._replace(on_progress=None, on_sign=None, on_send=None)
    said = {**bare._asdict(), "need": asdict(request.need)}
    data = write_json(said, sort_keys=True, default=str).encode()
    return hmac.digest(secret, data, hashlib.sha256).hex()


def _error(kind: str, detail: str, may_have_run: bool) -> CallError:
    return CallError(ErrorKind(kind), detail, may_have_run=may_have_run)


def _unknown(known: CallRecord, detail: str) -> Outcome:
    error = CallError(ErrorKind.INTERRUPTED, detail, may_have_run=True)
    return Outcome(id=known.id[:16], created=known.created, error=error)
