"""Consensus protocols: known by URI, published in a list, picked by need and schema.

* `registry`: the protocols that this agent knows, by URI.
* `listing`: the list that an agent publishes (ANP-95), written and read.
* `selection`: picks the protocol of a peer's list that serves a need, or recalls
  that it did not.
* `written`: the interface of protocols that are written by hand.
"""
