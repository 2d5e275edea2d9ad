"""Agents that are no servers: they read the calls for them, and answer over the API.

* `desk`: the calls that wait for such agents, leased to those who read them; the
  attachment of one such agent; what a peer sent, fenced and named as the peer's, for a
  model to read. Pure.
"""
