"""What can go wrong with an attachment: the tool said no, or nobody answered."""

from __future__ import annotations

from anp.errors import AnpError

__all__ = ["AttachmentError", "ToolError"]

MAX_MESSAGE = 500
"Longest message of a tool that is passed on, in characters."


class ToolError(AnpError):
    """The tool answered with an error; the provider half tells the peer.

    Codes are those of HTTP: 400 arguments it cannot take, 500 it failed, 502 its
    answer is no result, 503 too many calls are running, 504 it took too long.
    """

    def __init__(self, code: int, message: str) -> None:
        message = message[:MAX_MESSAGE]
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class AttachmentError(AnpError):
    """The attachment itself is dead or cannot be started; the owner has to look.

    Args:
        may_have_run: The call had been handed over when the attachment died.
    """

    def __init__(self, message: str, *, may_have_run: bool = False) -> None:
        super().__init__(message)
        self.may_have_run = may_have_run
