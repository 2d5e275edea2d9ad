"""Tasks of this daemon's own: their parts are given to peers, by a plan.

* `desk`: begins plans, and ends them.
* `worker`: carries out one plan, also over restarts.
* `group_offer`: one task that is offered to a group, whose first member to accept
  does it.
* `outcome`: What came of a part of a plan, at one candidate or at the last of them;
  what a part gave, put together for the whole.
"""
