"""Tasks that last, of this agent at peers and of peers at this agent.

* `sessions`: the machines of sessions, restored from the store and kept there.
* `work`: the work on the tasks of peers.
* `service`: starts, serves and follows tasks.
* `chronicle`: The events of one task in order, and the content that they carry in
  pieces.
* `desk`: The tasks of peers that are offered or at work here, and the room that each
  has.
* `exchange`: What goes to and comes from the peers of sessions, over their lines.
* `known`: Tasks and sessions as this daemon names them.
* `room`: The room that the logs of sessions have in the store.
* `standing`: The peers with which something is unfinished, so that nobody has to look
  for them.
* `sealed_logs`: The logs of sessions, whose contents are encrypted where they rest
  (DESIGN.md, Trust).
* `watchers`: Everybody who follows the events of sessions.
* `leases`: The tasks at work in a fleet: each belongs to one daemon, as long as that
  one lives.
* `choice`: The capability that a task without a name of one asks for.
* `skills`: Finds the skill that the messages of a task ask for.
* `delivery`: The ways by which the news of sessions reach the peers.
* `upkeep`: Gives up the tasks that no peer answers, and drops sessions that are old.
"""
