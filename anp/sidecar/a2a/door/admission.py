"""The door of the A2A face: who calls, and how often (A2A-3, A2A-21)."""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final

from anp.interaction.elements import JWT, LOCAL
from anp.sidecar.a2a.door.callers import A2aCaller
from anp.sidecar.a2a.door.issuer import BadToken, Issuer
from anp.sidecar.a2a.door.tokens import TokenBook, bearer_of

EVERYBODY: Final = A2aCaller(name="everybody")
"The caller of a face that asks for no token."

MAX_CALLERS: Final = 10_000
"Callers of the issuer whose exposure and pace are remembered."

LOOK: Final = 1.0
"Seconds after which a token that was revoked is noticed."

WORDS: Final = "a bearer token of this agent is needed"


class NotAdmitted(Exception):
    """A request is turned away before it is read; the text is for its caller."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str]) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.headers = headers


class CallerPace:
    """The rate at which the requests of each caller are taken."""

    def __init__(
        self, rate: float, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Make it.

        Args:
            rate: Requests in a second; two seconds' worth may come at once.
        """
        self._rate = rate
        self._clock = clock
        self._spent: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, name: str) -> float:
        """Count a request; return 0, or the seconds until one would be taken."""
        if not self._rate:
            return 0.0
        now = self._clock()
        spent, at = self._spent.pop(name, (0.0, now))
        spent = max(0.0, spent - (now - at) * self._rate)
        over = spent + 1 - self._rate * 2
        # What is turned away is not counted.
        self._spent[name] = (spent if over > 0 else spent + 1), now
        if len(self._spent) > MAX_CALLERS:
            self._spent.popitem(last=False)
        return max(0.0, over / self._rate)


class A2aDoor:
    """Finds out who calls: by a token of ours, or by one of the trusted issuer."""

    def __init__(
        self,
        tokens: TokenBook,
        *,
        issuer: Issuer | None = None,
        is_open: bool = False,
        rate: float = 0.0,
        on_change: Callable[[Mapping[str, tuple[str, ...] | None]], None],
    ) -> None:
        """Make the door.

        Args:
            is_open: Everybody is let in, and is one caller.
            rate: Requests in a second of each caller; 0 for no limit.
            on_change: Told what is exposed to each caller, by their ids.
        """
        self._tokens = tokens
        self._issuer = issuer
        self._is_open = is_open
        self._pace = CallerPace(rate)
        self._on_change = on_change
        self._issued: OrderedDict[str, tuple[str, ...] | None] = OrderedDict()
        tokens.watch(self._tell)
        tokens.callers()
        self._tell()

    async def find(self, headers: Mapping[str, str]) -> A2aCaller | None:
        """Return who sends a request; None for one without credentials.

        Raises:
            NotAdmitted: The credentials are worthless, or it sends too much.
        """
        caller = await self._caller(headers)
        if caller is None:
            return None
        wait = self._pace.wait(caller.id)
        if wait:
            raise NotAdmitted(
                429,
                "too many requests; wait a moment",
                {"Retry-After": str(math.ceil(wait))},
            )
        return caller

    async def admit(self, headers: Mapping[str, str]) -> A2aCaller:
        """Return who sends a request.

        Raises:
            NotAdmitted: It is nobody that is known, or it sends too much.
        """
        caller = await self.find(headers)
        if caller is None:
            raise NotAdmitted(401, WORDS, {"WWW-Authenticate": "Bearer"})
        return caller

    def holds(self, caller: str, grant: str) -> bool:
        """Return whether what a caller set, or listens to, goes on.

        With a token of ours it goes on as long as the token; with one of an issuer,
        which lives for minutes, as long as the issuer is trusted.

        Args:
            caller: Its id.
            grant: As in `A2aCaller`.
        """
        if grant:
            return self._tokens.counts(grant)
        if caller == EVERYBODY.id:
            return self._is_open
        return caller.startswith(f"{LOCAL}{JWT}") and self._issuer is not None

    def look(self) -> None:
        """Take note of tokens that were revoked, also while nobody sends a request."""
        self._tokens.callers()

    async def _caller(self, headers: Mapping[str, str]) -> A2aCaller | None:
        if self._is_open:
            return EVERYBODY
        if not headers.get("authorization"):
            return None
        caller = self._tokens.find(headers)
        if caller is not None:
            if self._tokens.note_use(caller.name):
                await asyncio.to_thread(self._tokens.write_uses)
            return caller
        token = bearer_of(headers)
        if self._issuer is not None and token.count(".") == 2:
            return await self._of_issuer(self._issuer, token)
        raise _invalid(WORDS if not token else f"{WORDS}: this one is not known")

    async def _of_issuer(self, issuer: Issuer, token: str) -> A2aCaller:
        try:
            caller = await issuer.caller(token)
        except BadToken as exc:
            if exc.scopes:
                raise NotAdmitted(
                    403,
                    str(exc),
                    {
                        "WWW-Authenticate": 'Bearer error="insufficient_scope", '
                        f'scope="{" ".join(exc.scopes)}"'
                    },
                ) from exc
            raise _invalid(str(exc)) from exc
        known = self._issued.pop(caller.id, ())
        # The newest token of a caller counts for its tasks that are at work.
        self._issued[caller.id] = caller.expose
        if len(self._issued) > MAX_CALLERS:
            self._issued.popitem(last=False)
        if known != caller.expose:
            self._tell()
        return caller

    def _tell(self) -> None:
        found = {EVERYBODY.id: None} if self._is_open else {}
        of_tokens = {one.id: one.expose for one in self._tokens.known()}
        self._on_change({**found, **self._issued, **of_tokens})


def _invalid(text: str) -> NotAdmitted:
    challenge = f'Bearer error="invalid_token", error_description="{text}"'
    return NotAdmitted(401, text, {"WWW-Authenticate": challenge})
