"""The operations of the local API, one file for each noun.

* `calls`: calls and events.
* `peers`: peers: known, allowed, blocked, asked.
* `negotiations`: the owner's queue.
* `protocols`: agreed protocols.
* `bundles`: bundles.
* `consensus`: consensus protocols.
* `spend`: the cost of models.
* `health`: probes, metrics and reload.
* `dashboard`: operations that only the dashboard needs.
"""
