"""Groups: the time until all members have answered a post, and deliveries a second.

* `slim`: the same over SLIM, for a comparison in one run.
"""
