"""The dashboard: pages for the owner's browser, and access to them.

* `routes`: its files and its sign-in, as routes of the API.
* `visits`: one-time codes and cookies.
"""

from anp.sidecar.api.dashboard.routes import Dashboard, is_open

__all__ = ["Dashboard", "is_open"]
