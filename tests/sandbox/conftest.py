"""A sandbox and a validator for one test each."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from sandbox.pool.pool import Sandbox
from sandbox.pool.validation import SchemaValidator


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    """A started sandbox with the usual limits."""
    started = Sandbox()
    await started.start()
    try:
        yield started
    finally:
        await started.close()


@pytest.fixture
async def validator() -> AsyncIterator[SchemaValidator]:
    """A started validator with two workers."""
    started = SchemaValidator(workers=2, deadline=1.0)
    await started.start()
    try:
        yield started
    finally:
        await started.close()
