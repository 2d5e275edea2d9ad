"""The connection to Redis or Valkey, the examination of the server, and its errors."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from cache.errors import CacheError, StoreUnavailable
from cache.records.records import FORMAT
from cache.redis.place import RedisPlace
from cache.redis.rows import Command, Names
from cache.rows import Room

_INSTALL = "cache: a store on Redis needs one more package: pip install 'anpd[redis]'"

_LOOPBACK = ("localhost", "127.", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisTimes:
    """Time limits for the server."""

    connect: float = 2.0
    "Seconds to connect."

    answer: float = 2.0
    """Seconds to wait for one answer. All callers wait with it, once in an outage."""

    contention: float = 5.0
    "Seconds for which a change is repeated while other daemons change the same rows."

    retry: float = 1.0
    "Seconds after a failure in which the server is not asked again."

    patience: float = 0.1
    "Seconds for which a call in an outage waits to see whether the server is back."

    away: float = 60.0
    """Seconds of an outage in which rows read before still count, so that calls go on;
    a revocation by another daemon is seen at the latest after this time."""


class Conflict(Exception):
    """Another client changed something that the transaction had read."""


class RedisServerError(CacheError):
    """The server answers but cannot be our store; waiting will not help."""


@dataclass(frozen=True, slots=True)
class ServerSuitability:
    """The result of examining a server."""

    run_id: str
    "The server's id of its run; it changes with each start."

    is_known: bool
    "True when our rows were last used on this run, or there are no rows."

    warnings: tuple[str, ...]
    "Faults in the server's settings, one line each."


class Connection(Protocol):
    """The used part of a connection of the untyped `redis` package."""

    def send_command(self, *args: str | bytes | int) -> None:
        """Send one command."""
        ...

    def pack_commands(self, commands: list[Command]) -> list[bytes]:
        """Return the bytes of several commands."""
        ...

    def send_packed_command(self, command: list[bytes]) -> None:
        """Send the bytes of packed commands."""
        ...

    def read_response(self) -> Any:
        """Return the next answer, or raise the error that it holds."""
        ...

    def disconnect(self) -> None:
        """Close the socket."""
        ...


class RedisConnection:
    """One connection; it cannot be used again after a failure."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._watching = False
        self.changing = False
        "True once a change was sent, until its answer came."

    def call(self, *command: str | bytes | int) -> Any:
        """Send one command and return its answer."""
        self._connection.send_command(*command)
        return self._connection.read_response()

    def batch(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands together and return their answers; raises the first error."""
        if commands:
            packed = self._connection.pack_commands(list(commands))
            self._connection.send_packed_command(packed)
        return [self._connection.read_response() for _ in commands]

    def watch(self, name: str) -> None:
        """Make the next `change` fail if `name` changes before it."""
        self._watching = True
        self.call("WATCH", name)

    def change(self, commands: Sequence[Command]) -> None:
        """Carry out all commands, or none.

        Raises:
            Conflict: something watched has changed.
        """
        whole: list[Command] = [("MULTI",), *commands, ("EXEC",)]
        self._watching = False
        self.changing = True
        self._connection.send_packed_command(self._connection.pack_commands(whole))
        refusal: Exception | None = None
        answer: Any = None
        for _ in whole:
            try:
                answer = self._connection.read_response()
            except _redis().ResponseError as exc:
                # The first error gives the reason; EXEC then only reports that one
                # occurred.
                refusal = refusal or exc
        self.changing = False
        if refusal is not None:
            raise refusal
        if answer is None:
            raise Conflict
        for part in answer:
            if isinstance(part, Exception):
                raise part

    def unwatch(self) -> None:
        """Stop watching."""
        if self._watching:
            self._watching = False
            self.call("UNWATCH")

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(OSError, _redis().RedisError):
            self._connection.disconnect()


Dial: TypeAlias = Callable[[RedisPlace, RedisTimes], RedisConnection]


def dial(place: RedisPlace, times: RedisTimes) -> RedisConnection:
    """Connect and log in; raises errors that `is_failure` recognises."""
    redis = _redis()
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    options: dict[str, Any] = {
        "db": place.db,
        "username": place.username,
        "password": place.password,
        "socket_connect_timeout": times.connect,
        "socket_timeout": times.answer,
        "client_name": "anpd",
        # A repetition inside the library could make a change twice.
        "retry": Retry(NoBackoff(), 0),
        "health_check_interval": 0,
        "protocol": 2,
    }
    connection: Any
    if place.scheme == "unix":
        connection = redis.UnixDomainSocketConnection(path=place.path, **options)
    else:
        options |= {"host": place.host, "port": place.port, "socket_keepalive": True}
        if place.scheme == "rediss":
            options |= {
                "ssl_cert_reqs": "required",
                "ssl_check_hostname": True,
                "ssl_min_version": ssl.TLSVersion.TLSv1_2,
                "ssl_ca_certs": None if place.ca_file is None else str(place.ca_file),
            }
            connection = redis.SSLConnection(**options)
        else:
            connection = redis.Connection(**options)
    connection.connect()
    return RedisConnection(connection)


def examine(
    wire: RedisConnection, names: Names, place: RedisPlace, *, owner: str
) -> ServerSuitability:
    """Examine the server and claim the prefix, if it is free.

    Raises:
        ServerError: the server cannot be our store.
    """
    info = _info(wire)
    if info.get("role") not in {None, "master"}:
        raise RedisServerError(f"cache: {place.shown} is a replica; name the primary")
    if info.get("cluster_enabled") == "1" and "{" not in place.prefix:
        raise RedisServerError(
            f"cache: {place.shown} is a cluster, whose keys of one transaction have to "
            'be together; set cache.prefix = "{anpd}"'
        )
    for field, value in (("format", str(FORMAT)), ("owner", owner)):
        found = _text(wire.call("HGET", names.about, field))
        if value and found is None:
            # HSETNX: of two daemons that claim at once, only one succeeds.
            wire.call("HSETNX", names.about, field, value)
            found = _text(wire.call("HGET", names.about, field))
        if value and found != value:
            what = (
                "another version of anpd" if field == "format" else "another identity"
            )
            raise RedisServerError(
                f"cache: the keys {place.prefix}:* at {place.shown} belong to {what}; "
                "set another cache.prefix"
            )
    run_id = info.get("run_id", "")
    known = _text(wire.call("HGET", names.about, "run_id"))
    if known is None:
        wire.call("HSET", names.about, "run_id", run_id)
    return ServerSuitability(run_id, known in {None, run_id}, _warnings(info, place))


def explain(exc: Exception, place: RedisPlace) -> str:
    """Return one line with the failure and what the owner can do, without password."""
    errors = _redis().exceptions
    if isinstance(exc, RedisServerError):
        return str(exc)
    if isinstance(exc, errors.ReadOnlyError):
        return f"cache: {place.shown} is a replica by now; name the primary"
    if isinstance(exc, errors.OutOfMemoryError):
        return (
            f"cache: no space left at {place.shown}; raise its maxmemory and try again"
        )
    if isinstance(exc, errors.AuthenticationError | errors.AuthorizationError):
        return (
            f"cache: {place.shown} refuses the user or password; see cache.url and "
            "ANPD_CACHE__URL"
        )
    if isinstance(exc, errors.NoPermissionError):
        return (
            f"cache: the user may not do what a store needs at {place.shown}; allow "
            "~prefix:* +@read +@write +@transaction +@connection +info"
        )
    cause: BaseException | None = exc
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return (
                f"cache: the certificate of {place.shown} is not trusted "
                f"({cause.verify_message}); set cache.ca_file"
            )
        if isinstance(cause, ssl.SSLError):
            return f"cache: {place.shown} does not speak TLS with us; see cache.url"
        cause = cause.__cause__ or cause.__context__
    if isinstance(exc, errors.ResponseError):
        # Only the first word, a code, is shown: the rest may quote what was sent.
        code = str(exc).partition(" ")[0][:40]
        return f"cache: {place.shown} refuses a command ({code}); see its log"
    if isinstance(exc, errors.TimeoutError):
        return f"cache: {place.shown} does not answer; check the server and the network"
    return (
        f"cache: {place.shown} cannot be reached; check that the server runs and that "
        "cache.url is right"
    )


def is_outage(exc: Exception) -> bool:
    """Return whether the server cannot be reached, but may be reachable later."""
    redis = _redis()
    # One that took the server's place and cannot be our store may be gone again, too.
    outages = redis.ConnectionError | redis.TimeoutError | OSError | RedisServerError
    return isinstance(exc, outages)


def is_closed(exc: Exception) -> bool:
    """Return whether the server closed the connection; it may take a new one."""
    redis = _redis()
    if isinstance(exc, redis.TimeoutError | TimeoutError):
        return False
    return isinstance(exc, redis.ConnectionError | OSError)


def is_full(exc: Exception) -> bool:
    """Return whether the server has no memory left for a change."""
    return isinstance(exc, _redis().OutOfMemoryError)


def room_of(wire: RedisConnection) -> Room | None:
    """Return the room that `maxmemory` leaves; None without one."""
    info = _info(wire)
    total, used = info.get("maxmemory", "0"), info.get("used_memory", "0")
    if not (total.isdigit() and used.isdigit() and int(total)):
        return None
    return Room(max(0, int(total) - int(used)), int(total))


def is_failure(exc: Exception) -> bool:
    """Return whether the server or the connection failed, not our own work."""
    return isinstance(exc, _redis().RedisError | OSError | RedisServerError)


def _redis() -> Any:
    """Return the package, which is installed only where Redis stores are wanted."""
    try:
        import redis
    except ImportError:
        raise StoreUnavailable(_INSTALL) from None
    return redis


def _info(wire: RedisConnection) -> Mapping[str, str]:
    try:
        text = _text(wire.call("INFO")) or ""
    except _redis().ResponseError:
        # Some services forbid INFO; then there is nothing to warn about.
        return {}
    pairs = (line.partition(":") for line in text.splitlines() if ":" in line)
    return {name: value for name, _, value in pairs}


def _text(answer: object) -> str | None:
    return answer.decode("utf-8", "replace") if isinstance(answer, bytes) else None


def _warnings(info: Mapping[str, str], place: RedisPlace) -> tuple[str, ...]:
    said: list[str] = []
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        said.append(
            f"it may drop agreements to make room (maxmemory-policy {policy}); set "
            "maxmemory-policy noeviction"
        )
    if info.get("aof_enabled") == "0":
        said.append(
            "a restart loses what was agreed since its last snapshot; set appendonly "
            "yes"
        )
    if place.scheme == "redis" and not place.host.startswith(_LOOPBACK):
        said.append("the connection is not encrypted; use rediss://")
    return tuple(said)
