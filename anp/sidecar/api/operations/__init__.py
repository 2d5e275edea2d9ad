"""The operations of the local API with their bodies and answers, one file a noun.

* `daemon`: the daemon itself: identity, health, metrics, events, costs, dashboard.
* `calls`: calls.
* `capabilities`: the capabilities of the local agent.
* `peers`: peers: known, allowed, blocked, asked.
* `negotiations`: negotiations and the owner's word about them.
* `protocols`: agreed protocols.
* `distribution`: protocols in bundles and under URIs.
"""
