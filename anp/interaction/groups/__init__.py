"""Groups: members that talk through one hub, which numbers every message. Pure.

* `elements`: a group, its members and its policy.
* `operations`: the operations by which members and hub change a group, and the answers.
* `offers`: Offers to a group: tasks without an executor, of which the first to accept
  is one.
* `rate`: The pace at which one member may speak; see `Rate`.
* `hub_records`: The records of a group at its hub: tickets, events, and everything of
  one step.
* `membership`: The machine of one group at its hub: who is in it, and what is said in
  which order.
* `member_copy`: A member's copy of a group: its events in the order of their numbers,
  each once.
* `member_state`: The ways in which an agent takes part in a group of others, and how
  that is stored.
"""
