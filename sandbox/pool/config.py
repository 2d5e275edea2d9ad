"""Limits of the sandbox."""

from __future__ import annotations

from dataclasses import dataclass, field

from sandbox.pool.history import QuarantineConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxConfig:
    """Limits of the sandbox."""

    max_workers: int = 64
    "Workers at a time; above it the longest unused one without a call ends."

    share: float = 0.25
    "Part of `max_workers` that one listed peer, or one address, may have."

    idle_timeout: float = 300.0
    "Seconds without a run after which a worker ends; the next run starts another."

    warm_workers: int = 1
    "Locked workers without a module that are kept ready."

    max_source: int = 64 * 1024
    "Largest source text, in bytes of UTF-8 (SANDBOX.md, Layer 0)."

    max_frame: int = 16 * 1024 * 1024
    "Largest frame to or from a worker, in bytes."

    memory: int = 256 * 1024 * 1024
    "Address space of a worker above what it starts with, in bytes."

    load_timeout: float = 5.0
    "Seconds to compile and load a source."

    max_capability_calls: int = 64
    "Capability calls of one run."

    max_capability_bytes: int = 4 * 1024 * 1024
    "Bytes of the arguments of all capability calls of one run."

    max_calls_per_worker: int = 10_000
    "Requests after which a worker is replaced."

    max_growth: int = 64 * 1024 * 1024
    "Growth in resident bytes after which a worker is replaced."

    required_level: str = "full"
    "Isolation that code needs unless rules wrote it; the owner may lower it."

    language_layer: bool = True
    "False leaves out RestrictedPython and the facades, to test the kernel's layers."

    quarantine: QuarantineConfig = field(default_factory=QuarantineConfig)
    "Limits after which a protocol is quarantined because its code kills workers."
