"""Tasks and sessions as this daemon names them."""

from __future__ import annotations

import re
import secrets
import time
from dataclasses import dataclass
from enum import StrEnum

from anp.errors import UnknownError
from anp.interaction.elements import Task

__all__ = ["KnownTask", "Maker", "NoTask", "maker_of", "new_id"]


@dataclass(frozen=True, slots=True)
class KnownTask:
    """A task with the ids under which this daemon has it."""

    id: str
    "Our own id of it, new among all tasks; other than the one on the wire."

    log: str
    "Our own id of its session."

    task: Task


class NoTask(UnknownError):
    """There is no task or session of an id."""

    def __init__(self, what: str) -> None:
        super().__init__(f"there is no {what}")


class Maker(StrEnum):
    """The side that made a session: the last letter of our own ids of it and its tasks.

    So a list shows at once what a local program may see.
    """

    AGENT = "a"
    OWNER = "o"
    PEER = "p"


def maker_of(own_id: str) -> Maker | None:
    """Return the maker of the session that our own id belongs to; None for no such id.

    Args:
        own_id: Id of a session or of a task.
    """
    return Maker(own_id[-1]) if re.fullmatch(r"[0-9a-f]{24}[aop]", own_id) else None


def new_id(maker: str) -> str:
    """Return an id whose order is that of time; see `Maker`."""
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(6)}{maker}"
