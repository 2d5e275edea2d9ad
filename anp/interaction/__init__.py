"""Sessions, tasks and messages of agents, without any protocol and without I/O.

* `elements`: the objects that agents exchange, and the events of a session's log.
* `states`: the states of a task: one table of changes, and who may make them.
* `errors`: the error that refuses an operation.
* `stored`: the bytes in which events, heads and tasks are stored.
* `chunks`: chunks of messages, cut and put together within limits.
* `operations`: the operations by which two sides change a session, and their answers.
* `record`: the state of a session on one side, made of its events; sets of numbers as
  runs: the first and the last number of each, in turn.
* `receiver`: the peer's operations: who may do what, and what follows.
* `conversation`: the machine of one session on one side, with the agent's commands.
* `plan`: a task that is made of others, and the way of a task through daemons.
* `step`: Everything that follows from one input to a session, or from several at a
  time.
* `groups`: Groups: members that talk through one hub, which numbers every message.
* `sealing`: sealed groups, whose hub forwards messages that only the members can read.
* `triggers`: Subscriptions: what starts a task again and again, without I/O and without
  a clock.
"""
