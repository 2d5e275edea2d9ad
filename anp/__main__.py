"""Starts the command line, after a check that the packages found are ours."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent

READER_GONE = 141
"""Exit code when nobody reads the output any more, as after `| head`: that of a program
that SIGPIPE ended."""


def main() -> None:
    """Run `anpd` with the arguments of this process."""
    problem = foreign_package()
    if problem:
        print(f"anpd: {problem}", file=sys.stderr)
        sys.exit(3)
    try:
        code = _run(sys.argv[1:])
        # What is buffered may find that its reader is gone, too.
        sys.stdout.flush()
    except BrokenPipeError:
        # Python writes the rest at its end, which would fail once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = READER_GONE
    sys.exit(code)


def _run(words: list[str]) -> int:
    if "call" in words:
        from anp.cli.call import quick_call

        code = quick_call(words)
        if code is not None:
            return code
    from anp.cli.app import run

    return run(words)


def foreign_package() -> str | None:
    """Return a line about a package that is not ours, or None.

    The official SDK of the protocol also imports as `anp`, and the names of our other
    packages are common.
    """
    for name in ("anp", "negotiation", "sandbox", "cache", "jsonic"):
        spec = find_spec(name)
        where = (
            Path(spec.origin).resolve().parent.parent if spec and spec.origin else None
        )
        if where != HERE:
            return (
                f"the package {name!r} that Python finds is not anpd's; install anpd "
                "in an environment of its own (pipx, uv tool)"
            )
    return None


if __name__ == "__main__":
    main()
