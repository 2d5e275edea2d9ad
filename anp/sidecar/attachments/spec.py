"""The owner's entry for one attachment, its file, and the secrets that it names."""

from __future__ import annotations

import base64
import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from anp.errors import ConfigError
from anp.sidecar.attachments.attachment import AttachmentError
from anp.sidecar.attachments.declaration import DeclaredCapability
from anp.sidecar.attachments.urls import is_loopback, parse_url
from anp.sidecar.home.explain import explain
from anp.sidecar.home.home import write_atomic

MAX_FILE = 256 * 1024
"Largest file of an attachment, in bytes."

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
"Names of attachments: no dot, since capabilities are called `attachment.tool`."


SOURCES = ("env:", "file:")
"Where a secret may stand; it never stands in the attachment's own file."

URL_KINDS = frozenset({"http", "callback", "a2a"})
"Kinds that are reached over HTTP; `mcp` is one of them if it has a URL."


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentSpec:
    """One attachment as the owner wrote it, in a file or on the command line."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    kind: Literal["mcp", "http", "callback", "python", "a2a", "inbox"]
    'Kind of attachment (SIDECAR.md, "Attaching an agent").'

    name: Annotated[str, Field(pattern=NAME_PATTERN)]
    "First half of its capabilities' names."

    command: tuple[str, ...] = ()
    "`mcp`: the program and its arguments, or `url`."

    url: str = ""
    "`mcp`: a streamable HTTP endpoint; `http`: the base URL; `callback`: where calls \
are posted to; `a2a`: the agent card, or the agent's host."

    openapi: str = ""
    "`http`: file or URL of the OpenAPI document (3.0 or 3.1, JSON)."

    capabilities: tuple[DeclaredCapability, ...] = ()
    "`http`, `callback`, `inbox`: what it can do, where no document says so."

    endpoint: str = ""
    "`a2a`: where calls go, if the card names another host than its own."

    headers: Mapping[str, str] = field(default_factory=dict)
    "Header → `env:NAME` or `file:PATH` that holds its value."

    query: Mapping[str, str] = field(default_factory=dict)
    "Query parameter → `env:NAME` or `file:PATH` that holds its value."

    bearer: str = ""
    "`env:NAME` or `file:PATH` of a bearer token."

    basic: str = ""
    "`env:NAME` or `file:PATH` of `user:password`."

    oauth_client: str = ""
    "`a2a`: our name at the service that gives out tokens (OAuth 2)."

    oauth_secret: str = ""
    "`a2a`: `env:NAME` or `file:PATH` of our secret there (client credentials)."

    oauth_assertion: str = ""
    "`a2a`: `env:NAME` or `file:PATH` of a signed token that is traded in there."

    oauth_scopes: tuple[str, ...] = ()
    "`a2a`: scopes to ask for; default is what the card wants."

    oauth_token_url: str = ""
    "`a2a`: that service, where the card does not name one on its own host."

    secret: str = ""
    "`callback`: `env:NAME` or `file:PATH` of the key that calls are signed with."

    ca_file: Path | None = None
    "Certificates (PEM) trusted for `url` besides the system's."

    allow_http: bool = False
    "Secrets may go over plain http to another machine."

    cwd: Path | None = None
    "Folder the child runs in; where `attach` was given."

    env: Mapping[str, str] = field(default_factory=dict)
    "Environment variables of the child, on top of a small safe set: a text as it \
stands, or `env:NAME` or `file:PATH`, which are read when the child starts."

    python: Path | None = None
    "`python`: the interpreter; default is the daemon's own."

    target: str = ""
    "`python`: `module:object`, `path.py:object` or a module alone."

    expose: tuple[str, ...] = ()
    "Capabilities offered to peers, by short or full name; `*` is all."

    read_only: tuple[str, ...] = ()
    "Tools the owner says have no side effects, by short name; `*` is all."

    idempotent: tuple[str, ...] = ()
    "Tools the owner says may be repeated, by short name; `*` is all."

    conversational: tuple[str, ...] = ()
    "Tools that answer a peer's natural language, by short name (ANP-71)."

    max_timeout: Mapping[str, Annotated[float, Field(gt=0)]] = field(
        default_factory=dict
    )
    "Capability by short name, or `*` → most seconds that a peer's call of it may take."

    rename: Mapping[str, str] = field(default_factory=dict)
    "A tool's own name → the name that its capability has in its place."

    show_errors: bool = False
    "Peers read the words of its exceptions too, not only those of deliberate errors."

    def __post_init__(self) -> None:
        if self.kind == "mcp" and not (self.command or self.url):
            raise self._wrong(
                "command is missing; write the program that starts the MCP server, or "
                "the url of one that runs"
            )
        if self.kind == "python" and not self.target.partition(":")[0]:
            raise self._wrong(f"target must be MODULE:FUNCTION, got {self.target!r}")
        if self.kind in URL_KINDS and not self.url:
            raise self._wrong("url is missing")
        if self.kind == "inbox" and not self.capabilities:
            raise self._wrong("capabilities are missing; nothing else describes them")
        self._check_places()
        if self.url:
            self._check_urls()

    @property
    def of_program(self) -> AttachmentSpec:
        """The same without what changes nothing in the program that runs."""
        return replace(
            self, expose=(), conversational=(), show_errors=False, max_timeout={}
        )

    @property
    def is_remote(self) -> bool:
        """True if it is reached over HTTP, and not a child of ours."""
        return bool(self.url)

    @property
    def has_secrets(self) -> bool:
        """True if requests carry something that nobody else may see."""
        plain = self.headers or self.query or self.bearer or self.basic
        return bool(plain or self.uses_oauth)

    @property
    def without_secrets(self) -> AttachmentSpec:
        """The same for requests that go to another place than the owner's service."""
        bare = replace(self, headers={}, query={}, bearer="", basic="")
        return replace(bare, oauth_client="", oauth_secret="", oauth_assertion="")

    @property
    def uses_oauth(self) -> bool:
        """True if each life of it needs a token that is fetched (OAuth 2)."""
        return bool(self.oauth_secret or self.oauth_assertion)

    def _check_places(self) -> None:
        """Refuse settings that this kind would silently ignore."""
        for name, kinds in ONLY_FOR.items():
            if getattr(self, name) and self.kind not in kinds:
                raise self._wrong(
                    f"{name} means nothing for kind {self.kind}; it is for "
                    f"{' and '.join(sorted(kinds))}"
                )
        if self.command and self.url:
            raise self._wrong("give either command or url")
        if self.openapi and self.capabilities:
            raise self._wrong("give either openapi or capabilities")
        named = [self.bearer, self.basic, self.secret]
        named += [self.oauth_secret, self.oauth_assertion]
        named += [*self.headers.values(), *self.query.values()]
        # Other values of `env` are texts as they stand.
        named += [one for one in self.env.values() if one.startswith(SOURCES)]
        for source in named:
            # The text may be the secret itself, so no message repeats it.
            if source and (
                not source.startswith(SOURCES) or not source.partition(":")[2]
            ):
                raise self._wrong(
                    "a secret belongs into the environment or a file: write env:NAME "
                    "or file:PATH in its place"
                )
        if sum(map(bool, (self.bearer, self.basic, self.uses_oauth))) > 1:
            raise self._wrong("give either bearer or basic or a secret of oauth")
        if self.oauth_secret and not self.oauth_client:
            raise self._wrong("oauth_secret needs oauth_client")
        if self.has_secrets and not self.is_remote:
            raise self._wrong("headers, query, bearer and basic need a url")

    def _check_urls(self) -> None:
        for name in ("url", "endpoint", "oauth_token_url"):
            if not (text := getattr(self, name)):
                continue
            try:
                url = parse_url(text)
            except ValueError as exc:
                raise self._wrong(f"{name}: {exc}") from None
            if (
                url.scheme == "http"
                and (self.has_secrets or self.secret)
                and not (self.allow_http or is_loopback(url.host))
            ):
                raise self._wrong(
                    f"{name}: secrets would go to {url.host} unencrypted; use https, "
                    "or say allow_http if the network between is yours"
                )

    def _wrong(self, reason: str) -> ConfigError:
        return ConfigError(f"attachment {self.name}: {reason}")

    def says_read_only(self, *names: str) -> bool:
        """Return whether the owner called the tool of these names harmless."""
        return not {"*", *names}.isdisjoint(self.read_only)

    def says_idempotent(self, *names: str) -> bool:
        """Return whether the owner said that a tool may be repeated."""
        return not {"*", *names}.isdisjoint(self.idempotent)


ONLY_FOR: dict[str, frozenset[str]] = {
    "command": frozenset({"mcp"}),
    "target": frozenset({"python"}),
    "python": frozenset({"python"}),
    "openapi": frozenset({"http"}),
    "capabilities": frozenset({"http", "callback", "inbox"}),
    "endpoint": frozenset({"a2a"}),
    "secret": frozenset({"callback"}),
    "oauth_client": frozenset({"a2a"}),
    "oauth_secret": frozenset({"a2a"}),
    "oauth_assertion": frozenset({"a2a"}),
    "url": URL_KINDS | {"mcp"},
}
"Settings that only some kinds have."


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Return what reads entries; made at its first use, as many homes have none."""
    return TypeAdapter(kind)


def read_declared(path: Path) -> tuple[DeclaredCapability, ...]:
    """Read a JSON list of capabilities that the owner wrote.

    Raises:
        ConfigError: The file cannot be read or is no such list.
    """
    content = _read(path)
    try:
        if isinstance(content, dict):
            content = content.get("capabilities")
        declared = _adapter(tuple[DeclaredCapability, ...])
        found: tuple[DeclaredCapability, ...] = declared.validate_python(content)
    except ValidationError as exc:
        text, _ = explain(exc, DeclaredCapability)
        raise ConfigError(f"capabilities: {text} ({path})") from None
    if not found:
        raise ConfigError(f"capabilities: there is none ({path})")
    return found


def save_attachment(folder: Path, spec: AttachmentSpec) -> Path:
    """Write the file of one attachment, replacing an earlier one of its name.

    It may hold secrets in `env`, so it is readable for the owner only.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    content = {key: value for key, value in asdict(spec).items() if value}
    path = folder / f"{spec.name}.json"
    text = json.dumps(content, ensure_ascii=False, indent=1, default=str)
    write_atomic(path, text.encode() + b"\n")
    return path


def remove_attachment(folder: Path, name: str) -> bool:
    """Remove the file of an attachment; return whether there was one."""
    found = False
    for path in _files(folder):
        if path.stem == name:
            path.unlink()
            found = True
    return found


def load_attachments(folder: Path) -> tuple[AttachmentSpec, ...]:
    """Read every attachment of a home, by name; a missing folder has none.

    Raises:
        ConfigError: A file is broken; the message names it and what to do.
    """
    specs: dict[str, AttachmentSpec] = {}
    for path in _files(folder):
        spec = _load(path)
        if spec.name in specs:
            raise ConfigError(
                f"attachments: two files name the attachment {spec.name}; "
                f"remove one of them ({path})"
            )
        specs[spec.name] = spec
    return tuple(specs[name] for name in sorted(specs))


def attachment_times(folder: Path) -> dict[str, int]:
    """Return when the file of each attachment was written, by its name.

    In nanoseconds; to attach the same again is to ask for a new start.
    """
    return {path.stem: path.stat().st_mtime_ns for path in _files(folder)}


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix in {".json", ".toml"} and not path.name.startswith(".")
    )


def _load(path: Path) -> AttachmentSpec:
    content = _read(path)
    try:
        if not isinstance(content, dict):
            raise ConfigError("attachments: expected an object")
        # In a file the name may be left out: it is the file's.
        adapter: TypeAdapter[AttachmentSpec] = _adapter(AttachmentSpec)
        return adapter.validate_python({"name": path.stem} | content)
    except ValidationError as exc:
        text, _ = explain(exc, AttachmentSpec)
        raise ConfigError(f"attachments: {text} ({path})") from exc
    except ConfigError as exc:
        raise ConfigError(f"{exc} ({path})") from exc


def _read(path: Path) -> Any:
    """Return what a JSON or TOML file of the owner's holds."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE + 1)
    except OSError as exc:
        raise ConfigError(f"attachments: cannot read {path}: {exc.strerror}") from exc
    if len(data) > MAX_FILE:
        raise ConfigError(f"attachments: over {MAX_FILE} bytes, remove it ({path})")
    kind = "TOML" if path.suffix == ".toml" else "JSON"
    try:
        parse = tomllib.loads if kind == "TOML" else json.loads
        return parse(data.decode())
    except RecursionError:
        raise ConfigError(
            f"attachments: nested too deeply; correct it, then reload ({path})"
        ) from None
    except ValueError as exc:
        raise ConfigError(
            f"attachments: not valid {kind}: {exc}; correct it, then reload ({path})"
        ) from exc


MAX_SECRET = 16 * 1024
"Largest secret, in bytes."

_VALUE = re.compile(r"[\x20-\x7e\x80-\xff]+")


@dataclass(frozen=True, slots=True)
class Credentials:
    """Headers and query of each request to the owner's URL, and of no other."""

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


def read_environment(
    spec: AttachmentSpec, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return `env` with the secrets that it names; may block.

    Raises:
        AttachmentError: One is missing; the message names where it should stand.
    """
    return {
        name: read_secret(value, environ, folder=spec.cwd)
        if value.startswith(SOURCES)
        else value
        for name, value in spec.env.items()
    }


def read_secret(
    source: str, environ: Mapping[str, str] = os.environ, *, folder: Path | None = None
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
