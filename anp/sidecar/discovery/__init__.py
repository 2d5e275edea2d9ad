"""Peers found by what they publish: chosen, tried in turn, and told of by registries.

* `candidates`: the allowed peers that publish a capability, the best first.
* `dispatcher`: carries a call or task to the first of them that takes it.
* `announcement`: the words of a daemon about itself: signed, bounded, for a while.
* `registry`: three capabilities by which a daemon is a registry for others.
* `announcer`: announces this daemon in registries, and withdraws it when it stops.
* `announced`: the words of registries about others, checked, for the owner to decide.
* `parts`: Builds the parts of this room from those of the daemon.
"""
