"""attach: tries a program once, writes its file, and tells a running daemon."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
from click import Context

from anp.cli.client import home_of
from anp.cli.commands.attachments.attached import tell_daemon
from anp.cli.commands.attachments.options import (
    ACCESS,
    CAPABILITIES,
    DOCUMENT,
    ENV,
    EXPOSE,
    HINTS,
    NAME,
    OAUTH,
    PATH,
    TEXT,
    YES,
    AttachOption,
)
from anp.cli.grammar import Argument, Commands, Option
from anp.cli.options import Json
from anp.cli.output import Settings, fail, print_one, progress
from anp.errors import CallError, ErrorKind

if TYPE_CHECKING:
    from anp.sidecar.attachments import AttachmentSpec
    from anp.sidecar.attachments.listing import ToolListing
    from anp.sidecar.home.home import Home

attach_app = Commands(help="Attach the programs of your agent.")
Fields = dict[str, Any]
"Fields of an `AttachmentSpec`."


INTERPRETERS = re.compile(
    r"(python|pypy)[\d.]*|node|deno|bunx?|npx|uvx?|pipx|(ba|da|z)?sh"
)
"Programs that run another one, after which an attachment is named."

VERBS = frozenset({"run", "tool", "x"})
"Words between such a program and what it runs, as in `uv run`."

VALUE_OPTIONS = frozenset(
    {"--directory", "--env-file", "--from", "--package", "--project", "--python"}
    | {"--require", "--spec", "--with", "-W", "-X", "-p", "-r"}
)
"Options of such programs with a value of their own."

CODE_OPTIONS = frozenset({"-c", "-e", "--call", "--eval"})
"Options with the program's text, which gives no name."

SCRIPT_SUFFIXES = frozenset({".cjs", ".git", ".js", ".mjs", ".py", ".sh", ".ts"})
"Endings of files that are no part of a name."

MOST_REASONS = 5
"Tools that cannot be used of which the message gives the reason."

OPTIONS: dict[str, tuple[AttachOption, ...]] = {}
"Options of each kind; the command that attaches again repeats all of them."


def _kind(kind: str, *options: AttachOption) -> Callable[[Callable[..., None]], None]:
    """Make the command that attaches one kind, with shared and own options.

    The function below it completes the fields by what is attached, its first argument.
    """

    def make(complete: Callable[..., None]) -> None:
        OPTIONS[kind] = options
        what = next(
            iter(inspect.signature(complete, eval_str=True).parameters.values())
        )

        def attach(context: Context, keep: bool, as_json: bool, **given: Any) -> None:
            fields = {o.field: o.form.read(o.flag, given[o.field]) for o in options}
            complete(given[what.name], fields)
            fields["kind"] = kind
            named = given["name"] is not None
            _attach(context.obj, fields, named=named, keep=keep, as_json=as_json)

        parameters = {
            "context": (Context, inspect.Parameter.empty),
            what.name: (what.annotation, inspect.Parameter.empty),
            **{
                o.field: (
                    Annotated[o.form.type, Option(o.flag, help=o.help)],
                    False if o.form is YES else None,
                )
                for o in options
            },
            "keep": (
                Annotated[
                    bool, Option("--keep", help="Save it even if it does not start.")
                ],
                False,
            ),
            "as_json": (Json, False),
        }
        attach.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # read by click
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
    command: Annotated[list[str], Argument(help="URL, or -- CMD ARGS…")], fields: Fields
) -> None:
    """Attach an MCP server: a command (stdio) or a URL (streamable HTTP)."""
    if command[0].startswith(("http://", "https://")):
        if len(command) > 1:
            raise CallError(ErrorKind.USAGE, "a URL takes no further arguments")
        if fields["env"]:
            raise CallError(ErrorKind.USAGE, "--env is for a command, not for a URL")
        _url(command[0], fields)
        return
    program = _program_name(command)
    fields["command"] = (_program(command[0], fields["env"]), *command[1:])
    fields["name"] = fields["name"] or _name(program)


@_kind(
    "http",
    AttachOption(
        "--openapi",
        "openapi",
        DOCUMENT,
        "File or URL of its OpenAPI document (3.0 or 3.1, JSON).",
    ),
    *(CAPABILITIES, NAME, EXPOSE, *ACCESS, *HINTS),
)
def _http(
    url: Annotated[str, Argument(help="Base URL of the service.")], fields: Fields
) -> None:
    """Attach an HTTP service by its OpenAPI document (default: URL/openapi.json)."""
    _url(url, fields)


@_kind(
    "callback",
    CAPABILITIES,
    AttachOption(
        "--secret", "secret", TEXT, "env:VAR or file:PATH; calls are signed with it."
    ),
    *(NAME, EXPOSE, *ACCESS, *HINTS),
)
def _callback(
    url: Annotated[str, Argument(help="URL of the agent, which takes calls by POST.")],
    fields: Fields,
) -> None:
    """Attach an agent that takes calls at a URL."""
    _url(url, fields)


@_kind(
    "a2a",
    AttachOption(
        "--endpoint", "endpoint", TEXT, "URL for calls, if it is on another host."
    ),
    *OAUTH,
    *(NAME, EXPOSE, *ACCESS, *HINTS),
)
def _a2a(
    url: Annotated[str, Argument(help="The agent card, or the agent's host.")],
    fields: Fields,
) -> None:
    """Attach an A2A agent by its card; its skills become capabilities."""
    _url(url, fields)


@_kind("inbox", CAPABILITIES, EXPOSE, *HINTS)
def _inbox(
    name: Annotated[str, Argument(help="Name of the attachment.")], fields: Fields
) -> None:
    """Attach an agent that is no server: it reads its tasks from the daemon."""
    fields["name"] = name


@_kind(
    "python",
    *(NAME, EXPOSE, ENV),
    AttachOption("--python", "python", PATH, "Interpreter."),
    AttachOption("--cwd", "cwd", PATH, "Folder to run in."),
    *HINTS,
)
def _python(
    target: Annotated[str, Argument(help="MODULE:FUNCTION or path.py:FUNCTION")],
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


def _program_name(command: Sequence[str]) -> str:
    """Return a name for what a command runs; an interpreter's own would say nothing."""
    if not INTERPRETERS.fullmatch(Path(command[0]).name):
        return Path(command[-1] if len(command) > 2 else command[0]).stem
    words = iter(command[1:])
    for word in words:
        if word in CODE_OPTIONS:
            break
        if word in VALUE_OPTIONS:
            next(words, None)
        elif not (
            word.startswith("-") or word in VERBS or INTERPRETERS.fullmatch(word)
        ):
            # Of a package neither its scope nor its version or extras.
            short = re.split(r"[@=<>~\[]", word.rstrip("/").rpartition("/")[2])[0]
            path = Path(short)
            return path.stem if path.suffix in SCRIPT_SUFFIXES else short
    return Path(command[0]).stem


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


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        progress(f"anpd: {line}")


def _refuse_useless(name: str, wrong: Sequence[str], unusable: Sequence[str]) -> None:
    """Raise for an attachment that would not do what was asked for.

    Args:
        name: Its name.
        wrong: Options that name what it does not have.
        unusable: Reasons of all its tools, if none of them can be used.
    """
    if unusable:
        raise CallError(
            ErrorKind.CONFIGURATION,
            f"0 of {len(unusable)} usable, so {name} was not saved: "
            f"{'; '.join(reason[:200] for reason in unusable[:MOST_REASONS])}",
        )
    if wrong:
        raise CallError(ErrorKind.USAGE, f"{'; '.join(wrong)}; nothing was saved")


def _attach(
    settings: Settings, fields: Fields, *, named: bool, keep: bool, as_json: bool
) -> None:
    """Try an attachment once, write its file, and tell a running daemon.

    One that does not start is saved only with `--keep`, and the daemon goes on trying.
    The exit code is that of a wrong configuration.
    """
    from anp.sidecar.attachments import AttachmentSpec, save_attachment
    from anp.sidecar.attachments.kinds import CANNOT
    from anp.sidecar.attachments.listing import check_names
    from anp.sidecar.attachments.spec import NAME_PATTERN

    # The file is checked when it is read; a bad name would keep the daemon down.
    if named and not re.fullmatch(NAME_PATTERN, fields["name"]):
        raise CallError(
            ErrorKind.USAGE,
            f"--name {fields['name']}: use ASCII letters, digits, - and _, at most 64",
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
    unusable = [reason for reason in listing.skipped if reason not in wrong]
    found = [capability.name for capability in listing.capabilities]
    if not keep:
        _refuse_useless(spec.name, wrong, [] if found else unusable)
    saved = problem is None or keep
    if saved:
        save_attachment(home.attachments, spec)
    exposed = [
        name for name in found if {"*", name, name.partition(".")[2]} & set(spec.expose)
    ]
    effects = [one.name for one in listing.capabilities if not one.read_only]
    answer = {
        "name": spec.name,
        "kind": spec.kind,
        "found": found,
        "exposed": exposed,
        "not_read_only": effects,
        "skipped": list(listing.skipped),
        "problem": problem,
        "saved": saved,
        "daemon": tell_daemon(home) if saved else "not told",
    }
    if problem is not None:
        detail = f"{spec.name} does not start, so it was not saved: {problem}"
        if keep:
            detail = (
                f"{spec.name} is saved but does not start, so it offers nothing: "
                f"{problem}; correct that, then check it with `anpd doctor`"
            )
        raise click.exceptions.Exit(
            fail(settings, ErrorKind.CONFIGURATION, detail, **answer)
        )
    none = (
        f", of which 0 of {len(unusable)} is usable" if unusable and not found else ""
    )
    told = [f"attached {spec.name}{none}"]
    told += [
        f"  {name:<40} {'exposed' if name in exposed else 'not exposed'}"
        for name in found
    ]
    if found and not exposed:
        again = _command(home.path, replace(spec, expose=("*",)))
        told.append(f"nothing is exposed to peers; to expose all: {again}")
    if effects:
        told += _unmarked(home.path, spec, effects)
    if cannot := CANNOT.get(spec.kind):
        told.append(f"what it cannot do: {cannot}")
    left_out = () if as_json else (*wrong, *listing.skipped)
    _say([f"left out: {reason[:200]}" for reason in left_out])
    _say([warning[:300] for warning in listing.warnings])
    print_one(answer, told, as_json=as_json)


def _unmarked(home: Path, spec: AttachmentSpec, effects: Sequence[str]) -> list[str]:
    """Return the lines about what may have side effects, and how to say otherwise."""
    short = [name.partition(".")[2] for name in effects]
    marked = replace(spec, read_only=(*spec.read_only, *short))
    return [
        f"not marked read-only: {', '.join(effects)}",
        "a peer runs these only by name, or after you accept in `anpd approvals`; if "
        f"they change nothing: {_command(home, marked)}",
    ]


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
    words += (
        ["--", *spec.command]
        if spec.command
        else [spec.url or spec.target or spec.name]
    )
    return shlex.join(words)
