"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

# Examples run on busy machines; a test asserts behaviour, never an absolute time. What
# passed once passes again: new examples are looked for by `make explore`, not by CI.
settings.register_profile("anpd", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1_000)
# For `--hypothesis-profile=long` with a few files, not for all of them.
settings.register_profile("long", deadline=None, max_examples=10_000)
settings.load_profile("anpd")
