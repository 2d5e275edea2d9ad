"""Checks of this machine, the home and its settings, with a repair for each fault.

Each check looks at one thing and returns `DoctorCheck`s. `repair` carries out harmless
fixes; every other fix is a command that the owner reads before running it.
"""

from __future__ import annotations

import ctypes
import resource
import shlex
import shutil
import socket
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from anp.errors import ConfigError
from anp.extras import install_line, is_installed
from anp.identity.address import is_loopback
from anp.identity.keys import PrivateKey
from anp.sidecar.attachments import AttachmentSpec, load_attachments
from anp.sidecar.config.settings import Config
from anp.sidecar.home.home import Home
from anp.sidecar.minds.models import model_summary
from anp.sidecar.peers.web_identity import certificate_state, server_tls
from cache.condition import StoreFault, condition_of, fault_of
from cache.errors import CacheError
from cache.store import open_store

# Asks the system for the time and the state of its clock.


TIME_ERROR = 5
"Returned by `adjtimex` while the clock is not synchronised (Linux, timex.h)."

SIZE_OF_TIMEX = 256
"More than `struct timex` has on any Linux."


@dataclass(frozen=True, slots=True)
class Clock:
    """A clock, and whether it is kept in step."""

    now: float
    "Seconds since 1970."

    synchronised: bool | None
    "True if a time service keeps it in step; None if the system does not tell."

    @classmethod
    def of_system(cls) -> Clock:
        """Ask this system; changes nothing."""
        return cls(time.time(), _synchronised())


def _synchronised() -> bool | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        adjtimex = ctypes.CDLL(None).adjtimex
    except (OSError, AttributeError):
        return None
    # All zeros: `modes` = 0 only reads.
    state = adjtimex(ctypes.create_string_buffer(SIZE_OF_TIMEX))
    return None if state < 0 else bool(state != TIME_ERROR)


LEAST_DISK = 100 * 1024 * 1024
"Free bytes below which agreements may soon not be kept."

LEAST_FILES = 1024
"Open files a daemon with many connections needs; each one and each worker takes some."

RELEASED = 1_793_000_000.0
"No clock can be right that shows a time before this release, in seconds since 1970."

OTHER_FILES = 512
"Open files for everything but connections."

MAX_SKEW = 60.0
"Seconds that peers' clocks may differ before their proofs are refused."


class Level(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    "It works."

    WARNING = "warning"
    "It works, and may not for long, or not for everything."

    BAD = "bad"
    "It does not work."


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorCheck:
    """The finding of one check."""

    name: str
    "The thing that was looked at."

    text: str
    "The finding, in words."

    level: Level = Level.OK

    why: str = ""
    "The consequences, if it is not good."

    fix: str = ""
    "A command, or what to write where."

    mode: tuple[Path, int] | None = None
    "A file and the mode it should have: `--fix` sets it."

    leftover: Path | None = None
    "A file of ours that nobody uses: `--fix` removes it."

    @property
    def can_fix(self) -> bool:
        """True if `repair` can mend it."""
        return self.mode is not None or self.leftover is not None


def examine(
    home: Home, config: Config | None, *, clock: Clock | None = None
) -> list[DoctorCheck]:
    """Look at everything that needs no running daemon.

    Args:
        config: The owner's configuration, or None if it cannot be read.
        clock: The state of the system's clock; asked for when not given.
    """
    found = [*_home(home), *_identity(home, config), _clock(clock or Clock.of_system())]
    found += [_disk(home), _files(config)]
    if config is not None:
        found += [*_store(home, config), *_model(config), *_port(home, config)]
        found += [*_peers(config), *_tls(config), *_otel(config), *_a2a(config)]
        found += _attachments(home, config)
    return found


def repair(checks: Iterable[DoctorCheck]) -> list[str]:
    """Carry out the safe fixes; return them in words.

    Raises:
        ConfigError: The system does not allow it.
    """
    done = []
    for check in checks:
        try:
            if check.mode is not None:
                path, mode = check.mode
                path.chmod(mode, follow_symlinks=True)
                done.append(f"chmod {mode:o} {path}")
            if check.leftover is not None:
                check.leftover.unlink(missing_ok=True)
                done.append(f"removed {check.leftover}")
        except OSError as exc:
            raise ConfigError(f"doctor --fix: {check.name}: {exc}") from exc
    return done


def _home(home: Home) -> Iterator[DoctorCheck]:
    if not home.path.exists():
        yield DoctorCheck(
            name="home",
            text=f"{home.path} is not there yet; `anpd --home {home.path} init` or "
            "`up` makes it",
        )
        return
    mode = stat.S_IMODE(home.path.stat().st_mode)
    exposed = list(home.exposed())
    for one in exposed:
        is_home = one.path == home.path and one.command.startswith("chmod")
        yield DoctorCheck(
            name="home",
            level=Level.BAD,
            text=f"{one.path} {one.fault}",
            why="a user who can write here can replace the key and our commands; the "
            "daemon does not start like this",
            fix=one.fix,
            mode=(home.path, 0o700) if is_home else None,
        )
    if mode & 0o077 and not exposed:
        yield DoctorCheck(
            name="home",
            level=Level.WARNING,
            text=f"{home.path} has mode {mode:o}: other users can read it",
            why="it names peers, agreements and negotiations, which are private",
            fix=f"chmod 700 {shlex.quote(str(home.path))}",
            mode=(home.path, 0o700),
        )
    elif not exposed:
        yield DoctorCheck(name="home", text=f"{home.path}, readable by its owner only")
    if home.api_file.exists() and not home.is_running():
        yield DoctorCheck(
            name="leftover",
            level=Level.WARNING,
            text=f"{home.api_file} names a daemon that no longer runs",
            why="the daemon was killed; the next `anpd up` replaces the file",
            fix=f"rm {shlex.quote(str(home.api_file))}",
            leftover=home.api_file,
        )


def _identity(home: Home, config: Config | None) -> Iterator[DoctorCheck]:
    path = home.key_file
    if config is not None and config.identity.key_file is not None:
        path = config.identity.key_file
    if not path.exists():
        yield DoctorCheck(
            name="identity", text=f"none yet; `anpd --home {home.path} init` makes one"
        )
        return
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        yield DoctorCheck(
            name="identity",
            level=Level.BAD,
            text=f"{path} has mode {mode:o}: other users can read the key",
            why="its reader can act as you; the daemon does not start like this",
            fix=f"chmod 600 {shlex.quote(str(path))}; if another user may have "
            "read it, make a new identity",
            mode=(path, 0o600),
        )
        return
    try:
        PrivateKey.load(path)
    except ConfigError as exc:
        yield DoctorCheck(
            name="identity",
            level=Level.BAD,
            text=str(exc),
            why="without its key a daemon has no identity and does not start",
            fix="put the key back from your backup; a new one is a new identity: "
            f"move {path} away and run `anpd --home {home.path} init`",
        )
        return
    yield DoctorCheck(name="identity", text=str(path))


def _clock(clock: Clock) -> DoctorCheck:
    if clock.now < RELEASED:
        shown = time.strftime("%Y-%m-%d %H:%M", time.gmtime(clock.now))
        return DoctorCheck(
            name="clock",
            level=Level.BAD,
            text=f"it shows {shown} UTC, which is in the past",
            why="peers refuse proofs that are too old or too new",
            fix="sudo timedatectl set-ntp true",
        )
    if clock.synchronised is False:
        return DoctorCheck(
            name="clock",
            level=Level.WARNING,
            text="the system does not synchronise it",
            why=f"peers refuse proofs when it is wrong by more than {MAX_SKEW:g} s",
            fix="sudo timedatectl set-ntp true",
        )
    kept = "synchronised" if clock.synchronised else "synchronisation is not known"
    return DoctorCheck(name="clock", text=kept)


def _a2a(config: Config) -> Iterator[DoctorCheck]:
    if config.a2a.address is None:
        return
    if config.a2a.open:
        yield DoctorCheck(
            name="A2A",
            level=Level.WARNING,
            text=f"{config.a2a.listen} asks for no token (a2a.open)",
            why="every program and user of this machine may call what is exposed",
            fix="remove a2a.open; give each caller a token: anpd a2a tokens add NAME",
        )
    else:
        yield DoctorCheck(name="A2A", text=f"{config.a2a.listen}, with tokens")


def _disk(home: Home) -> DoctorCheck:
    place = next(path for path in (home.path, *home.path.parents) if path.exists())
    free = shutil.disk_usage(place).free
    text = f"{free // 1024**2} MiB free at {place}"
    if free >= LEAST_DISK:
        return DoctorCheck(name="disk", text=text)
    return DoctorCheck(
        name="disk",
        level=Level.WARNING,
        text=text,
        why="agreements that cannot be stored are negotiated and paid for again",
        fix="free some space, or set cache.path to a larger disk",
    )


def _files(config: Config | None) -> DoctorCheck:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    least = LEAST_FILES
    if config is not None:
        limits = config.limits
        most = limits.max_connections + limits.api_connections
        least = max(least, most + OTHER_FILES)
    if soft >= least or soft == resource.RLIM_INFINITY:
        return DoctorCheck(name="open files", text=f"at most {soft}")
    return DoctorCheck(
        name="open files",
        level=Level.WARNING,
        text=f"at most {soft}",
        why="each connection, worker and attachment needs some; without them, new "
        "connections are refused",
        fix=f"ulimit -n {min(least, hard)}, or LimitNOFILE= of the service",
    )


def _store(home: Home, config: Config) -> Iterator[DoctorCheck]:
    cache = config.cache
    folder = cache.path or home.store
    if cache.url is None and not folder.exists():
        yield DoctorCheck(name="store", text=f"{folder} is made at the first start")
        return
    name = str(cache.shown_url) if cache.url else str(folder)
    try:
        with open_store(
            folder, url=cache.url, prefix=cache.prefix, ca_file=cache.ca_file
        ) as store:
            found = condition_of(store, thorough=True)
            said = store.check_file() if store.is_shared else []
    except CacheError as exc:
        if home.is_running() and "in use" in str(exc):
            # On a full disk the daemon has to have the file for itself.
            yield DoctorCheck(
                name="store",
                level=Level.WARNING,
                text=f"{name}: the running daemon has it for itself",
                why="its disk was full when the daemon started",
                fix="free some space and start the daemon anew; `anpd health` asks it",
            )
            return
        yield _store_fault(fault_of(exc), str(exc), works=False)
        return
    if found.fault is not None:
        yield _store_fault(found.fault, f"{name}: {found.text}", works=found.works)
    if said:
        yield DoctorCheck(
            name="store",
            level=Level.WARNING,
            text="; ".join([name, *said]),
            why="the server may forget agreements, which are then negotiated again",
            fix="set the server up as docs/fleets.md says",
        )
    elif found.fault is None:
        yield DoctorCheck(name="store", text=f"{name}: {found.text}")


def _store_fault(fault: StoreFault, text: str, *, works: bool) -> DoctorCheck:
    why, fix = {
        StoreFault.AWAY: (
            "agreements are kept there, so the daemon does not start without it",
            "start the server, or correct cache.url (docs/fleets.md); on disk, do "
            "as the text says",
        ),
        StoreFault.FULL: (
            "agreements are used, but no new one can be kept",
            "free some space (`anpd protocols prune`), or set cache.path to a larger "
            "disk",
        ),
        StoreFault.DAMAGED: (
            "what cannot be read is negotiated and paid for again",
            "restore the store from a backup, or stop anpd, move the folder aside "
            "and start anew (docs/operation.md)",
        ),
        StoreFault.LOW: (
            "agreements that cannot be stored are negotiated and paid for again",
            "free some space, or set cache.path to a larger disk",
        ),
    }[fault]
    level = Level.WARNING if works else Level.BAD
    return DoctorCheck(name="store", level=level, text=text, why=why, fix=fix)


def _model(config: Config) -> Iterator[DoctorCheck]:
    good, text = model_summary(config.llm)
    if good:
        yield DoctorCheck(name="model", text=text)
        return
    yield DoctorCheck(
        name="model",
        level=Level.BAD,
        text=text,
        why="the daemon does not start while the configured key is missing",
        fix="set llm.api_key_env or llm.api_key_file (docs/model.md)",
    )


def _port(home: Home, config: Config) -> Iterator[DoctorCheck]:
    listen = config.listen
    if home.is_running() or not listen.port:
        return
    try:
        kind, _, _, _, address = socket.getaddrinfo(
            listen.host, listen.port, type=socket.SOCK_STREAM
        )[0]
        with socket.socket(kind, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as exc:
        yield DoctorCheck(
            name="port",
            level=Level.BAD,
            text=f"cannot listen on {listen.host}:{listen.port}: {exc.strerror}",
            why="peers could not connect, so `anpd up` ends at once",
            fix=f"ss -ltnp 'sport = :{listen.port}' shows the program that uses it; or "
            "`anpd up --port 0`",
        )
        return
    yield DoctorCheck(name="port", text=f"{listen.host}:{listen.port} is free")


def _peers(config: Config) -> Iterator[DoctorCheck]:
    listen = config.listen
    public = listen.public_url
    is_local = listen.is_loopback and (public is None or is_loopback(public))
    if config.peers_policy == "any" and not is_local:
        yield DoctorCheck(
            name="peers",
            level=Level.WARNING,
            text=f"everybody who reaches {public or listen.host} is let in "
            "(policy.peers)",
            why="every agent of the network may call what is exposed, for strangers' "
            "share of the budget",
            fix='policy.peers = "listed", and for each peer: anpd peers allow PEER',
        )


def _tls(config: Config) -> Iterator[DoctorCheck]:
    listen = config.listen
    if listen.tls_cert is None:
        # With a public address of wss a proxy has the certificate.
        proxied = (listen.public_url or "").startswith("wss:")
        if not listen.is_loopback and not proxied:
            yield DoctorCheck(
                name="certificate",
                level=Level.WARNING,
                text=f"none, and {listen.host} is reached from other machines",
                why="messages are encrypted all the same, but not who talks to whom, "
                "and a first use trusts the network",
                fix="set listen.tls_cert and listen.tls_key, or listen.public_url to "
                "the wss address of a proxy",
            )
        return
    try:
        server_tls(config)
        state = certificate_state(config, time.time())
    except ConfigError as exc:
        yield DoctorCheck(
            name="certificate",
            level=Level.BAD,
            text=str(exc),
            why="without it the port cannot speak https and wss",
            fix="correct listen.tls_cert and listen.tls_key",
        )
        return
    text = f"{config.listen.tls_cert}, {state.text}"
    if state.expired is None:
        yield DoctorCheck(name="certificate", text=text)
        return
    yield DoctorCheck(
        name="certificate",
        level=Level.BAD if state.expired else Level.WARNING,
        text=text,
        why="peers do not connect to a port whose certificate has expired",
        fix="renew the files of listen.tls_cert and listen.tls_key; `anpd reload`",
    )


def _otel(config: Config) -> Iterator[DoctorCheck]:
    if not config.otel.enabled:
        return
    if is_installed("otel"):
        yield DoctorCheck(name="traces", text=config.otel.endpoint or "as OTEL_* says")
        return
    yield DoctorCheck(
        name="traces",
        level=Level.BAD,
        text="otel.enabled is set, but the SDK is not installed",
        why="the daemon does not start, because no trace would be sent",
        fix=f"{install_line('otel')}, or otel.enabled = false",
    )


def _attachments(home: Home, config: Config) -> Iterator[DoctorCheck]:
    try:
        specs = (*config.attach, *load_attachments(home.attachments))
    except ConfigError as exc:
        yield DoctorCheck(
            name="attachments",
            level=Level.BAD,
            text=str(exc),
            why="the daemon does not start while one of the files has an error",
            fix="correct or remove that file, and attach again",
        )
        return
    for spec in specs:
        problem = _missing(spec)
        if problem is not None:
            yield DoctorCheck(
                name=f"attach {spec.name}",
                level=Level.BAD,
                text=problem,
                why="its capabilities are not offered until it starts",
                fix=f"install it, or attach {spec.name} again with the right path",
            )
        elif not spec.expose:
            yield DoctorCheck(
                name=f"attach {spec.name}",
                text="none of its capabilities is exposed, so peers cannot call it",
            )


def _missing(spec: AttachmentSpec) -> str | None:
    """Return which program or folder of an attachment is not there, or None."""
    if spec.cwd is not None and not spec.cwd.is_dir():
        return f"its folder {spec.cwd} is not there"
    if spec.kind == "python" and spec.python and not spec.python.exists():
        return f"its interpreter {spec.python} is not there"
    if spec.kind == "mcp" and spec.command:
        program = spec.command[0]
        if shutil.which(program, path=spec.env.get("PATH")) is None:
            beside = spec.cwd / program if spec.cwd else Path(program)
            if not beside.exists():
                return f"the program {program} is not there"
    return None
