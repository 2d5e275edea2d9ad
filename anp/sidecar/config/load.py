"""The configuration: TOML files, environment and flags become one `Config`."""

from __future__ import annotations

import copy
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from anp.errors import ConfigError
from anp.sidecar.config.settings import Config
from anp.sidecar.home.explain import explain
from anp.sidecar.home.home import Home, user_config_folder

MAX_FILE = 1024 * 1024
"Largest configuration file, in bytes."

_ADAPTER = TypeAdapter(Config)

ENV_PREFIX = "ANPD_"
PATH_KEYS = tuple(
    (section, key)
    for section, table in get_type_hints(Config).items()
    if is_dataclass(table)
    for key, kind in get_type_hints(table).items()
    if kind == Path | None
)
"Settings whose relative paths count from the folder of the file that has them."


def config_files(
    home: Home,
    *,
    home_given: bool,
    config_file: Path | None = None,
    cwd: Path | None = None,
    environ: Mapping[str, str] = os.environ,
) -> list[Path]:
    """Return the files that may hold configuration, weakest first.

    Everything of a home that was given lies below it. Otherwise: /etc, XDG, the
    default home, and last `--config` or `./anpd.toml`.
    """
    if home_given:
        files = [home.config_file]
    else:
        xdg = user_config_folder(environ)
        files = [Path("/etc/anpd/config.toml"), xdg / "config.toml", home.config_file]
        if config_file is None:
            files.append((cwd or Path.cwd()) / "anpd.toml")
    if config_file is not None:
        files.append(config_file)
    return list(dict.fromkeys(path.absolute() for path in files))


def load_config(
    home: Home,
    *,
    home_given: bool,
    config_file: Path | None = None,
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] = os.environ,
    cwd: Path | None = None,
) -> Config:
    """Read the configuration: flags, then environment, then files, then defaults.

    Args:
        home_given: The home was chosen with `--home` or `ANPD_HOME`.
        config_file: The file of `--config`; it must exist.
        flags: Values by dotted key, such as `{"listen.port": 0}`; None is not set.

    Raises:
        ConfigError: One line: what is wrong, where, and what was expected.
    """
    merged: dict[str, Any] = {}
    sources: dict[tuple[str, ...], str] = {}
    if config_file is not None and not config_file.is_file():
        raise ConfigError(f"config: no such file: {config_file}; see --config")
    files = config_files(
        home, home_given=home_given, config_file=config_file, cwd=cwd, environ=environ
    )
    for path in files:
        _merge(merged, sources, _read(path))
    _merge(merged, sources, _from_environment(environ))
    _merge(merged, sources, _from_flags(flags or {}))
    try:
        config = _ADAPTER.validate_python(merged)
    except ValidationError as exc:
        text, where = explain(exc, Config)
        place = tuple(str(part) for part in where)
        source = sources.get(place[:2]) or sources.get(place[:1]) or "defaults"
        raise ConfigError(f"config: {text} ({source})") from exc
    except ConfigError as exc:
        read = ", ".join(str(path) for path in files if path.is_file())
        raise ConfigError(f"config: {exc} ({read})") from exc
    _check_names(config, sources)
    key_file = config.identity.key_file or home.key_file
    return replace(
        config,
        identity=replace(config.identity, key_file=key_file),
        cache=replace(config.cache, path=config.cache.path or home.store),
        consensus=replace(
            config.consensus, directory=config.consensus.directory or home.consensus
        ),
    )


@dataclass(frozen=True, slots=True)
class _Layer:
    """The settings of one source: a file, the environment or the flags."""

    content: dict[str, Any]
    "Sections as TOML would give them."

    name_of: Callable[[str, str], str]
    "Gives the place of (section, key) as a message names it; the key may be empty."


def _read(path: Path) -> _Layer:
    """Return what a file says; one that does not exist says nothing."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE + 1)
    except FileNotFoundError:
        return _Layer({}, lambda section, key: str(path))
    except OSError as exc:
        raise ConfigError(f"config: cannot read {path}: {exc.strerror}") from exc
    if len(data) > MAX_FILE:
        raise ConfigError(f"config: over {MAX_FILE} bytes ({path})")
    try:
        text = data.decode()
        content = tomllib.loads(text)
    except RecursionError:
        raise ConfigError(f"config: nested too deeply ({path})") from None
    except ValueError as exc:
        raise ConfigError(f"config: not valid TOML: {exc} ({path})") from exc
    _anchor(content, path.parent)
    lines = text.splitlines()
    return _Layer(content, lambda section, key: _place(path, lines, section, key))


def _from_environment(environ: Mapping[str, str]) -> _Layer:
    """Return the settings of `ANPD_SECTION__KEY` variables.

    A name without `__` is none of them: Kubernetes itself sets `ANPD_PORT` and the
    like in every pod beside a service called `anpd`.
    """
    found: dict[str, Any] = {}
    for name in sorted(environ):
        section, separator, key = name.removeprefix(ENV_PREFIX).partition("__")
        if name.startswith(ENV_PREFIX) and separator:
            found.setdefault(section.lower(), {})[key.lower()] = environ[name]
    return _Layer(found, lambda section, key: f"{ENV_PREFIX}{section}__{key}".upper())


def _from_flags(flags: Mapping[str, Any]) -> _Layer:
    found: dict[str, Any] = {}
    for key, value in flags.items():
        if value is not None:
            section, _, name = key.partition(".")
            found.setdefault(section, {})[name] = value
    return _Layer(found, lambda section, key: "command line")


def _merge(
    into: dict[str, Any], sources: dict[tuple[str, ...], str], layer: _Layer
) -> None:
    """Lay one source over the weaker ones; tables merge, arrays replace."""
    for section, content in copy.deepcopy(layer.content).items():
        table = content if isinstance(content, dict) else {}
        if table and isinstance(into.get(section), dict):
            into[section].update(table)
        else:
            into[section] = content
        sources[(section,)] = layer.name_of(section, next(iter(table), ""))
        for key in table:
            sources[(section, key)] = layer.name_of(section, key)


def _anchor(content: dict[str, Any], folder: Path) -> None:
    """Make relative paths count from the folder of the file, not of the caller."""
    for section, key in PATH_KEYS:
        table = content.get(section)
        if isinstance(table, dict) and isinstance(table.get(key), str):
            table[key] = folder / Path(table[key]).expanduser()
    for entry in _tables(content.get("attach")):
        if isinstance(entry.get("cwd", "."), str):
            entry["cwd"] = folder / Path(entry.get("cwd", ".")).expanduser()


def _tables(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        yield from (entry for entry in value if isinstance(entry, dict))


def _check_names(config: Config, sources: Mapping[tuple[str, ...], str]) -> None:
    for section, entries in (
        ("need", config.need),
        ("peer", config.peer),
        ("group", config.group),
        ("attach", config.attach),
    ):
        seen: set[str] = set()
        for entry in entries:
            if entry.name in seen:
                raise ConfigError(
                    f"config: two [[{section}]] are called {entry.name}; rename one "
                    f"({sources[section,]})"
                )
            seen.add(entry.name)


def _place(path: Path, lines: list[str], section: str, key: str) -> str:
    """Return the file and, where it is easily found, the line of a key."""
    header = re.compile(rf"^\s*\[*\s*{re.escape(section)}\s*[\].=]")
    entry = re.compile(rf"^\s*[\"']?{re.escape(key)}[\"']?\s*[.=]")
    start = next((n for n, line in enumerate(lines) if header.match(line)), None)
    if start is None:
        return str(path)
    for number in range(start + 1, len(lines)) if key else ():
        if lines[number].lstrip().startswith("["):
            break
        if entry.match(lines[number]):
            return f"{path}, line {number + 1}"
    return f"{path}, line {start + 1}"
