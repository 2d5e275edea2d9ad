"""Scopes of local callers: operations that an agent may use, and those of the owner.

The agent's program, the MCP face and `anpd run` have the scope `agent`: it makes calls
and reads what they need. Whatever approves, exposes, trusts or configures needs the
scope `owner`. The guard gives each request its scope, and the table checks it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from starlette.requests import Request

from anp.errors import ErrorKind
from anp.sidecar.api.problems import ApiError

__all__ = ["LocalScope", "check_scope", "give_scope", "scope_of"]

SCOPE: Final = "anpd.scope"
"The key of a request's state (ASGI) under which its scope stands."


class LocalScope(StrEnum):
    """A scope, of a request or as an operation needs it."""

    NONE = "none"
    "No token: it is enough for probes."

    AGENT = "agent"
    "Calls, and reading what they need; the scope of the socket and of `api.token`."

    OWNER = "owner"
    "Everything; the scope of the token in `owner.json` and of the dashboard."

    def covers(self, needed: LocalScope) -> bool:
        """Tell whether a request of this scope may do what needs another."""
        order = list(LocalScope)
        return order.index(self) >= order.index(needed)


def give_scope(request: Any, scope: LocalScope) -> None:
    """Note the scope of a request (an ASGI scope) for the operation that takes it."""
    request.setdefault("state", {})[SCOPE] = scope


def scope_of(request: Request) -> LocalScope:
    """Return the scope of a request; `NONE` if no guard gave it one."""
    found = request.scope.get("state", {}).get(SCOPE, LocalScope.NONE)
    assert isinstance(found, LocalScope), "only give_scope writes it"
    return found


def check_scope(request: Request, needed: LocalScope, *, what: str) -> None:
    """Let a request pass that has the scope.

    Args:
        what: The thing that needs it, for the message.

    Raises:
        ApiError: It has not; 403, with the scope and how to get it.
    """
    if scope_of(request).covers(needed):
        return
    how = {
        LocalScope.OWNER: "use the command line as the daemon's user, or the "
        "dashboard; both show the token in owner.json of the daemon's home",
    }.get(needed, "send Authorization: Bearer with a token of this daemon")
    raise ApiError(
        403,
        f"{what} needs the scope {needed}, and this request has the scope "
        f"{scope_of(request)}; {how}",
        kind=ErrorKind.POLICY,
        headers={
            "WWW-Authenticate": 'Bearer realm="anpd", error="insufficient_scope", '
            f'scope="{needed}"'
        },
        needed_scope=needed.value,
    )
