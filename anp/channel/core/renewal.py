"""When a key is to be renewed (DESIGN.md, "Renewed"). Pure."""

from __future__ import annotations

from dataclasses import dataclass

from anp.errors import ConfigError

__all__ = ["RenewalLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewalLimits:
    """How much of a key is used before its requester asks for a new one."""

    life: float = 0.8
    "Part of its life, from 0 to 1."

    messages: int = 2**20
    "Messages in one direction, with the extension `counter`."

    plain_messages: int = 2**16 - 2**12
    """Messages in one direction without it: the receiver remembers every iv, 2^16 at
    most (WIRE), and what is between is for calls in flight."""

    def __post_init__(self) -> None:
        """Refuse limits that would never renew, or without end."""
        if not 0 < self.life < 1:
            raise ConfigError(f"renewal.life must be within 0 and 1, got {self.life}")
        for name in ("messages", "plain_messages"):
            if getattr(self, name) < 1:
                raise ConfigError(f"renewal.{name} must be > 0")

    def due_at(self, opened_at: float, expires_at: float) -> float:
        """Return when a key is to be renewed, in seconds on the clock of both."""
        return opened_at + self.life * (expires_at - opened_at)

    def used_up(self, messages: int, *, counted: bool) -> bool:
        """Whether a key carried so many messages that it is to be renewed.

        Args:
            messages: In the direction that had more of them.
            counted: The channel has the extension `counter`.
        """
        return messages >= (self.messages if counted else self.plain_messages)
