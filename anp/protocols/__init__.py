"""Consensus protocols written by hand, as pure objects.

* `envelope`: the message envelope of seed 003.
"""
