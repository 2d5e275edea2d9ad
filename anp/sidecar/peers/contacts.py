"""Remembers why peers could not be reached at the last try."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from anp.channel.links import LinkTarget
from anp.errors import CallError
from anp.identity.dids import agent_name

MAX_TROUBLES: Final = 1_000
"Peers whose trouble is remembered; the oldest one goes."


@dataclass(frozen=True, slots=True)
class Trouble:
    """The last try to reach a peer failed."""

    detail: str
    "The reason, in words."

    at: float
    "Seconds since 1970."


class Contacts:
    """The peers that could not be reached at the last try, by DID and by URL.

    It lives in memory: a daemon that starts anew has not tried anybody yet.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._troubles: OrderedDict[str, Trouble] = OrderedDict()

    def note(self, target: LinkTarget, problem: CallError | None) -> None:
        """Note that a peer was reached, or the problem for which it was not."""
        names = [agent_name(target.did), *([target.url] if target.url else [])]
        for name in names:
            if problem is None:
                self._troubles.pop(name, None)
            else:
                self._keep(name, problem)

    def note_url(self, url: str, problem: CallError) -> None:
        """Note that the peer that is meant did not answer at a URL."""
        self._keep(url, problem)

    def trouble(self, *names: str) -> Trouble | None:
        """Return the newest trouble with a peer, or None if the last try went well.

        Args:
            names: Its DIDs and URLs.
        """
        keys = {*names, *(agent_name(one) for one in names if one.startswith("did:"))}
        found = (self._troubles.get(key) for key in keys)
        return max(
            (one for one in found if one is not None),
            key=lambda one: one.at,
            default=None,
        )

    def _keep(self, name: str, problem: CallError) -> None:
        self._troubles.pop(name, None)
        self._troubles[name] = Trouble(problem.detail, self._clock())
        while len(self._troubles) > MAX_TROUBLES:
            self._troubles.popitem(last=False)
