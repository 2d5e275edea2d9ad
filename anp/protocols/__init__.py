"""Consensus protocols written by hand, as pure objects.

* `envelope`: the message envelope of seed 003.
* `gbz`: GB/Z 185.6 point to point, of seed 000.
* `fields`: fields of a peer's objects, each checked for its type and its limits.
* `line`: the frames of one channel that carries sessions, with a count of faults.
* `sides`: the parts that the sides of each of them have in common.
* `timestamps`: date-times of ISO 8601 in the messages of several protocols.
* `a2a`: A2A 0.3 and 1.0 as a codec over sessions and tasks.
"""
