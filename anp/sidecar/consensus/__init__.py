"""Consensus protocols: known by URI, kept in a folder, spoken on channels.

* `registry`: the protocols that this daemon knows, serves and publishes.
* `entries`: the files that describe the owner's protocols.
* `folder`: reads the owner's folder of protocols.
* `builtin`: the protocols whose code is part of the daemon.
* `written`: channels that speak a protocol written by hand.
* `published`: the documents of our exposed capabilities, under which anybody may call
  them.
"""
