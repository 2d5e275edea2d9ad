"""Memory that is freed and kept for the next message."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

from anp.sidecar.process.run import MOST_KEPT, keep_freed_memory

# In a process of its own: what is kept would be kept for the other tests too.
PROGRAM = f"""
from pathlib import Path
from anp.sidecar.process.run import keep_freed_memory

def faults():
    import resource
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

assert keep_freed_memory()
pieces = [bytearray(1 << 20) for _ in range(6)]
del pieces
before = faults()
for _ in range(20):
    pieces = [bytearray(b"x" * (1 << 20)) for _ in range(6)]
    del pieces
print(faults() - before, {MOST_KEPT} // 4096)
"""


def has_glibc() -> bool:
    return sys.platform.startswith("linux") and hasattr(ctypes.CDLL(None), "mallopt")


@pytest.mark.skipif(not has_glibc(), reason="the C library has no such setting")
def test_large_blocks_are_not_asked_of_the_system_again_and_again() -> None:
    run = [sys.executable, "-c", PROGRAM]
    told = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    faults, kept_pages = map(int, told.split())
    # Twenty times six megabytes are 30,720 pages.
    assert faults <= kept_pages


@pytest.mark.parametrize("platform", ["darwin", "linux"])
def test_another_system_is_left_alone(
    platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert not keep_freed_memory()


# In a process of its own: the collector would pass over what other tests left.
ASIDE = """
import gc
from anp.sidecar.process.run import set_aside
before = gc.get_freeze_count()
circle = []
circle.append(circle)
del circle
set_aside()
print(gc.get_freeze_count() > before + 1_000, len(gc.get_objects()) < 1_000)
"""


def test_what_lasts_is_looked_at_no_more() -> None:
    run = [sys.executable, "-c", ASIDE]
    told = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    assert told == "True True\n"
