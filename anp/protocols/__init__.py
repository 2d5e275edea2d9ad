"""Consensus protocols written by hand, as pure objects.

* `envelope`: the message envelope of seed 003.
* `gbz`: GB/Z 185.6 point to point, of seed 000.
* `timestamps`: date-times of ISO 8601 in the messages of several protocols.
"""
