"""Groups of agents and scheduled tasks; nothing is here yet.

* `seat`: Our seat in one sealed group: what we say is sealed, what comes is opened.
"""
