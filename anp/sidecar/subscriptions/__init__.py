"""Subscriptions: tasks that times, events and places start (GBZ-63 to GBZ-66).

* `kept`: a subscription with its firings, and its place in the store.
* `scheduler`: watches all of them, and stores each firing before it starts.
* `service`: creates and ends them, and starts their tasks.
* `parts`: Builds the parts of this room from those of the daemon.
* `peers`: Subscriptions that the executor watches, on both sides (GBZ-65).
"""
