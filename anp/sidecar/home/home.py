"""The home of one daemon: where its files are, and who may use them (SIDECAR.md)."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shlex
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from anp.errors import CallError, ConfigError, ErrorKind
from anp.sidecar.home.ownership import (
    MAX_SOCKET_PATH,
    Exposed,
    other_writers,
    private_folder,
    reason_of,
    runtime_folder,
    user_name,
)

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
"Errors of a full disk, or of a user who may not have more of it."

MAX_API_FILE = 16 * 1024
"Largest `api.json` that is read, in bytes."


@dataclass(frozen=True, slots=True)
class ApiAddress:
    """The addresses of a running daemon; the content of `api.json`."""

    socket: str
    "Path of the Unix socket of the local API."

    pid: int
    "Process id of the daemon."

    url: str
    "Address for peers, to be copied as it is: `ws://host:port/#did`."

    did: str
    "Our primary DID."

    api_url: str = ""
    "URL of the local API on loopback TCP; empty when it is on the socket alone."

    token_file: str = ""
    "The file (0600) with the token of scope `agent`; `api_url` asks for one."


@dataclass(frozen=True, slots=True)
class OwnerAddress:
    """The owner's way to a running daemon; the content of `owner.json`."""

    socket: str
    """Path of the owner's own Unix socket.

    Nobody else can put another one in its place, and see the token that is sent there.
    """

    token: str
    "The token of scope `owner`."


@dataclass(frozen=True, slots=True)
class Home:
    """One folder that holds all that belongs to one daemon.

    Making a `Home` touches nothing; `create` makes the folder.
    """

    path: Path
    "The folder, absolute."

    @property
    def config_file(self) -> Path:
        """The configuration that `anpd init` writes."""
        return self.path / "anpd.toml"

    @property
    def key_file(self) -> Path:
        """The identity key, made by `anp.identity.keys` (0600)."""
        return self.path / "identity.key"

    @property
    def binding_key(self) -> Path:
        """The Ed25519 key that a `did:wba` path is bound to; may be kept elsewhere."""
        return self.path / "binding.key"

    @property
    def did_document(self) -> Path:
        """The document of our `did:wba`, as it is published."""
        return self.path / "did.json"

    @property
    def attachments(self) -> Path:
        """The folder with one file per attachment, written by `anpd attach`."""
        return self.path / "attachments"

    @property
    def store(self) -> Path:
        """The folder of the cache."""
        return self.path / "store"

    @property
    def files(self) -> Path:
        """The folder of the files of tasks, encrypted; made with the first one."""
        return self.path / "files"

    @property
    def call_files(self) -> Path:
        """The folder of the folders of calls at work, whose files are in clear."""
        return self.path / "calls-at-work"

    @property
    def consensus(self) -> Path:
        """The folder of the owner's protocols by URI, made when one is published."""
        return self.path / "consensus"

    @property
    def token_file(self) -> Path:
        """The token of scope `agent`, made at the first start and kept."""
        return self.path / "api.token"

    @property
    def lock_file(self) -> Path:
        """The file whose lock a running daemon holds."""
        return self.path / "lock"

    @property
    def api_file(self) -> Path:
        """The file that tells clients where the local API is."""
        return self.path / "api.json"

    @property
    def log_file(self) -> Path:
        """The log of a daemon that `up --background` started."""
        return self.path / "anpd.log"

    @property
    def owner_file(self) -> Path:
        """The file with the token of scope `owner` of the daemon that runs."""
        return self.path / "owner.json"

    def create(self) -> None:
        """Make the folder and those below it, for the owner only; idempotent.

        Raises:
            ConfigError: The folder cannot be made, or others can write to it or to a
                file in it.
        """
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Anybody who can write here can replace the key and the commands we start.
            for exposed in self.exposed():
                raise ConfigError(f"home {self.path}: {exposed}")
            self.attachments.mkdir(mode=0o700, exist_ok=True)
        except OSError as exc:
            raise ConfigError(
                f"cannot make the home {self.path}: {reason_of(exc)}; "
                "choose another with --home DIR"
            ) from exc

    def exposed(self) -> Iterator[Exposed]:
        """Give what others can write to: the home, what is in it, or a folder above.

        The daemon's own group counts as nobody else where it is the user's private one,
        as Kubernetes makes it with `fsGroup`.

        Raises:
            OSError: Something cannot be looked at.
        """
        if not self.path.exists():
            return
        # A folder that everybody can write to lets everybody put another home in place.
        for above in self.path.resolve().parents:
            status = above.stat()
            if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
                yield Exposed(above, "can be written by everybody", "chmod o-w")
        folders = [self.path, self.attachments, self.consensus]
        inside = [each for one in folders if one.is_dir() for each in one.iterdir()]
        for path in (self.path, *sorted(inside)):
            try:
                status = path.stat()
            except FileNotFoundError:
                # A broken link, or a file that another process removed.
                continue
            if stat.S_ISSOCK(status.st_mode):
                continue
            if path == self.path and os.geteuid() == 0 != status.st_uid:
                # As root's, the daemon of that user could not read it any more.
                owner = user_name(status.st_uid)
                command = f"sudo -u {owner} env ANPD_HOME={shlex.quote(str(path))} anpd"
                yield Exposed(path, f"belongs to the user {owner}", command, whole=True)
                return
            if status.st_uid not in {0, os.geteuid()}:
                yield Exposed(path, "belongs to another user", "chown $(id -u)")
            elif writers := other_writers(status):
                command = "chmod 700" if path == self.path else "chmod go-w"
                yield Exposed(path, f"can be written by {writers}", command)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the home for this process; the kernel lets go if it is killed.

        Raises:
            CallError: LOCAL_RESOURCE, another daemon uses this home.
        """
        fd = os.open(self.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as exc:
                if exc.errno not in {errno.EWOULDBLOCK, errno.EACCES}:
                    raise
                raise CallError(
                    ErrorKind.LOCAL_RESOURCE,
                    f"home {self.path} is in use by another daemon; stop it "
                    "or choose another home with --home DIR",
                ) from exc
            os.ftruncate(fd, 0)
            yield
        finally:
            os.close(fd)

    def note_end(self, calls_cut: int) -> None:
        """Leave in the lock how many calls the daemon's end cut off; may fail."""
        with contextlib.suppress(OSError):
            self.lock_file.write_text(str(calls_cut))

    def calls_cut(self) -> int | None:
        """Return how many calls the last end cut off; None if it was no orderly one."""
        try:
            return int(self.lock_file.read_text())
        except (OSError, ValueError):
            return None

    def is_running(self) -> bool:
        """Return whether a daemon holds this home now."""
        try:
            fd = os.open(self.lock_file, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            # A shared lock, so that two clients who ask at once do not see each other.
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as exc:
            if exc.errno not in {errno.EWOULDBLOCK, errno.EACCES}:
                raise
            return True
        finally:
            os.close(fd)
        return False

    def socket_path(self, environ: Mapping[str, str] = os.environ) -> Path:
        """Return the path for the API's socket, after making its folder (0700).

        It lies in the home; a path over 100 bytes goes to a short folder of the
        runtime directory. Clients never compute it: they read `api.json`.

        Raises:
            CallError: LOCAL_RESOURCE, no folder that is ours alone could be had.
        """
        return self._socket_path("run", environ)

    def owner_socket_path(self, environ: Mapping[str, str] = os.environ) -> Path:
        """Return the path for the owner's own socket, after making its folder (0700).

        It is a folder of its own: that of the other socket may be shared with a
        container.

        Raises:
            CallError: LOCAL_RESOURCE, no folder that is ours alone could be had.
        """
        return self._socket_path("owner", environ)

    def _socket_path(self, name: str, environ: Mapping[str, str]) -> Path:
        path = self.path / name / "api.sock"
        if len(os.fsencode(path)) > MAX_SOCKET_PATH:
            path = self._short_folder(name, environ) / "api.sock"
        private_folder(path.parent)
        return path

    def write_api(
        self, address: ApiAddress, environ: Mapping[str, str] = os.environ
    ) -> None:
        """Write the daemon's addresses for its clients, atomically.

        On a full disk they go to the runtime directory: see `_tell`.
        """
        self._tell(self.api_file, _json_bytes(asdict(address)), "run", environ)

    def read_api(self) -> ApiAddress:
        """Return the running daemon's addresses.

        Raises:
            CallError: DAEMON_UNREACHABLE, no daemon said so; the text has the command.
        """
        try:
            with self.api_file.open("rb") as file:
                found = json.loads(file.read(MAX_API_FILE))
            address = ApiAddress(**found)
        except FileNotFoundError:
            raise self._unreachable("no daemon runs") from None
        except (OSError, ValueError, TypeError) as exc:
            raise self._unreachable(f"{self.api_file} cannot be read ({exc})") from exc
        # The file outlives a daemon that was killed; the lock does not.
        if not self.is_running():
            raise self._unreachable("the daemon is gone")
        return address

    def remove_api(self) -> None:
        """Take `api.json` and `owner.json` away; the daemon's last act."""
        _take_away(self.api_file)
        self.remove_owner()

    def write_owner(
        self, address: OwnerAddress, environ: Mapping[str, str] = os.environ
    ) -> None:
        """Write the owner's socket and token, which is new at each start (0600)."""
        self._tell(self.owner_file, _json_bytes(asdict(address)), "owner", environ)

    def read_owner(self) -> OwnerAddress:
        """Return the owner's socket and token.

        Raises:
            CallError: POLICY, the file cannot be read; the text says why.
        """
        try:
            with self.owner_file.open("rb") as file:
                return OwnerAddress(**json.loads(file.read(MAX_API_FILE)))
        except (OSError, ValueError, TypeError) as exc:
            why = reason_of(exc) if isinstance(exc, OSError) else "it holds no address"
            raise CallError(
                ErrorKind.POLICY, f"{self.owner_file} cannot be read: {why}"
            ) from exc

    def remove_owner(self) -> None:
        """Take `owner.json` away; its token ends with the daemon."""
        _take_away(self.owner_file)

    def _tell(
        self, file: Path, data: bytes, name: str, environ: Mapping[str, str]
    ) -> None:
        """Write a file that a daemon needs to be found.

        On a full disk it goes to a folder of ours in the runtime directory, and a link
        to it into the home: that takes no room, and the daemon can start.
        """
        try:
            write_atomic(file, data)
        except CallError as exc:
            cause = exc.__cause__
            if not isinstance(cause, OSError) or cause.errno not in NO_ROOM:
                raise
            folder = self._short_folder(name, environ)
            private_folder(folder)
            write_atomic(folder / file.name, data)
            file.unlink(missing_ok=True)
            file.symlink_to(folder / file.name)

    def _short_folder(self, name: str, environ: Mapping[str, str]) -> Path:
        """Return a folder of ours in the runtime directory; nothing is made."""
        digest = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]
        return runtime_folder(environ) / (
            digest if name == "run" else f"{digest}-{name}"
        )

    def _unreachable(self, what: str) -> CallError:
        return CallError(
            ErrorKind.DAEMON_UNREACHABLE,
            f"{what} in {self.path}; start it with: anpd --home {self.path} up",
        )


def _take_away(file: Path) -> None:
    """Remove a file, and what it leads to if it is a link that `_tell` made."""
    if file.is_symlink():
        file.readlink().unlink(missing_ok=True)
    file.unlink(missing_ok=True)


def find_home(
    flag: Path | None, environ: Mapping[str, str] = os.environ
) -> tuple[Home, bool]:
    """Return the home and whether it was chosen explicitly.

    `--home`, then `ANPD_HOME`, then `$XDG_DATA_HOME/anpd`. Everything of a home that
    was chosen lies below it, so no other configuration file is read for it.
    """
    chosen = flag or (Path(environ["ANPD_HOME"]) if environ.get("ANPD_HOME") else None)
    if chosen is not None:
        return Home(chosen.expanduser().absolute()), True
    return Home(_user_folder("XDG_DATA_HOME", ".local/share", environ)), False


def user_config_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the user's folder for the configuration of `anpd`."""
    return _user_folder("XDG_CONFIG_HOME", ".config", environ)


def _user_folder(variable: str, default: str, environ: Mapping[str, str]) -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "anpd"
    # As the specification has it, a path that is not absolute does not count.
    chosen = Path(environ.get(variable) or ".")
    folder = chosen if chosen.is_absolute() else Path.home() / default
    return folder / "anpd"


def write_ready_file(path: Path, *, url: str, did: str) -> None:
    """Write what `up --ready-file` promises: JSON with `url` and `did`, atomically."""
    write_atomic(path, _json_bytes({"url": url, "did": did, "pid": os.getpid()}))


def write_atomic(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Replace the file `path`; a reader sees the old content or the new, never half.

    Raises:
        CallError: LOCAL_RESOURCE, the file cannot be written.
    """
    try:
        fd, name = tempfile.mkstemp(prefix=f".{path.name[:64]}.", dir=path.parent)
        try:
            with os.fdopen(fd, "wb") as file:
                os.fchmod(file.fileno(), mode)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        # Without this a crash of the machine may forget the new name.
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as exc:
        raise CallError(
            ErrorKind.LOCAL_RESOURCE, f"cannot write {path}: {reason_of(exc)}"
        ) from exc


def _json_bytes(value: object) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()
