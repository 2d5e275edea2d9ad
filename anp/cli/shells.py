"""Installs the script with which a shell completes words of `anpd`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click
from click.shell_completion import get_completion_class

from anp.errors import CallError, ErrorKind

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
