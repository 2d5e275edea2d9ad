"""Files and folders of a home that other users of the machine must not reach."""

from __future__ import annotations

import grp
import os
import pwd
import shlex
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from anp.errors import CallError, ErrorKind

MAX_SOCKET_PATH = 100
"Longest socket path in bytes; the kernels' own limits are 104 to 108."


@dataclass(frozen=True, slots=True)
class Exposed:
    """A file or folder that other users can write to."""

    path: Path
    fault: str

    command: str
    "The command that mends it; the path follows."

    whole: bool = False
    "True when no path follows, but the words that were typed behind `anpd`."

    def __str__(self) -> str:
        return f"{self.path} {self.fault}; run: {self.fix}"

    @property
    def fix(self) -> str:
        """The whole command."""
        if self.whole:
            return f"{self.command} …"
        return f"{self.command} {shlex.quote(str(self.path))}"


def other_writers(status: os.stat_result) -> str:
    """Return in words who else can write; empty if nobody can."""
    mode = stat.S_IMODE(status.st_mode)
    if mode & stat.S_IWOTH:
        return f"others (mode {mode:o})"
    if mode & stat.S_IWGRP and not _is_private_group(status.st_gid):
        return f"others: its group (mode {mode:o})"
    return ""


def _is_private_group(gid: int) -> bool:
    """Return whether a group is of our user alone: same number, and no member else."""
    if gid == 0 or not gid == os.getegid() == os.geteuid():
        return False
    try:
        members = grp.getgrgid(gid).gr_mem
        own = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        # A container need not have names for its users.
        return True
    return set(members) <= {own}


def user_name(uid: int) -> str:
    """Return the name of a user, or `#` and the number of one without a name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"'#{uid}'"


def runtime_folder(environ: Mapping[str, str]) -> Path:
    """Return a short folder for sockets: the login session's own, or one of ours."""
    if runtime := environ.get("XDG_RUNTIME_DIR"):
        folder = Path(runtime) / "anpd"
        # The digest, `-owner` and the socket's name take another 32 bytes.
        if len(os.fsencode(folder)) + 32 <= MAX_SOCKET_PATH and Path(runtime).is_dir():
            return folder
    return Path(tempfile.gettempdir()) / f"anpd-{os.getuid()}"


def private_folder(folder: Path) -> None:
    """Make `folder` and, outside the home, the one above it ours alone."""
    try:
        for each in (folder.parent, folder):
            each.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        above = folder.parent.lstat()
    except OSError as exc:
        raise CallError(
            ErrorKind.LOCAL_RESOURCE,
            f"cannot make the folder of the local API {folder}: {reason_of(exc)}",
        ) from exc
    # In a shared folder such as /tmp anybody may have been here before us.
    for each, status in ((folder.parent, above), (folder, found)):
        owned = status.st_uid == os.getuid() and stat.S_ISDIR(status.st_mode)
        if not owned or status.st_mode & 0o022:
            raise CallError(
                ErrorKind.LOCAL_RESOURCE,
                f"{each} is not a folder of ours alone; remove it or set "
                "XDG_RUNTIME_DIR",
            )
    folder.chmod(0o700)


def reason_of(exc: OSError) -> str:
    return exc.strerror or type(exc).__name__
