"""The dashboard: pages for the owner's browser, and access to them.

* `routes`: its files and its sign-in, as routes of the API.
* `visits`: one-time codes and cookies.
"""

from anp.sidecar.api.dashboard.routes import Dashboard, is_open
from anp.sidecar.api.dashboard.visits import Visits, cookie_counts, cookie_name

__all__ = ["Dashboard", "Visits", "cookie_counts", "cookie_name", "is_open"]
