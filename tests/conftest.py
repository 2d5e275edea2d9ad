"""Fixtures and options that all tests share."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import httpx2
import pytest
from hypothesis import settings

from tests.loops.guard import refusing
from tests.loops.long import leave_out
from tests.loops.quick import is_pure
from tests.loops.shown import ShownClauses, is_whole_suite

# The A2A library's clients are of one kind with ours, as in a daemon (attachments/a2a).
httpx2.alias_httpx()

# Hundreds of processes start in one run, and would each compile all that they import.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell starts what it puts into the background with Ctrl-C ignored, and so would the
# commands be that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Examples run on busy machines; a test asserts behaviour, never an absolute time. What
# passed once passes again: new examples are looked for by `make explore`, not by CI.
settings.register_profile("anpd", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1_000)
# For `--hypothesis-profile=long` with a few files, not for all of them.
settings.register_profile("long", deadline=None, max_examples=10_000)
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=10)
settings.load_profile("anpd")

ABOUT_CHILDREN = ("tests/sandbox/", "tests/anp/sidecar/attachments/python/")
"Here the processes start as daemons start them."


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our option."""
    parser.addoption(
        "--quick",
        action="store_true",
        help="run pure tests only, with few examples; sockets and processes fail",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Prepare the run that was asked for."""
    if config.getoption("quick"):
        settings.load_profile("quick")
    config.pluginmanager.register(ShownClauses(whole=is_whole_suite(config)))


def pytest_unconfigure() -> None:
    """End what tests have shared."""
    for name in ("tests.e2e.forks", "tests.e2e.children"):
        shared = sys.modules.get(name)
        if shared is not None:
            shared.close()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what `make quick` does not run, before it is imported."""
    return True if config.getoption("quick") and not is_pure(collection_path) else None


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Leave out what only `make test-long` runs."""
    leave_out(config, items)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage: what is imported now stays to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def _pure(request: pytest.FixtureRequest) -> Iterator[None]:
    """Hold the tests of `make quick` to what they are for."""
    if not request.config.getoption("quick"):
        yield
        return
    with refusing():
        yield


@pytest.fixture(scope="module", autouse=True)
def _forked_children(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fork the Python children of daemons, but where a test is about them."""
    is_about_them = any(one in request.node.nodeid for one in ABOUT_CHILDREN)
    if request.config.getoption("quick") or is_about_them:
        yield
        return
    from tests.e2e import children

    with children.forked(children.parents.start):
        yield
