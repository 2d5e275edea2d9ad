"""Sessions, tasks and messages of agents, without any protocol and without I/O.

* `elements`: the objects that agents exchange, and the events of a session's log.
* `stored`: the bytes in which events, sessions and tasks are stored.
* `states`: the states of a task: one table of changes, and who may make them.
* `errors`: the error that refuses an operation.
"""
