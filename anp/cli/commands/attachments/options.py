"""The options of `attach`: as they are typed, as they are kept, and typed again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anp.errors import CallError, ErrorKind


def _pairs(flag: str, given: list[str] | None) -> dict[str, str]:
    pairs = {}
    for item in given or ():
        key, equals, value = item.partition("=")
        if not equals or not key:
            # Not repeated: it may be a secret alone.
            raise CallError(ErrorKind.USAGE, f"{flag}: write NAME=VALUE")
        pairs[key] = value
    return pairs


def _document(flag: str, given: str | None) -> str:
    """Return the place of an OpenAPI document, a file by its absolute path."""
    if given and not given.startswith(("http://", "https://")):
        return str(Path(given).expanduser().absolute())
    return given or ""


def _declared(flag: str, given: Path | None) -> tuple[Any, ...]:
    """Read the capabilities that the owner describes in a file."""
    if given is None:
        return ()
    from anp.sidecar.attachments.spec import read_declared

    return read_declared(given)


@dataclass(frozen=True, slots=True)
class Form:
    """One form of options: as it is typed, as it is kept, and as it is typed again."""

    type: Any
    read: Callable[[str, Any], Any]
    "Gives the value of a field from the flag and its words."

    write: Callable[[Any], list[str | None]]
    "Gives the word of each time that the flag is there; None is the flag alone."


NAMES = Form(list[str] | None, lambda _, given: tuple(given or ()), list)
PAIRS = Form(list[str] | None, _pairs, lambda kept: [f"{k}={kept[k]}" for k in kept])
TEXT = Form(str | None, lambda _, given: given or "", lambda kept: [kept] * bool(kept))
PATH = Form(
    Path | None,
    lambda _, given: given and given.absolute(),
    lambda kept: [str(kept)] * bool(kept),
)
YES = Form(bool, lambda _, given: bool(given), lambda kept: [None] * kept)
DOCUMENT = Form(str | None, _document, TEXT.write)
DECLARED = Form(Path | None, _declared, lambda kept: ["FILE"] * bool(kept))


@dataclass(frozen=True, slots=True)
class AttachOption:
    """One option of `anpd attach`, and the field of the attachment that it fills."""

    flag: str
    field: str
    form: Form
    help: str


NAME = AttachOption(
    "--name",
    "name",
    TEXT,
    "Name of the attachment, which is the first part of its capabilities' names.",
)
EXPOSE = AttachOption(
    "--expose", "expose", NAMES, "Capability that peers may call; '*' is all."
)
RENAME = AttachOption(
    "--rename", "rename", PAIRS, "TOOL=NAME for a capability of another name."
)
ENV = AttachOption(
    "--env",
    "env",
    PAIRS,
    "NAME=VALUE, NAME=env:VAR or NAME=file:PATH for the command's environment.",
)
CAPABILITIES = AttachOption(
    "--capabilities", "capabilities", DECLARED, "JSON file with a list of capabilities."
)
ACCESS = (
    AttachOption("--header", "headers", PAIRS, "NAME=env:VAR or NAME=file:PATH."),
    AttachOption("--query", "query", PAIRS, "NAME=env:VAR or NAME=file:PATH."),
    AttachOption("--bearer", "bearer", TEXT, "env:VAR or file:PATH of a bearer token."),
    AttachOption("--basic", "basic", TEXT, "env:VAR or file:PATH of user:password."),
    AttachOption(
        "--ca-file", "ca_file", PATH, "Certificates (PEM) trusted besides the system's."
    ),
    AttachOption(
        "--allow-http", "allow_http", YES, "Allow to send secrets over plain http."
    ),
)
OAUTH = (
    AttachOption(
        "--oauth-client", "oauth_client", TEXT, "Our name where tokens are given."
    ),
    AttachOption(
        "--oauth-secret", "oauth_secret", TEXT, "env:VAR or file:PATH of its key."
    ),
    AttachOption(
        "--oauth-assertion",
        "oauth_assertion",
        TEXT,
        "env:VAR or file:PATH of a token that is traded in there.",
    ),
    AttachOption("--oauth-scope", "oauth_scopes", NAMES, "Scope to ask for."),
    AttachOption(
        "--oauth-token-url", "oauth_token_url", TEXT, "URL that gives tokens."
    ),
)
HINTS = (
    AttachOption("--read-only", "read_only", NAMES, "Capability that changes nothing."),
    AttachOption(
        "--idempotent", "idempotent", NAMES, "Capability that may be repeated."
    ),
    AttachOption(
        "--conversational",
        "conversational",
        NAMES,
        "Capability that answers natural language.",
    ),
    RENAME,
    AttachOption(
        "--show-errors", "show_errors", YES, "Let peers read exceptions word for word."
    ),
)
