"""The programs of the demo: beside it in a wheel, or in a checkout."""

from __future__ import annotations

from pathlib import Path

from anp.errors import CallError, ErrorKind


def find_example(name: str, package: Path | None = None) -> Path:
    """Return an example: beside us in a wheel, in `examples/` of a checkout.

    Raises:
        CallError: LOCAL_RESOURCE, it is in neither place.
    """
    here = package or Path(__file__).resolve().parent
    for path in (
        here / "examples" / name,
        here.parents[2] / "examples" / name,
    ):
        if path.is_file():
            return path
    raise CallError(
        ErrorKind.LOCAL_RESOURCE,
        f"demo: examples/{name} is missing; install anpd again",
    )
