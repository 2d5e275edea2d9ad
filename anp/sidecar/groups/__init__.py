"""Groups of agents and scheduled tasks; nothing is here yet.

* `seat`: Our seat in one sealed group: what we say is sealed, what comes is opened.
* `did_keys`: Keys of DIDs that sign things in groups, checked once each.
* `sealed_desk`: The seat of a member in a sealed group, between its log and its hub.
"""
