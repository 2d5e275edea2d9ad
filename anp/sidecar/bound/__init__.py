"""Channels that are bound to a negotiated protocol, for both roles.

* `requester`: a channel on which we call: calls in flight, tests, repairs.
* `provider`: a channel on which a peer calls: requests, tests, repairs.
* `dialogue`: carries what both sides say about the protocol.
* `cases`: test cases with a peer: agreed, run and kept.
* `verification`: test requests of a requester, and the wait for answers.
* `verified`: tests a new agreement with the peer before it is used.
* `repairer`: writes a half anew when its messages break the protocol.
* `examiner`: lets a model look at what schemas do not decide (ANP-9).
* `exchanges`: the last plaintexts of a channel, kept for repairs.
* `natural`: natural language between agents (PT=10).
"""
