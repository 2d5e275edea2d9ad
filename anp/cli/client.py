"""Finds the home that the options name, its configuration and its local API."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from anp.cli.output import Settings
from anp.errors import AnpError, CallError, ErrorKind
from anp.sidecar.home.home import Home, find_home
from jsonic.exact_numbers import read_number, write_json

if TYPE_CHECKING:
    from click import Context

    from anp.sidecar.config.settings import Config

# HTTP to a daemon over its Unix socket, with the standard library alone.
#
# A library for HTTP takes longer to load than a warm call takes.


BLOCK = 256 * 1024
"Bytes of a file that are sent at once; the library's own 8 KiB take twice as long."


class LostError(Exception):
    """There is no whole answer."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent
        "Whether the daemon may have the request."


class LocalHttp:
    """Requests to one daemon, each over a connection of its own.

    Args:
        path: Of the socket.
        headers: Sent with every request.
    """

    def __init__(self, path: str, headers: Mapping[str, str]) -> None:
        self._path = path
        self.headers = headers

    @contextmanager
    def ask(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | IO[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Generator[HTTPResponse]:
        """Send a request and give the answer, to be read before this ends.

        Raises:
            LostError: The daemon cannot be reached, or ends before its answer does.
        """
        target = f"{path}?{urlencode(params)}" if params else path
        connection = _Connection(self._path)
        try:
            try:
                connection.connect()
            except OSError as exc:
                raise LostError(exc.strerror or str(exc), sent=False) from exc
            # A body that is refused before all of it was sent has an answer, too.
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.request(
                    method, target, body, {**self.headers, **(headers or {})}
                )
            yield connection.getresponse()
        except (HTTPException, OSError) as exc:
            raise LostError(str(exc) or type(exc).__name__, sent=True) from exc
        finally:
            connection.close()


class _Connection(HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("anpd", blocksize=BLOCK)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket; without a limit of time, as calls may take long."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self._path)


BAD = 400
"The first status of HTTP that is an error."

WAITS = 202
"The status of a call that waits for an owner."

PIECE = 1 << 16
"Bytes of a file that are read at once."


def segment(text: str) -> str:
    """Return `text` as one segment of a path, whatever the user typed."""
    return quote(text, safe="")


def home_of(settings: Settings) -> tuple[Home, bool]:
    """Return the home that the options mean, and whether it was named."""
    return find_home(Path(settings.home) if settings.home else None)


def client_of(context: Context) -> Client:
    """Return the local API of the daemon that the options mean."""
    return Client(home_of(context.obj)[0])


def load_settings(settings: Settings, flags: dict[str, Any] | None = None) -> Config:
    """Return the configuration that the options mean; ConfigError if it is broken.

    Args:
        flags: Values of options by dotted key; None is an option that was not given.
    """
    from anp.sidecar.config.load import load_config

    home, given = home_of(settings)
    return load_config(
        home,
        home_given=given,
        config_file=Path(settings.config) if settings.config else None,
        flags=flags,
        environ=dict(os.environ),
        cwd=Path.cwd(),
    )


class Client:
    """One daemon's local API."""

    def __init__(self, home: Home) -> None:
        address = home.read_api()
        socket, headers = address.socket, {}
        self._no_owner = ""
        try:
            owner = home.read_owner()
            socket, headers = owner.socket, {"authorization": f"Bearer {owner.token}"}
        except CallError as exc:
            # Another user, such as one in a container beside the daemon's: enough for
            # calls, and a refusal says what is missing.
            self._no_owner = exc.detail
        self._http = LocalHttp(socket, headers)
        self._home = home

    def get(self, path: str, **params: str) -> Any:
        """Return the JSON at `path`."""
        return _read(self._ask("GET", path, params=params)[1])

    def peer_names(self) -> dict[str, str]:
        """Return the name of each peer that has one, by its DID."""
        # A table without names is better than none.
        with suppress(AnpError, KeyError):
            peers = self.get("/v1/peers")["peers"]
            return {one["did"]: one["names"][0] for one in peers if one["names"]}
        return {}

    def get_bytes(self, path: str, **params: str) -> bytes:
        """Return the bytes at `path`."""
        return self._ask("GET", path, params=params)[1]

    def download(self, path: str) -> Generator[bytes, None, None]:
        """Give the bytes at `path` as they come; they are whole if it does not raise.

        Raises:
            CallError: The daemon does not answer, or refuses.
        """
        try:
            with self._http.ask("GET", path) as answer:
                if answer.status >= BAD:
                    raise self._refusal(answer.status, answer.read())
                while piece := answer.read1(PIECE):
                    yield piece
                if answer.length:
                    raise LostError("the file ended early", sent=True)
        except LostError as exc:
            raise self._unreachable(exc) from exc

    def upload(self, path: Path, *, name: str, media_type: str) -> Any:
        """Send a file to the daemon; return what it says of it.

        Raises:
            CallError: The file cannot be read, or the daemon refuses it.
        """
        try:
            with path.open("rb") as file:
                answer = self._ask(
                    "POST",
                    "/v1/files",
                    body=file,
                    headers={
                        "content-type": "application/octet-stream",
                        "content-length": str(os.fstat(file.fileno()).st_size),
                    },
                    params={"name": name, "media_type": media_type},
                )
        except OSError as exc:
            raise CallError(
                ErrorKind.USAGE, f"{path} cannot be read: {exc.strerror}"
            ) from exc
        return _read(answer[1])

    def post(
        self, path: str, body: dict[str, Any] | None = None, **headers: str
    ) -> Any:
        """Post JSON and return the answer."""
        return _read(self._post(path, body, headers)[1])

    def call(self, body: dict[str, Any]) -> Any:
        """Call a peer and return the result.

        A call that has to be approved is taken back here: its caller types it again,
        and must not have two.

        Raises:
            CallError: There is no result.
        """
        try:
            status, content = self._post("/v1/calls", body)
        except KeyboardInterrupt:
            # The daemon takes the call back, but the peer may have begun with it.
            raise CallError(
                ErrorKind.INTERRUPTED, "interrupted", may_have_run=True
            ) from None
        found = _read(content)
        if status != WAITS:
            return found
        return self.take_back(found)

    def take_back(self, waiting: dict[str, Any]) -> Any:
        """Cancel a call that waits for an owner; return a result that came meanwhile.

        Raises:
            CallError: There is no result.
        """
        ended = self.post(f"/v1/calls/{waiting['id']}/cancel")
        if ended["result"] is not None:
            return ended["result"]
        ran = (ended["problem"] or {}).get("may_have_run")
        raise problem_error(ended["problem"] if ran else waiting["problem"])

    def events(
        self, path: str, body: dict[str, Any] | None = None, *, after: int = 0
    ) -> Generator[dict[str, Any], None, None]:
        """Give server-sent events as they come; first an empty one: the stream is open.

        Args:
            body: JSON to post; without it the stream is asked for with GET.
            after: Only those with higher numbers, where a stream can be resumed.

        Raises:
            CallError: The daemon does not answer, or refuses.
        """
        headers = {"last-event-id": str(after)} if after else {}
        method, data = "GET", None
        if body is not None:
            method, data = "POST", _written(body)
            headers["content-type"] = "application/json"
        try:
            with self._http.ask(method, path, body=data, headers=headers) as answer:
                if answer.status >= BAD:
                    raise self._refusal(answer.status, answer.read())
                yield {}
                for line in answer:
                    if line.startswith(b"data: "):
                        yield _read(line.removeprefix(b"data: "))
        except LostError as exc:
            raise self._unreachable(exc) from exc

    def post_bytes(self, path: str, body: bytes, **params: str) -> Any:
        """Post the bytes of a JSON file as they are, and return the answer."""
        headers = {"content-type": "application/json"}
        return _read(
            self._ask("POST", path, body=body, headers=headers, params=params)[1]
        )

    def _post(
        self,
        path: str,
        body: dict[str, Any] | None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, bytes]:
        sent = {"content-type": "application/json", **(headers or {})}
        data = _written({} if body is None else body)
        return self._ask("POST", path, body=data, headers=sent)

    def _ask(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | IO[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, bytes]:
        """Return the status and the content of an answer that is none of an error."""
        try:
            with self._http.ask(
                method, path, params=params, body=body, headers=headers
            ) as answer:
                status, content = answer.status, answer.read()
        except LostError as exc:
            # Who took the request may have acted on it before it went away.
            sent = method == "POST" and exc.sent
            raise self._unreachable(exc, may_have_run=sent) from exc
        if status < BAD:
            return status, content
        raise self._refusal(status, content)

    def _refusal(self, status: int, content: bytes) -> CallError:
        try:
            problem = json.loads(content)
        except ValueError:
            problem = None
        error = problem_error(problem, status=status)
        if self._no_owner and isinstance(problem, dict) and "needed_scope" in problem:
            return CallError(error.kind, f"{error.detail} ({self._no_owner})")
        return error

    def _unreachable(self, exc: Exception, *, may_have_run: bool = False) -> CallError:
        return CallError(
            ErrorKind.DAEMON_UNREACHABLE,
            f"the daemon of {self._home.path} does not answer ({exc}); start it "
            f"with: anpd --home {self._home.path} up",
            may_have_run=may_have_run,
        )


def _written(body: dict[str, Any]) -> bytes:
    """Return JSON whose numbers are exact, such as 12345678901234567.89."""
    return write_json(body, ensure_ascii=False).encode()


def _read(content: bytes) -> Any:
    return json.loads(content, parse_float=read_number)


def problem_error(problem: Any, *, status: int | None = None) -> CallError:
    """Return the error that a problem document is.

    Args:
        status: Of the answer, for one that is no such document.
    """
    try:
        kind = ErrorKind(problem["kind"])
        detail = str(problem["detail"])
        may_have_run = problem.get("may_have_run") is True
        after = problem.get("retry_after")
        retry_after = float(after) if isinstance(after, int | float) else None
    except (ValueError, KeyError, TypeError):
        return CallError(ErrorKind.UNEXPECTED, f"the daemon answered {status}")
    return CallError(kind, detail, may_have_run=may_have_run, retry_after=retry_after)
