"""Brings callers of A2A the updates of their tasks at addresses they name (A2A-25).

The addresses stand in the sealed heads of the sessions and the updates in their logs,
so that a restart goes on where a kill ended. Each address is told in order, one update
at a time, and an update that was not taken is brought again: at least once.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import hashlib
import json
import logging
import re
import time
import uuid
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final

from anp.channel.stranger_work import counted
from anp.identity.keys import PrivateKey
from anp.identity.web.fetcher import Fetcher
from anp.identity.web.guard import FetchError
from anp.interaction.conversation import Conversation
from anp.interaction.elements import PushTarget, SessionEvent
from anp.interaction.errors import InteractionError
from anp.interaction.step import Step
from anp.protocols.a2a.objects import PushConfig, TaskUpdate
from anp.protocols.a2a.view import A2aView
from anp.protocols.a2a.words import A2aError, A2aFault, A2aVersion
from anp.protocols.a2a.writer import write_stream, write_task
from anp.sidecar.a2a.door.callers import A2aCaller
from anp.sidecar.tasks.delivery.attempts import Attempts, Letter
from anp.sidecar.tasks.known import KnownTask
from anp.sidecar.tasks.sessions import Sessions
from jsonic.exact_numbers import write_json

# Signs push notifications as JWTs, whose public key callers find under the face.
#
# The claims are those of the A2A documents (JWT and JWKS), with the hash of the body as
# the samples of A2A have it, so that a receiver written after them takes ours.


PURPOSE: Final = b"anpd a2a push notifications"
"The purpose of the key, which is made of that of the identity."

KEYS_PATH: Final = "/.well-known/jwks.json"
"Path of the public key below the address of the face."

SIGNATURE_HEADER: Final = "X-A2A-Notification-Signature"
"Header with the JWT; `Authorization` may hold credentials of the receiver's."

LIFETIME: Final = 300
"Seconds after which a receiver believes a JWT no more."


class PushSigner:
    """Makes the JWT of each attempt to bring an update."""

    def __init__(
        self, key: PrivateKey, issuer: str, *, clock: Callable[[], float] = time.time
    ) -> None:
        """Make it.

        Args:
            key: A P-256 key that signs nothing else.
            issuer: The address of the face, as its card has it.
            clock: Unix time in seconds.
        """
        self._key = key
        self.issuer = issuer
        self._clock = clock
        self._head = {"alg": "ES256", "kid": key.public_key.thumbprint, "typ": "JWT"}

    @property
    def keys(self) -> dict[str, Any]:
        """The public key as a JWK set (RFC 7517)."""
        more = {"use": "sig", "alg": "ES256", "kid": self._head["kid"]}
        return {"keys": [{**self._key.public_key.jwk, **more}]}

    def sign(self, body: bytes, *, url: str, task: str) -> str:
        """Return a JWT for a body that is sent to an address now.

        Args:
            task: Id of the task in A2A.
        """
        now = int(self._clock())
        claims = {
            "iss": self.issuer,
            "aud": url,
            "iat": now,
            "exp": now + LIFETIME,
            "jti": str(uuid.uuid4()),
            "taskId": task,
            "request_body_sha256": hashlib.sha256(body).hexdigest(),
        }
        text = b".".join(_encode(_json(one)) for one in (self._head, claims))
        return b".".join((text, _encode(self._key.sign(text)))).decode("ascii")


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _encode(data: bytes) -> bytes:
    return urlsafe_b64encode(data).rstrip(b"=")


logger = logging.getLogger(__name__)

MAX_ADDRESSES: Final = 200
"Addresses of one caller that may wait for updates at a time."

MAX_AT_ONCE: Final = 4
"Updates of one caller that are brought at a time."

DEADLINE: Final = 10.0
"Seconds for which a receiver may take an update."

PAGE: Final = 200
"Events that are read from a log at a time."

CONTENT_TYPES: Final = {
    A2aVersion.V03: "application/json",
    A2aVersion.V10: "application/a2a+json",
}

_WORD: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]*")
_VALUE: Final = re.compile(r"([\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?)?")


@dataclass(slots=True, eq=False)
class _Bringing:
    """One address that waits for updates."""

    log: str
    task: str
    "Id of the task in its session."

    name: str
    caller: str
    grant: str
    known: str
    "Id of the task in A2A."

    attempts: Attempts = field(default_factory=Attempts)
    oldest: datetime | None = None
    "When the update came that could not be brought."

    is_dead: bool = False
    running: asyncio.Task[None] | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """Its place."""
        return self.log, self.task, self.name


class PushDesk:
    """Keeps the addresses of callers, and brings what happens in their tasks."""

    def __init__(
        self,
        sessions: Sessions,
        fetcher: Fetcher,
        signer: PushSigner,
        *,
        holds: Callable[[str, str], bool],
    ) -> None:
        """Bring nothing yet; see `start`.

        Args:
            fetcher: Refuses inward addresses; its places are for this alone.
            holds: Says, of a caller's id and `grant`, whether its addresses count.
        """
        self._holds = holds
        self._sessions = sessions
        self._fetcher = fetcher
        self._signer = signer
        self._bringing: dict[tuple[str, str, str], _Bringing] = {}
        self._used: Counter[str] = Counter()
        self._places: dict[str, asyncio.Semaphore] = {}
        self._dropping: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Go on with what a stop or a kill interrupted."""
        async for log in self._sessions.busy():
            with contextlib.suppress(InteractionError):
                conversation = await self._sessions.conversation(log)
                for target in list(conversation.pushes.values()):
                    if not target.done:
                        item = await self._sessions.item_of(log, target.task)
                        self._begin(log, item, target, _caller_of(conversation))
        self.recheck()

    async def close(self) -> None:
        """Bring nothing more; what waits is brought after the next start."""
        running = [one.running for one in self._bringing.values() if one.running]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, *self._dropping, return_exceptions=True)

    # The methods of A2A. All raise `A2aError`.

    async def set(
        self, caller: A2aCaller, known: KnownTask, config: PushConfig, *, after: int
    ) -> PushConfig:
        """Keep an address for a task; return it as it is kept.

        Args:
            after: Number of the newest event of which it need not be told.
        """
        await self.check(caller, config)
        made = PushTarget(
            task=known.task.id,
            id=config.id or known.id,
            url=config.url,
            version=str(config.version),
            token=config.token,
            scheme=config.scheme,
            credentials=config.credentials,
            grant=caller.grant,
            told=after,
        )
        kept = await self._apply(known.log, lambda c: c.push(made))
        target = kept.pushes[made.task, made.id]
        self._end((known.log, target.task, target.id))
        if not target.done:
            self._begin(known.log, known.id, target, caller.id)
        return _config(known, target)

    async def check(self, caller: A2aCaller, config: PushConfig) -> None:
        """Check an address before anything is done for it."""
        if self._used[caller.id] >= MAX_ADDRESSES:
            raise A2aError(
                A2aFault.PARAMS, f"at most {MAX_ADDRESSES} addresses may be told"
            )
        for name, value, form in (
            ("token", config.token, _VALUE),
            ("authentication.scheme", config.scheme, _WORD),
            ("authentication.credentials", config.credentials, _VALUE),
        ):
            if form.fullmatch(value) is None:
                raise A2aError(A2aFault.PARAMS, f"{name}: is no value of a header")
        try:
            await self._fetcher.check(config.url)
        except FetchError as exc:
            # One that only has no address now may have one when it is told.
            if exc.refused:
                raise A2aError(
                    A2aFault.PARAMS, "url: must be https at a public address"
                ) from exc

    async def get(self, known: KnownTask, name: str) -> PushConfig:
        """Return an address; without a name the one that has none of its caller's."""
        configs = await self.list(known)
        for config in configs:
            if config.id == (name or known.id):
                return config
        if configs and not name:
            return configs[0]
        raise A2aError(A2aFault.TASK_NOT_FOUND, "the task has no such address")

    async def list(self, known: KnownTask) -> Sequence[PushConfig]:
        """Return the addresses of a task."""
        conversation = await self._sessions.conversation(known.log)
        return [
            _config(known, one)
            for one in conversation.pushes.values()
            if one.task == known.task.id
        ]

    async def has(self, known: KnownTask, name: str) -> bool:
        """Return whether a task has an address of a name."""
        return any(one.id == (name or known.id) for one in await self.list(known))

    async def delete(self, known: KnownTask, name: str) -> None:
        """Take an address back; one that is not there is none, either."""
        self._end((known.log, known.task.id, name or known.id))
        await self._apply(
            known.log, lambda c: c.stop_push(known.task.id, name or known.id)
        )

    async def _apply(
        self, log: str, act: Callable[[Conversation], Step]
    ) -> Conversation:
        try:
            await self._sessions.apply(log, act)
        except InteractionError as exc:
            raise A2aError(A2aFault.PARAMS, exc.text) from exc
        return await self._sessions.conversation(log)

    # What the owner sees; see `Letters`.

    async def letters(self) -> Sequence[Letter]:
        """Return what could not be brought yet."""
        found = []
        for one in list(self._bringing.values()):
            if one.oldest is None or not one.attempts.count:
                continue
            with contextlib.suppress(InteractionError, KeyError):
                conversation = await self._sessions.conversation(one.log)
                target = conversation.pushes[one.task, one.name]
                found.append(
                    Letter(
                        session=one.log,
                        peer=one.caller,
                        address=target.url,
                        waiting=conversation.last - target.told,
                        since=one.oldest.timestamp(),
                        attempts=one.attempts.count,
                        problem=one.attempts.problem,
                        dead=one.is_dead,
                    )
                )
        return found

    def retry(self) -> None:
        """See `Letters`."""
        for one in list(self._bringing.values()):
            one.attempts.again()
            if one.oldest is not None and one.running is not None:
                one.running.cancel()
                self._run(one)
            elif one.is_dead:
                self._run(one)

    # Bringing

    def _begin(self, log: str, known: str, target: PushTarget, caller: str) -> None:
        one = _Bringing(log, target.task, target.id, caller, target.grant, known)
        if one.key in self._bringing:
            return
        self._bringing[one.key] = one
        self._used[caller] += 1
        self._run(one)

    def _run(self, one: _Bringing) -> None:
        one.is_dead = False
        one.running = asyncio.create_task(
            counted(self._bring(one)), context=contextvars.Context()
        )
        one.running.add_done_callback(partial(self._ended, one))

    def _ended(self, one: _Bringing, running: asyncio.Task[None]) -> None:
        if one.running is running:
            one.running = None
            if not one.is_dead:
                self._forget(one)

    def _end(self, key: tuple[str, str, str]) -> None:
        one = self._bringing.get(key)
        if one is not None:
            self._forget(one)
            if one.running is not None:
                one.running.cancel()

    def _forget(self, one: _Bringing) -> None:
        if self._bringing.get(one.key) is one:
            del self._bringing[one.key]
            self._used[one.caller] -= 1
            if not self._used[one.caller]:
                del self._used[one.caller]
                self._places.pop(one.caller, None)

    async def _bring(self, one: _Bringing) -> None:
        """Bring updates until the task has ended, or they are a dead letter."""
        while True:
            try:
                # While nothing can be brought, nothing of the task is in memory.
                return await self._bring_all(one)
            except FetchError as exc:
                assert one.oldest is not None
                wait = one.attempts.failed(exc.reason)
                logger.info("push not taken task=%s reason=%s", one.known, exc.reason)
            except (InteractionError, KeyError):
                # The session or the address is gone.
                return None
            except Exception:
                logger.exception("push failed task=%s", one.known)
                return None
            if one.attempts.is_dead(one.oldest.timestamp()):
                logger.warning("push given up task=%s", one.known)
                one.is_dead = True
                return None
            await asyncio.sleep(wait)

    async def _bring_all(self, one: _Bringing) -> None:
        conversation = await self._sessions.conversation(one.log)
        target = conversation.pushes[one.task, one.name]
        version = A2aVersion(target.version)
        view = A2aView(
            one.known, conversation.session.id, name=one.task, files=self._signer.issuer
        )
        async for event in self._told(one.log, target.told):
            for _ in view.take(event):
                pass
        async for event in self._sessions.watch(one.log, after=target.told):
            is_told = False
            for update in view.take(event):
                await self._tell(one, target, event, _body(view, update, version))
                is_told = True
            if is_told or view.is_over:
                await self._note(one, event.number, done=view.is_over)
            if view.is_over:
                return

    async def _told(self, log: str, last: int) -> AsyncIterator[SessionEvent]:
        """Yield the events up to a number."""
        read = 0
        while read < last and (
            events := await self._sessions.events(log, after=read, limit=PAGE)
        ):
            for event in events:
                if event.number <= last:
                    yield event
            read = events[-1].number

    async def _note(self, one: _Bringing, told: int, *, done: bool) -> None:
        await self._sessions.apply(
            one.log, lambda c: c.pushed(one.task, one.name, told=told, done=done)
        )

    def recheck(self) -> None:
        """End the addresses that were set with a token that counts no more."""
        grants = {(one.caller, one.grant) for one in self._bringing.values()}
        ended = {one for one in grants if not self._holds(*one)}
        for one in list(self._bringing.values()):
            if (one.caller, one.grant) in ended:
                self._end(one.key)
                task = asyncio.create_task(self._drop(one))
                self._dropping.add(task)
                task.add_done_callback(self._dropping.discard)

    async def _drop(self, one: _Bringing) -> None:
        with contextlib.suppress(InteractionError):
            await self._sessions.apply(
                one.log, lambda c: c.stop_push(one.task, one.name)
            )
            logger.info("push ended, its token counts no more task=%s", one.known)

    async def _tell(
        self, one: _Bringing, target: PushTarget, event: SessionEvent, body: bytes
    ) -> None:
        headers = {"Content-Type": CONTENT_TYPES[A2aVersion(target.version)]}
        if target.token:
            headers["X-A2A-Notification-Token"] = target.token
        one.oldest = one.oldest or event.at
        places = self._places.setdefault(one.caller, asyncio.Semaphore(MAX_AT_ONCE))
        async with places:
            # Signed anew for each attempt, so that what was away long is not too old.
            signed = self._signer.sign(body, url=target.url, task=one.known)
            headers[SIGNATURE_HEADER] = signed
            headers |= _authorization(target, signed)
            await self._fetcher.post(
                target.url, body, headers=headers, deadline=DEADLINE
            )
        one.oldest = None
        one.attempts.reached()


def _body(view: A2aView, update: TaskUpdate, version: A2aVersion) -> bytes:
    """Return what is sent: in 0.3 the task as it is then, in 1.0 a stream's object."""
    written = (
        write_task(view.task, version)
        if version is A2aVersion.V03
        else write_stream(update, version)
    )
    return write_json(written, ensure_ascii=False, separators=(",", ":")).encode()


def _authorization(target: PushTarget, signed: str) -> dict[str, str]:
    """Return the header in which a receiver's own credentials stand, or else the JWT.

    A caller that names a bearer without credentials expects a JWT in that place.
    """
    if target.credentials or target.scheme.lower() not in ("", "bearer"):
        value = f"{target.scheme} {target.credentials}".strip()
        return {"Authorization": value} if target.scheme else {}
    return {"Authorization": f"Bearer {signed}"}


def _config(known: KnownTask, target: PushTarget) -> PushConfig:
    """Return an address as its caller sees it again, without what only it knows."""
    return PushConfig(
        id=target.id,
        task=known.id,
        url=target.url,
        token=target.token,
        scheme=target.scheme,
        version=A2aVersion(target.version),
    )


def _caller_of(conversation: Conversation) -> str:
    return conversation.session.requester.id
