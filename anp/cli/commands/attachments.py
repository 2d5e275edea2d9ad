"""attach, attachments and capabilities: the abilities of the local agent."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anp.cli.client import Client, client_of, home_of, load_settings, segment
from anp.cli.options import Data, Json, read_data
from anp.cli.output import (
    Column,
    Settings,
    fail,
    print_json,
    print_list,
    print_one,
    progress,
)
from anp.errors import CallError, ErrorKind

if TYPE_CHECKING:
    from anp.sidecar.attachments import AttachmentSpec
    from anp.sidecar.attachments.listing import ToolListing
    from anp.sidecar.home.home import Home

__all__ = ["register"]

attach_app = typer.Typer(
    no_args_is_help=True, help="Attach the programs of your agent."
)
attachments_app = typer.Typer(
    no_args_is_help=True, help="Attached programs: list, remove."
)
capabilities_app = typer.Typer(
    no_args_is_help=True, help="Attached capabilities: list, show, test."
)

Fields = dict[str, Any]
"Fields of an `AttachmentSpec`."


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(attach_app, name="attach")
    app.add_typer(attachments_app, name="attachments")
    app.add_typer(capabilities_app, name="capabilities")


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
class _Form:
    """One form of options: as it is typed, as it is kept, and as it is typed again."""

    type: Any
    read: Callable[[str, Any], Any]
    "Gives the value of a field from the flag and its words."

    write: Callable[[Any], list[str | None]]
    "Gives the word of each time that the flag is there; None is the flag alone."


NAMES = _Form(list[str] | None, lambda _, given: tuple(given or ()), list)
PAIRS = _Form(list[str] | None, _pairs, lambda kept: [f"{k}={kept[k]}" for k in kept])
TEXT = _Form(str | None, lambda _, given: given or "", lambda kept: [kept] * bool(kept))
PATH = _Form(
    Path | None,
    lambda _, given: given and given.absolute(),
    lambda kept: [str(kept)] * bool(kept),
)
YES = _Form(bool, lambda _, given: bool(given), lambda kept: [None] * kept)
DOCUMENT = _Form(str | None, _document, TEXT.write)
DECLARED = _Form(Path | None, _declared, lambda kept: ["FILE"] * bool(kept))


@dataclass(frozen=True, slots=True)
class _Option:
    """One option of `anpd attach`, and the field of the attachment that it fills."""

    flag: str
    field: str
    form: _Form
    help: str


NAME = _Option(
    "--name",
    "name",
    TEXT,
    "Name of the attachment, which is the first part of its capabilities' names.",
)
EXPOSE = _Option(
    "--expose", "expose", NAMES, "Capability that peers may call; '*' is all."
)
RENAME = _Option(
    "--rename", "rename", PAIRS, "TOOL=NAME for a capability of another name."
)
ENV = _Option("--env", "env", PAIRS, "NAME=VALUE for the environment of the command.")
CAPABILITIES = _Option(
    "--capabilities", "capabilities", DECLARED, "JSON file with a list of capabilities."
)
ACCESS = (
    _Option("--header", "headers", PAIRS, "NAME=env:VAR or NAME=file:PATH."),
    _Option("--query", "query", PAIRS, "NAME=env:VAR or NAME=file:PATH."),
    _Option("--bearer", "bearer", TEXT, "env:VAR or file:PATH of a bearer token."),
    _Option("--basic", "basic", TEXT, "env:VAR or file:PATH of user:password."),
    _Option(
        "--ca-file", "ca_file", PATH, "Certificates (PEM) trusted besides the system's."
    ),
    _Option(
        "--allow-http", "allow_http", YES, "Allow to send secrets over plain http."
    ),
)
HINTS = (
    _Option("--read-only", "read_only", NAMES, "Capability that changes nothing."),
    _Option("--idempotent", "idempotent", NAMES, "Capability that may be repeated."),
    _Option(
        "--conversational",
        "conversational",
        NAMES,
        "Capability that answers natural language.",
    ),
    RENAME,
    _Option(
        "--show-errors", "show_errors", YES, "Let peers read exceptions word for word."
    ),
)
OPTIONS: dict[str, tuple[_Option, ...]] = {}
"Options of each kind; the command that attaches again repeats all of them."


def _kind(kind: str, *options: _Option) -> Callable[[Callable[..., None]], None]:
    """Make the command that attaches one kind, with shared and own options.

    The function below it completes the fields by what is attached, its first argument.
    """

    def make(complete: Callable[..., None]) -> None:
        OPTIONS[kind] = options
        what = next(
            iter(inspect.signature(complete, eval_str=True).parameters.values())
        )

        def attach(
            context: typer.Context, keep: bool, as_json: bool, **given: Any
        ) -> None:
            fields = {o.field: o.form.read(o.flag, given[o.field]) for o in options}
            complete(given[what.name], fields)
            fields["kind"] = kind
            named = given["name"] is not None
            _attach(context.obj, fields, named=named, keep=keep, as_json=as_json)

        parameters = {
            "context": (typer.Context, inspect.Parameter.empty),
            what.name: (what.annotation, inspect.Parameter.empty),
            **{
                o.field: (
                    Annotated[o.form.type, typer.Option(o.flag, help=o.help)],
                    False if o.form is YES else None,
                )
                for o in options
            },
            "keep": (
                Annotated[
                    bool,
                    typer.Option("--keep", help="Save it even if it does not start."),
                ],
                False,
            ),
            "as_json": (Json, False),
        }
        attach.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # read by typer
            [
                inspect.Parameter(
                    name,
                    inspect.Parameter.KEYWORD_ONLY,
                    annotation=kind,
                    default=default,
                )
                for name, (kind, default) in parameters.items()
            ]
        )
        attach_app.command(kind, help=complete.__doc__)(attach)

    return make


@_kind("mcp", NAME, EXPOSE, ENV, *ACCESS, *HINTS)
def _mcp(
    command: Annotated[list[str], typer.Argument(help="URL, or -- CMD ARGS…")],
    fields: Fields,
) -> None:
    """Attach an MCP server: a command (stdio) or a URL (streamable HTTP)."""
    if command[0].startswith(("http://", "https://")):
        if len(command) > 1:
            raise CallError(ErrorKind.USAGE, "a URL takes no further arguments")
        if fields["env"]:
            raise CallError(ErrorKind.USAGE, "--env is for a command, not for a URL")
        _url(command[0], fields)
        return
    program = Path(command[-1] if len(command) > 2 else command[0]).stem
    fields["command"] = (_program(command[0], fields["env"]), *command[1:])
    fields["name"] = fields["name"] or _name(program)


@_kind(
    "http",
    _Option(
        "--openapi",
        "openapi",
        DOCUMENT,
        "File or URL of its OpenAPI document (3.0 or 3.1, JSON).",
    ),
    *(CAPABILITIES, NAME, EXPOSE, *ACCESS, *HINTS),
)
def _http(
    url: Annotated[str, typer.Argument(help="Base URL of the service.")],
    fields: Fields,
) -> None:
    """Attach an HTTP service by its OpenAPI document (default: URL/openapi.json)."""
    _url(url, fields)


@_kind(
    "callback",
    CAPABILITIES,
    _Option(
        "--secret", "secret", TEXT, "env:VAR or file:PATH; calls are signed with it."
    ),
    *(NAME, EXPOSE, *ACCESS, *HINTS),
)
def _callback(
    url: Annotated[
        str, typer.Argument(help="URL of the agent, which takes calls by POST.")
    ],
    fields: Fields,
) -> None:
    """Attach an agent that takes calls at a URL."""
    _url(url, fields)


@_kind(
    "a2a",
    _Option("--endpoint", "endpoint", TEXT, "URL for calls, if it is on another host."),
    *(NAME, EXPOSE, *ACCESS, *HINTS),
)
def _a2a(
    url: Annotated[str, typer.Argument(help="The agent card, or the agent's host.")],
    fields: Fields,
) -> None:
    """Attach an A2A agent by its card; its skills become capabilities."""
    _url(url, fields)


@_kind(
    "python",
    *(NAME, EXPOSE, ENV),
    _Option("--python", "python", PATH, "Interpreter."),
    _Option("--cwd", "cwd", PATH, "Folder to run in."),
    *HINTS,
)
def _python(
    target: Annotated[str, typer.Argument(help="MODULE:FUNCTION or path.py:FUNCTION")],
    fields: Fields,
) -> None:
    """Attach a Python function, or all public ones of a module."""
    from anp.sidecar.attachments.python.child import find_interpreter

    module, _, function = target.partition(":")
    short = function.rpartition(".")[2] or Path(module).stem.rpartition(".")[2]
    fields["target"] = target
    fields["name"] = fields["name"] or _name(short)
    if fields["python"] is None:
        fields["python"] = find_interpreter(dict(os.environ)).absolute()


def _program(word: str, env: Mapping[str, str]) -> str:
    """Return a program by its absolute path.

    The daemon may run with another PATH and in another folder than this shell. A word
    that names no program here is kept, and the attempt to start it says so.
    """
    found = shutil.which(word, path=env.get("PATH"))
    return word if found is None else str(Path(found).absolute())


def _url(url: str, fields: Fields) -> None:
    """Fill in a URL."""
    from anp.sidecar.attachments.urls import parse_url

    fields["url"] = url
    if fields["name"]:
        return
    try:
        parse_url(url)
    except ValueError as exc:
        raise CallError(ErrorKind.USAGE, f"the url: {exc}") from None


def _name_of_host(url: str) -> str:
    """Return a name for what is at a URL that gives itself none.

    Raises:
        CallError: `usage`, the host's name says nothing about it.
    """
    from anp.sidecar.attachments.urls import is_loopback, parse_url

    host = parse_url(url).host
    if is_loopback(host) or host.replace(".", "").isdigit() or ":" in host:
        raise CallError(
            ErrorKind.USAGE, f"no name can be made from {host}; choose one with --name"
        )
    return _name(host.removeprefix("www.").partition(".")[0])


def _name(text: str) -> str:
    clean = "".join(
        c if c.isascii() and (c.isalnum() or c in "_-") else "-" for c in text
    )
    return clean.strip("-_")[:64] or "attachment"


def _attach(
    settings: Settings, fields: Fields, *, named: bool, keep: bool, as_json: bool
) -> None:
    """Try an attachment once, write its file, and tell a running daemon.

    One that does not start is saved only with `--keep`, and the daemon goes on trying.
    The exit code is that of a wrong configuration.
    """
    import re

    from anp.sidecar.attachments import AttachmentSpec, save_attachment
    from anp.sidecar.attachments.kinds import CANNOT
    from anp.sidecar.attachments.listing import check_names
    from anp.sidecar.attachments.spec import NAME_PATTERN

    # The file is checked when it is read; a bad name would keep the daemon down.
    if named and not re.fullmatch(NAME_PATTERN, fields["name"]):
        raise CallError(
            ErrorKind.USAGE,
            f"--name {fields['name']}: use letters, digits, - and _, at most 64",
        )
    name = fields["name"] or "unnamed"
    cwd = fields.get("cwd") or Path.cwd()
    spec = AttachmentSpec(**{**fields, "name": name, "cwd": cwd})
    home, _ = home_of(settings)
    home.create()
    with _quiet(unless=settings.debug):
        spec, listing, problem = asyncio.run(_try(spec, named=bool(fields["name"])))
    if not named:
        _check_free(home, spec)
    wrong = [] if problem else check_names(spec, listing)
    if wrong and not keep:
        raise CallError(ErrorKind.USAGE, f"{'; '.join(wrong)}; nothing was saved")
    found = [capability.name for capability in listing.capabilities]
    saved = problem is None or keep
    if saved:
        save_attachment(home.attachments, spec)
    exposed = [
        name for name in found if {"*", name, name.partition(".")[2]} & set(spec.expose)
    ]
    answer = {
        "name": spec.name,
        "kind": spec.kind,
        "found": found,
        "exposed": exposed,
        "skipped": list(listing.skipped),
        "problem": problem,
        "saved": saved,
        "daemon": _tell_daemon(home) if saved else "not told",
    }
    if problem is not None:
        detail = f"{spec.name} does not start, so it was not saved: {problem}"
        if keep:
            detail = (
                f"{spec.name} is saved but does not start, so it offers nothing: "
                f"{problem}; correct that, then check it with `anpd doctor`"
            )
        raise typer.Exit(fail(settings, ErrorKind.CONFIGURATION, detail, **answer))
    told = [f"attached {spec.name}"]
    told += [
        f"  {name:<40} {'exposed' if name in exposed else 'not exposed'}"
        for name in found
    ]
    if not exposed:
        again = _command(home.path, replace(spec, expose=("*",)))
        told.append(f"nothing is exposed to peers; to expose all: {again}")
    if cannot := CANNOT.get(spec.kind):
        told.append(f"what it cannot do: {cannot}")
    for reason in () if as_json else (*wrong, *listing.skipped):
        progress(f"anpd: left out: {reason[:200]}")
    print_one(answer, told, as_json=as_json)


@contextlib.contextmanager
def _quiet(*, unless: bool) -> Iterator[None]:
    """Log no warnings meanwhile; the command says the same in one line."""
    logger = logging.getLogger("anp")
    before = logger.level
    if not unless:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


async def _try(
    spec: AttachmentSpec, *, named: bool
) -> tuple[AttachmentSpec, ToolListing, str | None]:
    """Start an attachment once, and end it.

    Returns:
        The attachment under its name, its tools, and why it does not start.
    """
    from anp.sidecar.attachments import AttachmentError, open_attachment
    from anp.sidecar.attachments.listing import ToolListing

    attachment = open_attachment(spec)
    try:
        await attachment.start()
        listing = attachment.listing
    except AttachmentError as exc:
        reason = str(exc)
        if not named:
            reason = reason.replace(f"attachment {spec.name}: ", "")
            try:
                title = _name_of_host(spec.url)
            except CallError as unnamed:
                raise CallError(
                    ErrorKind.CONFIGURATION,
                    f"it does not start, so it was not saved: {reason}",
                ) from unnamed
            spec = replace(spec, name=title)
        return spec, ToolListing(), reason
    finally:
        await attachment.close()
    if not named:
        title = listing.title.strip()
        name = _name(title.lower()) if title else _name_of_host(spec.url)
        spec, listing = replace(spec, name=name), listing.under(name)
    return spec, listing, None


def _check_free(home: Home, spec: AttachmentSpec) -> None:
    """Refuse a name that we made and that stands for something else already.

    Raises:
        CallError: `usage`.
    """
    from anp.sidecar.attachments import load_attachments

    for one in load_attachments(home.attachments):
        places = ("kind", "command", "url", "target")
        if one.name == spec.name and any(
            getattr(one, place) != getattr(spec, place) for place in places
        ):
            raise CallError(
                ErrorKind.USAGE,
                f"another attachment is called {spec.name}; choose a name with "
                "--name, or replace that one with "
                f"--name {spec.name}",
            )


def _command(home: Path, spec: AttachmentSpec) -> str:
    """Return the command that attaches `spec` again as it is."""
    import shlex

    words = ["anpd", "--home", str(home), "attach", spec.kind]
    # Whatever the owner gave has to be in it, or attaching again would lose it.
    for option in OPTIONS[spec.kind]:
        for word in option.form.write(getattr(spec, option.field)):
            words += [option.flag] if word is None else [option.flag, word]
    words += ["--", *spec.command] if spec.command else [spec.url or spec.target]
    return shlex.join(words)


@attachments_app.command("list")
def list_attachments(context: typer.Context, as_json: Json = False) -> None:
    """List the attachments and their states; without a daemon, what is saved."""
    home, _ = home_of(context.obj)
    if home.is_running():
        found = Client(home).get("/v1/info")["attachments"]
    else:
        found = _saved(context.obj, home)
    columns: dict[str, Column] = {
        "NAME": "name",
        "KIND": "kind",
        "HEALTH": lambda each: HEALTH[each["healthy"]],
        "CAPABILITIES": lambda each: _shown(each["capabilities"]),
        "EXPOSED": lambda each: each["expose"] or "none",
        "PROBLEM": lambda each: each["problem"] or "",
    }
    print_list({"attachments": found}, found, columns, as_json=as_json)
    for each in () if as_json else found:
        for reason in each["skipped"]:
            progress(f"left out of {each['name']}: {reason[:200]}")


HEALTH = {True: "ok", False: "DOWN", None: "-"}
"Words for the health of an attachment; None is while no daemon runs."


def _shown(count: int | None) -> str:
    return "-" if count is None else str(count)


def _saved(settings: Settings, home: Home) -> list[dict[str, Any]]:
    """Return the attachments of the owner's files, as the API would list them."""
    from anp.sidecar.attachments import load_attachments

    specs = (*load_settings(settings).attach, *load_attachments(home.attachments))
    return [
        {
            "name": spec.name,
            "kind": spec.kind,
            "healthy": None,
            "problem": "the daemon is not running",
            "skipped": [],
            "capabilities": None,
            "expose": list(spec.expose),
        }
        for spec in specs
    ]


@attachments_app.command("remove")
def remove(context: typer.Context, name: str, as_json: Json = False) -> None:
    """Remove an attachment."""
    from anp.sidecar.attachments import remove_attachment

    home, _ = home_of(context.obj)
    if not remove_attachment(home.attachments, name):
        raise CallError(
            ErrorKind.USAGE,
            f"{home.attachments} has no attachment {name}; if it is in the "
            "configuration, remove it there",
        )
    daemon = _tell_daemon(home)
    print_one(
        {"removed": name, "daemon": daemon},
        [f"removed {name}; daemon {daemon}"],
        as_json=as_json,
    )


def _tell_daemon(home: Home) -> str:
    """Have a running daemon read its attachments again; return what came of it."""
    if not home.is_running():
        return "not running"
    Client(home).post("/v1/reload")
    return "reloaded"


@capabilities_app.command("list")
def list_capabilities(context: typer.Context, as_json: Json = False) -> None:
    """List the capabilities of all attachments."""
    found = client_of(context).get("/v1/capabilities")
    columns: dict[str, Column] = {
        "CAPABILITY": "name",
        "EXPOSED": _exposed,
        "READ-ONLY": lambda each: "yes" if each["read_only"] else "no",
        "DESCRIPTION": "description",
    }
    print_list(found, found["capabilities"], columns, as_json=as_json)


@capabilities_app.command("show")
def show_capability(context: typer.Context, name: str, as_json: Json = False) -> None:
    """Show one capability with its schemas."""
    for capability in client_of(context).get("/v1/capabilities")["capabilities"]:
        if name in (capability["name"], capability["name"].partition(".")[2]):
            print_json(capability)
            return
    raise CallError(ErrorKind.USAGE, f"no capability is called {name}")


@capabilities_app.command("test")
def try_capability(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Its full name, or the short one.")],
    data: Data = "{}",
    as_json: Json = False,
) -> None:
    """Call one exposed capability as a peer would, without a protocol."""
    path = f"/v1/capabilities/{segment(name)}/test"
    found = client_of(context).post(path, {"input": read_data(data)})
    print_json(found if as_json else found["output"])


def _exposed(capability: dict[str, Any]) -> str:
    if capability["exposed"]:
        return "yes"
    peers = capability.get("exposed_to")
    return f"to {', '.join(peers)}" if peers else "no"
