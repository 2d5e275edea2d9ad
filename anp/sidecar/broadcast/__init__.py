"""One message to many peers.

* `fan_out`: does something for each of several peers, each within a time.
* `broadcaster`: events of the message envelope, to all peers that listen.
"""
