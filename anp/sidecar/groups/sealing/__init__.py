"""Sealed groups as a member has them: what we say is sealed, what comes is opened.

* `member_seal`: Our desk in a sealed group, with the log and the way to the hub.
* `sealed_desk`: The seat of a member in a sealed group, between its log and its hub.
* `seat`: Our seat in one sealed group: what we say is sealed, what comes is opened.
"""
