"""What the owner said about one attachment, and the files that keep it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from anp.errors import ConfigError
from anp.sidecar.config_text import explain
from anp.sidecar.home import write_atomic

__all__ = [
    "AttachmentSpec",
    "load_attachments",
    "remove_attachment",
    "save_attachment",
]

MAX_FILE = 256 * 1024
"Largest file of an attachment, in bytes."

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
"Names of attachments: no dot, since capabilities are called `attachment.tool`."


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentSpec:
    """One attachment as the owner wrote it, in a file or on the command line."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    kind: Literal["mcp", "python"]
    'How the daemon talks to it (SIDECAR.md, "Attaching an agent").'

    name: Annotated[str, Field(pattern=NAME_PATTERN)]
    "First half of its capabilities' names."

    command: tuple[str, ...] = ()
    "`mcp`: the program and its arguments."

    cwd: Path | None = None
    "Folder the child runs in; where `attach` was given."

    env: Mapping[str, str] = field(default_factory=dict)
    "Environment variables of the child, on top of a small safe set."

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

    def __post_init__(self) -> None:
        if self.kind == "mcp" and not self.command:
            raise ConfigError(
                f"attachment {self.name}: command is missing; write the program "
                "that starts the MCP server"
            )
        if self.kind == "python" and not self.target.partition(":")[0]:
            raise ConfigError(
                f"attachment {self.name}: target must be MODULE:FUNCTION, "
                f"got {self.target!r}"
            )

    def says_read_only(self, tool: str) -> bool:
        """Return whether the owner called `tool` free of side effects."""
        return tool in self.read_only or "*" in self.read_only

    def says_idempotent(self, tool: str) -> bool:
        """Return whether the owner said that `tool` may be repeated."""
        return tool in self.idempotent or "*" in self.idempotent


_ADAPTER = TypeAdapter(AttachmentSpec)


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


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix in {".json", ".toml"} and not path.name.startswith(".")
    )


def _load(path: Path) -> AttachmentSpec:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE + 1)
    except OSError as exc:
        raise ConfigError(f"attachments: cannot read {path}: {exc.strerror}") from exc
    if len(data) > MAX_FILE:
        raise ConfigError(f"attachments: over {MAX_FILE} bytes, remove it ({path})")
    try:
        parse = tomllib.loads if path.suffix == ".toml" else json.loads
        content: Any = parse(data.decode())
        if not isinstance(content, dict):
            raise ConfigError("attachments: expected an object")
        # In a file the name may be left out: it is the file's.
        return _ADAPTER.validate_python({"name": path.stem} | content)
    except ValidationError as exc:
        text, _ = explain(exc, AttachmentSpec)
        raise ConfigError(f"attachments: {text} ({path})") from exc
    except ConfigError as exc:
        raise ConfigError(f"{exc} ({path})") from exc
    except (ValueError, RecursionError) as exc:
        raise ConfigError(
            f"attachments: not valid {path.suffix[1:].upper()}: {exc}; correct it or "
            f"attach anew ({path})"
        ) from exc
