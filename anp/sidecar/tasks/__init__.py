"""Tasks that last, of this agent at peers and of peers at this agent.

* `sessions`: the machines of sessions, restored from the store and kept there.
* `lines`: the channels over which GB/Z 185.6 carries sessions.
* `work`: the work on one task of a peer.
* `service`: starts, serves and follows tasks.
* `chronicle`: The events of one task in order, and the content that they carry in
  pieces.
* `sealed_logs`: The logs of sessions, whose contents are encrypted where they rest
  (DESIGN.md, Trust).
"""
