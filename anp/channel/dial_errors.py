"""Says in words why a connection to a peer could not be opened."""

from __future__ import annotations

import errno
import re
import socket
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

from websockets.exceptions import InvalidHandshake, InvalidStatus

_ERRNO = re.compile(r"\[Errno (-?\d+)\]")

_BY_ERRNO = {
    errno.ECONNREFUSED: "nothing listens there (connection refused)",
    errno.ECONNRESET: "the connection was cut while it was being opened",
    errno.EHOSTUNREACH: "there is no route to that machine",
    errno.ENETUNREACH: "there is no route to that network",
    errno.EHOSTDOWN: "that machine is down",
    errno.ETIMEDOUT: "no answer in time",
    errno.EACCES: "this machine does not allow such a connection",
    errno.EPERM: "this machine does not allow such a connection",
    errno.EMFILE: "this daemon has too many files and connections open",
    errno.ENFILE: "this machine has too many files and connections open",
}


def dial_problem(
    exc: BaseException,
    url: str,
    *,
    waited: float | None = None,
    service: str = "its anpd",
) -> str:
    """Return why a connection to `url` failed, in words for people.

    Args:
        exc: Exception of the attempt; those that caused it are looked at, too.
        waited: Seconds that the attempt was given.
        service: The program that should listen there.
    """
    words = _reason(exc, url, waited)
    refused = words == _BY_ERRNO[errno.ECONNREFUSED]
    return f"{words}; is {service} up?" if refused else words


def _reason(exc: BaseException, url: str, waited: float | None) -> str:
    chain = list(_causes(exc))
    for one in chain:
        found = _words(one, url)
        if found is not None:
            return found
    if any(isinstance(one, TimeoutError) for one in chain):
        return f"no answer within {waited:g} s" if waited else "no answer in time"
    if any(isinstance(one, EOFError | InvalidHandshake) for one in chain):
        return "what listens there does not speak WebSocket; is it an anpd?"
    for one in chain:
        # A list of attempts at several addresses has their numbers in its text alone.
        for number in _ERRNO.findall(str(one)) if isinstance(one, OSError) else ():
            if int(number) in _BY_ERRNO:
                return _BY_ERRNO[int(number)]
    words = [one.strerror for one in chain if isinstance(one, OSError) and one.strerror]
    return words[0].lower() if words else "the connection failed"


def _words(exc: BaseException, url: str) -> str | None:
    """Return the words for an exception that says everything itself, or None."""
    host = urlsplit(url).hostname or url
    match exc:
        case ssl.SSLCertVerificationError():
            return f"TLS: its certificate is not accepted ({exc.verify_message})"
        case ssl.SSLError():
            if exc.reason in {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"}:
                return "TLS: what listens there does not speak TLS; is it ws://?"
            reason = (exc.reason or "no reason given").replace("_", " ").lower()
            return f"TLS could not be set up ({reason})"
        case socket.gaierror():
            if exc.errno == socket.EAI_AGAIN:
                return f"the name {host} cannot be looked up now"
            return f"the name {host} was not found"
        case InvalidStatus():
            status = exc.response.status_code
            return f"what listens there answers HTTP {status}; is it an anpd?"
        case OSError() if exc.errno in _BY_ERRNO:
            return _BY_ERRNO[exc.errno]
    if type(exc).__name__ == "RemoteProtocolError":
        # Of an HTTP client, which is imported only where it is used.
        return "what listens there does not speak HTTP; is it an anpd?"
    return None


def _causes(exc: BaseException) -> Iterator[BaseException]:
    """Give an exception and those behind it, the outermost first."""
    seen: set[int] = set()
    following: BaseException | None = exc
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        if isinstance(following, BaseExceptionGroup):
            following = following.exceptions[0]
        else:
            following = following.__cause__ or following.__context__
