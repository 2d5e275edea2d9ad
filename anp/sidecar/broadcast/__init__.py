"""One message to many peers.

* `broadcaster`: events of the message envelope, to all peers that listen; does
  something for each of several peers, each within a time.
"""
