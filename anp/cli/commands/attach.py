"""attach: what the local agent can do."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from anp.cli.client import home_of
from anp.cli.commands.attachments import tell_daemon
from anp.cli.output import Settings, print_json, visible
from anp.errors import EXIT_CODES, CallError, ErrorKind

__all__ = ["register"]

attach_app = typer.Typer(no_args_is_help=True, help="Attach what the agent can do.")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Name = Annotated[
    str | None, typer.Option(help="First half of the capabilities' names.")
]
Expose = Annotated[
    list[str] | None, typer.Option(help="Capability that peers may use; '*' is all.")
]
ReadOnly = Annotated[
    list[str] | None, typer.Option(help="Capability that changes nothing.")
]
Idempotent = Annotated[
    list[str] | None, typer.Option(help="Capability that may be repeated.")
]
Conversational = Annotated[
    list[str] | None, typer.Option(help="Capability that answers natural language.")
]
Env = Annotated[list[str] | None, typer.Option(help="K=V for the child.")]
Header = Annotated[
    list[str] | None, typer.Option(help="NAME=env:VAR or NAME=file:PATH.")
]
Query = Annotated[
    list[str] | None, typer.Option(help="NAME=env:VAR or NAME=file:PATH.")
]
Bearer = Annotated[
    str | None, typer.Option(help="env:VAR or file:PATH of a bearer token.")
]
Basic = Annotated[
    str | None, typer.Option(help="env:VAR or file:PATH of user:password.")
]
CaFile = Annotated[
    Path | None, typer.Option(help="Certificates (PEM) trusted besides the system's.")
]
AllowHttp = Annotated[
    bool, typer.Option("--allow-http", help="Secrets may go over plain http.")
]
Declared = Annotated[
    Path | None, typer.Option(help="JSON file with a list of capabilities.")
]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(attach_app, name="attach")


@attach_app.command("mcp")
def attach_mcp(
    context: typer.Context,
    command: Annotated[list[str], typer.Argument(help="URL, or -- CMD ARGS…")],
    name: Name = None,
    expose: Expose = None,
    env: Env = None,
    header: Header = None,
    query: Query = None,
    bearer: Bearer = None,
    basic: Basic = None,
    ca_file: CaFile = None,
    allow_http: AllowHttp = False,
    read_only: ReadOnly = None,
    idempotent: Idempotent = None,
    conversational: Conversational = None,
    as_json: Json = False,
) -> None:
    """Attach an MCP server: a command (stdio) or a URL (streamable HTTP)."""
    fields: dict[str, Any] = _hints(expose, read_only, idempotent, conversational)
    if command[0].startswith(("http://", "https://")):
        if len(command) > 1:
            raise CallError(ErrorKind.USAGE, "a URL takes no further words")
        if env:
            raise CallError(ErrorKind.USAGE, "--env is for a command, not for a URL")
        fields |= {"url": command[0], "name": name or _host_name(command[0])}
    else:
        program = Path(command[-1] if len(command) > 2 else command[0]).stem
        fields |= {"command": tuple(command), "env": _pairs("--env", env)}
        fields |= {"name": name or _name(program)}
    fields |= _access(header, query, bearer, basic, ca_file, allow_http)
    _attach(context.obj, as_json, kind="mcp", **fields)


@attach_app.command("http")
def attach_http(
    context: typer.Context,
    url: Annotated[str, typer.Argument(help="Base URL of the service.")],
    openapi: Annotated[
        str | None,
        typer.Option(help="File or URL of its OpenAPI document (3.0 or 3.1, JSON)."),
    ] = None,
    capabilities: Declared = None,
    name: Name = None,
    expose: Expose = None,
    header: Header = None,
    query: Query = None,
    bearer: Bearer = None,
    basic: Basic = None,
    ca_file: CaFile = None,
    allow_http: AllowHttp = False,
    read_only: ReadOnly = None,
    idempotent: Idempotent = None,
    conversational: Conversational = None,
    as_json: Json = False,
) -> None:
    """Attach an HTTP service by its OpenAPI document (default: URL/openapi.json)."""
    if openapi and not openapi.startswith(("http://", "https://")):
        openapi = str(Path(openapi).expanduser().absolute())
    _attach(
        context.obj,
        as_json,
        kind="http",
        name=name or _host_name(url),
        url=url,
        openapi=openapi or "",
        capabilities=_declared(capabilities),
        **_access(header, query, bearer, basic, ca_file, allow_http),
        **_hints(expose, read_only, idempotent, conversational),
    )


@attach_app.command("callback")
def attach_callback(
    context: typer.Context,
    url: Annotated[str, typer.Argument(help="Where the agent takes calls by POST.")],
    capabilities: Declared = None,
    secret: Annotated[
        str | None, typer.Option(help="env:VAR or file:PATH; calls are signed with it.")
    ] = None,
    name: Name = None,
    expose: Expose = None,
    header: Header = None,
    query: Query = None,
    bearer: Bearer = None,
    basic: Basic = None,
    ca_file: CaFile = None,
    allow_http: AllowHttp = False,
    read_only: ReadOnly = None,
    idempotent: Idempotent = None,
    conversational: Conversational = None,
    as_json: Json = False,
) -> None:
    """Attach an agent that takes calls at a URL of its own."""
    _attach(
        context.obj,
        as_json,
        kind="callback",
        name=name or _host_name(url),
        url=url,
        capabilities=_declared(capabilities),
        secret=secret or "",
        **_access(header, query, bearer, basic, ca_file, allow_http),
        **_hints(expose, read_only, idempotent, conversational),
    )


@attach_app.command("a2a")
def attach_a2a(
    context: typer.Context,
    url: Annotated[str, typer.Argument(help="The agent card, or the agent's host.")],
    endpoint: Annotated[
        str | None, typer.Option(help="Where calls go, if on another host.")
    ] = None,
    name: Name = None,
    expose: Expose = None,
    header: Header = None,
    query: Query = None,
    bearer: Bearer = None,
    basic: Basic = None,
    ca_file: CaFile = None,
    allow_http: AllowHttp = False,
    read_only: ReadOnly = None,
    idempotent: Idempotent = None,
    conversational: Conversational = None,
    as_json: Json = False,
) -> None:
    """Attach an A2A agent by its card; its skills become capabilities."""
    _attach(
        context.obj,
        as_json,
        kind="a2a",
        name=name or _host_name(url),
        url=url,
        endpoint=endpoint or "",
        **_access(header, query, bearer, basic, ca_file, allow_http),
        **_hints(expose, read_only, idempotent, conversational),
    )


@attach_app.command("python")
def attach_python(
    context: typer.Context,
    target: Annotated[str, typer.Argument(help="MODULE:FUNCTION or path.py:FUNCTION")],
    name: Name = None,
    expose: Expose = None,
    env: Env = None,
    python: Annotated[Path | None, typer.Option(help="Interpreter.")] = None,
    cwd: Annotated[Path | None, typer.Option(help="Folder to run in.")] = None,
    read_only: ReadOnly = None,
    idempotent: Idempotent = None,
    conversational: Conversational = None,
    as_json: Json = False,
) -> None:
    """Attach a Python function, or all public ones of a module."""
    from anp.sidecar.attachments.python.child import find_interpreter

    module, _, function = target.partition(":")
    short = function.rpartition(".")[2] or Path(module).stem.rpartition(".")[2]
    _attach(
        context.obj,
        as_json,
        kind="python",
        name=name or _name(short),
        target=target,
        python=(python or find_interpreter(dict(os.environ))).absolute(),
        cwd=cwd,
        env=_pairs("--env", env),
        **_hints(expose, read_only, idempotent, conversational),
    )


def _attach(settings: Settings, as_json: bool, **fields: Any) -> None:
    """Write an attachment's file, try it once, and tell a running daemon.

    One that does not start is saved too: what it needs may come later, and the daemon
    goes on trying. The exit code is that of a wrong configuration.
    """
    import re

    from anp.sidecar.attachments import AttachmentSpec, save_attachment
    from anp.sidecar.attachments.spec import NAME_PATTERN

    # The file is checked when it is read; a bad name would keep the daemon down.
    if not re.fullmatch(NAME_PATTERN, fields["name"]):
        raise CallError(
            ErrorKind.USAGE,
            f"--name {fields['name']}: use letters, digits, - and _, at most 64",
        )

    fields["cwd"] = (fields.get("cwd") or Path.cwd()).absolute()
    home, _ = home_of(settings)
    home.create()
    spec = AttachmentSpec(**fields)
    found, skipped, problem = asyncio.run(_try(spec))
    save_attachment(home.attachments, spec)
    daemon = tell_daemon(home)
    exposed = [n for n in found if _is_exposed(spec.expose, n)]
    told = {
        "name": spec.name,
        "kind": spec.kind,
        "found": found,
        "exposed": exposed,
        "skipped": skipped,
        "problem": problem,
        "daemon": daemon,
    }
    if problem is not None:
        raise typer.Exit(_not_started(spec.name, problem, told if as_json else None))
    if as_json:
        print_json(told)
        return
    print(f"attached {spec.name}")
    for capability in found:
        mark = "exposed" if capability in exposed else "hidden"
        print(f"  {capability:<40} {mark}")
    for reason in skipped:
        print(f"anpd: left out: {visible(reason)[:200]}", file=sys.stderr)
    if not exposed:
        again = replace(spec, expose=("*",))
        print(
            f"nothing is exposed to peers; to expose all: {_command(home.path, again)}"
        )


def _not_started(name: str, problem: str, told: dict[str, Any] | None) -> int:
    """Say that an attachment is saved and does not start; return the exit code.

    Args:
        told: What goes into the problem document of `--json`; None is for people.
    """
    kind = ErrorKind.CONFIGURATION
    reason = visible(" ".join(problem.split()))
    detail = (
        f"{name} is saved but does not start, so it offers nothing: {reason}; put that "
        "right, `anpd doctor` shows how it is"
    )
    print(f"anpd: {detail}", file=sys.stderr)
    if told is not None:
        title = kind.value.replace("_", " ")
        print_json(
            {
                **told,
                "type": f"urn:anpd:error:{kind.value}",
                "title": title,
                "detail": detail,
                "kind": kind.value,
            }
        )
    return EXIT_CODES[kind]


async def _try(spec: Any) -> tuple[list[str], list[str], str | None]:
    from anp.sidecar.attachments import AttachmentError, open_attachment

    attachment = open_attachment(spec)
    try:
        await attachment.start()
        names = [c.name for c in attachment.capabilities()]
        return names, list(attachment.skipped), None
    except AttachmentError as exc:
        return [], [], str(exc)
    finally:
        await attachment.close()


def _command(home: Path, spec: Any) -> str:
    """Return the command that attaches `spec` again as it is."""
    import shlex

    words = ["anpd", "--home", str(home), "attach", spec.kind, "--name", spec.name]
    # Whatever the owner gave has to be in it, or attaching again would lose it.
    words += ["--expose", "*"]
    for option, pairs in (
        ("--env", spec.env),
        ("--header", spec.headers),
        ("--query", spec.query),
    ):
        words += [word for k, v in pairs.items() for word in (option, f"{k}={v}")]
    for option, names in (
        ("--read-only", spec.read_only),
        ("--idempotent", spec.idempotent),
        ("--conversational", spec.conversational),
    ):
        words += [word for tool in names for word in (option, tool)]
    for option, value in (
        ("--openapi", spec.openapi),
        ("--endpoint", spec.endpoint),
        ("--secret", spec.secret),
        ("--bearer", spec.bearer),
        ("--basic", spec.basic),
        ("--ca-file", str(spec.ca_file or "")),
    ):
        words += [option, value] if value else []
    words += ["--allow-http"] if spec.allow_http else []
    if spec.capabilities:
        words += ["--capabilities", "FILE"]
    if spec.kind == "python":
        words += ["--python", str(spec.python), "--cwd", str(spec.cwd)]
    words += ["--", *spec.command] if spec.command else [spec.url or spec.target]
    return shlex.join(words)


def _is_exposed(expose: tuple[str, ...], name: str) -> bool:
    return "*" in expose or name in expose or name.partition(".")[2] in expose


def _name(text: str) -> str:
    clean = "".join(
        c if c.isascii() and (c.isalnum() or c in "_-") else "-" for c in text
    )
    return clean.strip("-_")[:64] or "attachment"


def _host_name(url: str) -> str:
    """Return a name for what is at a URL: its host's first word."""
    from anp.sidecar.attachments.urls import is_loopback, parse_url

    try:
        host = parse_url(url).host
    except ValueError as exc:
        raise CallError(ErrorKind.USAGE, f"the url: {exc}") from None
    if is_loopback(host) or host.replace(".", "").isdigit() or ":" in host:
        raise CallError(
            ErrorKind.USAGE, f"{host} gives no name; choose one with --name"
        )
    return _name(host.removeprefix("www.").partition(".")[0])


def _pairs(option: str, items: list[str] | None) -> dict[str, str]:
    pairs = {}
    for item in items or ():
        key, equals, value = item.partition("=")
        if not equals or not key:
            # Not repeated: it may be a secret alone.
            raise CallError(ErrorKind.USAGE, f"{option}: write NAME=VALUE")
        pairs[key] = value
    return pairs


def _access(
    header: list[str] | None,
    query: list[str] | None,
    bearer: str | None,
    basic: str | None,
    ca_file: Path | None,
    allow_http: bool,
) -> dict[str, Any]:
    return {
        "headers": _pairs("--header", header),
        "query": _pairs("--query", query),
        "bearer": bearer or "",
        "basic": basic or "",
        "ca_file": ca_file.absolute() if ca_file else None,
        "allow_http": allow_http,
    }


def _hints(
    expose: list[str] | None,
    read_only: list[str] | None,
    idempotent: list[str] | None,
    conversational: list[str] | None,
) -> dict[str, Any]:
    return {
        "expose": tuple(expose or ()),
        "read_only": tuple(read_only or ()),
        "idempotent": tuple(idempotent or ()),
        "conversational": tuple(conversational or ()),
    }


def _declared(path: Path | None) -> tuple[Any, ...]:
    """Read the capabilities that the owner describes in a file."""
    if path is None:
        return ()
    from anp.sidecar.attachments.spec import read_declared

    return read_declared(path)
