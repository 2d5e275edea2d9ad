"""Completion of words in a shell, from the daemon that runs; silent without one."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import click
from click import Context
from click.shell_completion import get_completion_class

from anp.errors import AnpError, CallError, ErrorKind

PATIENCE: Final = 1.0
"Seconds that a shell waits for the daemon, which answers in some milliseconds."

Ask = Callable[[str], Any]
"Returns the JSON at a path of the local API."


def complete_peer(context: Context, incomplete: str) -> list[str]:
    """Return names of peers, and the DIDs of those without one."""
    return _words(context, incomplete, _peers)


def complete_need(context: Context, incomplete: str) -> list[str]:
    """Return named needs, and the capabilities that this agent called."""
    return _words(context, incomplete, _needs)


def complete_capability(context: Context, incomplete: str) -> list[str]:
    """Return the capabilities of this agent."""
    return _words(context, incomplete, _capabilities)


def complete_task(context: Context, incomplete: str) -> list[str]:
    """Return the ids of tasks."""
    return _words(context, incomplete, _tasks)


def complete_negotiation(context: Context, incomplete: str) -> list[str]:
    """Return the ids of negotiations."""
    return _words(context, incomplete, _negotiations)


def complete_protocol(context: Context, incomplete: str) -> list[str]:
    """Return the beginnings of the hashes of protocols."""
    return _words(context, incomplete, _protocols)


def complete_waiting(context: Context, incomplete: str) -> list[str]:
    """Return the ids of all that waits for the owner."""
    return _words(context, incomplete, _waiting)


def _peers(ask: Ask) -> Iterator[str]:
    found = ask("/v1/peers")
    for one in found["peers"]:
        yield from one["names"] or [one["did"]]
    for one in found["unmet"]:
        yield one["name"]


def _needs(ask: Ask) -> Iterator[str]:
    for one in ask("/v1/info")["needs"]:
        yield one["name"]
    for one in ask("/v1/protocols")["protocols"]:
        if one["role"] == "requester" and one["capability"]:
            yield one["capability"].partition(".")[2] or one["capability"]


def _capabilities(ask: Ask) -> Iterator[str]:
    for one in ask("/v1/capabilities")["capabilities"]:
        yield one["name"]


def _tasks(ask: Ask) -> Iterator[str]:
    for one in ask("/v1/tasks")["tasks"]:
        yield one["id"]


def _negotiations(ask: Ask) -> Iterator[str]:
    for one in ask("/v1/negotiations")["negotiations"]:
        yield one["id"]


def _protocols(ask: Ask) -> Iterator[str]:
    for one in ask("/v1/protocols")["protocols"]:
        yield one["hash"][:12]


def _waiting(ask: Ask) -> Iterator[str]:
    found = ask("/v1/approvals")
    for one in (*found["negotiations"], *found["groups"]):
        yield one["id"]
    for one in ask("/v1/peers")["peers"]:
        if one["changed_keys"] or one["state"] == "waiting":
            yield one["did"]


def _words(
    context: Context, incomplete: str, find: Callable[[Ask], Iterable[str]]
) -> list[str]:
    """Return what begins like the word that is being typed."""
    from anp.cli.client import Client
    from anp.sidecar.home.home import find_home

    home = context.find_root().params.get("home")
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(PATIENCE)
    try:
        # Whatever is wrong here, the owner is typing: nothing is printed.
        with suppress(AnpError, OSError, ValueError, KeyError, TypeError):
            client = Client(find_home(Path(home) if home else None)[0])
            found = dict.fromkeys(find(client.get))
            return [one for one in found if one.startswith(incomplete)]
    finally:
        socket.setdefaulttimeout(before)
    return []


# Installs the script with which a shell completes words of `anpd`.


COMPLETE_VARIABLE: Final = "_ANPD_COMPLETE"
"Variable by which the script tells us that words are to be completed."

PLACES: Final[Mapping[str, tuple[str, str, str]]] = {
    "bash": (".bash_completions/anpd.sh", ".bashrc", "source ~/{}"),
    "zsh": (
        ".zfunc/_anpd",
        ".zshrc",
        "fpath+=~/.zfunc; autoload -Uz compinit; compinit",
    ),
    "fish": (".config/fish/completions/anpd.fish", "", ""),
}
"By shell: the script, the file that has to name it, and the line there."


def shell_of(environ: Mapping[str, str] = os.environ) -> str:
    """Return the name of the owner's shell.

    Raises:
        CallError: `usage`, no script is known for it.
    """
    name = Path(environ.get("SHELL", "")).name
    if name not in PLACES:
        raise CallError(
            ErrorKind.USAGE,
            f"the shell {name or '(SHELL is not set)'} cannot be told how to complete; "
            f"{', '.join(PLACES)} can",
        )
    return name


def completion_script(command: click.Command, shell: str) -> str:
    """Return the script for a shell."""
    found = get_completion_class(shell)
    assert found is not None
    return found(command, {}, "anpd", COMPLETE_VARIABLE).source()


def install_completion(command: click.Command, shell: str, home: Path) -> Path:
    """Write the script below the owner's folder, and have the shell read it."""
    script, starts, line = PLACES[shell]
    path = home / script
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(completion_script(command, shell), "utf-8")
    if starts:
        line = line.format(script)
        file = home / starts
        before = file.read_text("utf-8") if file.exists() else ""
        if line not in before.splitlines():
            gap = "" if not before or before.endswith("\n") else "\n"
            file.write_text(f"{before}{gap}{line}\n", "utf-8")
    return path
