"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

# Examples run on busy machines; a test asserts behaviour, never an absolute time.
settings.register_profile("anpd", deadline=None)
settings.load_profile("anpd")
