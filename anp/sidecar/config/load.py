"""The configuration: TOML files, environment and flags become one `Config`."""

from __future__ import annotations

import copy
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import platformdirs
from pydantic import TypeAdapter, ValidationError

from anp.errors import ConfigError
from anp.sidecar.config.settings import (
    BudgetConfig,
    CacheConfig,
    CallConfig,
    ChannelsConfig,
    Config,
    ConsensusConfig,
    IdentityConfig,
    LimitsConfig,
    ListenConfig,
    LlmConfig,
    NegotiationConfig,
    PeerEntry,
    PolicyConfig,
    SandboxSettings,
    TaskEntry,
)
from anp.sidecar.home.explain import explain
from anp.sidecar.home.home import Home
from anp.wire.meta_protocol import CAPABILITIES

__all__ = [
    "BudgetConfig",
    "CacheConfig",
    "CallConfig",
    "ChannelsConfig",
    "Config",
    "ConsensusConfig",
    "IdentityConfig",
    "LimitsConfig",
    "ListenConfig",
    "LlmConfig",
    "NegotiationConfig",
    "PeerEntry",
    "PolicyConfig",
    "SandboxSettings",
    "TaskEntry",
    "config_files",
    "default_config_text",
    "load_config",
]

MAX_FILE = 1024 * 1024
"Largest configuration file, in bytes."

_ADAPTER = TypeAdapter(Config)

ENV_PREFIX = "ANPD_"
PATH_KEYS = (
    ("identity", "key_file"),
    ("listen", "tls_cert"),
    ("listen", "tls_key"),
    ("fetch", "ca_file"),
    ("llm", "api_key_file"),
    ("cache", "path"),
    ("cache", "ca_file"),
    ("consensus", "directory"),
)
"Keys whose relative paths count from the folder of the file that has them."


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
        folder = environ.get("XDG_CONFIG_HOME")
        xdg = Path(folder) / "anpd" if folder else platformdirs.user_config_path("anpd")
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
        home,
        home_given=home_given,
        config_file=config_file,
        cwd=cwd,
        environ=environ,
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
    """What one source says."""

    content: dict[str, Any]
    "Sections as TOML would give them."

    name_of: Callable[[str, str], str]
    "How to call the place of (section, key) in a message; the key may be empty."


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
    except (ValueError, RecursionError) as exc:
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
        ("task", config.task),
        ("peer", config.peer),
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


def default_config_text(method: str = "did:key") -> str:
    """Return the file that `anpd init` writes: each setting, shown as its default."""
    names = json.dumps(CAPABILITIES)
    return _DEFAULT_TEXT.replace("@method@", method).replace("@capabilities@", names)


_DEFAULT_TEXT = """\
# The configuration of anpd. A line that begins with '#' shows a default.
# Stronger than this file: flags, and the environment (ANPD_LISTEN__PORT=9000).

[identity]
method = "@method@"               # "did:key" or "did:all", from the same key;
                                  # "did:wba" after `anpd identity create DOMAIN`
# key_file = "identity.key"
# sign_with = "p256"              # or "ed25519", for hellos of a did:wba

[listen]
# host = "127.0.0.1"              # any other address also sets policy.peers = "listed"
# port = 8765                     # 0 lets the system choose
# public_url = "wss://agent.example/"
# tls_cert = "agent.pem"          # with both the port speaks https and wss
# tls_key = "agent.key"
# api_port = 8764                 # the local API also on 127.0.0.1, with a token;
                                  # without it only on a Unix socket

[policy]
# peers = "any"                   # every verified DID; elsewhere than on loopback
                                  # the default is "listed": those you allowed
# share_agreements = false        # offer what was agreed with one peer to another

[fetch]                           # what peers make us fetch, such as DID documents
# allow = []                      # networks besides the public ones: ["10.0.0.0/8"]
# allow_http_loopback = false     # for tests; otherwise https only
# ca_file = "authorities.pem"     # trusted besides the system's

[negotiation]
# mind = "auto"                   # "auto", "rules" or "llm"
# timeout = 120.0                 # seconds, the whole negotiation
# codegen_timeout = 60.0
# message_timeout = 60.0
# max_rounds = 10
# test_cases = true               # test a new protocol with the peer before its use
# approve = "never"               # or "first-use", "side-effects", "always"
# approval_wait = 20.0            # seconds a peer waits for you, at most 20
# capabilities = @capabilities@
                                  # what peers may use besides plain negotiation

[llm]                             # no model is called while `model` is not set
# model = "gpt-5-mini"
# base_url = "http://127.0.0.1:8080/v1"
                                  # without it: https://api.openai.com/v1
# api_key_env = "OPENAI_API_KEY"  # with base_url no key is sent unless you name one
# api_key_file = "model.key"
# timeout = 60.0                  # seconds, one question with all its repetitions
# answer_form = "json_schema"     # or "json_object", "text", for servers without it
# max_tokens_name = "auto"        # or "max_tokens", "max_completion_tokens"
# thinking_tokens = 0             # more room for models that think first
# reasoning_effort = "low"        # sent only if set, as are the next two
# temperature = 0.0
# seed = 1
# headers = { X-Team = "agents" } # values are kept secret
# price_input = 0.25              # per million tokens; `anpd spend` shows money then
# price_output = 2.0

[budget]                          # of model calls; a day is one of UTC
# negotiation_calls = 8
# negotiation_tokens = 200000
# peer_calls = 40                 # per listed peer and day
# peer_tokens = 400000
# unlisted_calls = 20             # all unlisted peers together, per day
# unlisted_tokens = 200000
# day_calls = 200                 # everything
# day_tokens = 2000000
# owner_share = 0.5               # of the day for our own calls, the rest for peers

[consensus]                       # protocols known by URI, used without negotiation
# use = true                      # look at what a peer publishes before negotiating
# envelope = true                 # the message envelope, for capabilities by name
# publish = true                  # serve our list; default where any peer may use us
# directory = "consensus"
# order = []                      # URIs, best first
# list_lifetime = 300.0           # seconds a peer's list is kept

[call]
# timeout = 30.0                  # seconds, from when the protocol is ready

[sandbox]
# level = "full"                  # least isolation for code that a model wrote
# call_timeout = 2.0              # seconds
# memory = 268435456              # bytes
# max_workers = 64

[cache]
# path = "store"
# url = "redis://host:6379/0"     # a store that several daemons share; docs/fleets.md
# prefix = "anpd"                 # one for each identity
# ca_file = "ca.pem"              # PEM, for rediss://; default is the system's

[channels]
# resumption = false              # keep keys, encrypted, so that a call after a restart
                                  # needs no handshake; both sides have to want it
# key_lifetime = 864000           # seconds; keys are renewed at 80 % of it
# max_frame = 16777216            # bytes, between peers with our extensions
# renew_messages = 1048576

[limits]
# max_message = 1048576           # bytes
# max_payload = 783359            # bytes, to peers without our extensions
# max_links = 256
# max_channels = 64
# max_calls = 64

[log]
# format = "auto"                 # text on a terminal, else "json", one object a line
# level = "info"                  # or "debug", "warning", "error"

[operation]
# stop_timeout = 20.0             # seconds for calls in flight after SIGTERM

[otel]                            # traces; needs the extra anpd[otel]
# enabled = false
# endpoint = "http://127.0.0.1:4318"
                                  # without it: what the OTEL_* variables say
# service_name = "anpd"
# sample = 1.0                    # part of the traces that begin here

# [[peer]]
# name = "shop"
# did = "did:key:z…"
# url = "ws://127.0.0.1:8766/"
# keep_link = false

# [[task]]
# name = "product"
# requirement = "get_product: name, description and price of a product by its id"
# protocol = "https://shop.example/protocols/product/1.0"

# [[attach]]                      # or: anpd attach mcp --name time -- mcp-server-time
# kind = "mcp"
# name = "time"
# command = ["mcp-server-time"]
# expose = ["*"]
"""
