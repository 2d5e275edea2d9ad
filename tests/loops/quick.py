"""The pure tests: no socket, no process, two minutes of CPU time at most.

Every folder of tests is in one of the two tables here. A new file in a pure folder
belongs to the quick run by itself; if it opens a socket, the run says so.
"""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).parents[1]

MAX_CPU: Final = 120.0
"Seconds of CPU time that `make quick` may take, its workers included."

PURE: Final[dict[str, tuple[str, ...]]] = {
    "": (),
    "anp/channel": (
        "test_admission",
        "test_capabilities",
        "test_dial_errors",
        "test_listener",
        "test_long_links",
        "test_meddling",
        "test_resumption",
        "test_room",
        "test_strangers",
    ),
    "anp/channel/core": (),
    "anp/identity": (),
    "anp/identity/web": ("test_fetcher", "test_post", "test_sdk_documents"),
    "anp/interaction": (),
    "anp/interaction/groups": ("test_walks",),
    "anp/interaction/sealing": (),
    "anp/interaction/triggers": (),
    "anp/protocols/a2a": (),
    "anp/protocols/envelope": (),
    "anp/protocols/gbz": (),
    "anp/sidecar/a2a": (),
    "anp/sidecar/agreement": (),
    "anp/sidecar/api": ("test_listener",),
    "anp/sidecar/api/dashboard": (),
    "anp/sidecar/attachments": (),
    "anp/sidecar/attachments/http": (
        "test_callback",
        "test_results",
        "test_service",
    ),
    "anp/sidecar/bound": (),
    "anp/sidecar/bundles": (),
    "anp/sidecar/calls": ("test_renewer",),
    "anp/sidecar/config": (),
    "anp/sidecar/consensus": (),
    "anp/sidecar/consensus/written": ("test_gbz_shells", "test_shells"),
    "anp/sidecar/discovery": (),
    "anp/sidecar/files": (),
    "anp/sidecar/groups": ("test_crowd", "test_fleet_groups", "test_groups"),
    "anp/sidecar/library": (),
    "anp/sidecar/mcp": (),
    "anp/sidecar/minds": ("test_accounts",),
    "anp/sidecar/offer": (),
    "anp/sidecar/peers": ("test_finder", "test_lists"),
    "anp/sidecar/subscriptions": (),
    "anp/sidecar/tasks": (),
    "anp/sidecar/telemetry": ("test_tracing",),
    "anp/wire": (),
    "cache": ("test_kill",),
    "jsonic": (),
    "cache/parts": ("test_keys",),
    "cache/records": (),
    "cache/redis": (),
    "loops": ("test_shown",),
    "crossings": (),
    "crowd": (),
    "negotiation": (),
    "negotiation/cases": (),
    "negotiation/consensus": (),
    "negotiation/conversations": (),
    "negotiation/document": (),
    "negotiation/exchange": (),
    "negotiation/exchange/dialogue": (),
    "negotiation/faulty": (),
    "negotiation/llm": ("test_failures_on_every_step",),
    "negotiation/llm/asking": ("test_endpoint_server",),
    "negotiation/llm/links": (),
    "negotiation/rules": (),
    "negotiation/schema": (),
    "negotiation/trial": (),
    "sandbox/language": (),
    "sandbox/patterns": (),
    "site": (),
}
"Folders below `tests`, each with its files that are left out: not pure, or too long."

OTHERS: Final = frozenset(
    {
        "a2a",
        "anp",
        "anp/cli",
        "anp/cli/commands",
        "anp/cli/demo",
        "anp/sidecar/attachments/a2a",
        "anp/sidecar/attachments/mcp",
        "anp/sidecar/attachments/python",
        "anp/sidecar/halves",
        "anp/sidecar/home",
        "anp/sidecar/process",
        "attacks",
        "attacks_model",
        "browser",
        "callers",
        "callers/recipes",
        "deploy",
        "e2e",
        "house",
        "redis",
        "sandbox",
        "sandbox/lock",
        "sandbox/pool",
        "sandbox/processes",
        "soak",
    }
)
"Folders whose tests need sockets or processes."


def is_pure(path: Path) -> bool:
    """Return whether the quick run has a folder or file of tests."""
    if not path.is_relative_to(TESTS):
        return True
    if path.is_dir():
        name = path.relative_to(TESTS).as_posix()
        return any(f"{one}/".startswith(f"{name}/") for one in PURE) or name == "."
    folder = path.parent.relative_to(TESTS).as_posix().removeprefix(".")
    return folder in PURE and path.stem not in PURE[folder]


class _Count:
    """Counts the tests that ran."""

    def __init__(self) -> None:
        self.tests = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.tests += report.when == "call"


def run(*options: str) -> tuple[int, dict[str, float]]:
    """Run the pure tests.

    Returns:
        pytest's exit code, and what it took: `cpu_seconds` and `tests`.
    """
    count = _Count()
    code = pytest.main(["--quick", *options], plugins=[count])
    took = [resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN]
    usage = [resource.getrusage(who) for who in took]
    seconds = sum(one.ru_utime + one.ru_stime for one in usage)
    return int(code), {"cpu_seconds": round(seconds, 1), "tests": count.tests}
