"""Peers found by what they publish: chosen, tried in turn, and told of by registries.

* `candidates`: the allowed peers that publish a capability, the best first.
* `dispatcher`: carries a call or task to the first of them that takes it.
"""
