"""The ways by which the news of sessions reach the peers.

* `lines`: the channels over which GB/Z 185.6 carries sessions.
* `outbox`: brings news to requesters that registered an address.
* `contents`: The contents of a session as its log has them.
"""
