"""The root of all commands, with the global options."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from typer.exceptions import Abort, TyperException

from anp.cli.output import Settings, fail, guarded, show_wide
from anp.cli.words import RootGroup
from anp.errors import EXIT_CODES, ErrorKind

__all__ = ["app", "run"]

WIDE = "--wide"

app = typer.Typer(
    cls=RootGroup,
    name="anpd",
    help="A sidecar that lets any two AI agents talk to each other.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from anp.version import daemon_version

        print(f"anpd {daemon_version()}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    home: Annotated[
        str | None, typer.Option(help="Folder with everything of one daemon.")
    ] = None,
    config: Annotated[str | None, typer.Option(help="Configuration file.")] = None,
    debug: Annotated[
        bool, typer.Option(help="Show tracebacks and debug logs.")
    ] = False,
    wide: Annotated[
        bool, typer.Option("--wide", help="Tables and DIDs in their whole width.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True)
    ] = False,
) -> None:
    settings: Settings = context.obj
    settings.home, settings.config, settings.debug = home, config, debug
    if wide:
        show_wide()
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.DEBUG if debug else logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    for noisy in (
        *("httpx2", "httpcore2", "openai"),
        *("asyncio", "uvicorn.error"),
    ):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    # The words behind `--` are a command of the owner's.
    end = [*arguments, "--"].index("--")
    ours, rest = list(arguments)[:end], list(arguments)[end:]
    settings = Settings(json="--json" in ours, words=tuple(arguments))
    if WIDE in ours:
        # It is typed behind the command, too.
        arguments = [WIDE, *(one for one in ours if one != WIDE), *rest]
    command = typer.main.get_command(app)

    def work() -> int:
        try:
            result = command.main(
                list(arguments), prog_name="anpd", standalone_mode=False, obj=settings
            )
        except TyperException as exc:
            return _usage(settings, exc)
        except Abort:
            raise KeyboardInterrupt from None
        return result if isinstance(result, int) else 0

    return guarded(settings, work)


def _usage(settings: Settings, exc: TyperException) -> int:
    """Say what is wrong with the words of the command line."""
    context = getattr(exc, "ctx", None)
    where = context.command_path if context else "anpd"
    # A group without a command gets its help, as `anpd` alone does.
    if type(exc).__name__ == "NoArgsIsHelpError" and context and not settings.json:
        print(context.get_help(), file=sys.stderr)
        return EXIT_CODES[ErrorKind.USAGE]
    message = exc.format_message() if hasattr(exc, "format_message") else str(exc)
    detail = f"{message.rstrip('.')}; see `{where} --help`"
    return fail(settings, ErrorKind.USAGE, detail)
