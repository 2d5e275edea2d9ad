"""Commands made from the signatures of functions, over click.

A parameter is an option if its annotation says `Option`, or else an argument; the
parameter of type `Context` gets the context. The docstring is the help.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

import click
from click import Context
from click.shell_completion import CompletionItem

Complete = Callable[[Context, str], list[str]]
"Returns the words that a shell offers for what was typed so far."


class Option:
    """An option of a command; without flags its name is that of the parameter."""

    def __init__(self, *flags: str, **settings: Any) -> None:
        self.flags = flags
        self.settings = settings


class Argument:
    """A word of a command that stands without a flag."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings


class Commands:
    """A group of commands, to which functions are added under their words."""

    def __init__(self, *, help: str = "") -> None:
        self.help = help
        self.made: dict[str, click.Command] = {}

    def command(
        self,
        name: str,
        *,
        help: str | None = None,
        context_settings: Mapping[str, Any] | None = None,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Return a decorator that adds a function, and leaves it as it is.

        Args:
            help: In place of the docstring.
        """

        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            self.made[name] = ShownCommand(
                name,
                params=parameters_of(function),
                callback=with_context(function),
                help=inspect.cleandoc(help or function.__doc__ or ""),
                context_settings=dict(context_settings or {}),
            )
            return function

        return add

    def add(self, below: Commands, name: str) -> None:
        """Add a group below this one."""
        self.made[name] = OrderedGroup(
            name, below.made, help=below.help, no_args_is_help=True
        )


def parameters_of(function: Callable[..., Any]) -> list[click.Parameter]:
    """Return the parameters that a function has on the command line."""
    signature = inspect.signature(function, eval_str=True)
    return [
        _parameter(one)
        for one in signature.parameters.values()
        if one.annotation is not Context
    ]


def with_context(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that click calls: it adds the context, and makes lists."""
    signature = inspect.signature(function, eval_str=True)
    wants = [n for n, one in signature.parameters.items() if one.annotation is Context]

    def call(**given: Any) -> Any:
        for name, value in given.items():
            if isinstance(value, tuple):
                default = signature.parameters[name].default
                given[name] = default if not value and default is None else list(value)
        for name in wants:
            given[name] = click.get_current_context()
        return function(**given)

    return call


def _parameter(one: inspect.Parameter) -> click.Parameter:
    kind, mark = one.annotation, Argument()
    if get_origin(kind) is Annotated:
        kind, mark = get_args(kind)
    if get_origin(kind) in (Union, types.UnionType):
        [kind] = [part for part in get_args(kind) if part is not type(None)]
    is_list = get_origin(kind) is list
    if is_list:
        [kind] = get_args(kind)
    settings = dict(mark.settings)
    limits = {name: settings.pop(name, None) for name in ("min", "max")}
    if complete := settings.pop("autocompletion", None):
        settings["shell_complete"] = _completer(complete)
    is_needed = one.default is inspect.Parameter.empty
    if is_needed:
        settings["required"] = True
    elif not is_list:
        settings["default"] = one.default
    if isinstance(mark, Argument):
        nargs = -1 if is_list else 1
        return click.Argument([one.name], type=_type(kind), nargs=nargs, **settings)
    flags = mark.flags or (f"--{one.name.replace('_', '-')}",)
    if kind is bool:
        if not mark.flags:
            flags = (f"{flags[0]}/--no-{flags[0].removeprefix('--')}",)
        settings["is_flag"] = True
    else:
        settings |= {"type": _type(kind, **limits), "multiple": is_list}
    # An empty text or none at all is no default that tells anything.
    is_shown = not (is_needed or is_list or one.default in (None, "", False))
    return click.Option([*flags, one.name], show_default=is_shown, **settings)


def _type(kind: Any, *, min: Any = None, max: Any = None) -> click.ParamType[Any, Any]:
    if kind is Path:
        return click.Path(path_type=Path)
    if min is not None or max is not None:
        limited = click.IntRange if kind is int else click.FloatRange
        return limited(min, max)
    found: click.ParamType[Any, Any] = click.types.convert_type(kind)
    return found


def _completer(
    complete: Complete,
) -> Callable[[Context, click.Parameter, str], list[CompletionItem]]:
    def words(
        context: Context, parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(word) for word in complete(context, incomplete)]

    return words


class ShownCommand(click.Command):
    """A command whose help ends with an example."""

    def format_epilog(self, ctx: Context, formatter: click.HelpFormatter) -> None:
        """Write the example."""
        from anp.cli.examples import example_of

        formatter.write_paragraph()
        formatter.write(f"Example: {example_of(ctx.command_path)}\n")


class OrderedGroup(click.Group):
    """A group whose help lists the commands in the order in which they were added."""

    def list_commands(self, ctx: Context) -> list[str]:
        """Return the words in that order."""
        return list(self.commands)
