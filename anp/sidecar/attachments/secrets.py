"""Reads what attachments authenticate with; it is never stored, logged or shown."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from anp.sidecar.attachments.errors import AttachmentError
from anp.sidecar.attachments.spec import AttachmentSpec

__all__ = ["Credentials", "read_credentials", "read_secret"]

MAX_SECRET = 16 * 1024
"Largest secret, in bytes."

_VALUE = re.compile(r"[\x20-\x7e\x80-\xff]+")


@dataclass(frozen=True, slots=True)
class Credentials:
    """What is added to every request, and only to those to the owner's URL."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    "By name, in lower case."

    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    "By name."


def read_credentials(
    spec: AttachmentSpec, environ: Mapping[str, str] = os.environ
) -> Credentials:
    """Read the secrets that an attachment names; may block.

    Raises:
        AttachmentError: One is missing; the message names where it should stand.
    """

    def read(source: str) -> str:
        return read_secret(source, environ, folder=spec.cwd)

    headers = {name.lower(): read(source) for name, source in spec.headers.items()}
    if spec.bearer:
        headers["authorization"] = f"Bearer {read(spec.bearer)}"
    if spec.basic:
        pair = read(spec.basic)
        if ":" not in pair:
            raise AttachmentError(f"{spec.basic} should hold user:password")
        encoded = base64.b64encode(pair.encode()).decode()
        headers["authorization"] = f"Basic {encoded}"
    return Credentials(
        headers, {name: read(source) for name, source in spec.query.items()}
    )


def read_secret(
    source: str,
    environ: Mapping[str, str] = os.environ,
    *,
    folder: Path | None = None,
) -> str:
    """Return the secret that `env:NAME` or `file:PATH` holds; may block.

    Args:
        folder: What a relative path counts from.

    Raises:
        AttachmentError: It is not there, or is no text of one line.
    """
    kind, _, place = source.partition(":")
    if kind == "env":
        value = environ.get(place)
        if value is None:
            raise AttachmentError(
                f"{place} is not set in the daemon's environment; set it and start the "
                "daemon again"
            )
    else:
        try:
            path = (folder or Path()) / Path(place).expanduser()
            with path.open("rb") as file:
                value = file.read(MAX_SECRET + 1).decode()
        except OSError as exc:
            raise AttachmentError(f"cannot read {place}: {exc.strerror}") from None
        except UnicodeDecodeError:
            raise AttachmentError(f"{place} holds no text") from None
    value = value.strip()
    if len(value) > MAX_SECRET or _VALUE.fullmatch(value) is None:
        raise AttachmentError(f"{source} does not hold one line of text")
    return value
