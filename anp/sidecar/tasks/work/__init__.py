"""The work on the tasks of peers.

* `worker`: one task of a peer, from its offer to its end.
* `report`: Everything that the requester of a task is told while it is at work, in
  order.
"""
