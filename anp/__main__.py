"""Starts the command line, after a check that the packages found are ours."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

__all__ = ["main"]

HERE = Path(__file__).resolve().parent.parent


def main() -> None:
    """Run `anpd` with the arguments of this process."""
    problem = foreign_package()
    if problem:
        print(f"anpd: {problem}", file=sys.stderr)
        sys.exit(3)
    words, code = sys.argv[1:], None
    if "call" in words:
        from anp.cli.call import quick_call

        code = quick_call(words)
    if code is None:
        from anp.cli.app import run

        code = run(words)
    sys.exit(code)


def foreign_package() -> str | None:
    """Return a line about a package that is not ours, or None.

    The official SDK of the protocol also imports as `anp`, and the names of our other
    packages are common.
    """
    for name in ("anp", "negotiation", "sandbox", "cache"):
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
